// What an answer is doing, and afterwards what it did: searches, pages, tools.
//
// While the run lives every step has its own line; a line ends when the work has ended. Afterwards
// the lines fold under one sentence, with the thoughts, and with what the answer took: model, search, time,
// tokens, cost, and what left this computer.

import { pathText } from "../composer/search_switch.js";
import { h, icon, isWeb, outLink, placeOf, render, setText } from "../lib/dom.js";
import { errorText } from "../lib/messages.js";
import { clauses, has, named, nameOf, number, t, titleOf, translated } from "../locales/index.js";
import { isRead } from "./steps.js";

const LONGEST = 3600; // seconds; further apart are only the server's clock and the browser's

const HERE = ["library", "chats"]; // engines that ask nobody else

/**
 * A view of a turn's steps: {element, update(turn)}. `thoughts` is the element for what the model thought.
 */
export function activityView(cite, thoughts) {
  const title = h("span.activity-title");
  const doubts = h("span.doubts");
  const clock = h("span.activity-clock");
  const list = h("ol.steps");
  const summary = h("summary", h("span.pulse", { "aria-hidden": "true" }), title, doubts, clock);
  const facts = h("dl.facts");
  const element = h("details.activity", summary, h("div.activity-body", list, thoughts, facts));
  const lines = [];
  let wasRunning = null;
  let began = null; // by the clock that never jumps
  let timer = 0;

  function update(turn) {
    element.hidden = !turn.running && turn.reason === "lost";
    element.classList.toggle("bare", turn.steps.length === 0);
    turn.steps.forEach((step, i) => {
      if (lines[i]?.step === step) return;
      const node = lineOf(step, cite);
      if (lines[i]) lines[i].node.replaceWith(node);
      else list.append(node);
      lines[i] = { step, node };
    });
    doubts.replaceChildren(...doubtsOf(turn));
    setText(title, turn.running ? doing(turn) : done(turn));
    const told = h("dl.facts", turn.running ? [] : factsOf(turn));
    if (!told.isEqualNode(facts)) facts.replaceChildren(...told.childNodes); // else what is selected stays so
    element.classList.toggle("running", turn.running);
    if (wasRunning !== turn.running) element.open = turn.running;
    wasRunning = turn.running;
    tick(turn);
  }

  // Seconds are shown, not announced: the summary is no live region.
  function tick(turn) {
    clearTimeout(timer);
    const since = Date.now() / 1000 - turn.startedAt;
    began ??= performance.now() / 1000 - (since > 0 && since < LONGEST ? since : 0);
    const seconds = Math.floor(performance.now() / 1000 - began);
    setText(clock, turn.running && seconds >= 2 ? t("turn.elapsed", { s: seconds }) : "");
    if (turn.running) timer = setTimeout(() => element.isConnected && tick(turn), 1000);
  }

  return { element, update };
}

function doing(turn) {
  if (turn.approvals.some(a => !a.decision)) return t("doing.approval");
  const open = turn.steps.findLast(s => !s.done);
  if (open) return t(`doing.${open.kind}`);
  if (turn.text) return t("doing.writing");
  if (turn.draftThinking) return t("doing.thinking");
  return turn.model ? t("doing.waiting", { model: titleOf({ id: turn.model }) }) : t("doing.starting");
}

function done(turn) {
  const count = kind => turn.steps.filter(s => s.kind === kind && !s.stopped).length;
  const thought = turn.usage?.reasoning_tokens;
  const level = turn.effort && t(`effort.${turn.effort}`);
  const parts = level ? [t(thought ? "effort.told" : "effort.said", { level, n: number(thought ?? 0) })] : [];
  const searches = count("search");
  const pages = turn.steps.filter(isRead).length;
  const unread = turn.steps.filter(s => s.kind === "page" && s.done && !s.stopped && !isRead(s)).length;
  const tools = count("tool");
  const failed = kind => turn.steps.filter(s => s.kind === kind && !s.stopped && hasFailed(s)).length;
  const lost = failed("search");
  if (searches) parts.push(lost === searches ? t("step.searchfailed") : t("done.searches", { n: searches }));
  if (lost && lost < searches) parts.push(t("done.failed", { n: lost }));
  if (pages) parts.push(t("done.pages", { n: pages }));
  if (unread) parts.push(t(pages ? "done.unread" : "done.allunread", { n: unread }));
  if (tools) parts.push(t("done.tools", { n: tools }));
  if (failed("tool")) parts.push(t("done.failed", { n: failed("tool") }));
  const seconds = durationOf(turn);
  if (!parts.length && seconds) return t(turn.reason === "cancelled" ? "done.stopped" : "done.nothing", { s: seconds });
  const text = clauses([...parts, seconds]) || t("done.imported");
  return text[0].toUpperCase() + text.slice(1);
}

