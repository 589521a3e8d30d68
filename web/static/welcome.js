// The empty chat: what this can do, what is there and what is missing, and four questions to try.

import { h, icon } from "./dom.js";
import { nameOf, t, titleOf } from "./strings.js";

const QUESTIONS = ["welcome.q1", "welcome.q2", "welcome.q3", "welcome.q4"];

/** Draws into `section`. `facts` as for the composer; `ask(question)` asks with web search on. */
export function drawWelcome(section, { session, models, engines, loaded }, ask) {
  const key = JSON.stringify([session.model, models, engines, loaded]);
  if (section.dataset.key === key) return; // what has the focus is not pulled away
  section.dataset.key = key;
  section.replaceChildren(
    h("h2", {}, t("welcome.title")),
    h("p", { class: "lead" }, t("welcome.lead")),
    h("ul", { class: "chips" }, loaded ? health(session, models, engines) : []),
    h("p", { class: "try" }, icon("globe"), t("welcome.try")),
    h(
      "ul",
      { class: "suggestions" },
      QUESTIONS.map((key) => h("li", {}, h("button", { type: "button", onclick: () => ask(t(key)) }, t(key)))),
    ),
  );
}

function health(session, models, engines) {
  const model = models.find((m) => m.id === session.model);
  return [modelChip(session, model), searchChip(engines), networkChip(engines, model)];
}

function modelChip(session, model) {
  if (!model || model.available === false) {
    const lacks = [model?.missing, model?.remedy].filter(Boolean).join(". ");
    const text = lacks || t("model.unlisted", { id: session.model });
    return chip("bad", t("welcome.model"), text);
  }
  const provider = model.id.split(":")[0];
  const name = provider === "builtin" ? titleOf(model) : `${nameOf(provider)} ${titleOf(model)}`;
  return chip("good", t("welcome.model"), name);
}

function searchChip({ ready }) {
  const names = ready.map(nameOf).join(", ");
  return chip(names ? "good" : "bad", t("welcome.search"), names || t("welcome.noengine"));
}

function networkChip({ stays }, model) {
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
    icon(tone === "good" ? "check" : "warn"),
    h("span", {}, h("strong", {}, label), " ", text),
  );
}
