// Sources: the chips in the text, the card that a chip shows, and the numbered list underneath.

import { wasRead } from "../chat/state.js";
import { h, hostOf, icon, isWeb, MENU, outLink, placeOf, setText } from "../lib/dom.js";
import { clauses, sentences, t } from "../locales/index.js";

// In the order in which several are told; a chip that stands for several shows the first.
const NAMES = ["contradicted", "misquoted", "unclear", "unread", "supported", "quoted"];
const NEAREST = ["misquoted", "unclear"]; // where a passage is but the nearest there is
const FEW = 3; // words; fewer before a chip say nothing by themselves

const standing = new WeakMap(); // the marks that a chip stands for

/**
 * Chips and their one shared card: hover or focus shows it, a click or a tap moves the focus into it.
 * `open(source)` shows a page inside the page. Returns chip(n, find, places): the element for citation
 * `n`, with `find()` giving its source or null, and the places in its list of the marks it stands for.
 */
export function chips(card, open) {
  let owner = null;
  let timer = 0;
  let still = false; // the focus comes back to a chip, which shows nothing then

  function show(chip, source, marks) {
    clearTimeout(timer);
    if (owner === chip) return;
    hide();
    owner = chip;
    chip.setAttribute("aria-describedby", "card-text"); // so that the passage is read out as well
    card.setAttribute("aria-label", t("cite.label", { n: chip.dataset.n, host: hostOf(source.url) }));
    card.replaceChildren(...cardContent(source, marks, claimBefore(chip), inside));
    card.showPopover({ source: chip });
    place(card, chip);
  }

  function hide() {
    clearTimeout(timer);
    if (!owner) return;
    const chip = owner;
    owner = null;
    chip.removeAttribute("aria-describedby");
    still = true;
    const twin = chip.isConnected
      ? chip
      : document.querySelector(`.turn:last-of-type .chip[data-n="${chip.dataset.n}"]`);
    if (card.contains(document.activeElement)) twin?.focus({ preventScroll: true });
    still = false;
    card.hidePopover();
  }

  const held = () => owner === document.activeElement || card.contains(document.activeElement);

  // The focus may scroll a chip into view: its card goes along. One that was only hovered goes.
  function follow(event) {
    if (card.contains(event.target)) return;
    if (owner && held()) place(card, owner);
    else hide();
  }

  function inside(source) {
    hide();
    open(source);
  }

  function onKey(event) {
    if (event.key !== "Escape") return;
    if (card.contains(document.activeElement)) event.preventDefault();
    hide();
  }

  function later() {
    clearTimeout(timer);
    timer = setTimeout(() => card.contains(document.activeElement) || hide(), 120);
  }
  card.addEventListener("pointerenter", () => clearTimeout(timer));
  card.addEventListener("pointerleave", later);
  card.addEventListener("focusout", later);
  addEventListener("keydown", onKey);
  addEventListener("scroll", follow, { capture: true, passive: true });

  function chip(n, find, places = []) {
    const source = find();
    if (!source) return h("span.chip.lost", { title: t("cite.unknown", { n }) }, `[${n}]`);
    const marksOf = known => judged(places.map(i => known.marks?.[i]));
    const [worst] = marksOf(source);
    const reveal = () => {
      const known = find() ?? source; // a verdict may have come since
      const marks = marksOf(known); // in logs from before there were verdicts: what is quoted
      if (!still)
        show(node, known, marks.length ? marks : places.map(i => known.marks?.[i]).filter(mark => mark?.quote));
    };
    const pin = event => {
      if (isWeb(source.url) && (event.ctrlKey || event.metaKey || event.shiftKey)) return;
      event.preventDefault();
      reveal();
      card.focus();
    };
    const props = {
      class: `chip ${worst?.verdict ?? ""}`,
      "aria-label": sentences(t("cite.label", { n, host: hostOf(source.url) }), worst ? wordsOf(worst) : ""),
      "aria-haspopup": "dialog",
      "data-n": n,
      onclick: pin,
    };
    // A link and not a button: only text may not be torn from the sentence at a line's end.
    const content = [worst ? icon(worst.verdict) : null, String(n)];
    const node = isWeb(source.url)
      ? outLink(source.url, props, content)
      : h("a", { ...props, href: "#reader" }, content);
    standing.set(node, () => marksOf(find() ?? source));
    node.addEventListener("pointerenter", e => e.pointerType === "mouse" && reveal());
    node.addEventListener("pointerleave", later);
    node.addEventListener("focus", reveal);
    node.addEventListener("blur", later);
    return node;
  }

  return { chip, hide };
}

