// One question and its answer on the page. Only what changed in the turn is touched.

import { grow, h, hostOf, icon, keepFocus, outLink, render, setText } from "../lib/dom.js";
import { errorBox, waysOut } from "../lib/messages.js";
import { clauses, formed, has, nameOf, sentences, t } from "../locales/index.js";
import { contradictionsOf, sourcesView, whoChecked } from "../sources/sources.js";
import { activityView, costText } from "./activity.js";
import { checkedMarks, isChecking, unnamedPages } from "./state.js";
import { answerTools, openWays, questionView } from "./turn_actions.js";

/** The same as `turnView`, of which only the frame is there until it is built. */
export function turnLater(first, on) {
  const element = h("article.turn", { "data-seq": first.id, "aria-busy": "false" });
  let [turn, view] = [first, null];
  return {
    element,
    build: () => (view ??= turnView(turn, on, element)),
    isBuilt: () => Boolean(view),
    update(next) {
      turn = next;
      view?.update(next);
    },
    unsent: () => view?.unsent() ?? "",
  };
}

/**
 * {element, update(turn), unsent()}. `on` holds chip(n, find, marks), find(turn, n), open(source) and what
 * turn_actions.js needs, and write(text) for a question that could be sent.
 */
export function turnView(first, on, element = h("article.turn", { "data-seq": first.id })) {
  let turn = first;
  const cite = (n, marks) => on.chip(n, () => on.find(turn, n), marks);
  const sources = sourcesView(on.open);
  const thoughts = textView(t("turn.thought"), turn =>
    [turn.thinking, turn.draftThinking].filter(Boolean).join("\n\n"),
  );
  const activity = activityView(cite, thoughts.element);
  const approvals = approvalsView(on.decide);
  const answer = answerView(cite);
  const work = workView(cite, on);
  const question = questionView(first, on);
  const offer = h("div.offer");
  const contradictions = h("div.contradictions");
  const related = h("div.related");
  const ahead = h("nav.follow-ups", { "aria-label": t("next.title") });
  const ending = h("div.ending");
  const summary = textView(t("turn.summary"), turn => turn.summary, "earlier");
  const foot = h("footer.turn-foot");
  element.append(
    question.element,
    h(
      "div.reply",
      h("h2.vh", t("turn.answer")),
      activity.element,
      approvals.element,
      offer,
      answer.element,
      contradictions,
      work.element,
      ending,
      sources.element,
      related,
      foot,
      ahead,
      summary.element,
    ),
  );
  let shown = null;

  const update = next => next === shown || keepFocus(element, () => draw(next));

  function draw(next) {
    turn = next;
    question.update(turn);
    activity.update(turn);
    thoughts.update(turn);
    summary.update(turn);
    if (turn.approvals !== shown?.approvals) approvals.update(turn.approvals);
    answer.update(turn, shown);
    if (turn.citations !== shown?.citations || turn.running !== shown?.running)
      contradictions.replaceChildren(
        ...contradictionsOf(turn, answer.element, on.open, button => openWays(button, turn, on)),
      );
    work.update(turn, shown);
    sources.update(turn);
    if (turn.suggestions !== shown?.suggestions) related.replaceChildren(...relatedOf(turn));
    if (turn.next !== shown?.next) ahead.replaceChildren(...nextOf(turn, on.write));
    if (!shown || ["running", "notices", "reason"].some(part => turn[part] !== shown[part]))
      ending.replaceChildren(...endingOf(turn, on));
    const unread = readElsewhere(turn, on.checks());
    offer.replaceChildren(...(unread ? offerOf(turn, on) : []));
    if (!turn.running) foot.replaceChildren(unread ? "" : checkOf(turn), answerTools(turn, on, unread));
    foot.hidden = turn.running || turn.reason === "lost";
    element.classList.toggle("running", turn.running);
    element.setAttribute("aria-busy", String(turn.running));
    shown = turn;
  }

  update(first);
  return { element, update, unsent: question.unsent };
}

