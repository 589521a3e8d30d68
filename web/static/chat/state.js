// What a chat looks like, as a pure fold of its events. No DOM, no clock, no network.
//
// Parts that did not change keep their identity, so that a view can compare with ===. An event
// that was seen already (a replay after a reconnect) changes nothing.

import { beside, emptyTree, grow, shown } from "./branches.js";
import * as step from "./steps.js";

export const emptyChat = Object.freeze({
  seq: 0,
  current: 0, // the turn that events belong to: the newest question's
  tree: emptyTree,
  turns: Object.freeze([]), // those that are shown
  others: Object.freeze({}), // those that are not, by id
});

/** The chat after `event` ({seq, type, at, ...}). */
export function reduce(chat, event) {
  if (!(event.seq > chat.seq)) return chat;
  const tree = grow(chat.tree, event);
  if (tree !== chat.tree) return arranged({ ...chat, seq: event.seq, tree }, event);
  const change = CHANGES[event.type];
  if (!change || !chat.current) return { ...chat, seq: event.seq };
  const owner = event.type === "files_undone" ? lastChanged(chat) : (event.turn ?? event.upto ?? chat.current);
  const at = chat.turns.findLastIndex(turn => turn.id === owner);
  const old = chat.turns[at] ?? chat.others[owner];
  if (!old) return { ...chat, seq: event.seq };
  const turn = { ...old, ...change(old, event) };
  if (at >= 0) return { ...chat, seq: event.seq, turns: chat.turns.with(at, turn) };
  return { ...chat, seq: event.seq, others: { ...chat.others, [turn.id]: turn } };
}

// The turns that the tree shows, each told who stands beside it.
function arranged(chat, event) {
  const next = event.type === "user_message" && !event.replaces && !event.plan;
  if (next) return { ...chat, current: event.seq, turns: [...chat.turns, newTurn(event)] };
  const others = { ...chat.others };
  for (const turn of chat.turns) others[turn.id] = turn;
  let { current } = chat;
  if (event.type === "user_message") {
    current = event.seq;
    others[current] = newTurn(event);
    for (const turn of Object.values(others)) {
      if (!turn.plans.some(plan => plan.id === event.plan)) continue;
      others[turn.id] = { ...turn, plans: turn.plans.map(p => (p.id === event.plan ? { ...p, ran: true } : p)) };
    }
  }
  const turns = shown(chat.tree).map(id => {
    const turn = others[id];
    const versions = beside(chat.tree, id);
    delete others[id];
    return String(turn.versions) === String(versions) ? turn : { ...turn, versions };
  });
  return { ...chat, current, turns, others };
}

/** The turn whose files are put back when asked: the newest on show that changed some and still stands. */
export function lastChanged({ turns }) {
  return turns.findLast(turn => turn.changes.length && !turn.undone)?.id ?? 0;
}

/** Whether the last question is still being answered. */
export function isRunning(chat) {
  return chat.turns.at(-1)?.running ?? false;
}

/** The source or citation behind number `n`, as seen from turn `index`. */
export function sourceOf(chat, index, n) {
  for (let i = index; i >= 0; i--) {
    const turn = chat.turns[i];
    const cited = turn?.citations.find(c => c.n === n);
    const source = turn?.sources.find(s => s.n === n);
    if (!cited && !source) continue;
    const { url } = cited ?? source;
    const { unseen } = turn.steps.find(each => each.unseen && each.url === url) ?? {};
    const found = { ...source, ...cited, state: source?.state ?? "cited", unseen };
    return { ...found, read: wasRead(turn, found) };
  }
  return null;
}

/** Whether a page was read: by us, as a verdict on it tells too, or as the provider says of itself. */
export function wasRead({ sources, steps }, { url, marks = [] }) {
  const compared = marks.some(({ verdict }) => verdict && verdict !== "unread");
  const opened = sources.filter(({ state }) => state === "opened");
  return compared || [...opened, ...steps.filter(step.isRead)].some(page => page.url === url);
}

function newTurn(event) {
  return {
    id: event.seq,
    versions: [event.seq],
    question: event.text,
    attachments: event.attachments ?? [], // what is known of the files that went along
    folders: event.folders ?? [], // of the library, in which alone was searched
    at: event.at,
    running: true,
    run: null,
    model: null,
    mode: null,
    search: null,
    path: null,
    steps: [],
    approvals: [],
    notices: [],
    plans: [],
    changes: [],
    undone: null,
    private: false, // whether the user's own data was read
    thinking: "",
    draftThinking: "",
    text: "",
    blocks: [],
    citations: [],
    sources: [],
    suggestions: [],
    next: [], // what could be asked next
    rating: 0, // 1 for a good answer, -1 for a poor one
    summary: "", // of all turns up to this one, which the model gets instead of them
    check: null, // of its sources: {at, left, done, lost, model, tokens, cost, paid, error}
    local: null, // whether the model is on this machine, where that was recorded
    imported: false,
    usage: null,
    performance: null,
    reason: null,
    error: null,
    startedAt: event.at,
    endedAt: null,
  };
}

