// What a tool wants to do, shown before it is done: exact arguments, its diff, and three answers.

import { diff } from "../lib/diff.js";
import { h, icon, unlessBusy } from "../lib/dom.js";
import { errorText } from "../lib/messages.js";
import { named, signsIn } from "../lib/signs.js";
import { has, t } from "../locales/index.js";

/**
 * The card of one request. `decide(callId, decision, arguments?)` tells the server and gives true
 * when it was taken. Returns {element, update(request)}.
 */
export function approvalCard(first, decide) {
  const element = h("section.approval", { "aria-label": titleOf(first) });
  let shown = null;

  function update(request) {
    if (request === shown) return;
    shown = request;
    const held = element.contains(document.activeElement);
    element.classList.toggle("decided", Boolean(request.decision));
    element.replaceChildren(...(request.decision ? decidedParts(request) : openParts(request)));
    if (held) document.querySelector(".approval:not(.decided) button")?.focus();
  }

  function openParts(request) {
    const fields = Object.entries(request.arguments ?? {}).map(([name, value]) => fieldOf(name, value));
    const problem = h("p.problem", { role: "alert" });
    const buttons = h("div.note-buttons");
    const lasting = request.question ? [] : [request.folder ? "folder" : "always"];
    buttons.append(...["once", "deny", ...lasting].map(button));

    function button(decision) {
      const primary = decision === "once" ? " primary" : "";
      const props = {
        type: "button",
        class: `small${primary}`,
        "data-answer": decision,
        title: decision === "folder" ? request.folder : null,
        onclick: unlessBusy(buttons, () => answer(decision)),
      };
      return h(
        "button",
        props,
        named(
          t(request.question ? `approval.answer.${decision}` : `approval.${decision}`, {
            folder: request.folder.split(/[\\/]/).at(-1),
          }),
        ),
        KEYS[decision] && h("kbd", { "aria-hidden": "true" }, KEYS[decision]),
      );
    }

    function answer(decision) {
      let edited;
      try {
        edited = decision === "deny" ? undefined : readFields(fields, request.arguments ?? {});
      } catch (error) {
        problem.textContent = t("approval.badvalue", { name: error.message });
        return null;
      }
      return decide(request.callId, decision, edited);
    }

    return [
      h("h3", h("span", titleOf(request)), request.question ? null : badge(request)),
      request.why ? h("p.muted", { dir: "auto" }, errorText({ code: "asks", message: request.why })) : null,
      request.preview ? diff(request.preview, t("approval.diff")) : null,
      fields.length ? argumentsOf(fields, Boolean(request.preview), request.question) : null,
      problem,
      buttons,
    ].filter(Boolean);
  }

  // Enter presses what has the focus, but one that is held down does not go on with the next card.
  element.addEventListener("keydown", event => {
    if (event.target.localName === "textarea") return;
    if (event.key === "Enter" && event.repeat) event.preventDefault();
    if (event.key === "Escape") element.querySelector('[data-answer="deny"]')?.click();
  });
  update(first);
  return { element, update };
}

const KEYS = { once: "⏎", deny: "Esc" };
const MOST_SHOWN = 4000; // characters of a result; the steps above have it whole

// What was allowed becomes its result: one line, and folded below it what was changed and what came back.
function decidedParts(request) {
  const { decision, by, preview, result } = request;
  const denied = decision === "deny";
  const failed = result?.failed && !denied;
  const said = t(by === "stop" ? "approval.said.stop" : `approval.said.${decision}`);
  const outcome = denied || !result ? "" : t(failed ? "approval.failed" : "approval.done");
  const parts = [
    preview && !denied ? diff(preview, t("approval.diff")) : null,
    result?.text && !denied
      ? h(
          "pre.result",
          { tabindex: "0", dir: "auto", role: "group", "aria-label": t("approval.result") },
          named(result.text.slice(0, MOST_SHOWN)),
        )
      : null,
  ].filter(Boolean);
  return [
    h(
      "p",
      icon(denied ? "close" : failed ? "warn" : "check"),
      h("span", named(denied || !result ? titleOf(request) : nameOfCall(request))),
      outcome && h("span", { class: failed ? "problem" : "" }, outcome),
      h("span.muted", said),
    ),
    ...(parts.length ? [h("details", h("summary", t("approval.look")), parts)] : []),
  ];
}

const nameOfCall = ({ name, server, folder, arguments: given }) =>
  server ? t("approval.ran.server", { name, server }) : folder ? given.path : name;

function titleOf({ name, server, question }) {
  if (question) return t("approval.title.question", { server: server ?? name });
  if (!server && has(`approval.ask.${name}`)) return t(`approval.ask.${name}`);
  return server ? t("approval.title.server", { name, server }) : t("approval.title", { name });
}

// What it does, and to which file.
function badge({ effect, folder, arguments: given }) {
  const does = has(`effect.${effect}`) ? t(`effect.${effect}`) : (effect ?? "");
  const path = typeof given?.path === "string" && !folder ? given.path : ""; // else the sentence below has it
  return h("span", { class: `badge ${effect}` }, named(path ? t("approval.touches", { effect: does, path }) : does));
}

// With a diff to look at, the arguments step back.
function argumentsOf(fields, folded, answer) {
  const list = h("div.fields", ...fields.map(field => field.element));
  return h("details", { open: !folded }, h("summary", t(answer ? "approval.answer" : "approval.arguments")), list);
}

let made = 0; // made on this page so far

function fieldOf(name, value) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  const id = `arg-${(made += 1)}`;
  const box = h("textarea", { id, rows: "1", dir: "auto", spellcheck: "false" });
  box.value = text;
  const signs = signsIn(text);
  const note = signs ? h("p.problem", { role: "note" }, t("approval.signs", { signs })) : null;
  // The browser writes line ends in its own way: what it gives back unedited is what nobody typed.
  return { name, value, box, text: box.value, element: h("div", h("label", { for: id }, named(name)), box, note) };
}

// The arguments as they were edited, or undefined when nobody touched them.
function readFields(fields, given) {
  const changed = fields.filter(field => field.box.value !== field.text);
  if (!changed.length) return undefined;
  const edited = { ...given };
  for (const { name, value, box } of changed) {
    try {
      edited[name] = typeof value === "string" ? box.value : JSON.parse(box.value);
    } catch {
      throw new Error(name);
    }
  }
  return edited;
}
