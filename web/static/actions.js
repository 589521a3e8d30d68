// What can be done with a turn: copy, ask again, edit, go to another version, export, remove.
//
// `on` holds again(turn, changes), edit(turn, text), show(id), removeTurn(turn), copyAnswer(turn,
// button), exportAs(format), models() -> those that can be chosen.

import { h, icon, iconButton } from "./dom.js";
import { nameOf, number, t, titleOf } from "./strings.js";

const FORMATS = ["md", "html", "json", "trace"];
// How files.js writes a file into a question.
const ATTACHED = /\n\nAttached file: ([^\n]{1,200})\n(`{3,})\n([\s\S]*?)\n\2(?=\n\nAttached file: |$)/g;
const MOST_MODELS = 12; // in the menu; the picker below has them all

/** The question's bubble: {element, update(turn)}; it can be edited in place. */
export function questionView(first, on) {
  let turn = first;
  const bubble = h("div", { class: "bubble", dir: "auto" }, questionParts(first.question));
  const tools = h("div", { class: "tools question-tools" });
  const element = h("div", { class: "question" }, h("h2", { class: "vh" }, t("turn.you")), bubble, tools);

  function update(next) {
    turn = next;
    if (element.querySelector("textarea")) return; // what is being typed stays
    const edit = iconButton("pencil", t("turn.edit"), write, { class: "quiet", disabled: turn.running });
    tools.replaceChildren(...versionsOf(turn, on.show), edit);
  }

  function write() {
    const box = h("textarea", { "aria-label": t("turn.edit"), dir: "auto", rows: "1" });
    const end = (again) => {
      element.replaceChildren(element.firstChild, bubble, tools);
      update(turn);
      tools.lastElementChild.focus();
      if (again && box.value.trim() && box.value !== turn.question) on.edit(turn, box.value);
    };
    box.value = turn.question;
    box.addEventListener("keydown", (event) => {
      if (event.isComposing || (event.key !== "Escape" && (event.key !== "Enter" || event.shiftKey))) return;
      event.preventDefault();
      event.stopPropagation();
      end(event.key === "Enter");
    });
    const buttons = h(
      "div",
      { class: "note-buttons" },
      h("button", { type: "button", class: "small", onclick: () => end(false) }, t("cancel")),
      h("button", { type: "button", class: "small primary", onclick: () => end(true) }, t("composer.send")),
    );
    element.replaceChildren(element.firstChild, h("div", { class: "editing" }, box, buttons));
    box.focus();
    box.setSelectionRange(box.value.length, box.value.length);
  }

  return { element, update };
}

// A question as the bubble shows it: its words, then each file folded under its name.
function questionParts(question) {
  const files = [...question.matchAll(ATTACHED)];
  if (!files.length) return [question];
  const words = question.slice(0, files[0].index);
  return [
    words,
    ...files.map(([, name, , text]) =>
      h(
        "details",
        { class: "attached" },
        h("summary", {}, icon("page"), name, " ", h("span", { class: "hint" }, t("file.length", { n: number(text.length) }))),
        h("pre", { class: "plain-text", tabindex: "0", dir: "auto" }, text),
      ),
    ),
  ];
}

// "‹ 2/3 ›": the questions that stand in each other's place.
function versionsOf(turn, show) {
  const at = turn.versions.indexOf(turn.id);
  const of = turn.versions.length;
  if (of < 2) return [];
  const to = (step, symbol, label) =>
    iconButton(symbol, label, () => show(turn.versions[at + step]), {
      class: "quiet",
      disabled: turn.running || !turn.versions[at + step],
    });
  return [
    to(-1, "left", t("turn.earlier")),
    h("span", { class: "versions", "aria-label": t("turn.version", { at: at + 1, of }), role: "img" }, `${at + 1}/${of}`),
    to(1, "right", t("turn.later")),
  ];
}

/** The buttons under an answer that is over. */
export function answerTools(turn, on) {
  const copy = iconButton("copy", t("turn.copy"), () => on.copyAnswer(turn, copy), { class: "quiet" });
  const menu = (symbol, label, items) => {
    const open = async () => (await import("./menu.js")).openMenu(button, label, items());
    const button = iconButton(symbol, label, open, {
      class: "quiet",
      "aria-haspopup": "menu",
      "aria-expanded": "false",
    });
    return button;
  };
  return h(
    "div",
    { class: "tools", role: "group", "aria-label": t("turn.actions") },
    turn.text ? copy : null,
    menu("again", t("turn.again"), () => waysToAskAgain(turn, on)),
    menu("export", t("turn.export"), () =>
      FORMATS.map((format) => ({ label: t(`export.${format}`), run: () => on.exportAs(format) })),
    ),
    iconButton("trash", t("turn.remove"), () => on.removeTurn(turn), { class: "quiet" }),
  );
}

function waysToAskAgain(turn, on) {
  const searched = turn.search && turn.search !== "off";
  const other = { search: searched ? "off" : "auto" };
  const models = on.models().filter((model) => model.id !== turn.model);
  return [
    { label: t("again.same"), run: () => on.again(turn, {}) },
    { label: t(searched ? "again.offline" : "again.online"), run: () => on.again(turn, other) },
    models.length ? null : undefined,
    ...models.slice(0, MOST_MODELS).map((model) => ({
      label: t("again.model", { model: titleOf(model) }),
      hint: nameOf(model.id.split(":")[0]),
      run: () => on.again(turn, { model: model.id }),
    })),
  ].filter((item) => item !== undefined);
}