const CHANGES = {
  run_started: (_turn, e) => ({
    running: true,
    run: e.run_id,
    model: e.model,
    mode: e.mode,
    search: e.search,
    path: e.search_path,
    local: e.local ?? null,
    effort: e.effort ?? null,
    imported: e.imported ?? false,
    startedAt: e.at,
    endedAt: null,
    reason: null,
    error: null,
  }),

  // Another process goes on: what was half said is said anew, and a call that was made is made again.
  run_resumed: turn => ({
    text: "",
    blocks: [],
    draftThinking: "",
    steps: turn.steps.map(s => (s.done || s.callId ? s : { ...s, done: true, stopped: true })),
  }),

  servers_awaited: (turn, e) => ({
    steps: [...turn.steps, { kind: "servers", names: e.servers, at: e.at, done: false }],
  }),

  servers_ready: (turn, e) => ({
    steps: step.endStep(turn.steps, s => s.kind === "servers" && !s.done, {
      kind: "servers",
      names: e.servers,
      missing: e.missing,
      endedAt: e.at,
    }),
  }),

  text_delta: (turn, e) => ({
    text: turn.text + e.text,
    blocks: e.change ? changed(turn.blocks, e.change) : turn.blocks,
  }),

  thinking_delta: (turn, e) => ({ draftThinking: turn.draftThinking + e.text }),

  search_started: (turn, e) => ({
    steps: step.startStep(turn.steps, step.waitingSearch(e), { kind: "search", query: e.query, by: e.by, at: e.at }),
  }),

  search_finished: (turn, e) => ({
    steps: step.endStep(turn.steps, step.runningSearch(turn.steps, e), {
      kind: "search",
      query: e.query,
      by: e.by,
      status: e.status,
      results: step.countOf(e.results),
      attempts: e.attempts ?? [],
      notes: e.notes ?? [],
      unseen: e.invisible ?? 0,
      error: e.error ?? null,
      endedAt: e.at,
    }),
  }),

  page_opened: (turn, e) => ({
    steps: step.endStep(turn.steps, s => s.kind === "page" && !s.done && s.url === e.url, {
      kind: "page",
      url: e.url,
      title: e.title ?? "",
      notes: e.notes ?? [],
      unseen: e.invisible ?? 0,
      status: e.status,
      error: e.error ?? null,
      endedAt: e.at,
    }),
  }),

  tool_call: (turn, e) => ({ steps: [...turn.steps, step.stepOfCall(e)] }),

  tool_result: (turn, e) => ({
    steps: turn.steps.map(s => (s.callId === e.call_id ? step.finishCall(s, e) : s)),
    approvals: turn.approvals.map(a =>
      a.callId === e.call_id ? { ...a, result: { failed: e.is_error, text: e.content ?? "" } } : a,
    ),
    sources: merge(turn.sources, e.sources ?? []),
    changes: step.changeIn(e) ? [...turn.changes, step.changeIn(e)] : turn.changes,
    private: turn.private || Boolean(e.details?.private),
  }),

  plan: (turn, e) => ({ plans: [...turn.plans, { id: e.plan_id, title: e.title, steps: e.steps ?? [], ran: false }] }),

  files_undone: (_turn, e) => ({ undone: e.files }),

  turn_rated: (_turn, e) => ({ rating: e.rating }),

  follow_ups: (turn, e) => ({
    next: e.questions,
    ...(turn.usage && e.usage ? { usage: added(turn.usage, e.usage) } : {}),
  }),

  // A page was read, or a model has read: the citations as they are now take the place of the old.
  check: (turn, e) => ({
    check: checkAfter(turn.check, e),
    citations: e.citations?.length
      ? [...new Map([...turn.citations, ...e.citations].map(c => [c.n, c])).values()]
      : turn.citations,
  }),

  summary: (_turn, e) => ({ summary: e.text }),

  // A call that gave the chat its title is a part of what the answer took.
  title: (turn, e) => (turn.usage && e.usage ? { usage: added(turn.usage, e.usage) } : {}),

  approval_requested: (turn, e) => ({
    approvals: [
      ...turn.approvals,
      {
        callId: e.call_id,
        name: e.name,
        arguments: e.arguments ?? {},
        effect: e.effect,
        server: e.server ?? null,
        why: e.why ?? "",
        preview: e.preview ?? "",
        folder: e.folder ?? "",
        question: Boolean(e.question),
        decision: null,
      },
    ],
  }),

  approval_decided: (turn, e) => ({
    approvals: turn.approvals.map(a =>
      a.callId === e.call_id && !a.decision ? { ...a, decision: e.decision, by: e.by ?? "user" } : a,
    ),
  }),

  message: (turn, e) => {
    const said = e.text?.trim() && e.tool_calls?.length;
    const steps = said ? [...turn.steps, step.noteStep(e)] : turn.steps;
    return {
      steps,
      thinking: [turn.thinking, e.thinking || turn.draftThinking].filter(Boolean).join("\n\n"),
      draftThinking: "",
      text: said ? "" : (e.text ?? ""),
      blocks: said ? [] : (e.blocks ?? []),
      citations: e.citations?.length ? e.citations : turn.citations,
      sources: merge(turn.sources, e.sources ?? []),
      suggestions: e.suggestions ?? turn.suggestions,
    };
  },

  notice: (turn, e) => ({ notices: [...turn.notices, { code: e.code, message: e.message, remedy: e.remedy ?? "" }] }),

  run_finished: (turn, e) => ({
    running: false,
    reason: e.reason,
    error: e.error ?? null,
    limit: e.limit,
    path: e.search_path ?? turn.path,
    local: e.local ?? turn.local,
    usage: e.usage ?? turn.usage,
    performance: e.performance ?? null,
    text: e.answer || turn.text,
    blocks: e.answer && e.blocks ? e.blocks : turn.blocks,
    citations: e.citations ?? turn.citations,
    sources: e.sources?.length ? e.sources : turn.sources,
    thinking: turn.thinking || turn.draftThinking,
    draftThinking: "",
    steps: turn.steps.map(s => (s.done ? s : { ...s, done: true, stopped: true })),
    approvals: turn.approvals.map(a => (a.decision ? a : { ...a, decision: "deny", by: "stop" })),
    endedAt: e.at,
  }),
};