// How many claims their sources contradict, and words that are in none: what is wrong is said at the top.
function doubtsOf(turn) {
  const marks = turn.running ? [] : turn.citations.flatMap(c => c.marks ?? []);
  const told = ["contradicted", "misquoted"].map(name => [
    name,
    marks.filter(({ verdict }) => verdict === name).length,
  ]);
  return told
    .filter(([, n]) => n)
    .map(([name, n]) =>
      h("span", { class: `verdict ${name}` }, icon(name), h("span", t(`done.${name}`, { n, of: marks.length }))),
    );
}

/** How long a turn took, as the server counted it or as its events lie apart. */
export function durationOf(turn) {
  if (turn.imported) return "";
  const seconds = turn.usage?.seconds ?? Math.max(0, (turn.endedAt ?? turn.at) - turn.startedAt);
  if (seconds < 0.1) return t("seconds.few");
  return t("seconds", { s: number(seconds, seconds < 10 ? 1 : 0) });
}

// How the calls of a model arrive, where it does not hand them over.
const RUNGS = { text: "foot.calls.text", envelope: "foot.calls.envelope" };

// What an answer took, as it was recorded then: a heading and its words each.
function factsOf(turn) {
  const usage = turn.usage ?? {};
  const extractive = turn.model === "builtin:extractive";
  const { tokens_per_second: speed, calls, thinking_usd: thoughts } = turn.performance ?? {};
  const tokens = [tokensText(usage), speed ? t("foot.speed", { n: number(speed, 1) }) : ""];
  const rows = {
    model: extractive
      ? t("foot.extractive")
      : clauses([turn.model && modelText(turn.model), calls in RUNGS && t(RUNGS[calls])]),
    path: turn.imported ? "" : pathText(turn.path),
    time: durationOf(turn),
    tokens: extractive && !usage.input_tokens && !usage.output_tokens ? "" : clauses(tokens),
    thought: usage.reasoning_tokens
      ? clauses([t("foot.thought", { n: number(usage.reasoning_tokens) }), costText({ cost_usd: thoughts })])
      : "",
    cost: extractive && !usage.cost_usd ? "" : costText(usage),
    left: turn.local === null ? "" : clauses(leftBehind(turn)) || t("foot.left.nothing"),
  };
  return Object.entries(rows)
    .filter(([, words]) => words)
    .map(([name, words]) => h("div", h("dt", t(`facts.${name}`)), h("dd", words)));
}

// What left this computer for an answer: the chat, searches, requests for pages.
function leftBehind({ model, path, steps, local }) {
  const searches = steps.filter(
    s =>
      s.kind === "search" &&
      (s.attempts ?? []).some(({ engine, status }) => !HERE.includes(engine) && status !== "skipped"),
  );
  const pages = steps.filter(s => s.kind === "page" && isWeb(s.url));
  return [
    model && !local ? t("foot.left.chat", { name: nameOf(model.split(":")[0]) }) : "",
    path?.startsWith("native:") || !searches.length ? "" : t("foot.searches", { n: searches.length }),
    path?.startsWith("native:") || !pages.length ? "" : t("foot.pages", { n: pages.length }),
  ];
}

const modelText = model => `${nameOf(model.split(":")[0])} · ${model.replace(/^[^:]*:?/, "")}`;

function tokensText(usage) {
  const known = n => (n === null || n === undefined ? "?" : number(n));
  const { input_tokens: input, output_tokens: output } = usage;
  if (known(input) === "?" && known(output) === "?") return t("foot.tokens.unknown");
  return t("foot.tokens", { in: known(input), out: known(output) });
}

/** What an answer or a part of it cost, as far as the price is known. */
export function costText(usage) {
  const cost = usage.cost_usd;
  if (cost === null || cost === undefined) return t("foot.cost.unknown");
  if (cost === 0) return t("foot.cost.free");
  return t("foot.cost", { cost: number(cost, cost < 0.01 ? 4 : 2) });
}

function lineOf(step, cite) {
  if (step.kind === "note") {
    return h("li.step.note", { dir: "auto" }, ...step.blocks.map(b => render(b, cite)));
  }
  const [state, ...content] = LINES[step.kind](step);
  const mark = step.done ? icon(MARKS[state] ?? ICONS[step.kind]) : h("span.spinner", { "aria-hidden": "true" });
  return h("li", { class: `step ${state}` }, mark, h("div.step-text", { dir: "auto" }, content));
}

function hasFailed({ kind, status, failed }) {
  return kind === "tool" ? Boolean(failed) : kind === "search" && (status === "error" || status === "blocked");
}