function cardContent(source, marks, claim, open) {
  const state = marks.some(mark => mark.verdict === "unread") ? null : stateOf(source);
  const here = { onclick: () => open({ ...source, marks }) };
  const read = isWeb(source.url) && h("button.quiet.small", here, t("reader.here"));
  return [
    h(
      "div",
      { id: "card-text" },
      marks.flatMap(mark => evidence(mark, claim)),
      h("strong", { dir: "auto" }, source.title || source.url),
      h("span.muted", [placeAndDate(source), state].filter(Boolean).join(" · ")),
      source.unseen > 0 && h("p.muted", t("page.unseen", { n: source.unseen })),
    ),
    h("div.card-tools", wayTo(source, marks, open, { class: "quiet small" }, t("cite.open")), read),
  ];
}

// What leads to a page: to the site itself, or into the page's own reader.
function wayTo(source, marks, open, props, words) {
  if (isWeb(source.url)) return outLink(source.url, props, words);
  return h("button", { ...props, onclick: () => open({ ...source, marks }) }, words);
}

// The host, and the day of which the page is where that is known.
function placeAndDate({ url, published }) {
  const day = new Date(published ?? "");
  if (Number.isNaN(day.getTime())) return placeOf(url);
  const date = day.toLocaleDateString(document.documentElement.lang, { dateStyle: "medium", timeZone: "UTC" });
  return t("cite.dated", { place: placeOf(url), date });
}

function place(card, chip) {
  const at = chip.getBoundingClientRect();
  const box = card.getBoundingClientRect();
  const left = Math.max(8, Math.min(at.left - 16, innerWidth - box.width - 8));
  const above = at.top - box.height - 8;
  card.style.setProperty("left", `${left}px`);
  card.style.setProperty("top", `${above > 8 ? above : at.bottom + 8}px`);
}

// Those of the marks that have a verdict, what is worst first; logs from before there were any have none.
function judged(marks = []) {
  return marks
    .filter(mark => NAMES.includes(mark?.verdict))
    .sort((a, b) => NAMES.indexOf(a.verdict) - NAMES.indexOf(b.verdict));
}

const wordsOf = ({ verdict }) => t(`verdict.${verdict}`);

/** Who checked a mark, in words: our comparison, the provider's quotation, or a model by its name. */
export const whoChecked = by => (by === "words" || by === "provider" ? t(`by.${by}`) : t("by.model", { model: by }));

const toldBy = mark => (mark.by ? clauses([wordsOf(mark), whoChecked(mark.by)]) : wordsOf(mark));

/** The verdict of a mark in a line, and by whom. */
export const verdictLine = mark => line(mark.verdict, toldBy(mark));

function line(verdict, words) {
  return h("span", { class: `verdict ${verdict}` }, icon(verdict), h("span", words));
}

// What a mark rests on: its verdict and the passage, in which the words of the claim are marked.
function evidence(mark, claim) {
  const { verdict, quote, passage } = mark;
  const known = NAMES.includes(verdict);
  const missing = verdict === "misquoted" && quote ? h("q", { dir: "auto" }, quote) : null;
  const said = passage || (missing ? "" : quote);
  const label = passage && NEAREST.includes(verdict) ? "cite.nearest" : !passage && known ? "cite.given" : null;
  return [
    known ? verdictLine(mark) : null,
    missing,
    said && label ? h("span.muted", t(label)) : null,
    said ? h("blockquote", { dir: "auto" }, withShared(said, claim)) : null,
  ];
}

const cutWords = new Intl.Segmenter(undefined, { granularity: "word" });
const cutSentences = new Intl.Segmenter(undefined, { granularity: "sentence" });
const keyOf = ({ segment, isWordLike }) => (isWordLike ? segment.normalize("NFKC").toLowerCase() : "");

// The sentence that a chip stands behind.
function claimBefore(chip) {
  const before = document.createRange();
  before.selectNodeContents(chip.closest("p, li, td, th, h3, h4, h5, h6") ?? chip.parentElement);
  before.setEndBefore(chip);
  const part = before.cloneContents();
  for (const other of part.querySelectorAll(".chip")) other.remove();
  const said = [...cutSentences.segment(part.textContent.trim())].map(({ segment }) => segment);
  const last = said.pop() ?? "";
  const words = [...cutWords.segment(last)].filter(({ isWordLike }) => isWordLike);
  return words.length < FEW ? (said.pop() ?? "") + last : last;
}

