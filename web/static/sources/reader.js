// A page read inside the page: the text the model saw, with the passages marked that an answer rests on.
//
// The text comes from /api/open-page as the same tree that answers are made of; its links are words.

import { attachedUrl, documents, openPage } from "../lib/api.js";
import { h, hostOf, iconButton, isWeb, outLink, placeOf, render } from "../lib/dom.js";
import { errorText } from "../lib/messages.js";
import { number, t } from "../locales/index.js";
import { verdictLine } from "./sources.js";

const CHUNK = 40000; // characters asked for at a time
const MOST_TRIES = 8; // parts that are fetched to find a passage

/** Makes the dialog ready and returns open(source) for {url, title, marks?}; `chat()` is the open chat's id. */
export function reader(dialog, chat) {
  let asking = null;

  dialog.addEventListener("close", () => asking?.abort());
  dialog.addEventListener("click", event => event.target === dialog && dialog.close());

  async function open(found) {
    const source = { ...found, chat: chat() };
    asking?.abort();
    asking = new AbortController();
    const body = h("div.reader-body", { tabindex: "0", dir: "auto" }, h("p.muted", t("reader.loading")));
    const foot = h("div.reader-foot");
    dialog.replaceChildren(
      head(source, () => dialog.close()),
      body,
      foot,
    );
    if (!dialog.open) dialog.showModal();
    body.focus();
    const sought = new Set((source.marks ?? []).map(wordsOf).filter(Boolean));
    const places = [];
    const finder = finderOf(body, places);
    const keep = isWeb(source.url) ? keeper(source) : "";
    await load({ source, body, foot, sought, places, finder, keep, signal: asking.signal }, 0);
  }

  return open;
}

function head(source, close) {
  const file = attachedUrl(source.url, source.chat);
  const address = isWeb(source.url)
    ? outLink(source.url, { class: "muted" }, source.url)
    : file
      ? h("a.muted", { href: file, target: "_blank", rel: "noopener" }, t("file.open"))
      : h("span.muted", placeOf(source.url));
  return h(
    "header.reader-head",
    h(
      "div",
      h("h2", { id: "reader-title", dir: "auto" }, source.title || hostOf(source.url)),
      address,
      source.marks?.filter(mark => mark.verdict).map(verdictLine),
    ),
    iconButton("close", t("close"), close),
  );
}

// The words that a mark rests on.
const wordsOf = ({ passage, quote }) => (passage ?? quote)?.replace(/…$/, "");

// A passage or a section may stand further on than what is fetched at first: look for it a while.
async function load(view, offset, tries = 0) {
  const { source, body, foot, sought, places, finder, keep, signal } = view;
  let page;
  try {
    page = await openPage({ url: source.url, offset, max_length: CHUNK }, signal, source.chat);
  } catch (failure) {
    if (failure.name === "AbortError") return;
    page = { error: failure };
  }
  if (signal.aborted) return;
  if (page.error) {
    body.replaceChildren(h("p", { role: "alert" }, errorText(page.error)));
    return;
  }
  if (!offset) body.replaceChildren();
  body.append(...page.blocks.map(block => render(block, () => "")));
  if (!body.hasChildNodes()) body.append(h("p.muted", t("reader.empty")));
  for (const words of sought) {
    const place = mark(body, words);
    if (place) places.push(place);
    if (place) sought.delete(words);
  }
  const place = places[0] ?? sectionIn(body, source);
  if (tries < MOST_TRIES) place?.scrollIntoView({ block: place.matches("mark") ? "center" : "start" });
  const shown = offset + page.content_length;
  const left = Boolean(page.next_offset);
  finder.update();
  foot.replaceChildren(
    finder.element,
    left ? h("span.muted", t("reader.length", { shown: number(shown), all: number(page.original_length) })) : "",
    page.invisible ? h("span.muted", t("page.unseen", { n: page.invisible })) : "",
    keep,
  );
  if (!left) return;
  const wanted = sought.size || sectionOf(source.url);
  if (wanted && !place && tries < MOST_TRIES) return load(view, page.next_offset, tries + 1);
  foot.append(h("button.small", { onclick: () => load(view, page.next_offset, MOST_TRIES) }, t("reader.more")));
}

