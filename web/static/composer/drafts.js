// What waits to be sent, by chat, for as long as this tab lives.
//
// It stands in the tab's own sessionStorage: a reload, a crash of the page and a look at another chat
// lose nothing, no other tab and no server sees it, and it goes with the tab. A temporary chat leaves
// nothing there. What the browser refuses to store, or is too much, is kept in memory alone, which all
// but a reload and a crash leave as it is.

const KEY = "searchloop.unsent";
const MOST_CHATS = 50; // the newest are stored,
const MOST = 1_500_000; // and of those as many as have these characters together
const PAUSE = 200; // milliseconds that pass at most before what is typed is stored

/**
 * The texts by chat: {get(chat), put(chat, text), hold(chat, text) -> release(), move(from, to), store(),
 * queue(chat) -> {texts, held}, setQueue(chat, texts, held)}. A queue holds questions that wait for the
 * answer before them; one that is held waits for a press.
 * An empty text is forgotten; `chat` null is a chat of which nothing is kept. What is held stands beside
 * the chat's text, and is part of it only for a page that is loaded before `release`. What changed is
 * stored after a moment, or at once by `store`.
 */
export function unsentTexts() {
  let texts = stored(); // {chat, text, held?}, the newest last
  let timer = 0;

  const own = chat => texts.find(entry => entry.chat === chat && !entry.held && !entry.queued);

  function queue(chat) {
    const found = texts.filter(entry => entry.chat === chat && entry.queued);
    return { texts: found.map(entry => entry.text), held: found.some(entry => entry.queued === "held") };
  }

  function setQueue(chat, questions, held = false) {
    texts = texts.filter(entry => !(entry.chat === chat && entry.queued));
    if (chat !== null) texts.push(...questions.map(text => ({ chat, text, queued: held ? "held" : "waits" })));
    later();
  }

  const get = chat => own(chat)?.text ?? "";

  function put(chat, text) {
    if (get(chat) === text) return;
    drop(own(chat));
    if (text && chat !== null) add({ chat, text });
  }

  function hold(chat, text) {
    const entry = { chat, text, held: true };
    if (chat !== null) add(entry);
    return () => drop(entry);
  }

  function move(from, to) {
    for (const entry of texts) if (entry.chat === from) entry.chat = to;
    texts = texts.filter(entry => entry.chat !== null);
    later();
  }

  function add(entry) {
    texts.push(entry);
    later();
  }

  function drop(entry) {
    texts = texts.filter(other => other !== entry);
    later();
  }

  function later() {
    timer ||= setTimeout(store, PAUSE);
  }

  function store() {
    clearTimeout(timer);
    timer = 0;
    let room = MOST;
    const fits = ({ text }) => text.length <= room && (room -= text.length) >= 0;
    const kept = texts.toReversed().slice(0, MOST_CHATS).filter(fits).reverse();
    try {
      sessionStorage.setItem(KEY, JSON.stringify(kept));
    } catch {
      clear(); // what is out of date is worse than nothing
    }
  }

  return { get, put, hold, move, store, queue, setQueue };
}

function clear() {
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    // nothing is stored at all
  }
}

// What was on its way belongs to its chat's text again: it came first.
function stored() {
  const texts = new Map();
  const waiting = [];
  try {
    for (const { chat, text, queued } of JSON.parse(sessionStorage.getItem(KEY) ?? "[]")) {
      if (queued) waiting.push({ chat, text: String(text), queued });
      else texts.set(chat, [texts.get(chat), String(text)].filter(Boolean).join("\n\n"));
    }
  } catch {
    // somebody else's, or refused
  }
  return [...[...texts].map(([chat, text]) => ({ chat, text })), ...waiting];
}