const ICONS = { search: "search", page: "page", tool: "tool", servers: "tool" };
const MARKS = { failed: "warn" };

const LINES = {
  search(step) {
    if (!step.done)
      return ["open", step.query ? t("step.searching", { query: step.query }) : t("step.searching.unknown")];
    const failed = hasFailed(step);
    const query = step.query ? t("step.searched", { query: step.query }) : t("step.searched.unknown");
    const trail = trailOf(step);
    return [
      failed ? "failed" : "ended",
      query,
      h("span.step-more", ` · ${[outcomeOf(step, failed), ...trail].join(" · ")}`),
    ];
  },

  page(step) {
    const host = placeOf(step.url);
    if (!step.done) return ["open", t("step.reading", { host })];
    if (step.stopped) return ["ended", t("step.reading", { host }), more(t("step.stopped"))];
    if (!isRead(step)) {
      return ["failed", t("step.notread", { host }), more(errorText(step.error) || String(step.status ?? ""))];
    }
    return [
      "ended",
      outLink(step.url, { class: "plain", title: step.url }, t("step.read", { host })),
      step.title ? more(h("cite", step.title)) : null,
      ...notesOf(step).map(more),
      step.unseen ? more(t("page.unseen", { n: step.unseen })) : null,
    ];
  },

  servers({ names, missing = [], done, stopped }) {
    if (!done || stopped) return [done ? "ended" : "open", t("step.connecting", { names: named(names) })];
    const there = names.filter(name => !missing.includes(name));
    const came = there.length ? t("step.connected", { names: named(there) }) : "";
    const not = missing.length ? t("step.notconnected", { names: named(missing) }) : "";
    return [not ? "failed" : "ended", [came, not].filter(Boolean).join(" · ")];
  },

  tool(step) {
    if (step.change && !step.failed) return ["ended", changed(step.change)];
    const { name, server, arguments: given } = step;
    const file = has(`step.doing.${name}`) && given?.path;
    const key =
      file && !step.done
        ? `step.doing.${name}`
        : file && step.failed
          ? "step.filenot"
          : !step.done
            ? "step.tool"
            : step.failed
              ? "step.toolfailed"
              : "step.tooldone";
    const body = [h("strong", t("step.arguments")), plain(JSON.stringify(step.arguments, null, 2))];
    if (step.result) body.push(h("strong", t("step.result")), plain(step.result));
    return [
      !step.done ? "open" : step.failed ? "failed" : "ended",
      h("details.tool", h("summary", t(key, { name: server ? `${name} (${server})` : name, path: file })), body),
    ];
  },
};

// What became of a file; the difference is put together when somebody looks at it.
function changed({ path, new: made, diff: text }) {
  const place = h("div");
  const look = async () => {
    if (!place.childElementCount)
      place.replaceChildren((await import("../lib/diff.js")).diff(text ?? "", t("diff.label", { path })));
  };
  return h(
    "details.tool",
    { ontoggle: look },
    h("summary", t(made ? "step.filemade" : "step.filechanged", { path })),
    place,
  );
}

function outcomeOf(step, failed) {
  if (step.stopped) return t("step.stopped");
  if (failed) return [t("step.searchfailed"), errorText(step.error)].filter(Boolean).join(": ");
  if (step.status === "empty" || step.results === 0) return t("step.noresults");
  return step.results ? t("step.results", { n: step.results }) : t("step.noncounted");
}

// "DuckDuckGo: not reachable · used Library": who was asked in vain is never left out.
function trailOf(step) {
  const attempts = step.attempts ?? [];
  const used = attempts.find(a => a.status === "ok");
  const parts = attempts.filter(a => a.status !== "ok").map(inVain);
  if (used) parts.push(t("step.used", { engine: nameOf(used.engine) }));
  parts.push(...notesOf(step));
  if (step.unseen) parts.push(t("page.unseen", { n: step.unseen }));
  return parts;
}

// What changes the meaning of a result: a search without its limits, a stored copy, a redirect.
function notesOf({ notes = [] }) {
  return notes.map(note => translated(note).message.replace(/[.。]$/, ""));
}

// In a few words, or in the server's sentence, which may begin with the engine itself.
function inVain({ engine, status, error }) {
  const name = nameOf(engine);
  const exact = `attempt.${error?.code}`;
  const said = has(exact) ? t(exact) : (error && translated(error).message) || t(`attempt.${status}`);
  const why = said.replace(/[.。]$/, "");
  return why.startsWith(name) ? why : t("attempt", { engine: name, why });
}

function more(what) {
  return h("span.step-more", " · ", what);
}

function plain(text) {
  return h("pre.plain-text", { tabindex: "0", dir: "auto" }, text);
}
