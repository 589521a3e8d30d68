// Small messages: toasts with Undo, error boxes, and what is read aloud.

import { t, titleOf, translated } from "../locales/index.js";
import { copyText, h, icon } from "./dom.js";

const SHOWN = 7000; // milliseconds a toast stays

/** A toast with an action; `onend(undone)` is called exactly once, when it goes. */
export function toast(root, text, action, onend) {
  let timer = 0;
  const node = h("div.toast", h("span", { dir: "auto" }, text), h("button", { onclick: () => end(true) }, action));

  function end(undone) {
    if (!node.isConnected) return;
    clearTimeout(timer);
    removeEventListener("pagehide", leave);
    node.remove();
    onend(undone);
  }

  const leave = () => end(false);
  const arm = () => {
    clearTimeout(timer);
    timer = setTimeout(() => (node.matches(":hover, :focus-within") ? arm() : leave()), SHOWN);
  };
  node.addEventListener("pointerenter", () => clearTimeout(timer));
  node.addEventListener("pointerleave", arm);
  node.addEventListener("focusin", () => clearTimeout(timer));
  node.addEventListener("focusout", arm);
  addEventListener("pagehide", leave);
  root.append(node);
  arm();
}

/** An error as one text: {code, message, remedy}, or a sentence already. */
export function errorText(error) {
  if (!error || typeof error === "string") return error ?? "";
  const { message, remedy, original } = translated(error);
  const whole = [remedy ? ended(message) : message, remedy, original ? `(${original})` : ""].filter(Boolean).join(" ");
  return whole.replace(/`([^`]+)`/g, "$1");
}

// Names of settings, and what stands between backticks, are small print inside a sentence.
export function prose(text) {
  const parts = String(text ?? "").split(/(`[^`]+`|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b)/);
  return parts.map((part, i) => (i % 2 ? h("code.small-print", { dir: "ltr" }, part.replaceAll("`", "")) : part));
}

// What somebody else said may lack the full stop before what is said next.
function ended(message) {
  return /[\p{L}\p{N}]$/u.test(message ?? "") ? `${message}.` : message;
}

/**
 * An error as people need it: cause, what to do, and buttons. `error` {code, message, remedy}; the code
 * is on the element for programs, and in what `details` copies. `ways` [{label, run}] are what can be pressed.
 */
export function errorBox(error, { title, tone = "bad", ways = [], onretry, details } = {}) {
  const { code, message, remedy, original } = translated(error);
  const buttons = ways.map(({ label, run }, n) =>
    h("button", { class: n ? "small" : "small primary", onclick: run }, label),
  );
  if (onretry) {
    buttons.push(h("button.small", { title: t("retry.title"), onclick: onretry }, t("retry")));
  }
  if (details) {
    const copy = h("button.quiet.small", t("copy.details"));
    copy.addEventListener("click", () => copyText(details(), copy));
    buttons.push(copy);
  }
  return h(
    "div",
    { class: `note ${tone}`, "data-code": code || null },
    tone === "info" ? null : icon("warn"),
    h(
      "div",
      title && h("strong", title, " "),
      h("span", { dir: "auto" }, prose(remedy ? ended(message) : message)),
      remedy && h("span.remedy", { dir: "auto" }, " ", prose(remedy)),
      original &&
        h("details.original", h("summary", t("error.original")), h("p", { lang: "en", dir: "auto" }, prose(original))),
      buttons.length > 0 && h("div.note-buttons", buttons),
    ),
  );
}

const GONE = ["unknown_model", "model_not_found", "no_chat"];
const CAN = { cannot_see: "vision", no_tools: "tools" }; // what a model must have, where another lacks it
const LOCKED = ["missing_key", "unauthorized", "quota"];

/**
 * What can be pressed beside an error so that the next try can succeed: [{label, run}] for its `code` with
 * `model`; none where asking again is all there is.
 * `on` holds models(), servers() -> those that get models, use(id), pull(id), settings(room, card).
 */
export function waysOut(code, model, on) {
  const [provider, name] = [model.split(":")[0], model.slice(model.indexOf(":") + 1)];
  const others = on.models().filter(other => other.available !== false && other.id !== model);
  const another = list => {
    const best = list.find(({ id }) => id.startsWith(`${provider}:`)) ?? list.find(m => m.local) ?? list[0];
    return best ? [{ label: t("out.use", { model: titleOf(best) }), run: () => on.use(best.id) }] : [];
  };
  if (GONE.includes(code)) {
    const gets = on.servers().some(server => server.provider === provider);
    const get = { label: t("out.get", { model: name }), run: () => on.pull(model) };
    return [...another(others), ...(gets ? [get] : [])];
  }
  if (LOCKED.includes(code))
    return [{ label: t("out.key"), run: () => on.settings("models", `provider-${provider}`) }, ...another(others)];
  if (code in CAN) return another(others.filter(({ capabilities }) => capabilities?.[CAN[code]]));
  return [];
}

/**
 * Reads an answer aloud paragraph by paragraph, each once and only when it is finished.
 * Answers that were there before the page looked are not read.
 */
export function announcer(node) {
  const told = new Map(); // turn id -> number of blocks told, only for turns seen while running

  return function announce(turn, textOf) {
    if (!turn) return;
    if (turn.running && !told.has(turn.id)) told.set(turn.id, 0);
    if (!told.has(turn.id)) return;
    const finished = turn.running ? turn.blocks.length - 1 : turn.blocks.length;
    for (let i = told.get(turn.id); i < finished; i++) {
      node.append(h("p", textOf(turn.blocks[i])));
    }
    if (finished > told.get(turn.id)) told.set(turn.id, finished);
    while (node.childElementCount > 20) node.firstElementChild.remove();
    if (!turn.running) told.delete(turn.id);
  };
}
