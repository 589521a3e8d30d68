// What a turn leaves to be decided: a plan that can be run, and changed files that can be put back.

import { h, icon, unlessBusy } from "../lib/dom.js";
import { named, t } from "../locales/index.js";

/**
 * The parts of a turn that has plans or changed files. `cite(n)` makes a chip;
 * `on` holds runPlan(id) and undoFiles(), which give whether the server took it.
 */
export function workParts(turn, cite, on) {
  return [
    ...turn.plans.map(plan => planCard(plan, turn, cite, on)),
    turn.changes.length ? changesCard(turn, on) : null,
  ].filter(Boolean);
}

function planCard(plan, { running }, cite, on) {
  const title = t("plan.title", { title: plan.title });
  const button = once(t(plan.ran ? "plan.again" : "plan.run"), () => on.runPlan(plan.id), running);
  if (!plan.ran) button.classList.add("primary");
  return h(
    "section.plan",
    { "aria-label": title },
    h("h3", { dir: "auto" }, icon("check"), title),
    h("ol", ...plan.steps.map(step => stepOf(step, cite))),
    h("div.note-buttons", button, h("span.muted", { role: "status" }, t(plan.ran ? "plan.ran" : "plan.runs"))),
  );
}

function stepOf({ text, files = [], sources = [] }, cite) {
  const touched = files.flatMap(name => [h("code", { dir: "ltr" }, name), " "]);
  return h(
    "li",
    { dir: "auto" },
    h("span", text, sources.length > 0 && "\u00a0", ...sources.map(n => cite(n))),
    files.length > 0 && h("p.muted", t("plan.touches"), " ", touched),
  );
}

function changesCard({ changes, undone, running }, on) {
  const made = new Set(changes.filter(change => change.new).map(change => change.path));
  const paths = [...new Set(changes.map(change => change.path))];
  const names = paths.map(path => h("li", h("code", { dir: "ltr" }, path), made.has(path) && ` ${t("changes.new")}`));
  const back = undone
    ? h("p.muted", { role: "status" }, icon("again"), t("changes.undone", { files: named(undone) }))
    : h("div.note-buttons", once(t("changes.undo"), on.undoFiles, running));
  return h(
    "section.changes",
    { "aria-label": t("changes.title", { n: paths.length }) },
    h("h3", icon("pencil"), t("changes.title", { n: paths.length })),
    h("ul", names),
    back,
  );
}

// A button that waits for the server, and can be pressed again when it said no.
function once(label, act, disabled = false) {
  const button = h("button.small", { disabled }, label);
  button.addEventListener("click", unlessBusy(button, act));
  return button;
}
