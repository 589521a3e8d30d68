// The steps of a turn, which the activity list shows, as a fold of events: pure, as chat/state.js is.

/** The step of a `tool_call`. */
export function stepOfCall(e) {
  const args = e.arguments ?? {};
  const shared = { callId: e.call_id, at: e.at, done: false };
  if (e.name === "web_search") return { ...shared, kind: "search", query: String(args.query ?? "") };
  if (e.name === "open_page") return { ...shared, kind: "page", url: String(args.url ?? "") };
  return { ...shared, kind: "tool", name: e.name, arguments: args, effect: e.effect, server: e.server ?? null };
}

/** What the model said between two calls. */
export function noteStep(e) {
  return { kind: "note", blocks: e.blocks ?? [e.text], at: e.at, done: true };
}

/** A local search shows up twice, as a tool call and as a search: they are one step. */
export function waitingSearch(e) {
  return s => s.kind === "search" && !s.done && !s.by && (s.query === e.query || !s.query);
}

/** Which step a `search_finished` ends. */
export function runningSearch(steps, e) {
  const open = s => s.kind === "search" && !s.done;
  const exact = s => open(s) && s.query === e.query;
  if (steps.some(exact)) return exact;
  return steps.some(s => open(s) && !s.query) ? s => open(s) && !s.query : open;
}

/** The steps with `fresh` in the place of the first that `matches`, or at the end. */
export function startStep(steps, matches, fresh) {
  const at = steps.findIndex(matches);
  if (at < 0) return [...steps, { ...fresh, done: false }];
  return steps.with(at, { ...steps[at], ...fresh });
}

/** The steps with the first that `matches` ended; one that nobody saw begin is added. */
export function endStep(steps, matches, ended) {
  const at = steps.findIndex(matches);
  if (at < 0) return [...steps, { ...ended, at: ended.endedAt, done: true }];
  return steps.with(at, { ...steps[at], ...ended, query: ended.query || steps[at].query, done: true });
}

/** A step after its `tool_result`. */
export function finishCall(step, e) {
  if (step.kind === "tool") {
    const change = changeIn(e);
    return { ...step, done: true, failed: e.is_error, result: e.content, change, endedAt: e.at };
  }
  if (step.done) return step;
  const status = e.is_error ? "error" : "ok";
  return { ...step, done: true, status, error: e.is_error ? e.content : null, endedAt: e.at };
}

/** The file change that a `tool_result` tells of, {path, new, diff}, or null. */
export function changeIn({ details }) {
  return details?.kind === "file_change" ? details : null;
}

/** How many results an event names, or null. */
export function countOf(results) {
  return Array.isArray(results) ? results.length : (results ?? null);
}

/** Whether a step opened a page and got its text. */
export function isRead(step) {
  return step.kind === "page" && step.done && !step.stopped && (step.status === "ok" || Number(step.status) === 200);
}
