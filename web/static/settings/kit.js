// What the rooms of the settings are made of: cards, states, fields of settings, questions twice asked.

import * as api from "../lib/api.js";
import { h, icon, iconButton, outLink, unlessBusy } from "../lib/dom.js";
import { errorText } from "../lib/messages.js";
import { helpOf, originOf, sentences, t } from "../locales/index.js";

const SIGNS = { ok: "check", bad: "close", warn: "warn" };

/** A card: its heading, a state (see `tag`), a word beside it, and the setting's name as small print. */
export function card({ id, title, state, note, env }, ...content) {
  const heading = h("h4", { id: `${id}-title` }, title);
  const beside = note ? h("span.muted", note) : null;
  const head = h("header", heading, state, beside, env && small(env));
  return h("section.card", { id, tabindex: "-1", "aria-labelledby": heading.id }, head, ...content);
}

/** The name by which the environment and `config.toml` have a setting. */
export const small = name => h("code.env", { dir: "ltr" }, name);

/** A state in a word: ok, bad, warn, busy or none. */
export function tag(kind, text) {
  const sign = kind === "busy" ? h("span.spinner", { "aria-hidden": "true" }) : SIGNS[kind] && icon(SIGNS[kind]);
  return h("span", { class: `tag ${kind}` }, sign, text);
}

/** Where it is said what went wrong. */
export const problemLine = (props = {}) => h("p.problem", { role: "alert", ...props });

/** A control with its label, and what stands below it. */
export const field = (label, control, ...more) =>
  h("div.field", h("label", { for: control.id }, label), control, ...more);

/** A secret, which nobody reads over a shoulder. */
export const secretBox = (id, props = {}) =>
  h("input", { type: "password", id, autocomplete: "off", placeholder: t("keys.paste"), ...props });

/** The button that sends a form. */
export const sends = (label, kind = "primary") => h("button.small", { type: "submit", class: kind }, label);

/** A button that asks for a file, and the `use(files)` of it. */
export function fileButton(label, use, props = {}) {
  const picker = h("input", { type: "file", hidden: true, "aria-label": label, ...props });
  picker.addEventListener("change", async () => {
    await use([...picker.files]);
    picker.value = "";
  });
  return [button(label, () => picker.click()), picker];
}

/** A line of a list: its title, what is told of it, and what can be done with it. */
export const row = (title, about, beside, ...under) =>
  h(
    "li.row",
    h("div.grow", h("strong", { dir: "auto" }, title), h("p.muted", { dir: "auto" }, about), ...under),
    beside,
  );

/** How far something is. */
export const progress = (done, all, label) =>
  h("progress", { max: String(all || 1), value: all ? String(done) : null, "aria-label": label });

/** A small button with words. */
export const button = (label, onclick, props = {}) =>
  h("button", { onclick, ...props, class: `small ${props.class ?? ""}`.trim() }, label);

/** Fetches the look of forms when the first of them is opened. */
export async function styled() {
  if (document.querySelector("#settings-style")) return;
  const href = new URL("settings.css", import.meta.url);
  const style = h("link", { id: "settings-style", rel: "stylesheet", href });
  const ready = new Promise(done => style.addEventListener("load", done, { once: true }));
  document.head.append(style);
  await ready;
}

/** A button that does its work at the second press; the first one changes its words. `name` is read aloud. */
export function confirmed(label, sure, work, name = label) {
  const yes = button(
    sure,
    () => {
      back();
      return work();
    },
    { class: "danger" },
  );
  const no = button(t("privacy.no"), () => back());
  const first = button(
    label,
    () => {
      place.replaceChildren(yes, no);
      no.focus();
    },
    { class: "danger", "aria-label": name },
  );
  const place = h("span.line", first);
  function back() {
    place.replaceChildren(first);
    first.focus();
  }
  return place;
}

/** An icon that asks once more, in words, before it does its work. */
export function iconConfirmed(name, label, sure, work) {
  const yes = button(sure, work, { class: "danger" });
  const ask = iconButton(name, label, () => {
    ask.replaceWith(yes);
    yes.focus();
  });
  return ask;
}

/** Does `work`; what goes wrong is said in `said`. Returns whether it was done. */
export async function attempt(said, work) {
  said.textContent = "";
  try {
    await work();
    return true;
  } catch (failure) {
    said.textContent = errorText(failure);
    return false;
  }
}

/** A line of text. */
export function textBox(value = "", props = {}) {
  const box = h("input", { type: "text", autocomplete: "off", spellcheck: "false", dir: "auto", ...props });
  box.value = value;
  return box;
}

/** Lines of text. */
export function textArea(value = "", props = {}) {
  const box = h("textarea", { dir: "auto", ...props });
  box.value = value;
  return box;
}

/** A control that offers [value, label] pairs; a value that is not among them stays choosable. */
export function choice(options) {
  return value => {
    const all = options.some(([v]) => v === value) ? options : [[value, value], ...options];
    const select = h("select", ...all.map(([v, label]) => h("option", { value: v }, label)));
    select.value = value;
    return select;
  };
}

/** Few [value, label] pairs side by side, of which one is in force. */
export function segments(name, label, options, value, set) {
  const one = ([v, words]) => {
    const radio = h("input", { type: "radio", name, value: v });
    radio.checked = v === value;
    radio.addEventListener("change", () => set(v));
    return h("label", radio, words);
  };
  return h("div.field", h("fieldset.seg", { id: `set-${name}` }, h("legend", label), options.map(one)));
}