// A text that is read only if somebody opens it.
function textView(title, textOf, kind = "thoughts") {
  const body = h("div", { class: `${kind}-text`, dir: "auto" });
  const element = h("details", { class: kind }, h("summary", title), body);
  return {
    element,
    update(turn) {
      const text = textOf(turn);
      element.hidden = !text;
      setText(body, text);
    },
  };
}

// Most chats never ask for leave, so the cards are fetched when one does.
function approvalsView(decide) {
  const element = h("div.approvals");
  const cards = new Map();

  async function update(requests) {
    if (!requests.length) return;
    const { approvalCard } = await import("./approval.js");
    for (const request of requests) {
      const card = cards.get(request.callId);
      if (card) card.update(request);
      else {
        cards.set(request.callId, approvalCard(request, decide));
        element.append(cards.get(request.callId).element);
      }
    }
  }

  return { element, update };
}

// As rare as those: plans and changed files.
function workView(cite, on) {
  const element = h("div.work");
  let newest = null;

  async function update(turn, shown) {
    newest = turn;
    const same = WORK.every(part => turn[part] === shown?.[part]);
    if (same || !(turn.plans.length || turn.changes.length || turn.notices.length)) return;
    const { workParts } = await import("./plan_and_undo.js");
    element.replaceChildren(...workParts(newest, cite, on)); // more may have come while it was fetched
  }

  return { element, update };
}

const WORK = ["plans", "changes", "undone", "notices", "running"];

function answerView(cite) {
  // Each block has its own direction: one for all is looked for at each append.
  const element = h("div.answer");
  let drawn = []; // the block objects that stand on the page, in order
  let citations = null;

  // New citations may mean other chips; what looks as before stays, with what is selected or has the focus.
  function renew(old, block) {
    const now = blockOf(block, cite);
    const looks = node =>
      [...(node.querySelectorAll?.(".chip") ?? [])].map(chip => chip.className + chip.ariaLabel).join();
    if (looks(now) === looks(old)) return;
    const at = [...old.querySelectorAll(".chip")].indexOf(document.activeElement);
    old.replaceWith(now);
    now.querySelectorAll(".chip")[at]?.focus({ preventScroll: true });
  }

  function update(turn) {
    const stale = citations !== null && citations !== turn.citations;
    citations = turn.citations;
    const blocks = turn.blocks;
    let same = 0;
    while (same < drawn.length && drawn[same] === blocks[same]) same++;
    for (let i = 0; stale && i < same; i++) renew(element.childNodes[i], blocks[i]);
    if (!stale && grow(element.childNodes[same], drawn[same], blocks[same], cite)) same++;
    while (element.childNodes.length > same) element.lastChild.remove();
    for (const block of blocks.slice(same)) element.append(blockOf(block, cite));
    if (same < blocks.length) setLevels(element);
    drawn = blocks;
    element.hidden = blocks.length === 0;
    element.classList.toggle("streaming", turn.running && blocks.length > 0);
  }

  return { element, update };
}

// An answer may begin with any heading and leave levels out; for a screen reader none is missing.
function setLevels(element) {
  const above = [];
  for (const heading of element.querySelectorAll("h3, h4, h5, h6")) {
    while (above.at(-1) >= heading.tagName) above.pop();
    above.push(heading.tagName);
    heading.setAttribute("aria-level", 2 + above.length);
  }
}

function blockOf(block, cite) {
  const node = render(block, cite);
  if (node.nodeType === Node.ELEMENT_NODE) node.setAttribute("dir", "auto");
  return node;
}

// What the model proposes to ask next. It may come from a page: the words go where they can be read and
// changed, and are sent by the person alone.
function nextOf(turn, write) {
  if (!turn.next.length) return [];
  const ask = text => h("button", { dir: "auto", onclick: () => write(text) }, h("span", text), icon("plus"));
  return [h("h3", t("next.title")), ...turn.next.map(ask)];
}

// Searches that the provider wants shown beside what it found; they lead to the provider.
function relatedOf({ suggestions }) {
  if (!suggestions.length) return [];
  const link = ({ text, url }) => h("li", outLink(url, { class: "small", dir: "auto", title: url }, text));
  return [
    h("span.muted", t("related.title", { host: hostOf(suggestions[0].url) })),
    h("ul.chips", suggestions.map(link)),
  ];
}

