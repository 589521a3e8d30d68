// The question box and what stands beside it: switch, source of the search, mode, model, Send, Stop.
//
// The controls show what the server last said of the session and nothing else. Changing one asks
// the server; until it answers the control is busy, and if it refuses the control goes back.

import { h, setText } from "./dom.js";
import { nameOf, t, titleOf } from "./strings.js";
import { describeSwitch } from "./switch.js";

const VIAS = ["auto", "native", "local"];
const MODES = ["ask", "plan", "agent"];
const LONGEST = 1_000_000; // characters; the server takes no more

/**
 * `el(id)` finds the page's elements.
 * `on` holds change(changes) -> promise, send(text) -> promise<boolean>, stop(), recall() -> text,
 * tooLong(length, most).
 * Returns {update(facts), fill(text), send(), focus()}.
 */
export function composer(el, on) {
  const page = {
    question: el("question"),
    web: el("web-search"),
    switchLabel: el("switch"),
    switchState: el("switch-state"),
    viaPick: el("via-pick"),
    via: el("via"),
    mode: el("mode"),
    modeEffect: el("mode-effect"),
    model: el("model"),
    send: el("send"),
    stop: el("stop"),
  };
  const { question } = page;
  let facts = null;
  let sending = Promise.resolve();

  fillSelect(page.via, VIAS, (v) => t(`via.${v}`));
  fillSelect(page.mode, MODES, (m) => t(`mode.${m}`));

  function update(next) {
    const models = facts?.models;
    facts = next;
    const { session } = facts;
    if (models !== facts.models || page.model.value !== session.model) {
      page.model.replaceChildren(...modelOptions(facts.models, session.model));
    }
    page.model.value = session.model;
    page.mode.value = session.mode;
    setText(page.modeEffect, t(`mode.${session.mode}.effect`));
    page.modeEffect.dataset.mode = session.mode;
    page.mode.title = t(`mode.${session.mode}.effect`);
    updateSwitch();
    page.send.hidden = facts.running;
    page.stop.hidden = !facts.running;
    for (const control of [page.web, page.via, page.mode, page.model, page.send]) {
      control.disabled = Boolean(session.pending);
    }
  }

  function updateSwitch() {
    const { session, models, engines } = facts;
    if (session.pending) return setText(page.switchState, t("switch.asking"));
    const model = models.find((m) => m.id === session.model) ?? null;
    const state = describeSwitch(session, model, engines);
    page.web.checked = state.on;
    page.switchLabel.dataset.kind = state.kind;
    page.switchLabel.title = t(engines.stays ? "switch.tip.stays" : "switch.tip");
    page.viaPick.hidden = !state.on;
    if (state.on) page.via.value = session.search;
    setText(page.switchState, state.text);
    page.switchState.dataset.kind = state.kind;
  }

  async function change(control, changes) {
    control.setAttribute("aria-busy", "true");
    try {
      await on.change(changes);
    } finally {
      control.removeAttribute("aria-busy");
      update(facts);
    }
  }

  // The box is emptied at once, so that what is typed meanwhile is never lost; a question that the
  // server did not take comes back.
  async function send() {
    const text = question.value;
    if (facts.running || facts.session.pending || !text.trim()) return;
    fill("");
    question.focus();
    const before = sending;
    sending = before.then(() => !facts.running && on.send(text));
    const taken = await sending;
    if (!taken && !question.value) fill(text);
  }

  function fill(text) {
    question.value = text;
    grow();
  }

  function grow() {
    question.style.setProperty("height", "auto");
    question.style.setProperty("height", `${Math.min(question.scrollHeight, innerHeight * 0.4)}px`);
  }

  function onKey(event) {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      send();
    } else if (event.key === "ArrowUp" && !question.value) {
      event.preventDefault();
      fill(on.recall());
      question.setSelectionRange(question.value.length, question.value.length);
    }
  }

  // Pasted text that could not be sent is refused whole: nothing is cut off in silence.
  function onPaste(event) {
    const pasted = event.clipboardData?.getData("text/plain") ?? "";
    if (question.value.length + pasted.length <= LONGEST) return;
    event.preventDefault();
    on.tooLong(pasted.length, LONGEST);
  }

  question.addEventListener("input", grow);
  question.addEventListener("paste", onPaste);
  question.addEventListener("keydown", onKey);
  el("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  page.stop.addEventListener("click", () => {
    on.stop();
    question.focus();
  });
  page.web.addEventListener("change", () => change(page.web, { search: page.web.checked ? "auto" : "off" }));
  page.via.addEventListener("change", () => change(page.via, { search: page.via.value }));
  page.mode.addEventListener("change", () => change(page.mode, { mode: page.mode.value }));
  page.model.addEventListener("change", () => change(page.model, { model: page.model.value }));

  return { update, fill, send, focus: () => question.focus() };
}

function fillSelect(select, values, label) {
  select.replaceChildren(...values.map((value) => h("option", { value }, label(value))));
}

function modelOptions(models, current) {
  const options = [];
  if (current && !models.some((m) => m.id === current)) {
    options.push(h("option", { value: current }, t("model.unlisted", { id: current })));
  }
  for (const [provider, list] of byProvider(models)) {
    options.push(h("optgroup", { label: nameOf(provider) }, list.map(modelOption)));
  }
  return options;
}

function byProvider(models) {
  const groups = new Map();
  for (const model of models) {
    const provider = model.id.split(":")[0];
    groups.set(provider, [...(groups.get(provider) ?? []), model]);
  }
  const usable = ([, list]) => list.some((m) => m.available !== false);
  return [...groups].sort((a, b) => usable(b) - usable(a)); // what can be chosen stands first
}

function modelOption(model) {
  const title = titleOf(model);
  const unusable = model.available === false;
  const { missing } = model;
  const key = /^[A-Z0-9_]+$/.test(missing ?? "") ? "model.needs" : "model.lacks";
  const label = unusable && missing ? t(key, { title, missing }) : title;
  return h("option", { value: model.id, disabled: unusable, title: model.remedy }, label);
}
