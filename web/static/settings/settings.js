// Settings: a dialog with a page for each subject, fetched when it is first opened.
//
// A value is the server's: a control asks it to change the setting and then shows what it answered.

import * as api from "../lib/api.js";
import { h, iconButton } from "../lib/dom.js";
import { errorText } from "../lib/messages.js";
import { agentsPage } from "./agents.js";
import { keysPage, modelsPage } from "./models.js";
import { privacyPage } from "./privacy.js";
import { enginesPage, libraryPage } from "./search.js";
import { toolsPage } from "./tools.js";
import { chooseLanguage, chosenLanguage, helpOf, languages, originOf, sentences, t, titleOf } from "../locales/index.js";

const THEME = "searchloop.theme";
const LIMITS = ["steps", "searches", "pages", "tokens", "seconds", "cost_usd"];

/** Makes the dialog ready; returns open(page?). `on` holds facts(), changed() and newChat(temporary). */
export function settingsDialog(dialog, on) {
  const pages = {
    general: generalPage,
    models: modelsPage,
    keys: keysPage,
    search: enginesPage,
    library: libraryPage,
    agents: agentsPage,
    tools: toolsPage,
    limits: limitsPage,
    privacy: privacyPage,
    all: everyPage,
  };
  const store = settingsStore(on.changed);
  const body = h("div", { class: "settings-body", tabindex: "-1" });
  const tabs = Object.keys(pages).map((page) =>
    h("button", { type: "button", "data-page": page, onclick: () => show(page) }, t(`settings.${page}`)),
  );
  const nav = h("nav", { "aria-label": t("settings.title") }, tabs);
  let leaving = () => {};
  const newChat = (temporary) => {
    dialog.close();
    on.newChat(temporary);
  };

  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => leaving());

  async function show(name) {
    leaving();
    leaving = () => {};
    for (const tab of tabs) tab.removeAttribute("aria-current");
    const tab = tabs.find((each) => each.dataset.page === name);
    tab.setAttribute("aria-current", "page");
    tab.scrollIntoView({ block: "nearest", inline: "center" });
    tab.focus();
    const title = h("h3", {}, t(`settings.${name}`));
    const page = h("div", { class: "settings-page", "aria-busy": "true" }, title);
    body.replaceChildren(page);
    body.scrollTop = 0;
    try {
      await store.load();
      const leave = (await pages[name](page, { ...on, newChat, store, show })) ?? leaving;
      if (page.isConnected && dialog.open) leaving = leave;
      else leave();
    } catch (failure) {
      page.append(h("p", { class: "problem", role: "alert" }, errorText(failure)));
    }
    page.removeAttribute("aria-busy");
  }

  return async function open(name = "general") {
    if (!document.querySelector("#settings-style")) {
      const style = h("link", { id: "settings-style", rel: "stylesheet", href: "/static/settings/settings.css" });
      const ready = new Promise((done) => style.addEventListener("load", done, { once: true }));
      document.head.append(style);
      await ready;
    }
    const head = h(
      "header",
      {},
      h("h2", { id: "settings-title" }, t("settings.title")),
      iconButton("close", t("close"), () => dialog.close(), { class: "quiet" }),
    );
    dialog.replaceChildren(head, nav, body);
    if (!dialog.open) dialog.showModal();
    await show(name);
  };
}

/** What the server last said of its settings. */
function settingsStore(changed) {
  let known = new Map();
  const adopt = (list) => (known = new Map(list.map((setting) => [setting.name, setting])));
  return {
    load: async () => adopt(await api.settings()),
    get: (name) => known.get(name),
    all: () => [...known.values()],
    async change(changes) {
      adopt(await api.changeSettings(changes));
      changed();
    },
  };
}

/**
 * A labelled control of one setting. `make(value)` gives the control; its `value` is sent when it
 * changes. Without `make` it is a line of text. A field may edit one `part` of a value: `read` takes
 * it out of the setting, `write` returns the whole value.
 */
