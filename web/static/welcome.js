// The empty chat: what this can do, what is there and what is missing, and four questions to try.

import { h, icon } from "./lib/dom.js";
import { english, lackOf, named, nameOf, t, titleOf } from "./locales/index.js";

const EXTRACTIVE = "builtin:extractive";
// What the program's own documents answer, without a network or a model; else what anybody may ask.
const OWN = ["welcome.q1", "welcome.q2", "welcome.q3", "welcome.q4"];
const ANY = ["idea.claim", "idea.compare", "idea.news", "idea.studies"];

/**
 * Draws into `section`. `facts` as for the composer; `ask(question)` asks with web search on,
 * `settings(page)` opens the settings.
 */
export function drawWelcome(section, { session, models, servers, engines, loaded, defaultModel, defaultWhy }, ask, settings) {
  const best = defaultWhy === "best" && session.model === defaultModel;
  const key = JSON.stringify([session.model, models, servers, engines, loaded, defaultWhy, best]);
  if (section.dataset.key === key) return; // what has the focus is not pulled away
  section.dataset.key = key;
  const quotes = session.model === EXTRACTIVE; // it cannot read a question in one language and a page in another
  const questions = quotes || !engines.ready.length || engines.stays ? OWN : ANY;
  const parts = [
    h("h2", {}, t("welcome.title")),
    h("p", { class: "lead" }, t("welcome.lead")),
    loaded ? missing(defaultWhy, models, servers, engines, settings) : null,
    h("ul", { class: "chips" }, loaded ? health(session, models, servers, engines, best) : []),
    h("p", { class: "try" }, icon("globe"), t("welcome.try")),
    h(
      "ul",
      { class: "suggestions" },
      questions.map((key) => h("li", {}, h("button", { type: "button", onclick: () => ask((quotes && english(key)) || t(key)) }, t(key)))),
    ),
    quotes && english("welcome.english") ? h("p", { class: "muted" }, t("welcome.english")) : null,
  ];
  section.replaceChildren(...parts.filter(Boolean));
}

// The single next step: who answers, then who searches. Each button opens the settings where it is done.
function missing(why, models, servers, engines, settings) {
  const usable = (model) => model.available !== false && !model.id.startsWith("builtin:");
  const [server] = servers;
  const local = server ? `provider-${server.provider}` : undefined;
  if (!models.some(usable)) {
    if (server && server.version !== null) return step(t("missing.pull", server), [t("missing.pull.do"), () => settings("models", `pull-${server.provider}`)]);
    const keyed = models.find((model) => model.missing?.endsWith("_KEY"))?.id.split(":")[0];
    const own = server ? [t("missing.start.do"), () => settings("models", local)] : null;
    return step(t("missing.model"), [t("missing.model.do"), () => settings("models", keyed && `provider-${keyed}`)], own);
  }
  if (why === "none") return step(t("missing.choose"), [t("missing.choose.do"), () => settings("models", "set-SEARCHLOOP_MODEL")]);
  if (engines.ready.length) return null;
  return step(t("missing.engine", { why: engines.why[0] ?? "" }), [t("settings.open.search"), () => settings("search")]);
}

function step(words, first, second) {
  const one = ([label, open], kind) => h("button", { type: "button", class: `small ${kind}`, onclick: open }, label);
  return h("div", { class: "note missing" }, h("div", {}, h("p", {}, words), h("div", { class: "note-buttons" }, one(first, "primary"), second ? one(second, "") : null)));
}

function health(session, models, servers, engines, best) {
  const model = models.find((m) => m.id === session.model);
  return [
    modelChip(session, model, best),
    ...servers.map((server) => serverChip(server, models)),
    keysChip(models, servers, engines),
    searchChip(engines),
    networkChip(engines, model),
  ];
}

function serverChip({ provider, name, version }, models) {
  const n = models.filter((m) => m.id.startsWith(`${provider}:`) && m.available !== false).length;
  if (version === null) return chip("none", name, t("welcome.away"));
  return chip(n ? "good" : "none", name, t("welcome.models", { n }));
}

// Whose keys are there: of models elsewhere, and of search engines.
function keysChip(models, servers, { keyed }) {
  const hosts = servers.map((server) => server.provider);
  const cloud = models.filter((m) => !m.local && m.available !== false).map((m) => m.id.split(":")[0]);
  const names = new Set([...cloud.filter((name) => !hosts.includes(name)), ...keyed]);
  return chip(names.size ? "good" : "none", t("welcome.keys"), named([...names].map(nameOf)) || t("welcome.nokeys"));
}

function modelChip(session, model, best) {
  if (!model || model.available === false) {
    const text = lackOf(model) || t("model.unlisted", { id: session.model });
    return chip("bad", t("welcome.model"), text);
  }
  const provider = model.id.split(":")[0];
  const name = provider === "builtin" ? titleOf(model) : `${nameOf(provider)} ${titleOf(model)}`;
  return chip("good", t("welcome.model"), best ? t("welcome.best", { name }) : name);
}

function searchChip({ ready, resting }) {
  const told = (name) => (resting.includes(name) ? t("welcome.resting", { name: nameOf(name) }) : nameOf(name));
  const names = named(ready.map(told));
  return chip(names ? "good" : "bad", t("welcome.search"), names || t("welcome.noengine"));
}

function networkChip({ stays, offline }, model) {
  if (offline) return chip("good", t("welcome.network"), t("welcome.offline"));
  const cloud = model && !model.local;
  const text = cloud
    ? t("welcome.cloud", { name: nameOf(model.id.split(":")[0]) })
    : t(stays ? "welcome.stays" : "welcome.online");
  return chip("good", t("welcome.network"), text);
}

function chip(tone, label, text) {
  return h(
    "li",
    { class: `health ${tone}` },
    tone === "none" ? h("span", { class: "dash", "aria-hidden": "true" }, "–") : icon(tone === "good" ? "check" : "warn"),
    h("span", {}, h("strong", {}, label), " ", text),
  );
}