/** A switch with its words. `change(on)` may return a promise. */
export function toggle(label, on, change, props = {}) {
  const box = h("input", { type: "checkbox", role: "switch", checked: on, ...props });
  box.addEventListener("change", () => change(box.checked));
  return h("label.flag", box, h("span.track", { "aria-hidden": "true" }), label);
}

// Settings whose only value is 1 say so in their help.
const ON = /^1\s*=\s*/;
const isSwitch = ({ help }) => ON.test(help ?? "");
const sentence = text => text.charAt(0).toUpperCase() + text.slice(1);

/** What a setting is for, as the label of its field. */
export const labelOf = setting => sentence(helpOf(setting).replace(ON, ""));

/**
 * A labelled control of one setting. `make(value)` gives the control; its `value` is sent when it
 * changes. Without `make` it is a line of text, or a switch where there is only on and off. A field
 * may edit one `part` of a value: `read` takes it out of the setting, `write` returns the whole value.
 */
export function settingField(
  store,
  name,
  { label, hint, make = textBox, part, read = currentValue, write = value => value, done } = {},
) {
  const id = part ? `set-${name}-${part}` : `set-${name}`;
  const setting = store.get(name);
  if (!setting) return null;
  const problem = problemLine({ id: `${id}-problem` });
  const start = setting.origin === "default";
  const fixed = setting.changeable
    ? ""
    : t(start ? "settings.start" : "settings.fixed", { origin: originOf(setting.origin) });
  const about = { id, "aria-describedby": `${id}-hint ${id}-problem` };
  const send = async (control, value) => {
    control.setAttribute("aria-busy", "true");
    if (await attempt(problem, () => store.change({ [name]: value || null }))) done?.();
    control.removeAttribute("aria-busy");
  };
  const words = label ?? labelOf(setting);
  const under = [h("p.muted", { id: `${id}-hint` }, sentences(hint, fixed)), problem];
  if (isSwitch(setting)) {
    const isOn = () => ["1", "true", "yes", "on"].includes(currentValue(store.get(name)).toLowerCase());
    const off = setting.default ? "0" : ""; // what is on by itself is switched off by its own word
    const change = async value => {
      await send(whole.firstChild, value ? "1" : off);
      whole.firstChild.checked = isOn();
    };
    const whole = toggle(words, isOn(), change, { ...about, disabled: !setting.changeable });
    return h("div.field", h("div.label", whole, small(name)), under);
  }
  const control = make(read(setting), setting);
  for (const [key, value] of Object.entries(about)) control.setAttribute(key, value);
  control.disabled = !setting.changeable;
  control.addEventListener("change", async () => {
    await send(control, write(control.value.trim()));
    if (!problem.textContent) control.value = read(store.get(name));
  });
  return h("div.field", h("div.label", h("label", { for: id }, words), part ? null : small(name)), control, under);
}

const currentValue = setting => setting.value || setting.default || "";

/** What the help of a key says: where it is made, and how it begins. */
export function aboutKey({ help }) {
  const [url] = /https?:\/\/\S+/.exec(help) ?? [];
  const [, begins] = /\(([\w-]+)\.{3}\)/.exec(help) ?? [];
  return { url, begins };
}

/** Where a key is made. */
export const keyIsMade = url => h("p.muted", t("keys.where"), " ", outLink(url, {}, new URL(url).hostname));

/** A state and its word for why a trial failed. */
export function refusal({ code }) {
  if (code === "offline") return ["none", "state.offline"];
  return code === "unauthorized" ? ["bad", "state.refused"] : ["warn", "state.untested"];
}

/**
 * A form whose `fields` give `changes()` {key?, address?} or null for `provider()` {name, key}: they are
 * tested, kept only if the provider answers, and `done(name)` is told.
 */
export function trialForm(provider, changes, fields, done) {
  const said = problemLine();
  const state = h("span.line", { role: "status" });
  const go = sends(t("keys.test"));
  const submit = unlessBusy(go, async () => {
    const wanted = changes();
    const { name, key } = provider();
    if (!wanted) return form.querySelector("input").focus();
    said.replaceChildren();
    state.replaceChildren(tag("busy", t(wanted.key ? "state.testing" : "state.asking")));
    try {
      await api.testProvider(name, { ...wanted, save: true });
      await done(name);
    } catch (failure) {
      const [kind, word] = refusal(failure);
      state.replaceChildren(tag(kind, t(word)));
      const untested = kind !== "bad" && wanted.key && !("address" in wanted);
      const keep = async () => (await attempt(said, () => api.saveKey(key.name, wanted.key))) && done(name);
      said.replaceChildren(
        errorText(failure),
        " ",
        t("keys.unsaved"),
        " ",
        untested ? button(t("keys.anyway"), keep) : "",
      );
    }
  });
  const form = h("form.trial", { onsubmit: submit }, h("div.line", fields, go), state, said);
  return form;
}

/** A control whose change is sent at once; the line below says that it is saved, or why not. */
export function savedField(id, label, control, hint, send) {
  const state = h("p.muted", { id: `${id}-state`, role: "status" }, hint);
  control.id = id;
  control.setAttribute("aria-describedby", `${id}-state`);
  control.addEventListener("change", async () => {
    if (await attempt(state, () => send(control.value))) state.textContent = t("project.saved");
  });
  return h("div.field", h("label", { for: id }, label), control, state);
}