export function settingField(store, name, { label, hint, make = textBox, part, read = valueOf, write = (value) => value } = {}) {
  const id = part ? `set-${name}-${part}` : `set-${name}`;
  const setting = store.get(name);
  const problem = h("p", { class: "problem", role: "alert", id: `${id}-problem` });
  const control = make(read(setting), setting);
  const start = setting.origin === "default";
  const origin = originOf(setting.origin);
  const fixed = setting.changeable ? "" : t(start ? "settings.start" : "settings.fixed", { origin });
  control.id = id;
  control.disabled = !setting.changeable;
  control.setAttribute("aria-describedby", `${id}-hint ${id}-problem`);
  control.addEventListener("change", async () => {
    problem.textContent = "";
    control.setAttribute("aria-busy", "true");
    try {
      await store.change({ [name]: write(control.value.trim()) || null });
      control.value = read(store.get(name));
    } catch (failure) {
      problem.textContent = errorText(failure);
    }
    control.removeAttribute("aria-busy");
  });
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, label ?? t(`set.${name}`)),
    control,
    h("p", { class: "muted", id: `${id}-hint` }, sentences(hint, fixed)),
    problem,
  );
}

const valueOf = (setting) => setting.value || setting.default;

function textBox(value) {
  const box = h("input", { type: "text", autocomplete: "off", spellcheck: "false", dir: "auto" });
  box.value = value;
  return box;
}

/** A control that offers [value, label] pairs; a value that is not among them stays choosable. */
export function choice(options) {
  return (value) => {
    const all = options.some(([v]) => v === value) ? options : [[value, value], ...options];
    const select = h("select", {}, all.map(([v, label]) => h("option", { value: v }, label)));
    select.value = value;
    return select;
  };
}

function generalPage(body, { store, facts }) {
  const models = facts().models.filter((m) => m.available !== false).map((m) => [m.id, titleOf(m)]);
  const searches = ["off", "auto", "native", "local"].map((s) => [s, t(`via.${s}`)]);
  body.append(
    localField("theme", t("set.theme"), ["", "light", "dark"].map((v) => [v, t(`theme.${v || "system"}`)]), localStorage.getItem(THEME) ?? "", (value) => {
      localStorage.setItem(THEME, value);
      document.documentElement.dataset.theme = value;
    }),
    localField("language", t("set.language"), [["", t("language.browser")], ...languages], chosenLanguage(), (value) => {
      chooseLanguage(value);
      location.reload();
    }),
    settingField(store, "SEARCHLOOP_MODEL", { make: choice([["", t("set.model.last")], ...models]) }),
    settingField(store, "SEARCHLOOP_SEARCH", { make: choice(searches) }),
  );
}

// What belongs to this browser and not to the server.
function localField(name, label, options, value, set) {
  const select = choice(options)(value);
  select.id = `set-${name}`;
  select.addEventListener("change", () => set(select.value));
  return h("div", { class: "field" }, h("label", { for: select.id }, label), select, h("p", { class: "muted" }, t("settings.here")));
}

function limitsPage(body, { store }) {
  body.append(h("p", { class: "muted" }, t("settings.limits.lead")));
  const number = (value) => {
    const box = textBox(value);
    box.inputMode = "decimal";
    box.placeholder = t("settings.nolimit");
    return box;
  };
  const setting = "SEARCHLOOP_LIMITS";
  const pairs = (text) => new Map(text.split(",").filter(Boolean).map((pair) => pair.split("=").map((word) => word.trim())));
  for (const part of LIMITS) {
    const read = ({ value, default: usual }) => pairs(value).get(part) ?? pairs(usual).get(part) ?? "";
    const write = (value) => {
      const all = pairs(store.get(setting).value).set(part, value);
      return [...all].filter(([, each]) => each).map((pair) => pair.join("=")).join(",");
    };
    body.append(settingField(store, setting, { label: t(`set.limit.${part}`), make: number, part, read, write }));
  }
}

// All there is, as `searchloop config` lists it; what the pages above do not have is changed here.
function everyPage(body, { store }) {
  body.append(h("p", { class: "muted" }, t("settings.all.lead")));
  for (const setting of store.all()) {
    const label = h("code", {}, setting.name);
    body.append(settingField(store, setting.name, { label, hint: helpOf(setting) }));
  }
}