// What the server's `change` makes of nodes: what did not change stays the same object.
export function changed(nodes, [kept, ...tail]) {
  const old = nodes[kept];
  const now = node => (node.more ? old + node.more : node.in ? { ...old, c: changed(old?.c ?? [], node.in) } : node);
  return [...nodes.slice(0, kept), ...tail.map(now)];
}

// `lost` holds {address: why} of what could not be read; a second check tries those again.
function checkAfter(old, { at, left, url, status, error = null, model = null, tokens = null, usage }) {
  const { lost, done } = old?.left ? old : { lost: old?.lost ?? {}, done: 0 };
  const now = { at, left, done: done + (url ? 1 : 0), model, tokens, cost: usage?.cost_usd, paid: Boolean(usage) };
  if (!url) return { ...now, lost, error };
  const { [url]: _, ...others } = lost;
  return { ...now, lost: status === "ok" ? others : { ...others, [url]: error ?? status }, error: null };
}

const SILENT = 120; // seconds: a check that says nothing for so long was stopped with its server

/** Whether the sources of a turn are being checked. */
export const isChecking = ({ check }) => Boolean(check?.left) && Date.now() / 1000 - check.at < SILENT;

/** How many marks of a turn are there, and who checked how many: {of, unread, by: {name: n}}. */
export function checkedMarks({ citations }) {
  const marks = citations.flatMap(c => c.marks ?? []).filter(mark => mark.verdict);
  const read = marks.filter(mark => mark.verdict !== "unread");
  const by = {};
  for (const mark of read) by[mark.by ?? "words"] = (by[mark.by ?? "words"] ?? 0) + 1;
  const open = marks.filter(mark => mark.verdict === "unread" || mark.by === "provider").length;
  return { of: marks.length, open, unclear: marks.filter(m => m.verdict === "unclear").length, read: read.length, by };
}

/** How many pages a finished answer has read that names none at all. */
export const unnamedPages = ({ running, text, citations, sources }) =>
  running || !text || citations.length ? 0 : sources.filter(source => source.state === "opened").length;

const ADDED = ["input_tokens", "output_tokens", "cost_usd"];

// What is not known of one is not known of both.
function added(usage, more) {
  const sum = name => (usage[name] == null || more[name] == null ? null : usage[name] + more[name]);
  return { ...usage, ...Object.fromEntries(ADDED.map(name => [name, sum(name)])) };
}

const RANK = { found: 0, opened: 1, cited: 2 };

function merge(known, fresh) {
  if (!fresh.length) return known;
  const byUrl = new Map(known.map(s => [s.url, s]));
  for (const s of fresh) {
    const old = byUrl.get(s.url);
    const state = old && RANK[old.state] > RANK[s.state] ? old.state : s.state;
    byUrl.set(s.url, { ...old, ...s, title: s.title || old?.title || "", state });
  }
  return [...byUrl.values()];
}
