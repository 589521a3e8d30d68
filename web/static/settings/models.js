// The room of models: a card for each provider, the models of one's own server, the usual model.

import { badges } from "../composer/model_picker.js";
import * as api from "../lib/api.js";
import { copyText, h, iconButton, keepFocus } from "../lib/dom.js";
import { errorText } from "../lib/messages.js";
import { clauses, nameOf, number, originOf, t, titleOf } from "../locales/index.js";
import {
  aboutKey,
  attempt,
  button,
  card,
  choice,
  confirmed,
  keyIsMade,
  problemLine,
  progress,
  refusal,
  row,
  secretBox,
  sends,
  settingField,
  small,
  tag,
  textBox,
  trialForm,
} from "./kit.js";

const LOOK = 700; // milliseconds between looks at models on their way
const USUAL = "SEARCHLOOP_MODEL";
const GB = 1e9;

/** The usual model, and who can answer. Returns what to do on leaving. */
export async function modelsPage(body, { changed, store }) {
  const usual = h("div");
  const own = h("div.cards");
  const others = h("div.cards");
  const forms = new Map();
  const sure = new Set();
  let timer = 0;
  body.append(usual, own, others);
  let [{ list, servers }, providers] = await Promise.all([api.models(), api.providers()]);
  const hosts = new Set(servers.map(server => server.provider));
  draw();
  const rank = ({ address, key }) => (address ? 2 : key?.set ? 0 : 1);
  const rest = providers.filter(({ name }) => !hosts.has(name)).sort((a, b) => rank(a) - rank(b));
  others.replaceChildren(...rest.map(provider => providerCard(provider)));
  return () => clearTimeout(timer);

  /** What is there now, after something was got, deleted or saved. */
  async function look() {
    changed();
    ({ list, servers } = await api.models());
    draw();
  }

  function draw() {
    const ready = list.filter(model => model.available).map(({ id, ...model }) => [id, choiceOf({ id, ...model })]);
    const field = settingField(store, USUAL, {
      label: t(`set.${USUAL}`),
      make: choice([["", t("set.model.last")], ...ready]),
    });
    usual.replaceChildren(field);
    keepFocus(own, () => own.replaceChildren(...servers.map(serverCard)));
  }

  // -- a server of one's own, which gets and deletes models ------------------------------------------

  function serverCard(server) {
    const { provider, name, version, address } = server;
    const models = list.filter(model => model.id.startsWith(`${provider}:`) && model.available);
    const up = version !== null;
    const settings = providers.find(each => each.name === provider);
    const state = up
      ? tag(models.length ? "ok" : "warn", t(models.length ? "state.works" : "state.nomodel"))
      : tag("bad", t("state.notfound"));
    const note = up ? t("models.up", { version, address }) : "";
    return card(
      { id: `provider-${provider}`, title: name, state, note, env: settings?.address?.name },
      up ? null : absent(server),
      models.length > 0 && h("ul.rows", models.map(modelRow)),
      up && pulling(provider, models.length),
      settings && serverMore(settings),
    );
  }

  function absent({ name, address }) {
    const command = t("models.start");
    const copy = button(t("copy"), () => copyText(command, copy));
    const again = button(t("models.look"), look, { id: "look-again" });
    return h(
      "div",
      h("p", t("models.down", { name, address })),
      h("p.line", h("code", { dir: "ltr" }, command), copy, again),
    );
  }

  // Where it is, the window to ask for, its cloud: seldom needed.
  function serverMore({ name, address, key, more }) {
    return h(
      "details.more",
      h("summary", t("models.more")),
      h(
        "div.settings-page",
        addressForm(name, address, null),
        more.map(setting => settingField(store, setting.name)),
        key && keyPart({ name, key, address: null }),
      ),
    );
  }

  function modelRow(model) {
    const said = problemLine();
    const name = titleOf(model);
    const { window } = model.loaded ?? {};
    const about = [
      model.disk > GB / 20 ? t("models.disk", { size: number(model.disk / GB, 1) }) : "",
      ...badges(model),
      model.loaded
        ? t(window ? "models.loaded.window" : "models.loaded", { k: number(Math.round((window ?? 0) / 1024)) })
        : "",
    ];
    const act = work => async () => (await attempt(said, () => work(model.id))) && look();
    const unload = { "aria-label": t("models.unload.of", { model: name }) };
    const acts = [
      useButton(model),
      model.loaded && button(t("models.unload"), act(api.unloadModel), unload),
      removal(model.id, t("models.remove", { model: name }), act(api.removeModel)),
    ];
    return row(name, clauses(about), h("div.acts", acts), said);
  }

  // An icon that asks once more, in words, before it does its work; a list drawn anew still asks.
  function removal(id, label, work) {
    const yes = button(t("models.sure"), () => sure.delete(id) && work(), { id: `remove-${id}`, class: "danger" });
    const ask = iconButton("trash", label, () => {
      sure.add(id);
      ask.replaceWith(yes);
      yes.focus();
    });
    return sure.has(id) ? yes : ask;
  }

  // Nothing to press for the model that new chats have already.
  function useButton({ id, ...model }) {
    if (store.get(USUAL)?.value === id) return tag("ok", t("models.usual"));
    if (!store.get(USUAL)?.changeable) return null;
    const use = async () => {
      await store.change({ [USUAL]: id });
      draw();
    };
    return button(t("models.use"), use, {
      id: `use-${id}`,
      "aria-label": t("models.use.of", { model: titleOf({ id, ...model }) }),
    });
  }

  // The form stays the same while what is above it changes: somebody may be typing.
  function pulling(provider, some) {
    if (!forms.has(provider)) forms.set(provider, pullForm(provider));
    const form = forms.get(provider);
    form.querySelector("label").textContent = t(some ? "models.pull.more" : "models.pull.first");
    form.querySelector("button").classList.toggle("primary", !some);
    return form;
  }

  function pullForm(provider) {
    const box = textBox("", { id: `pull-${provider}`, placeholder: t("models.example"), dir: "ltr" });
    const said = problemLine();
    const under = h("ul.rows");
    const submit = async () => {
      const name = box.value.trim();
      if (!name) return;
      if (await attempt(said, () => api.pullModel(`${provider}:${name}`))) {
        box.value = "";
        running.add(`${provider}:${name}`);
      }
      watch().catch(() => {});
    };
    let running = new Set();
    const watch = async () => {
      clearTimeout(timer);
      const pulls = (await api.pulls()).filter(pull => pull.state !== "done");
      if (!under.isConnected) return;
      under.replaceChildren(...pulls.map(pull => pullRow(pull, watch)));
      const now = new Set(pulls.filter(pull => pull.state === "running").map(pull => pull.model));
      const ended = [...running].some(model => !now.has(model));
      running = now;
      if (now.size) timer = setTimeout(() => watch().catch(() => {}), LOOK);
      if (ended) await look();
    };
    const form = h(
      "form.field",
      { onsubmit: submit },
      h("label", { for: box.id }),
      h("div.line", box, sends(t("models.pull"), "")),
      said,
      under,
    );
    queueMicrotask(() => watch().catch(() => {}));
    return form;
  }

  // -- a provider with a key, or another server ------------------------------------------------------

  function providerCard(provider) {
    const { name, key, address } = provider;
    const set = key?.set || Boolean(address?.value);
    const state = h("span.line", { role: "status" });
    const told = h("p.muted");
    const names = h("div");
    const whole = card(
      { id: `provider-${name}`, title: nameOf(name), state, env: key?.name },
      told,
      names,
      address ? addressForm(name, address, key) : keyPart(provider),
    );
    const show = (kind, word, text) => {
      state.replaceChildren(tag(kind, t(word)));
      told.textContent = text ?? "";
    };
    whole.test = async () => {
      show("busy", "state.testing", t("models.testing"));
      try {
        const { models } = await api.testProvider(name, {});
        show("ok", "state.works", t("models.count", { n: models }));
        names.replaceChildren(modelList(name));
      } catch (failure) {
        const lacks = failure.code === "unauthorized" && key && !key.set; // a server elsewhere that wants one
        const told = failure.code === "offline" ? t("models.offline") : lacks ? "" : errorText(failure);
        show(...(lacks ? ["none", "state.nokey"] : refusal(failure)), told);
      }
    };
    if (key?.strayed) show("warn", "state.moved", t("keys.strayed", { name: key.strayed }));
    else if (set) whole.test();
    else show("none", address ? "state.unset" : "state.nokey");
    return whole;
  }

  async function redraw(name) {
    providers = await api.providers();
    const old = others.querySelector(`#provider-${CSS.escape(name)}`);
    const fresh = providers.find(each => each.name === name);
    await look();
    if (!old || !fresh) return;
    const made = providerCard(fresh);
    old.replaceWith(made);
    made.focus();
  }

  // The key of a provider: where to get one, or who has set it, and what can be done with it.
  function keyPart(provider) {
    const { name, key } = provider;
    const { url } = aboutKey(key);
    if (key.set && !key.saved) {
      return h("div.line", h("p.muted", t("keys.fixed", { origin: originOf(key.origin) })), again(name));
    }
    const form = secretForm({ name, key, url });
    if (!key.saved) return form;
    form.hidden = true;
    const other = button(t("keys.replace"), () => {
      form.hidden = false;
      form.querySelector("input").focus();
    });
    const said = problemLine();
    const remove = confirmed(t("keys.remove"), t("keys.sure"), async () => {
      if (await attempt(said, () => api.forgetKey(key.name))) redraw(name);
    });
    return h("div", h("div.line", again(name), other, remove), said, form);
  }

  function again(name) {
    return button(t("keys.again"), () => others.querySelector(`#provider-${CSS.escape(name)}`)?.test?.());
  }

  function secretForm({ name, key, url }) {
    const box = secretBox(`key-${key.name}`);
    const given = () => (box.value.trim() ? { key: box.value.trim() } : null);
    const label = h("label.vh", { for: box.id }, t("keys.of", { name: nameOf(name) }));
    return h(
      "div",
      trialForm(() => ({ name, key }), given, [label, box], redraw),
      url && keyIsMade(url),
    );
  }

  // Another server: its address, and a key if it wants one.
  function addressForm(name, address, key) {
    const box = textBox(address.value, {
      id: `set-${address.name}`,
      dir: "ltr",
      placeholder: address.default || "http://127.0.0.1:8000/v1",
      "aria-describedby": `${address.name}-hint`,
    });
    const hint = h("p.muted", { id: `${address.name}-hint` });
    const label = h("div.label", h("label", { for: box.id }, t("models.address")), small(address.name));
    const fields = [h("div.field.grow", label, box, hint)];
    if (!address.changeable) {
      box.disabled = true;
      hint.textContent = t(address.origin === "default" ? "settings.start" : "settings.fixed", {
        origin: originOf(address.origin),
      });
      return h("div", fields, key && keyPart({ name, key }));
    }
    const secret = secretBox(`key-${name}`, { placeholder: key?.set ? t("keys.kept") : "" });
    if (key)
      fields.push(h("div.field.grow", h("div.label", h("label", { for: secret.id }, t("models.address.key"))), secret));
    const changes = () => {
      const moved = box.value.trim() !== (address.value ?? "");
      const found = {
        ...(moved ? { address: box.value.trim() || null } : {}),
        ...(secret.value.trim() ? { key: secret.value.trim() } : {}),
      };
      return Object.keys(found).length ? found : null;
    };
    return trialForm(() => ({ name, key }), changes, fields, redraw);
  }

  // The models that a provider lists, drawn when somebody looks.
  function modelList(name) {
    const rows = h("ul.rows");
    const fill = ({ target }) => {
      if (!target.open) return;
      const found = list.filter(model => model.id.startsWith(`${name}:`) && model.available);
      rows.replaceChildren(...found.map(model => row(titleOf(model), clauses(badges(model)), useButton(model))));
    };
    return h("details.more", { ontoggle: fill }, h("summary", t("models.list")), rows);
  }
}

function choiceOf(model) {
  return model.id.startsWith("builtin:")
    ? titleOf(model)
    : t("models.of", { model: titleOf(model), name: nameOf(model.id.split(":")[0]) });
}

function pullRow(pull, look) {
  const bar = progress(pull.done, pull.total, t("models.progress", { model: pull.model }));
  const cancel = button(t("models.stop"), () => api.cancelPull(pull.model).then(look, look), {
    "aria-label": t("models.cancel", { model: pull.model }),
  });
  const running = pull.state === "running";
  const size = bytes => number(bytes / GB, 1);
  const words = pull.error
    ? errorText(pull.error)
    : !running
      ? t(`pull.${pull.state}`)
      : pull.total
        ? t("models.bytes", { done: size(pull.done), total: size(pull.total) })
        : t("models.begins");
  return row(pull.model.split(":").slice(1).join(":"), words, running && cancel, running && bar);
}
