// Sources: the chips in the text, the card that a chip shows, and the numbered list underneath.

import { h, hostOf, isWeb, outLink, placeOf, setText } from "../lib/dom.js";
import { isRead } from "../chat/steps.js";
import { t } from "../locales/index.js";

const HUES = 8;

/**
 * Chips and their one shared card. `open(source)` shows a page inside the page.
 * Returns chip(n, find, marks): the element for citation `n`, with `find()` giving its source or
 * null, and the places in its list of the marks that it stands for.
 */
export function chips(card, open) {
  let owner = null;
  let timer = 0;

  function show(chip, source) {
    clearTimeout(timer);
    owner?.removeAttribute("aria-describedby");
    owner = chip;
    chip.setAttribute("aria-describedby", card.id); // so that the quote is read out as well
    card.replaceChildren(...cardContent(source));
    card.showPopover();
    place(card, chip);
  }

  function hide() {
    clearTimeout(timer);
    if (!owner) return;
    owner.removeAttribute("aria-describedby");
    owner = null;
    card.hidePopover();
  }

  // The focus may scroll a chip into view: its card goes along. One that was only hovered goes.
  function follow() {
    if (owner && owner === document.activeElement) place(card, owner);
    else hide();
  }

  // A link and not a button: only text may not be torn from the sentence at a line's end.
  function inside(event, source) {
    event.preventDefault();
    hide();
    open(source);
  }

  const later = () => (timer = setTimeout(hide, 120));
  card.addEventListener("pointerenter", () => clearTimeout(timer));
  card.addEventListener("pointerleave", later);
  addEventListener("keydown", (event) => event.key === "Escape" && hide());
  addEventListener("scroll", follow, { capture: true, passive: true });

  function chip(n, find, marks) {
    const here = () => atMarks(find(), marks);
    const source = here();
    if (!source) return h("span", { class: "chip lost", title: t("cite.unknown", { n }) }, `[${n}]`);
    const label = t("cite.label", { n, host: hostOf(source.url) });
    const props = { class: "chip", "aria-label": label, "data-n": n };
    const node = isWeb(source.url)
      ? outLink(source.url, props, String(n))
      : h("a", { ...props, href: "#reader", onclick: (e) => inside(e, source) }, String(n));
    const reveal = () => show(node, here() ?? source);
    node.addEventListener("pointerenter", (e) => e.pointerType === "mouse" && reveal());
    node.addEventListener("pointerleave", later);
    node.addEventListener("focus", reveal);
    node.addEventListener("blur", later);
    return node;
  }

  return { chip, hide };
}

// A source with only those of its marks that a chip stands for, which say what it is cited for there.
function atMarks(source, places = []) {
  const marks = places.map((i) => source?.marks?.[i]).filter((mark) => mark);
  if (!marks.length) return source;
  const { quote, verified } = marks.find((mark) => mark.quote) ?? marks[0];
  return { ...source, marks, quote, verified };
}

// What a source says, each quote once, with whether its page bears it out.
function quotesOf({ marks = [] }) {
  const said = new Map(marks.filter((mark) => mark.quote).map((mark) => [mark.quote, mark.verified]));
  if (!said.size && marks.some((mark) => mark.verified === false)) return [verdict(false)];
  return [...said].flatMap(([quote, verified]) => [h("blockquote", { dir: "auto" }, quote), verdict(verified)]);
}

function cardContent(source) {
  return [
    h(
      "div",
      { class: "card-head" },
      avatar(source.url),
      h("div", {}, h("strong", { dir: "auto" }, source.title || source.url), h("span", {}, placeAndDate(source))),
    ),
    ...quotesOf(source),
    source.unseen ? h("p", { class: "muted" }, t("page.unseen", { n: source.unseen })) : "",
  ];
}

// The host, and the day of which the page is where that is known.
function placeAndDate({ url, published }) {
  const day = new Date(published ?? "");
  if (Number.isNaN(day.getTime())) return placeOf(url);
  const date = day.toLocaleDateString(document.documentElement.lang, { dateStyle: "medium", timeZone: "UTC" });
  return t("cite.dated", { place: placeOf(url), date });
}

function verdict(verified) {
  const key = verified ? "cite.verified" : verified === false ? "cite.unverified" : "cite.unchecked";
  const tone = verified ? "good" : verified === false ? "bad" : "unsure";
  return h("span", { class: `verdict ${tone}` }, t(key));
}

