// What a chat looks like, as a pure fold of its events. No DOM, no clock, no network.
//
// Parts that did not change keep their identity, so that a view can compare with ===. An event
// that was seen already (a replay after a reconnect) changes nothing.

import { beside, emptyTree, grow, shown } from "./branches.js";

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
  const at = chat.turns.findLastIndex((turn) => turn.id === chat.current);
  const old = chat.turns[at] ?? chat.others[chat.current];
  const turn = { ...old, ...change(old, event) };
  if (at >= 0) return { ...chat, seq: event.seq, turns: chat.turns.with(at, turn) };
  return { ...chat, seq: event.seq, others: { ...chat.others, [turn.id]: turn } };
}

// The turns that the tree shows, each told who stands beside it.
function arranged(chat, event) {
  const others = { ...chat.others };
  for (const turn of chat.turns) others[turn.id] = turn;
  let { current } = chat;
  if (event.type === "user_message") {
    current = event.seq;
    others[current] = newTurn(event);
  }
  const turns = shown(chat.tree).map((id) => {
    const turn = others[id];
    const versions = beside(chat.tree, id);
    delete others[id];
    return String(turn.versions) === String(versions) ? turn : { ...turn, versions };
  });
  return { ...chat, current, turns, others };
}

/** Whether the last question is still being answered. */
export function isRunning(chat) {
  return chat.turns.at(-1)?.running ?? false;
}

/** The source or citation behind number `n`, as seen from turn `index`. */
export function sourceOf(chat, index, n) {
  for (let i = index; i >= 0; i--) {
    const turn = chat.turns[i];
    const cited = turn?.citations.find((c) => c.n === n);
    const source = turn?.sources.find((s) => s.n === n);
    if (cited || source) return { ...source, ...cited, state: source?.state ?? "cited" };
  }
  return null;
}

function newTurn(event) {
  return {
    id: event.seq,
    versions: [event.seq],
    question: event.text,
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
    thinking: "",
    draftThinking: "",
    text: "",
    blocks: [],
    citations: [],
    sources: [],
    suggestions: [],
    usage: null,
    reason: null,
    error: null,
    startedAt: event.at,
    endedAt: null,
  };
}

const CHANGES = {
  run_started: (turn, e) => ({
    running: true,
    run: e.run_id,
    model: e.model,
    mode: e.mode,
    search: e.search,
    path: e.search_path,
    startedAt: e.at,
    endedAt: null,
    reason: null,
    error: null,
  }),

  // Another process goes on: what was half said is said anew, and a call that was made is made again.
  run_resumed: (turn) => ({
    text: "",
    blocks: [],
    draftThinking: "",
    steps: turn.steps.map((s) => (s.done || s.callId ? s : { ...s, done: true, stopped: true })),
  }),

  text_delta: (turn, e) => ({
    text: turn.text + e.text,
    blocks: e.blocks ? [...turn.blocks.slice(0, e.from ?? 0), ...e.blocks] : turn.blocks,
  }),

  thinking_delta: (turn, e) => ({ draftThinking: turn.draftThinking + e.text }),

  search_started: (turn, e) => ({
    steps: startStep(turn.steps, waitingSearch(e), {
      kind: "search",
      query: e.query,
      by: e.by,
      at: e.at,
    }),
  }),

  search_finished: (turn, e) => ({
    steps: endStep(turn.steps, runningSearch(turn.steps, e), {
      kind: "search",
      query: e.query,
      by: e.by,
      status: e.status,
      results: countOf(e.results),
      attempts: e.attempts ?? [],
      error: e.error ?? null,
      endedAt: e.at,
    }),
  }),

  page_opened: (turn, e) => ({
    steps: endStep(turn.steps, (s) => s.kind === "page" && !s.done && s.url === e.url, {
      kind: "page",
      url: e.url,
      title: e.title ?? "",
      status: e.status,
      error: e.error ?? null,
      endedAt: e.at,
    }),
  }),

  tool_call: (turn, e) => ({ steps: [...turn.steps, stepOfCall(e)] }),

  tool_result: (turn, e) => ({
    steps: turn.steps.map((s) => (s.callId === e.call_id ? finishCall(s, e) : s)),
    sources: merge(turn.sources, e.sources ?? []),
  }),

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
        decision: null,
      },
    ],
  }),

  approval_decided: (turn, e) => ({
    approvals: turn.approvals.map((a) =>
      a.callId === e.call_id && !a.decision ? { ...a, decision: e.decision, by: e.by ?? "user" } : a,
    ),
  }),

  message: (turn, e) => {
    const said = e.text?.trim() && e.tool_calls?.length;
    const steps = said ? [...turn.steps, noteStep(e)] : turn.steps;
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

  notice: (turn, e) => ({
    notices: [...turn.notices, { code: e.code, message: e.message, remedy: e.remedy ?? "" }],
  }),

  run_finished: (turn, e) => ({
    running: false,
    reason: e.reason,
    error: e.error ?? null,
    path: e.search_path ?? turn.path,
    usage: e.usage ?? turn.usage,
    text: e.answer || turn.text,
    blocks: e.answer && e.blocks ? e.blocks : turn.blocks,
    citations: e.citations ?? turn.citations,
    sources: e.sources?.length ? e.sources : turn.sources,
    thinking: turn.thinking || turn.draftThinking,
    draftThinking: "",
    steps: turn.steps.map((s) => (s.done ? s : { ...s, done: true, stopped: true })),
    approvals: turn.approvals.map((a) => (a.decision ? a : { ...a, decision: "deny", by: "stop" })),
    endedAt: e.at,
  }),
};

