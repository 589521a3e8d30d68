// The empty chat: what this is for, the one step that is left, and questions to try.

import { bytes } from "./chat/turn_actions.js";
import { h, keepFocus } from "./lib/dom.js";
import { english, nameOf, t, titleOf } from "./locales/index.js";

const EXTRACTIVE = "builtin:extractive";
// What the program's own documents answer, without a network or a model; else what anybody may ask.
const OWN = ["welcome.q1", "welcome.q2", "welcome.q3", "welcome.q4"];
const ANY = ["idea.claim", "idea.compare", "idea.news", "idea.studies"];

const MOST_MODELS = 3; // to choose from; the list of models has them all

/**
 * Draws into `section`, above the composer, and `ideas`, below it. `facts` as for the composer;
 * `ask(question)` asks with web search on, `settings(page)` opens the settings, `keyed()` is told of a first
 * key, and `use(model)` makes a model answer.
 */
export function drawWelcome(
  section,
  ideas,
  { session, models, servers, engines, loaded, defaultModel, defaultWhy },
  ask,
  settings,
  keyed,
  use,
) {
  const best = defaultWhy === "best" && session.model === defaultModel && models.find(({ id }) => id === defaultModel);
  const key = JSON.stringify([session.model, models, servers, engines, loaded, defaultWhy]);
  if (section.dataset.key === key) return; // what has the focus is not pulled away
  section.dataset.key = key;
  section.replaceChildren(h("h2", h("span", t("welcome.title")), " ", h("em", t("welcome.promise"))));
  if (!loaded) return ideas.replaceChildren();
  const quotes = session.model === EXTRACTIVE; // it cannot read a question in one language and a page in another
  const questions = quotes || !engines.ready.length || engines.stays ? OWN : ANY;
  const idea = key =>
    h(
      "li",
      h(
        "button",
        { onclick: async () => ask(quotes ? await english(key) : t(key)) },
        questions === ANY && h("small", t(`${key}.kind`)),
        t(key),
      ),
    );
  const parts = [
    missing(quotes ? defaultWhy : "", models, servers, engines, settings, keyed),
    defaultWhy === "best" && models.some(({ id }) => id === session.model)
      ? answering(models, best, defaultModel, session.model, use)
      : null,
    h("p.try", t("welcome.try")),
    h("ul.suggestions", questions.map(idea)),
    quotes && t("language.tag") !== "en" ? h("p.muted", t("welcome.english")) : null,
  ];
  keepFocus(ideas, () => ideas.replaceChildren(...parts.filter(Boolean)));
}

// Nobody chose a model yet: the best of one's own answers, and others are a press away.
function answering(models, best, first, chosen, use) {
  const name = nameOf(first.split(":")[0]);
  const own = models.filter(({ local, available, id }) => local && available !== false && !id.startsWith("builtin:"));
  own.sort((a, b) => (b.id === first) - (a.id === first) || (b.disk ?? 0) - (a.disk ?? 0));
  if (own.length < 2) return best ? h("p.muted", t("welcome.best", { name: `${name} ${titleOf(best)}` })) : null;
  const row = model => {
    const radio = h("input", { type: "radio", name: "answers", onchange: () => use(model.id), "data-focus": model.id });
    radio.checked = model.id === chosen;
    const { tools, vision, efforts } = model.capabilities ?? {};
    const can = [tools && "badge.tools", vision && "badge.vision", efforts?.length && "badge.thinking"].filter(Boolean);
    return h(
      "label",
      radio,
      h("span", h("b", titleOf(model)), " ", h("span.hint", model.disk ? bytes(model.disk) : "")),
      model.id === first && h("small.hint", t("welcome.best.why")),
      h("span.can", ...can.map(key => h("span.tag", t(key)))),
    );
  };
  return h(
    "fieldset.answering",
    h("legend", t("welcome.which", { name })),
    own.slice(0, MOST_MODELS).map(row),
    h("p.muted", t("welcome.own")),
  );
}

// The single next step: who answers, then who searches. It is done here, or where its button leads.
function missing(why, models, servers, engines, settings, gotKey) {
  const usable = model => model.available !== false && !model.id.startsWith("builtin:");
  const [server] = servers;
  const own = server && { label: t("missing.start.do"), open: () => settings("models", `provider-${server.provider}`) };
  if (!models.some(usable)) {
    if (server && server.version !== null)
      return step(t("missing.pull", server), {
        label: t("missing.pull.do"),
        open: () => settings("models", `pull-${server.provider}`),
        kind: "primary",
      });
    const field = h("div.first-key");
    const why = h("p.muted", t("missing.model.why"));
    const fill = async ({ firstKey }) => field.replaceChildren(why, ...(await firstKey(gotKey)));
    import("./first_key.js").then(fill).catch(failure => field.replaceChildren(failure.message));
    return step(t("missing.model"), own, field);
  }
  const keyed = models.some(model => usable(model) && model.keyed); // own servers may need none
  if (why === "none")
    return step(t(keyed ? "missing.choose" : "missing.choose.own"), {
      label: t("missing.choose.do"),
      open: () => document.getElementById("model").click(),
      kind: "primary",
    });
  if (engines.ready.length) return null;
  return step(t("missing.engine", { why: engines.why[0] ?? "" }), {
    label: t("settings.open.search"),
    open: () => settings("search"),
    kind: "primary",
  });
}

function step(words, action, field = null) {
  const { label, open, kind = "" } = action ?? {};
  const button = action && h("button", { class: `small ${kind}`, onclick: open }, label);
  return h("div.missing", h("p", words), field, h("div.note-buttons", button));
}