function place(card, chip) {
  const at = chip.getBoundingClientRect();
  const box = card.getBoundingClientRect();
  const left = Math.max(8, Math.min(at.left - 16, innerWidth - box.width - 8));
  const above = at.top - box.height - 8;
  card.style.setProperty("left", `${left}px`);
  card.style.setProperty("top", `${above > 8 ? above : at.bottom + 8}px`);
}

/** A letter on a colour, both taken from the host: no picture is ever asked for. */
export function avatar(url) {
  const host = hostOf(url);
  let sum = 0;
  for (const character of host) sum = (sum * 31 + character.codePointAt(0)) % 9973;
  const letter = [...host][0]?.toUpperCase() ?? "?";
  return h("span", { class: `avatar hue-${sum % HUES}`, "aria-hidden": "true" }, letter);
}

/** The Sources block of one turn: {element, update(turn)}. */
export function sourcesView(open) {
  const counts = h("span", { class: "counts" });
  const list = h("ol", { class: "source-list" });
  const restList = h("ol", { class: "source-list" });
  const restTitle = h("summary");
  const rest = h("details", { class: "rest" }, restTitle, restList);
  const element = h(
    "details",
    { class: "sources", open: true },
    h("summary", {}, t("sources.title"), " ", counts),
    list,
    rest,
  );
  let shown = null;

  function update(turn) {
    element.hidden = turn.running || listed(turn).length === 0;
    if (turn.running) return;
    if (shown?.sources === turn.sources && shown?.citations === turn.citations) return;
    shown = { sources: turn.sources, citations: turn.citations };
    const all = listed(turn);
    const cited = all.filter((s) => s.state === "cited");
    const others = all.filter((s) => s.state !== "cited");
    setText(counts, `(${countsOf(turn, cited.length, all)})`);
    list.replaceChildren(...cited.map((s) => item(s, open)));
    restList.replaceChildren(...others.map((s) => item(s, open)));
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
  const opened = turn.sources.filter((source) => source.state === "opened");
  const pages = new Set([...opened, ...turn.steps.filter(isRead)].map((page) => page.url));
  const read = sources.filter(({ url }) => pages.has(url)).length;
  const untold = !read && turn.path?.startsWith("native:");
  return t(untold ? "sources.counts.native" : "sources.counts", { cited, read, found: sources.length });
}

// A citation's source counts as cited even when the provider's own list leaves it out.
function listed(turn) {
  const byUrl = new Map(turn.sources.map((s) => [s.url, s]));
  for (const c of turn.citations) {
    byUrl.set(c.url, { ...byUrl.get(c.url), n: c.n, url: c.url, title: c.title, quote: c.quote, verified: c.verified, marks: c.marks, state: "cited" });
  }
  return [...byUrl.values()].sort((a, b) => (a.n ?? Infinity) - (b.n ?? Infinity));
}

function item(source, open) {
  const inside = !isWeb(source.url);
  const best = source.marks?.find((mark) => mark.verified)?.quote ?? source.quote; // one that is there
  const body = [
    h("span", { class: "source-title", dir: "auto" }, source.title || source.url),
    h("span", { class: "source-host" }, placeAndDate(source)),
  ];
  const link = inside
    ? h("button", { type: "button", class: "source-link", onclick: () => open({ ...source, quote: best }) }, body)
    : outLink(source.url, { class: "source-link", title: source.url }, body);
  return h(
    "li",
    { class: "source", "data-n": source.n },
    h("span", { class: "number" }, source.n && source.state === "cited" ? String(source.n) : "·"),
    avatar(source.url),
    link,
    stateOf(source),
  );
}

// "cited", in the colour of the verdict; where its marks differ, how many were borne out.
function stateOf({ state, verified, marks = [] }) {
  if (typeof verified !== "boolean") return h("span", { class: "state" }, t(`source.${state}`));
  const checked = marks.filter((mark) => typeof mark.verified === "boolean");
  const good = checked.filter((mark) => mark.verified).length;
  const words = good && good < checked.length ? ` · ${t("cite.some", { n: good, of: checked.length })}` : "";
  const title = t(verified ? "cite.verified" : "cite.unverified");
  return h("span", { class: `verdict ${verified ? "good" : "bad"}`, title }, t(`source.${state}`), words);
}