// -- steps: what the activity list shows --------------------------------------------------------

function stepOfCall(e) {
  const args = e.arguments ?? {};
  const shared = { callId: e.call_id, at: e.at, done: false };
  if (e.name === "web_search") return { ...shared, kind: "search", query: String(args.query ?? "") };
  if (e.name === "open_page") return { ...shared, kind: "page", url: String(args.url ?? "") };
  return { ...shared, kind: "tool", name: e.name, arguments: args, effect: e.effect, server: e.server ?? null };
}

function noteStep(e) {
  return { kind: "note", blocks: e.blocks ?? [e.text], at: e.at, done: true };
}

// A local search shows up twice, as a tool call and as a search: they are one step.
function waitingSearch(e) {
  return (s) => s.kind === "search" && !s.done && !s.by && (s.query === e.query || !s.query);
}

function runningSearch(steps, e) {
  const open = (s) => s.kind === "search" && !s.done;
  const exact = (s) => open(s) && s.query === e.query;
  if (steps.some(exact)) return exact;
  return steps.some((s) => open(s) && !s.query) ? (s) => open(s) && !s.query : open;
}

function startStep(steps, matches, fresh) {
  const at = steps.findIndex(matches);
  if (at < 0) return [...steps, { ...fresh, done: false }];
  return steps.with(at, { ...steps[at], ...fresh });
}

function endStep(steps, matches, ended) {
  const at = steps.findIndex(matches);
  if (at < 0) return [...steps, { ...ended, at: ended.endedAt, done: true }];
  return steps.with(at, { ...steps[at], ...ended, query: ended.query || steps[at].query, done: true });
}

function finishCall(step, e) {
  if (step.kind === "tool") {
    return { ...step, done: true, failed: e.is_error, result: e.content, endedAt: e.at };
  }
  if (step.done) return step;
  const status = e.is_error ? "error" : "ok";
  return { ...step, done: true, status, error: e.is_error ? e.content : null, endedAt: e.at };
}

function countOf(results) {
  return Array.isArray(results) ? results.length : (results ?? null);
}

const RANK = { found: 0, opened: 1, cited: 2 };

function merge(known, fresh) {
  if (!fresh.length) return known;
  const byUrl = new Map(known.map((s) => [s.url, s]));
  for (const s of fresh) {
    const old = byUrl.get(s.url);
    const state = old && RANK[old.state] > RANK[s.state] ? old.state : s.state;
    byUrl.set(s.url, { ...old, ...s, title: s.title || old?.title || "", state });
  }
  return [...byUrl.values()];
}
