// What the server said last: the open session, models, engines, the list of chats.
//
// A chat that was not asked anything yet is a draft: it has no id, and the settings of a new chat.

import { engineFacts } from "../composer/search_switch.js";

const MODEL = "builtin:extractive";
const LISTED = 200; // chats that are listed at first
const DRAFT = {
  id: null,
  title: "",
  model: MODEL,
  mode: "ask",
  search: "off",
  search_path: "off",
  messages: 0,
  settings: {},
};

/**
 * All facts of one page. `place` is the chat on show: {session, asked, private}. Another chat is another place, so
 * what the server says of one that was left is not taken for what is on show.
 */
export function newFacts() {
  return {
    place: { session: { ...DRAFT, pending: true } },
    get session() {
      return this.place.session;
    },
    set session(session) {
      this.place.session = session;
    },
    changes: 0, // how often settings were asked to change or did: what was read before is out of date
    models: [],
    servers: [],
    defaultModel: MODEL,
    defaultWhy: "none", // or `setting`, `last`, `best`: how that model was found
    defaultSearch: "off",
    engines: engineFacts(null),
    held: {}, // why no model may search by itself: always (`now`), and with private data in the chat
    running: false,
    loaded: false,
    list: {
      sessions: [],
      current: null,
      query: "",
      hidden: new Set(),
      most: LISTED,
      more: false,
      projects: [],
      archive: 0,
      archived: false,
      picked: null,
      tag: null, // only chats that have it are listed
    },
  };
}

/** Takes `session`, as the server gave it, for the chat at `place`, which may have been left. */
export function adopt(facts, session, place = facts.place) {
  place.session = { ...DRAFT, ...session };
  if (place === facts.place) facts.list.current = session.id;
}

/** Shows another chat. */
export function turnTo(facts, session) {
  facts.place = {};
  adopt(facts, session);
}

const EFFORT = "searchloop.effort";

/** How long models think in new chats, where this browser keeps that; and keeps it. */
export const keptEffort = () => localStorage.getItem(EFFORT) ?? "";
export const keepEffort = level => localStorage.setItem(EFFORT, level);

/** A new chat; of one with an id, and before anything is known, no setting is shown (`pending`). */
export function draft(facts, id = null) {
  const { defaultModel: model, defaultSearch: search, loaded } = facts;
  const effort = keptEffort();
  const settings = effort ? { options: { effort } } : {};
  return { ...DRAFT, id, model, search, settings, pending: id !== null || !loaded };
}

/** Whether the open chat was made here, only for its settings, and was never asked anything. */
export function isUnused({ place, session, list }, turns) {
  const known = list.sessions.find(s => s.id === session.id);
  const asked = place.asked || session.messages || known?.messages || turns;
  return Boolean(session.id) && !session.pending && !asked;
}

/** What an event of the open chat tells about its settings. */
export function learn(facts, { turns }, events) {
  facts.running = turns.at(-1)?.running ?? false;
  facts.place.private = turns.some(turn => turn.private);
  const ends = events.filter(e => e.type === "run_finished");
  facts.place.endings = (facts.place.endings ?? 0) + ends.length;
  if (ends.length) facts.place.ended = ends.at(-1).reason;
  const started = events.findLast(e => e.type === "run_started");
  if (started && !facts.session.pending && !facts.place.aside) {
    const { model, mode, search } = started;
    const { native_search } = model === facts.session.model ? facts.session : {};
    facts.session = { ...facts.session, model, mode, search: search ?? facts.session.search, native_search };
  }
}

/** The chats that have something in them, of those that the server listed. */
export function worthListing(sessions) {
  return sessions.filter(s => s.messages || s.running);
}
