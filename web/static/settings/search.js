// The room of search: who searches, the engines in their order, and what every search is held to.

import { reasonOf } from "../composer/search_switch.js";
import * as api from "../lib/api.js";
import { h, iconButton, keepFocus, unlessBusy } from "../lib/dom.js";
import { errorText } from "../lib/messages.js";
import { has, nameOf, t } from "../locales/index.js";
import {
  attempt,
  button,
  card,
  choice,
  labelOf,
  problemLine,
  secretBox,
  sends,
  settingField,
  small,
  tag,
  toggle,
} from "./kit.js";

const TRIAL = "weather"; // what a test searches for
const OFFLINE = "offline";
const SITES = "sites"; // in the list of engines: official sites are asked when they fail
const CHAIN = "SEARCH_ENGINES";

/** Engines, each with its state and a test, and what every search is held to. */
export async function enginesPage(body, { store, changed }) {
  const list = h("ol.rows.engines");
  const more = h("ul.rows");
  const rest = h("div.settings-page");
  const problem = problemLine();
  const spoken = h("p.vh", { role: "status" });
  const offline = h("p.muted", { hidden: true }, t("settings.search.offline"));
  const tried = new Map(); // engine -> what its test said
  const chosen = () =>
    (store.get(CHAIN)?.value ?? "")
      .split(",")
      .map(name => name.trim())
      .filter(Boolean);
  const fits = () => !chosen().length || chosen().includes(SITES);
  const sites = h("div");
  let last = Promise.resolve();
  let names = [];
  let keys = new Map();
  body.append(
    settingField(store, "SEARCHLOOP_SEARCH", {
      label: t("set.SEARCHLOOP_SEARCH"),
      hint: t("settings.search.auto"),
      make: choice(["off", "auto", "native", "local"].map(s => [s, t(`via.${s}`)])),
    }),
    card(
      { id: "engines", title: t("engine.title"), note: t("engine.order"), env: CHAIN },
      offline,
      list,
      problem,
      spoken,
      sites,
    ),
    card({ id: "more-engines", title: t("engine.more") }, more, rest),
    card(
      { id: "sites", title: t("engine.sites") },
      ["SEARCH_ALLOWED_DOMAINS", "SEARCH_BLOCKED_DOMAINS"].map(name =>
        settingField(store, name, { label: t(`set.${name}`), hint: t("settings.sites") }),
      ),
      settingField(store, "SEARCH_COUNTRY", { label: t("set.SEARCH_COUNTRY") }),
      settingField(store, "SEARCH_CONTACT"),
    ),
  );
  await draw();

  async function draw() {
    const before = last;
    const [{ engines }, saved, providers] = await Promise.all([api.engines(), api.keys(), api.providers()]);
    if (before !== last) return; // old by now
    keys = new Map(saved.map(key => [key.name, key]));
    const placed = new Set([
      ...engines.flatMap(engine => engine.needs ?? []),
      ...providers.map(({ key }) => key?.name),
    ]);
    offline.hidden = !engines.some(e => e.problem?.code === OFFLINE);
    const chain = engines.filter(e => e.position).sort((a, b) => a.position - b.position);
    const others = engines.filter(e => !e.position).sort((a, b) => b.available - a.available);
    names = chain.map(e => e.name);
    keepFocus(body, () => {
      list.replaceChildren(...chain.map(engine => row(engine, placeButtons(engine.name))));
      more.replaceChildren(...others.map(engine => row(engine, [useButton(engine)])));
      rest.replaceChildren(...saved.filter(({ name }) => !placed.has(name)).map(optionalKey));
      sites.replaceChildren(
        toggle(t("engine.fitting"), fits(), on => keep(all => all, on), { id: "set-sites", disabled: !free() }),
      );
    });
  }

  function free() {
    return Boolean(store.get(CHAIN)?.changeable);
  }

  // One change after the other: each starts from what the one before it left, and the last is drawn.
  function keep(reorder, official) {
    const mine = last.then(async () => {
      const wanted = reorder(names);
      const kept = await attempt(problem, () =>
        store.change({ [CHAIN]: [...wanted, ...((official ?? fits()) ? [SITES] : [])].join(",") }),
      );
      if (kept) names = wanted;
      else list.append(...names.map(name => body.querySelector(`#engine-${CSS.escape(name)}`)));
      if (mine === last) await draw().catch(() => {});
      return kept;
    });
    return (last = mine);
  }

  async function move(name, place) {
    const moved = await keep(all => all.filter(each => each !== name).toSpliced(place, 0, name));
    if (moved) spoken.textContent = t("engine.moved", { name: nameOf(name), n: names.indexOf(name) + 1 });
  }

  function placeButtons(name) {
    const title = nameOf(name);
    const index = names.indexOf(name);
    const up = () => move(name, index - 1);
    const out = () => keep(all => all.filter(each => each !== name));
    return [
      index > 0 &&
        iconButton("send", t("engine.up", { name: title }), up, { disabled: !free(), "data-focus": `up-${name}` }),
      names.length > 1 && iconButton("close", t("engine.remove", { name: title }), out, { disabled: !free() }),
    ];
  }

  function useButton({ name, available }) {
    return button(t("engine.use"), () => keep(all => [...all, name]), {
      disabled: !free() || !available,
      "aria-label": t("engine.use.of", { name: nameOf(name) }),
    });
  }

  function row(engine, buttons) {
    const { name, available, needs = [], missing = [] } = engine;
    const said = h("p.muted", { role: "status" }, tried.get(name)?.text ?? aboutOf(engine));
    const state = h("span", stateOf(engine, tried.get(name)));
    const test = button(t("engine.test"), null, { "aria-label": t("engine.test.of", { name: nameOf(name) }) });
    test.addEventListener(
      "click",
      unlessBusy(test, async () => {
        state.replaceChildren(tag("busy", t("engine.testing")));
        tried.set(name, await trial(name));
        said.textContent = tried.get(name).text;
        state.replaceChildren(stateOf(engine, tried.get(name)));
      }),
    );
    const key = needs.find(each => each.endsWith("_KEY"));
    const form = key ? keyForm(name, key) : null;
    const lacks = missing.includes(key);
    const ask = () => {
      form.hidden = false;
      form.querySelector("input").focus();
    };
    const opens =
      key && lacks && button(t("engine.key"), ask, { "aria-label": t("engine.key.of", { name: nameOf(name) }) });
    const gone = keys.get(key)?.saved && removal(key, nameOf(name), problem, changed);
    return h(
      "li.row",
      { class: available ? "" : "away", id: `engine-${name}`, tabindex: "-1" },
      engine.position && h("span.number", String(engine.position)),
      h("div.grow", h("strong", nameOf(name)), said, form),
      state,
      h("div.acts", available && test, opens, gone, lacks ? null : buttons),
    );
  }

  function removal(key, name, said, then = () => {}) {
    const forget = () =>
      attempt(said, () =>
        api
          .forgetKey(key)
          .then(then)
          .then(() => draw()),
      );
    return button(t("engine.key.remove"), forget, { "aria-label": t("engine.key.remove.of", { name }) });
  }

  // One that its engine or reader works without.
  function optionalKey(key) {
    const box = secretBox(`key-${key.name}`, { placeholder: t(key.set ? "keys.kept" : "keys.paste") });
    const said = problemLine();
    const submit = async () => {
      if (box.value.trim() && (await attempt(said, () => api.saveKey(key.name, box.value)))) await draw();
    };
    const line = h("div.line", box, sends(t("keys.save"), ""), key.saved && removal(key.name, key.name, said));
    return h(
      "form.field",
      { id: `set-${key.name}`, onsubmit: submit },
      h("div.label", h("label", { for: box.id }, labelOf(key)), small(key.name)),
      line,
      said,
    );
  }

  // A key is saved and tried with a search at once; a refused one does not stay.
  function keyForm(name, key) {
    const box = secretBox(`key-${key}`);
    const said = problemLine();
    const go = sends(t("keys.test"));
    const submit = unlessBusy(go, async () => {
      if (!box.value.trim()) return;
      said.textContent = t("engine.testing");
      if (await attempt(said, () => api.saveKey(key, box.value))) {
        const answer = await trial(name);
        if (["auth", "unauthorized"].includes(answer.code)) {
          await api.forgetKey(key);
          said.textContent = `${answer.text} ${t("keys.unsaved")}`;
        } else {
          tried.set(name, answer);
          changed();
          await draw();
        }
      }
    });
    return h(
      "form",
      { hidden: true, onsubmit: submit },
      h("div.label", h("label", { for: box.id }, t("keys.of", { name: nameOf(name) })), small(key)),
      h("div.line", box, go),
      said,
    );
  }
}