// The passage; runs of words that stand in the claim too are marked, if one of them says something.
function withShared(passage, claim) {
  const known = new Set([...cutWords.segment(claim)].map(keyOf)).add("");
  const out = [];
  let run = [];
  const close = () => {
    const [, before, shared, after] = /^([^\p{L}\p{N}]*)(.*?)([^\p{L}\p{N}]*)$/su.exec(
      run.map(({ segment }) => segment).join(""),
    );
    out.push(before, run.some(says) ? h("mark", shared) : shared, after);
    run = [];
  };
  for (const piece of cutWords.segment(passage)) {
    if (known.has(keyOf(piece))) run.push(piece);
    else {
      close();
      out.push(piece.segment);
    }
  }
  close();
  return out;
}

// A number, a word of four letters, or one of two in a script whose letters say more.
function says({ segment, isWordLike }) {
  return isWordLike && /\p{N}|[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Thai}]{2}|\p{L}{4}/u.test(segment);
}

const MOST_NOTES = 4; // below one answer; its marks say the rest

// The claim's words before its chip, underlined without a change to the text.
const wavy = globalThis.Highlight ? new Highlight() : null;
if (wavy) CSS.highlights.set("contradicted", wavy);

function underline(chip, { length }) {
  if (!wavy) return;
  const range = document.createRange();
  const texts = document.createTreeWalker(
    chip.closest("p, li, td, th, dd") ?? chip.parentElement,
    NodeFilter.SHOW_TEXT,
  );
  texts.currentNode = chip;
  for (let left = length, node = texts.previousNode(); node && left > 0; node = texts.previousNode()) {
    if (node.parentElement.closest(".chip")) continue;
    if (left === length) range.setEnd(node, node.data.trimEnd().length);
    left -= left === length ? node.data.trimEnd().length : node.length;
    range.setStart(node, Math.max(0, -left));
  }
  wavy.add(range);
}

const isGone = range => range.collapsed || !range.startContainer.isConnected;

/**
 * Notes on an answer, one for each mark that its page contradicts.
 * `again(button)` shows the ways to ask anew.
 */
export function contradictionsOf(turn, answer, open, again) {
  if (turn.running) return [];
  const chips = [...answer.querySelectorAll(".chip.contradicted")].slice(0, MOST_NOTES);
  // Only then does the answer stand in the page.
  requestAnimationFrame(() =>
    wavy?.forEach(range => {
      if (isGone(range)) wavy.delete(range);
    }),
  );
  return chips.flatMap(chip => {
    const source = listed(turn).find(({ n }) => n === Number(chip.dataset.n));
    const mark = standing
      .get(chip)?.()
      .find(({ verdict, passage }) => verdict === "contradicted" && passage);
    if (!source || !mark) return [];
    const claim = claimBefore(chip);
    underline(chip, claim);
    return h(
      "section.contradiction",
      h("strong.verdict.contradicted", icon("contradicted"), h("span", t("contradicted.title", { n: source.n }))),
      h(
        "dl",
        h("dt", t("contradicted.answer")),
        h("dd", { dir: "auto" }, claim),
        h("dt", t("contradicted.page")),
        h("dd", h("q", { dir: "auto" }, withShared(mark.passage, claim))),
      ),
      h(
        "div",
        wayTo(source, [mark], open, { class: "small" }, t("contradicted.see")),
        h("button.quiet.small", { ...MENU, onclick: e => again(e.currentTarget) }, t("again.with")),
      ),
    );
  });
}

// The bar in words.
function sharesText(marks) {
  const kinds = Object.groupBy(judged(marks), ({ verdict }) =>
    verdict === "quoted" || verdict === "supported" ? "hold" : verdict,
  );
  return clauses(
    ["hold", "contradicted", "misquoted", "unclear", "unread"]
      .filter(kind => kinds[kind])
      .map(kind => t(`shares.${kind}`, { n: kinds[kind].length })),
  );
}

// One bar for all marks: how many hold, are contradicted, unclear or unread.
function sharesOf(marks) {
  const places = Map.groupBy(judged(marks), mark => mark.verdict);
  return [...places].reverse().map(([verdict, { length }]) => {
    const part = h("span", { class: verdict });
    part.style.setProperty("--n", length);
    return part;
  });
}

const PARTS = ["sources", "citations", "check"];

