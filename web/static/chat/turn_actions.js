// What can be done with a turn: copy, ask again, edit, go to another version, export, remove.
//
// `on` holds again(turn, changes), edit(turn, text) -> promise<boolean>, keep(text), show(id),
// removeTurn(turn), check(turn, model), checks(), compare(turn), copyAnswer(turn, button), exportAs(format),
// models() -> those that can be chosen.

import { h, icon, iconButton, isComposing, MENU, plainly } from "../lib/dom.js";
import { nameOf, number, t, titleOf } from "../locales/index.js";
import { checkedMarks, isChecking, unnamedPages } from "./state.js";

const FORMATS = ["md", "html", "json", "trace"];
const ATTACHED = "\n\nAttached file: ";
const MOST_TRIES = 20; // places of a question's text where its files might begin
const LONG = 200; // characters; a longer question is no heading
const TWO_LINES = 50; // characters; a longer one is folded on a phone
const MOST_MODELS = 6; // in a menu; "another model" has them all, with a search

/** A file as it stands in a question, in a fence that its own text cannot close. */
export function attached({ name, text }) {
  let fence = "```";
  for (const [run] of text.matchAll(/`{3,}/g)) if (run.length >= fence.length) fence = `${run}\``;
  return `${ATTACHED}${name}\n${fence}\n${text}\n${fence}`;
}

/** A question's words, the files that go along [{name, text}], and those as they stand behind the words. */
export function partsOf(question) {
  let at = question.indexOf(ATTACHED);
  for (let tries = 0; at >= 0 && tries < MOST_TRIES; tries++) {
    const files = filesFrom(question, at);
    if (files) return { words: question.slice(0, at), files, rest: question.slice(at) };
    at = question.indexOf(ATTACHED, at + 1);
  }
  return { words: question, files: [], rest: "" };
}

// The files that fill the question from there to its end, or null.
function filesFrom(question, at) {
  const head = /([^\n]{1,200})\n(`{3,})\n/y;
  const files = [];
  while (at < question.length) {
    head.lastIndex = at + ATTACHED.length;
    const [, name, fence] = (question.startsWith(ATTACHED, at) && head.exec(question)) || [];
    const start = head.lastIndex;
    const end = fence ? question.indexOf(`\n${fence}`, start) : -1;
    if (end < 0) return null;
    files.push({ name, text: question.slice(start, end) });
    at = end + 1 + fence.length;
  }
  return files;
}

/**
 * The question's bubble: {element, update(turn), unsent()}; its words can be edited in place, and `unsent`
 * gives what was changed in them and not sent.
 */
export function questionView(first, on) {
  let turn = first;
  let editor = null;
  const { words, files, rest } = partsOf(first.question);
  const long = words.length > LONG;
  const tall = !long && words.length > TWO_LINES && !files.length && !first.attachments.length;
  const bubble = h(
    "div",
    { class: long ? "bubble long folded" : tall ? "bubble clamped" : "bubble", dir: "auto" },
    words,
    first.folders.map(path => h("div.attached", icon("folder"), h("bdi", path))),
    first.attachments.map(file => attachmentView(file, on.fileUrl(file.digest))),
    files.map(fileView),
  );
  const whole = h("button.small", { hidden: !long }, t("turn.all"));
  whole.addEventListener("click", () => {
    bubble.classList.remove("folded");
    whole.hidden = true;
  });
  if (tall) bubble.addEventListener("click", () => open(), { once: true });
  const tools = h("div.tools.question-tools");
  const element = h("div.question", h("h2.vh", t("turn.you")), bubble, whole, tools);

  function update(next) {
    turn = next;
    if (editor) return; // what is being typed stays
    const unfold = bubble.classList.contains("clamped")
      ? iconButton("down", t("turn.all"), unfolded, { "data-unfold": "" })
      : null;
    const edit = iconButton("pencil", t("turn.edit"), () => write(words), { "data-edit": "", disabled: turn.running });
    tools.replaceChildren(...versionsOf(turn, on.show), ...(unfold ? [unfold] : []), edit);
  }

  function open() {
    bubble.classList.remove("clamped");
    update(turn);
  }

  function unfolded() {
    open();
    tools.lastElementChild.focus();
  }

  function write(text) {
    const box = (editor = h("textarea", { "aria-label": t("turn.edit"), dir: "auto", rows: "1" }));
    const end = async again => {
      editor = null;
      element.replaceChildren(element.firstChild, bubble, whole, tools);
      update(turn);
      tools.lastElementChild.focus();
      const edited = box.value;
      if (!again || edited === words || !(edited + rest).trim()) return;
      if (await on.edit(turn, edited + rest)) return;
      if (element.isConnected && !editor) write(edited);
      else on.keep(edited);
    };
    box.value = text;
    box.addEventListener("keydown", event => {
      if (isComposing(event) || (event.key !== "Escape" && (event.key !== "Enter" || event.shiftKey))) return;
      event.preventDefault();
      event.stopPropagation();
      end(event.key === "Enter");
    });
    const buttons = h(
      "div.note-buttons",
      h("button.small", { onclick: () => end(false) }, t("cancel")),
      h("button.small.primary", { onclick: () => end(true) }, t("composer.send")),
    );
    element.replaceChildren(element.firstChild, h("div.editing", box, buttons));
    box.focus();
    box.setSelectionRange(box.value.length, box.value.length);
  }

  const unsent = () => (editor && editor.value !== words ? editor.value : "");
  return { element, update, unsent };
}

// A picture that went along, or the name of a document; each leads to the file itself.
function attachmentView({ name, width, height, pages, size, media_type: kind }, url) {
  const shown = { href: url, target: "_blank", rel: "noopener", class: width ? "shot" : "attached" };
  if (width) {
    const link = h("a", shown, h("img", { src: url, alt: name, width, height, loading: "lazy" }));
    link.title = t("picture.open");
    link.addEventListener(
      "click",
      plainly(async () => (await import("../lib/preview.js")).showPicture(link)),
    );
    return link;
  }
  return h("a", shown, icon("page"), h("bdi", name), " ", h("span.hint", aboutFile({ kind, pages, size })));
}

/** How large a file is, in words: a PDF in pages, anything else in bytes. */
export function aboutFile({ kind, pages, size }) {
  return kind === "application/pdf" ? t("file.pages", { n: pages }) : bytes(size);
}

/** A number of bytes in words. */
export function bytes(size) {
  const [unit, of] = size >= 1e9 ? ["gigabyte", 1e9] : size >= 1e6 ? ["megabyte", 1e6] : ["kilobyte", 1e3];
  const form = { style: "unit", unit, maximumFractionDigits: of > 1e3 ? 1 : 0 };
  return new Intl.NumberFormat(document.documentElement.lang, form).format(Math.max(size / of, 1));
}

// A file that went along as text, folded under its name.
function fileView({ name, text }) {
  return h(
    "details.attached",
    h("summary", icon("page"), h("bdi", name), " ", h("span.hint", t("file.length", { n: number(text.length) }))),
    h("pre.plain-text", { tabindex: "0", dir: "auto" }, text),
  );
}

// "‹ 2/3 ›": the questions that stand in each other's place.
function versionsOf(turn, show) {
  const at = turn.versions.indexOf(turn.id);
  const of = turn.versions.length;
  if (of < 2) return [];
  const to = (step, symbol, label) =>
    iconButton(symbol, label, () => show(turn.versions[at + step]), {
      disabled: turn.running || !turn.versions[at + step],
    });
  return [
    to(-1, "left", t("turn.earlier")),
    h("span.versions", { "aria-label": t("turn.version", { at: at + 1, of }), role: "img" }, `${at + 1}/${of}`),
    to(1, "right", t("turn.later")),
  ];
}

/** The buttons under an answer that is over; `offered` above it is the check. */
export function answerTools(turn, on, offered) {
  const copy = iconButton("copy", t("turn.copy"), () => on.copyAnswer(turn, copy));
  const menu = (symbol, label, items) => {
    const open = async () => (await import("../lib/menu.js")).openMenu(button, label, items(button));
    const button = iconButton(symbol, label, open, MENU);
    return button;
  };
  // What is rare says its name beside its icon.
  const worded = (symbol, label, items) => {
    const button = menu(symbol, label, items);
    button.append(h("span.word", label));
    return button;
  };
  const { open, unclear } = checkedMarks(turn);
  const unnamed = unnamedPages(turn);
  const label = unnamed ? t("check.unnamed") : t("check.sources", { n: open });
  return h(
    "div.tools",
    { role: "group", "aria-label": t("turn.actions") },
    turn.text && copy,
    (open || unnamed) && !offered && !isChecking(turn) && on.checks() !== "never"
      ? h("button.small", { onclick: () => on.check(turn) }, label)
      : null,
    (open || unclear) && !isChecking(turn)
      ? worded("check", t("check.ask"), button => waysToCheck(button, turn, on))
      : null,
    menu("again", t("turn.again"), button => waysToAskAgain(button, turn, on)),
    worded("columns", t("compare.title"), button => waysToCompare(button, turn, on)),
    menu("export", t("turn.export"), () =>
      FORMATS.map(format => ({ label: t(`export.${format}`), run: () => on.exportAs(format) })),
    ),
    turn.text && reader(turn, on),
    ...(turn.text ? [rater(turn, "good", 1, on), rater(turn, "poor", -1, on)] : []),
    iconButton("trash", t("turn.remove"), () => on.removeTurn(turn)),
  );
}

function rater(turn, name, value, on) {
  const is = turn.rating === value;
  const rate = async () => (await on.rate(turn, is ? 0 : value)) && on.say(t("rate.kept"));
  return iconButton(name, t(`rate.${name}`), rate, {
    "aria-pressed": String(is),
    title: `${t(`rate.${name}`)}. ${t("rate.kept")}`,
  });
}

function reader(turn, on) {
  const read = async () => (await import("../lib/voice.js")).readAloud(turn, button, on.note);
  const button = iconButton("speaker", t("voice.read"), read, { "aria-pressed": "false", "data-read": "" });
  return button;
}

const PER_MARK = 400; // tokens of a claim with its sentences, about

// The first of the models by name, and a list of all that is searched.
function modelItems(button, models, current, label, run, hint = "") {
  const item = ({ id, ...model }) => ({
    label: t(label, { model: titleOf({ id, ...model }) }),
    hint: hint || nameOf(id.split(":")[0]),
    run: () => run(id),
  });
  const pick = async () => (await import("../composer/model_picker.js")).openPicker(button, models, current, run);
  return [
    ...models.slice(0, MOST_MODELS).map(item),
    models.length > MOST_MODELS ? { label: t("again.more"), run: pick } : undefined,
  ];
}

// What reads the marks: our own comparison of words, or a model too; that of the answer first.
function waysToCheck(button, turn, on) {
  const able = on.models().filter(model => !model.id.startsWith("builtin:"));
  able.sort((a, b) => (b.id === turn.model) - (a.id === turn.model));
  const { open, unclear } = checkedMarks(turn);
  const hint = t("check.about", { n: number((open + unclear) * PER_MARK) });
  return [
    { label: t("check.words"), run: () => on.check(turn, "words") },
    able.length ? null : undefined,
    ...modelItems(button, able, turn.model, "check.with", id => on.check(turn, id), hint),
  ];
}

// The answers there are side by side, or one more beside this one.
function waysToCompare(button, turn, on) {
  const others = on.models().filter(model => model.id !== turn.model);
  const beside = async model => (await on.again(turn, { model, aside: true })) && on.compare(turn);
  const more = modelItems(button, others, turn.model, "compare.with", beside);
  const there = { label: t("compare.there", { n: turn.versions.length }), run: () => on.compare(turn) };
  const items = turn.versions.length > 1 ? [there, others.length ? null : undefined, ...more] : more;
  return others.length || items.length > 1 ? items : [{ label: t("compare.none"), run: () => {} }];
}

/** The menu of ways to ask again: with another model, with or without search. */
export const openWays = async (button, turn, on) =>
  (await import("../lib/menu.js")).openMenu(button, t("turn.again"), waysToAskAgain(button, turn, on));

function waysToAskAgain(button, turn, on) {
  const searched = turn.search && turn.search !== "off";
  const other = { search: searched ? "off" : "auto" };
  const models = on.models().filter(model => model.id !== turn.model);
  return [
    { label: t("again.same"), run: () => on.again(turn, {}) },
    { label: t(searched ? "again.offline" : "again.online"), run: () => on.again(turn, other) },
    models.length ? null : undefined,
    ...modelItems(button, models, turn.model, "again.model", model => on.again(turn, { model })),
    { label: t("template.from"), run: () => on.template(partsOf(turn.question).words) },
  ];
}