function endingOf(turn, on) {
  const notes = turn.notices.map(n => errorBox(n, { tone: "info" }));
  if (turn.running || turn.reason === null) return notes;
  const ask = () => on.again(turn);
  const details = () => detailsOf(turn);
  if (turn.error) {
    const title = turn.reason === "error" ? `${t("end.error")}.` : "";
    const use = model => on.again(turn, { model });
    const ways = waysOut(turn.error.code, turn.model ?? "", { ...on.outs, use });
    return [...notes, errorBox(turn.error, { title, ways, onretry: ways.length ? null : ask, details })];
  }
  const key = endingKey(turn);
  if (!key) return notes;
  const tone = turn.reason === "cancelled" ? "info" : "warn";
  const onretry = turn.reason === "lost" ? null : ask;
  const goOn = { label: t("end.go_on"), run: () => on.goOn(t("end.go_on.ask")) };
  const limits = { label: t("settings.limits"), run: () => on.outs.settings("advanced", "limits") };
  const ways = [turn.text && onretry && goOn, turn.limit && limits].filter(Boolean);
  const which = turn.limit && t("end.reached", { limit: formed("limit.", turn.limit) ?? turn.limit });
  return [...notes, errorBox({ message: sentences(t(key), which) }, { tone, ways, onretry })];
}

function endingKey(turn) {
  const nothing = turn.blocks.length === 0;
  if (turn.reason === "stop") return nothing ? "end.empty" : null;
  const exact = `end.${turn.reason}${nothing ? ".empty" : ""}`;
  return has(exact) ? exact : `end.${turn.reason}`;
}

// What a person pastes into a bug report; the question stays out of it.
function detailsOf(turn) {
  const { error, model, mode, search, path, run, reason, endedAt } = turn;
  const at = new Date((endedAt ?? turn.at) * 1000).toISOString();
  return JSON.stringify({ error, reason, model, mode, search, path, run, at }, null, 2);
}

// Whether a provider read the pages and nobody here has tried to: then that is said above the answer.
function readElsewhere(turn, checks) {
  const { running, path, check } = turn;
  if (running || !path?.startsWith("native:") || checks === "never") return false;
  return isChecking(turn) || (!check && checkedMarks(turn).open > 0);
}

function offerOf(turn, on) {
  if (isChecking(turn)) {
    const { done, left } = turn.check;
    const bar = h("progress", { max: done + left, value: done, "aria-label": t("check.left", { done, left }) });
    return [h("div.note", h("div", bar, checkOf(turn)))];
  }
  const message = t("check.elsewhere", { name: nameOf(turn.path.split(":")[1]) });
  const check = { label: t("check.sources", { n: checkedMarks(turn).open }), run: () => on.check(turn) };
  const usual = { label: t("check.usual"), run: () => on.outs.settings("advanced", "set-SEARCHLOOP_CHECK") };
  return [errorBox({ message }, { tone: "info", ways: [check, usual] })];
}

// How far the check of the sources is; then what share of the marks was checked, by whom, and what was not read.
function checkOf(turn) {
  const { of, read, by } = checkedMarks(turn);
  const { check } = turn;
  const unnamed = unnamedPages(turn);
  if (unnamed) return h("p", { role: "status" }, t("done.unnamed", { n: unnamed }));
  if (!of || !(check || Object.keys(by).some(name => name !== "words"))) return "";
  const line = (...parts) => h("p", { role: "status", dir: "auto" }, clauses(parts.filter(Boolean)));
  if (isChecking(turn)) {
    const { done, left, model, tokens } = check;
    return line(model ? t("check.reads", { model, n: tokens ?? 0 }) : t("check.left", { done, left }));
  }
  const names = Object.entries(by).map(([name, n]) => t(`check.by`, { n, by: whoChecked(name) }));
  const lost = Object.keys(check?.lost ?? {}).length;
  return line(
    t("check.done", { n: read, of }),
    ...names,
    lost ? t("check.lost", { n: lost }) : "",
    check?.paid ? costText({ cost_usd: check.cost }) : "",
    check?.error,
  );
}