function stateOf(engine, tried) {
  if (tried) return tag(tried.ok ? "ok" : "bad", t(tried.ok ? "state.works" : "state.failed"));
  const { available, problem, resting, routed, missing = [], untested } = engine;
  if (problem?.code === OFFLINE) return tag("none", t("state.offline"));
  if (missing.length)
    return tag("none", t(missing.some(name => name.endsWith("_KEY")) ? "state.nokey" : "state.unset"));
  if (!available) return tag("bad", t("state.failed"));
  if (resting) return tag("warn", t("state.resting", { seconds: resting.seconds }));
  if (routed) return tag("none", t("state.fitting"));
  return tag(untested ? "none" : "ok", t(untested ? "state.untried" : "state.ready"));
}

// What is already said by the state, or once for all, is not said again.
function aboutOf(engine) {
  if (engine.resting) return t("engine.resting", { cause: reasonWord(engine.resting.cause) });
  if (engine.missing?.some(name => name.endsWith("_KEY"))) return t("engine.needs.key");
  if (engine.problem?.code === OFFLINE) return "";
  if (!engine.available) return reasonOf(engine);
  if (engine.needs?.some(name => name.endsWith("_KEY"))) return t("engine.keyed");
  return t(engine.remote ? "engine.keyless" : "engine.here");
}

const reasonWord = cause => (has(`attempt.${cause}`) ? t(`attempt.${cause}`) : cause);

async function trial(engine) {
  const began = performance.now();
  try {
    const answer = await api.search({ query: TRIAL, engine, max_results: 3 });
    const ms = Math.round(performance.now() - began);
    const failed = answer.attempts.find(a => a.status !== "ok" && a.error);
    if (failed) return { ok: false, code: failed.error.code, text: errorText(failed.error) };
    return { ok: true, text: t("engine.answered", { n: answer.results.length, ms }) };
  } catch (failure) {
    return { ok: false, code: failure.code, text: errorText(failure) };
  }
}
