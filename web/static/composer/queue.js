// Questions that wait until the answer before them is done: seen, edited, removed, each sent once.
//
// One goes by itself only when the page saw the answer before it end well. After a stop, an error, a
// look at another chat or a copy of the tab it waits for a press.

import { h, iconButton, keepFocus } from "../lib/dom.js";
import { t } from "../locales/index.js";

const GOOD = ["stop", "limit"]; // how an answer ends that may be followed

/**
 * Draws into `list`. `on` holds unsent (see drafts.js), send(text) -> promise<boolean>, edit(text), say(text),
 * focus(). Returns {follow(chat, facts, since?)}; `since`: how many answers had ended when one was being written.
 */
export function questionQueue(list, on) {
  let chat = null;
  let texts = [];
  let held = false;
  let running = false;
  let watched = null; // how many answers had ended here when one was seen or asked for
  let sending = false;
  let latest = null;
  let drawn = "";
  // A copied tab has a copy of the queue: there nothing goes by itself.
  const copied = performance.getEntriesByType("navigation")[0]?.type === "back_forward";

  function follow(now, facts, since = null) {
    if (latest && latest.place !== facts.place) {
      if (watched !== null && texts.length) on.unsent.setQueue(chat, texts, true); // nobody sees how that answer ends
      watched = null;
    }
    latest = { facts, place: facts.place };
    chat = now;
    ({ texts, held } = chat === null ? { texts: [], held: false } : on.unsent.queue(chat));
    held ||= copied;
    // Ends are counted: a short answer may come and go between two looks.
    const endings = facts.place.endings ?? 0;
    running = facts.running;
    watched ??= running ? endings : since;
    const ended = watched !== null && !running && !sending && endings > watched;
    if (ended) watched = null;
    if (ended && texts.length && !held) {
      if (GOOD.includes(facts.place.ended)) return next();
      on.say(t("queue.paused"));
      return keep(texts, true);
    }
    draw();
  }

  function keep(now, holding = false) {
    texts = now;
    held = holding;
    on.unsent.setQueue(chat, texts, held);
    on.unsent.store();
    draw();
  }

  // It leaves the queue before it goes: a page that is loaded meanwhile has it in its box, not twice.
  async function next() {
    if (sending || running || !texts.length) return;
    sending = true;
    const [text, ...others] = texts;
    const from = chat;
    const { facts, place } = latest;
    watched = place.endings ?? 0;
    const release = on.unsent.hold(from, text);
    keep(others);
    const sent = await on.send(text);
    release();
    sending = false;
    if (sent) return facts.place === place && follow(chat, facts);
    watched = null;
    if (from === chat) keep([text, ...texts], true);
    else on.unsent.setQueue(from, [text, ...on.unsent.queue(from).texts], true);
  }

  function draw() {
    const now = JSON.stringify([texts, running, held]);
    if (now === drawn) return;
    drawn = now;
    list.hidden = !texts.length;
    keepFocus(list, () => list.replaceChildren(...texts.map(row)));
  }

  function row(text, i) {
    const about = { "aria-describedby": `waits-${i}` };
    const others = (_, other) => other !== i;
    const without = () => keep(texts.filter(others), held);
    const edit = () => {
      without();
      on.edit(text);
      on.focus();
    };
    const remove = () => {
      without();
      on.say(t("queue.removed"));
      if (!texts.length) on.focus();
    };
    const go =
      i === 0 && !running
        ? h("button.small.primary", { ...about, "data-focus": "send", onclick: next }, t("queue.send"))
        : null;
    return h(
      "li",
      h("span.waits", t(running && !held ? "queue.waits" : "queue.held")),
      h("span.words", { id: `waits-${i}`, dir: "auto", title: text }, text),
      go,
      iconButton("pencil", t("queue.edit"), edit, { ...about, "data-focus": `edit-${i}` }),
      iconButton("close", t("queue.remove"), remove, { ...about, "data-focus": `remove-${i}` }),
    );
  }

  return { follow };
}
