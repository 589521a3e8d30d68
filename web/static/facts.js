// What the server said last: the open session, models, engines, the list of chats.
//
// A chat that was not asked anything yet is a draft: it has no id, and the settings of a new chat.

import { engineFacts } from "./switch.js";

const MODEL = "builtin:extractive";
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

/** All facts of one page. */
export function newFacts() {
  return {
    session: { ...DRAFT },
    models: [],
    servers: [],
    defaultModel: MODEL,
    defaultSearch: "off",
    engines: engineFacts(null),
    running: false,
    loaded: false,
    list: { sessions: [], current: null, query: "", hidden: new Set() },
  };
}

/** Makes `session`, as the server gave it, the open one. */
export function adopt(facts, session) {
  facts.session = { ...DRAFT, ...session };
  facts.list.current = session.id;
}

/** A new chat; with an id a chat of which nothing is known yet, so no setting of it is shown. */
export function draft(facts, id = null) {
  return { ...DRAFT, id, model: facts.defaultModel, search: facts.defaultSearch, pending: id !== null };
}

/** Whether the open chat was made here, only for its settings, and was never asked anything. */
export function isUnused({ session, list }, turns) {
  const known = list.sessions.find((s) => s.id === session.id);
  return Boolean(session.id) && !session.pending && !session.messages && !known?.messages && !turns;
}

/** What an event of the open chat tells about its settings. */
export function learn(facts, { turns }, events) {
  facts.running = turns.at(-1)?.running ?? false;
  const started = events.findLast((e) => e.type === "run_started");
  if (started && !facts.session.pending) {
    const { model, mode, search } = started;
    facts.session = { ...facts.session, model, mode, search: search ?? facts.session.search };
  }
}

/** The chats that have something in them, of those that the server listed. */
export function worthListing(sessions) {
  return sessions.filter((s) => s.messages || s.running);
}