// A page goes with the chats that opened it; kept in the library, it is one that nothing but that opened.
function keeper({ url }) {
  const said = h("span", { role: "status" });
  const keep = async () => {
    const page = await openPage({ url, chat: "library" }).catch(error => ({ error }));
    const there = !page.error && (await documents(page.final_url)).some(found => found.url === page.final_url);
    said.textContent = errorText(page.error) || t(there ? "reader.kept" : "reader.unkept");
    if (there) button.remove();
  };
  const button = h("button.small", { onclick: keep }, t("reader.keep"));
  return h("span.line", button, said);
}

// Which passage is in sight, and a way to the next one; or the places of what is typed here.
function finderOf(body, passages) {
  const told = h("span.muted", { role: "status" });
  const next = h("button.small", { onclick: () => go(at + 1) }, t("reader.next"));
  const box = h("input", { type: "search", "aria-label": t("reader.find"), placeholder: t("reader.find") });
  let [places, at] = [passages, 0];
  const update = () => {
    const [now, of] = [number(places.length && at + 1), number(places.length)];
    told.textContent = places.length || box.value ? t("reader.passage", { at: now, of }) : "";
    next.hidden = places.length < 2;
  };
  const go = to => {
    at = places.length && to % places.length;
    const place = places[at];
    (place?.startContainer?.parentElement ?? place)?.scrollIntoView({ block: "center" });
    update();
  };
  box.addEventListener("input", () => {
    const found = placesOf(body, box.value, letter => letter.toLowerCase()[0]).map(rangeOf);
    places = box.value ? found : passages;
    CSS.highlights?.set("found", new Highlight(...found));
    go(0);
  });
  box.addEventListener("keydown", event => event.key === "Enter" && go(at + 1));
  return { element: h("span.line", told, next, box), update };
}

function rangeOf(letters) {
  const range = new Range();
  range.setStart(...letters[0]);
  const [node, at] = letters.at(-1);
  range.setEnd(node, at + 1);
  return range;
}

function sectionIn(body, { url }) {
  const section = sectionOf(url);
  const headings = section ? [...body.querySelectorAll("h3, h4, h5, h6")] : [];
  return headings.find(heading => anchorOf(heading.textContent) === anchorOf(section));
}

function sectionOf(url) {
  try {
    return decodeURIComponent(new URL(url).hash.slice(1));
  } catch {
    return "";
  }
}

function anchorOf(words) {
  return words
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .replace(/^-|-$/g, "");
}

// Quote and page may differ in white space and in marks, so both are compared without. Gives
// [text node, place in it] of each letter, for each place where the words stand.
function placesOf(body, words, fold = letter => letter) {
  const wanted = bare(words).map(fold).join("");
  if (!wanted) return [];
  const letters = [];
  const walk = document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    for (let i = 0; i < node.data.length; i++) if (!NOISE.test(node.data[i])) letters.push([node, i]);
  }
  const text = letters.map(([node, i]) => fold(node.data[i])).join("");
  const found = [];
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length))
    found.push(letters.slice(at, at + wanted.length));
  return found;
}

// The words may lie in several elements: each gets its own mark. Gives the first of them.
function mark(body, quote) {
  const [letters] = placesOf(body, quote);
  if (!letters) return null;
  const ends = new Map(); // text node -> [start, end] of what is quoted in it
  for (const [node, i] of letters) {
    ends.set(node, [ends.get(node)?.[0] ?? i, i + 1]);
  }
  const marks = [...ends].map(([node, [start, end]]) => {
    const marked = h("mark", node.data.slice(start, end));
    node.replaceWith(node.data.slice(0, start), marked, node.data.slice(end));
    return marked;
  });
  return marks[0];
}

const NOISE = /[\s*_`#>|·-]/; // also what stands between the cells of a passage

const bare = text => text.split("").filter(c => !NOISE.test(c));