/** The Sources block of one turn: {element, update(turn)}. */
export function sourcesView(open) {
  const counts = h("span.counts");
  const shares = h("div.shares", { "aria-hidden": "true" });
  const told = h("p.muted");
  const list = h("ol.source-list");
  const restList = h("ol.source-list");
  const restTitle = h("summary");
  const rest = h("details.rest", restTitle, restList);
  const element = h(
    "details.sources",
    { open: true },
    h("summary", t("sources.title"), " ", counts),
    shares,
    told,
    list,
    rest,
  );
  let shown = null;

  function update(turn) {
    element.hidden = turn.running || listed(turn).length === 0;
    if (turn.running) return;
    if (PARTS.every(part => shown?.[part] === turn[part])) return;
    shown = turn;
    const all = listed(turn);
    const cited = all.filter(s => s.state === "cited");
    const others = all.filter(s => s.state !== "cited");
    setText(counts, countsOf(turn, cited.length, all));
    const marks = judged(cited.flatMap(s => s.marks ?? []));
    setText(told, sharesText(marks));
    shares.replaceChildren(...sharesOf(marks));
    shares.hidden = !shares.childElementCount;
    list.replaceChildren(...cited.map(s => item(s, open)));
    restList.replaceChildren(...others.map(s => item(s, open)));
    list.hidden = cited.length === 0;
    rest.hidden = others.length === 0;
    rest.open = cited.length === 0;
    setText(restTitle, t("sources.more", { n: others.length }));
  }

  return { element, update };
}

// Cited, read (by us, or as the provider says of itself) and found. A provider that searches by itself
// and tells of no page that it read may have read some: nothing is said of it then.
function countsOf(turn, cited, sources) {
  const read = sources.filter(source => source.read).length;
  const untold = !read && turn.path?.startsWith("native:");
  return t(untold ? "sources.counts.native" : "sources.counts", { cited, read, found: sources.length });
}

// A citation's source counts as cited even when the provider's own list leaves it out.
function listed(turn) {
  const byUrl = new Map(turn.sources.map(s => [s.url, s]));
  for (const { n, url, title, marks } of turn.citations) {
    byUrl.set(url, { ...byUrl.get(url), n, url, title, marks, state: "cited" });
  }
  const lost = turn.check?.lost ?? {};
  const all = [...byUrl.values()].map(source => ({ ...source, read: wasRead(turn, source), lost: lost[source.url] }));
  return all.sort((a, b) => (a.n ?? Infinity) - (b.n ?? Infinity));
}

function item(source, open) {
  const marks = judged(source.marks);
  const told = shortLines(marks);
  const cited = source.n && source.state === "cited";
  const state = cited && !told.length && h("span.state", stateOf(source));
  const body = [
    h("span.source-host", placeAndDate(source)),
    h("span.source-title", { dir: "auto" }, source.title || source.url),
    h("span.source-end", h("span.told", told, state), trailOf(source)),
    source.lost ? h("span.muted", { dir: "auto" }, t("check.why", { why: source.lost })) : null,
  ];
  const title = isWeb(source.url) ? source.url : null;
  const link = wayTo(source, [...marks, ...(source.marks ?? [])], open, { class: "source-link", title }, body);
  const look = cited ? `number chip ${marks[0]?.verdict ?? ""}` : "number";
  const number = h("span", { class: look }, marks.length > 0 && icon(marks[0].verdict), cited && String(source.n));
  return h("li.source", { "data-n": source.n }, number, link);
}

// How far a page came: found, read, cited.
function trailOf({ state, read }) {
  const far = !read ? "found" : state === "cited" ? "cited" : "opened";
  const dots = { cited: "●●●", opened: "●●○", found: "●○○" }[far];
  return h("span.trail", h("span", { "aria-hidden": "true" }, dots), t(`trail.${far}`));
}

// The verdicts at the places of a source, in a word each; the whole words come when it is pointed at.
function shortLines(marks) {
  const places = Map.groupBy(marks, mark => mark.verdict);
  return [...places].map(([verdict, { length: n }]) => {
    const words = t(`short.${verdict}`);
    const more = n > 1 || places.size > 1 ? t("short.places", { words, n }) : words;
    return h("span", { class: `verdict ${verdict}`, title: wordsOf({ verdict }) }, icon(verdict), h("span", more));
  });
}

// What is known of a page without a verdict: one that was only found is not called cited, as if it had been read.
function stateOf({ state, read }) {
  return t(`source.${read ? "opened" : state}`);
}
