// The open chat: follows its events, folds them, and draws at most once a frame.

import { h, textOf } from "../lib/dom.js";
import { announcer } from "../lib/messages.js";
import { emptyChat, isRunning, lastChanged, reduce, sourceOf } from "./state.js";
import { follow } from "./stream.js";
import { turnLater } from "./turn.js";

const NEWS = ["run_finished", "approval_requested"]; // what is told where nobody looks
const SETTLED = 500; // milliseconds without news after which a chat has come in
const AT_ONCE = 8; // turns at the end that are drawn as soon as they are there
const SLICE = 40; // milliseconds in one go for the others
const REST = 4; // times as long as a look took, before the next one
const NEAR = 48; // pixels from the end that still count as "at the end"
const ABOVE = 12; // pixels of the room above a question that may leave the screen

/**
 * The chat in `page` {scroller, turns, latest, announcer}.
 * `on` holds chip, open, retry, changed(chat, events), unseen(event, turn), connection(state), refused(failure), and
 * keep(text) for what was edited in a question that goes away, version(turn) for a turn that is not shown.
 * Returns {show(id, turn), seek(turn), stop(), lose(), running(), lastQuestion(), jump(), turns(), shown(), removed(),
 * unsent()}.
 */
export function chatView(page, on) {
  const announce = announcer(page.announcer);
  let chat = emptyChat;
  let views = new Map(); // by the turn's id
  let drawn = []; // the ids on the page, in order
  let stream = null;
  let frame = 0;
  let building = 0;
  let fresh = [];
  let rested = 0; // when the next look may be drawn
  let following = true;
  let sought = null; // the turn to be looked at
  let unmet = false; // whether it was never here, being of another version
  let missing = 0;
  let comparing = null; // {parent, view}: the question whose answers stand side by side

  function show(id, turn = null) {
    stop();
    [sought, unmet] = [turn, true];
    drawn.forEach(drop);
    chat = emptyChat;
    views = new Map();
    drawn = [];
    fresh = [];
    rested = 0;
    following = true;
    comparing = null;
    clearTimeout(missing);
    page.latest.hidden = true;
    if (!id) return;
    stream = follow(id, () => chat.seq, { event: take, state: on.connection, refused: on.refused });
  }

  function stop() {
    stream?.close();
    stream = null;
    cancelAnimationFrame(frame);
    clearTimeout(building);
    frame = building = 0;
  }

  /** Follows no more, and says of an answer under way that nothing is known of it any more. */
  function lose() {
    stop();
    const last = chat.turns.at(-1);
    if (!last?.running) return;
    const steps = last.steps.map(step => (step.done ? step : { ...step, done: true, stopped: true }));
    chat = { ...chat, turns: chat.turns.with(-1, { ...last, steps, running: false, reason: "lost" }) };
    draw();
  }

  function take(event) {
    const next = reduce(chat, event);
    if (next === chat) return;
    chat = next;
    fresh.push(event);
    if (document.hidden && NEWS.includes(event.type)) on.unseen(event, chat.turns.at(-1));
    if (!frame) frame = requestAnimationFrame(drawSoon);
  }

  // A long chat that is coming in leaves room between two looks, each of which lays out all that is there.
  function drawSoon() {
    if (performance.now() < rested) return (frame = requestAnimationFrame(drawSoon));
    const began = performance.now();
    draw();
    rested = began + REST * (performance.now() - began);
  }

  function draw() {
    frame = 0;
    const events = fresh;
    fresh = [];
    arrange();
    const undoable = lastChanged(chat);
    for (const turn of chat.turns) {
      const view = views.get(turn.id);
      view.update(turn);
      view.element.classList.toggle("undoable", turn.id === undoable);
    }
    for (const id of [...drawn.slice(-AT_ONCE), sought]) views.get(id)?.build();
    building ||= setTimeout(buildRest);
    setBeside();
    announce(chat.turns.at(-1), textOf);
    keepUp();
    on.changed(chat, events);
  }

  // The rest of a long chat is drawn bit by bit, the newest first.
  function buildRest() {
    const end = performance.now() + SLICE;
    const left = drawn.map(id => views.get(id)).filter(view => !view.isBuilt());
    while (left.length && performance.now() < end) left.pop().build();
    building = left.length ? setTimeout(buildRest) : 0;
  }

  // Turns come and go when another branch is shown; those that stay are not touched.
  function arrange() {
    const ids = chat.turns.map(turn => turn.id);
    if (ids.length === drawn.length && ids.every((id, i) => id === drawn[i])) return;
    const focused = document.activeElement;
    const held = drawn.findIndex(id => views.get(id).element.contains(focused));
    drawn.filter(id => !ids.includes(id)).forEach(drop);
    chat.turns.forEach((turn, i) => {
      if (views.has(turn.id)) return;
      const view = turnLater(turn, { ...on, find, compare });
      views.set(turn.id, view);
      page.turns.insertBefore(view.element, page.turns.children[i] ?? null);
      following = true;
    });
    drawn = ids;
    if (!focused.isConnected && focused.closest(".question-tools")) stay(views.get(ids[held]), focused);
  }

  // The source behind a number, as seen from a turn or from another version of it.
  const find = (turn, n) => {
    const before = chat.turns.slice(
      0,
      chat.turns.findIndex(other => turn.versions.includes(other.id)),
    );
    return sourceOf({ turns: [...before, turn] }, before.length, n);
  };

  /** Shows the answers to a question side by side, those that are still to come as well. */
  async function compare(turn) {
    const parent = chat.tree.parents[turn.id];
    comparing = { parent, view: null };
    let kept = false;
    const { compareView } = await import("./compare.js");
    if (comparing?.parent !== parent) return;
    comparing.view = compareView({
      ...on,
      find,
      compare,
      keep: ({ id, model }) => {
        kept = true;
        on.show(id);
        on.changeSettings({ model });
      },
      closed: () => {
        comparing = null;
        if (!kept && !chat.turns.some(({ id }) => id === turn.id)) on.show(turn.id);
      },
    });
    setBeside();
    comparing?.view.end.focus();
  }

  function setBeside() {
    const turn = comparing?.view && chat.turns.find(({ id }) => chat.tree.parents[id] === comparing.parent);
    if (!views.has(turn?.id)) return; // it is drawn with the next frame
    const versions = turn.versions.map(id => (id === turn.id ? turn : chat.others[id])).filter(Boolean);
    comparing.view.update(views.get(turn.id).element, versions);
  }

  // Whoever walks from one version of a question to the next stays on the button, or on the one beside it.
  function stay(view, button) {
    const tools = view?.element.querySelector(".question-tools");
    const same = CSS.escape(button.getAttribute("aria-label"));
    (tools?.querySelector(`[aria-label="${same}"]:enabled`) ?? tools?.querySelector("button:enabled"))?.focus();
  }

  function drop(id) {
    const view = views.get(id);
    const text = view.unsent();
    if (text) on.keep(text);
    view.element.remove();
    views.delete(id);
  }

  // New text is followed, but never so far that the question it answers leaves the screen: a reader
  // starts at the top. Only the room above the question may go.
  function keepUp() {
    const { scroller } = page;
    const end = scroller.scrollHeight - scroller.clientHeight;
    const last = views.get(drawn.at(-1))?.element;
    if (sought) {
      goTo();
    } else if (following && last) {
      const top = last.getBoundingClientRect().top - scroller.getBoundingClientRect().top;
      scroller.scrollTop = Math.min(end, scroller.scrollTop + top + ABOVE);
    }
    watchScroll();
  }

  // The turn stays in sight while the chat is still coming in; another version of a question is shown first.
  function goTo() {
    views.get(sought)?.build();
    const element = views.get(sought)?.element;
    page.turns.querySelector(".sought")?.classList.remove("sought");
    element?.classList.add("sought");
    element?.scrollIntoView({ block: "start" });
    clearTimeout(missing);
    unmet &&= !element;
    if (unmet) missing = setTimeout(() => sought && !views.has(sought) && on.version(sought), SETTLED);
  }

  function seek(turn) {
    [sought, unmet] = [turn, true];
    goTo();
  }

  function watchScroll() {
    const end = page.scroller.scrollHeight - page.scroller.clientHeight;
    page.latest.hidden = !drawn.length || page.scroller.scrollTop >= end - NEAR;
  }

  function jump() {
    page.scroller.scrollTo({ top: page.scroller.scrollHeight });
  }

  // Whoever scrolls by hand during an answer decides what is seen until the next question.
  for (const kind of ["wheel", "touchmove", "keydown"]) {
    page.scroller.addEventListener(kind, () => (following = sought = null), { passive: true });
  }
  page.scroller.addEventListener("scroll", watchScroll, { passive: true });
  page.latest.addEventListener("click", jump);
  addEventListener("online", () => stream?.wake());
  addEventListener("focus", () => stream?.wake());

  return {
    show,
    seek,
    stop,
    lose,
    jump,
    running: () => isRunning(chat),
    lastQuestion: () => chat.turns.at(-1)?.question ?? "",
    turns: () => chat.turns.length,
    shown: () => chat.turns,
    removed: () => chat.tree.removed,
    unsent: () => drawn.map(id => views.get(id).unsent()).filter(Boolean),
  };
}

/** The status line of a connection that is not there. */
export function connectionLine(node, text) {
  node.hidden = !text;
  node.replaceChildren(...(text ? [h("span.spinner", { "aria-hidden": "true" }), text] : []));
}
