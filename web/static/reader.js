// A page read inside the page: the text the model saw, with the quoted passage marked.
//
// The text comes from /api/open-page and is only ever text. A few line-level shapes (headings,
// lists, code fences) are shown as such to make it readable.

import { openPage } from "./api.js";
import { h, hostOf, iconButton, isWeb, outLink } from "./dom.js";
import { errorText } from "./notes.js";
import { t } from "./strings.js";

const CHUNK = 40000; // characters asked for at a time

/** Makes the dialog ready and returns open(source) for {url, title, quote?}. */
export function reader(dialog) {
  let asking = null;

  dialog.addEventListener("close", () => asking?.abort());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());

  async function open(source) {
    asking?.abort();
    asking = new AbortController();
    const body = h("div", { class: "reader-body", tabindex: "0", dir: "auto" }, h("p", { class: "muted" }, t("reader.loading")));
    const foot = h("div", { class: "reader-foot" });
    dialog.replaceChildren(head(source, () => dialog.close()), body, foot);
    if (!dialog.open) dialog.showModal();
    body.focus();
    await load(source, body, foot, 0, asking.signal);
  }

  return open;
}

function head(source, close) {
  const address = isWeb(source.url)
    ? outLink(source.url, { class: "muted" }, source.url)
    : h("span", { class: "muted" }, source.url);
  return h(
    "header",
    { class: "reader-head" },
    h("div", {}, h("h2", { id: "reader-title", dir: "auto" }, source.title || hostOf(source.url)), address),
    iconButton("close", t("close"), close, { class: "quiet" }),
  );
}

async function load(source, body, foot, offset, signal) {
  let page;
  try {
    page = await openPage({ url: source.url, offset, max_length: CHUNK }, signal);
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
  body.append(...paragraphs(page.content));
  if (!body.hasChildNodes()) body.append(h("p", { class: "muted" }, t("reader.empty")));
  const marked = !offset && source.quote ? mark(body, source.quote) : null;
  marked?.scrollIntoView({ block: "center" });
  const shown = offset + page.content_length;
  foot.replaceChildren(
    h("span", { class: "muted" }, t("reader.length", { shown, all: page.original_length })),
  );
  if (page.next_offset === null || page.next_offset === undefined) return;
  const next = () => load(source, body, foot, page.next_offset, signal);
  foot.append(h("button", { type: "button", class: "small", onclick: next }, t("reader.more")));
}

// A line end within a paragraph, unless the next line is an item, a quote or a row of its own.
const SOFT_BREAK = /(?<!\|)\n(?!\s*(?:[-*+>|]|\d+[.)])\s?)/g;

function paragraphs(text) {
  const parts = String(text).split(/^```.*$/m);
  return parts.flatMap((part, i) =>
    i % 2 ? [h("pre", { class: "plain-text" }, part.replace(/^\n|\n$/g, ""))] : part.split(/\n{2,}/).flatMap(block),
  );
}

function block(text) {
  const trimmed = text.trim();
  if (!trimmed) return [];
  const heading = /^(#{1,6})\s+(.*)$/.exec(trimmed.split("\n")[0]);
  if (heading) {
    const level = Math.min(heading[1].length + 2, 6);
    const rest = trimmed.split("\n").slice(1).join("\n");
    return [h(`h${level}`, {}, heading[2]), ...block(rest)];
  }
  return [h("p", {}, trimmed.replace(SOFT_BREAK, " "))];
}

// Quote and page may differ in white space and in Markdown's marks, so both are compared without.
function mark(body, quote) {
  const wanted = bare(quote);
  if (!wanted) return null;
  const holder = [...body.children].find((node) => bare(node.textContent).includes(wanted));
  if (!holder) return null;
  const text = holder.textContent;
  const [start, end] = spanOf(text, wanted);
  holder.replaceChildren(text.slice(0, start), h("mark", {}, text.slice(start, end)), text.slice(end));
  return holder.querySelector("mark");
}

const NOISE = /[\s*_`#>|-]/;

function bare(text) {
  return [...text].filter((c) => !NOISE.test(c)).join("");
}

function spanOf(text, wanted) {
  const kept = [];
  for (let i = 0; i < text.length; i++) if (!NOISE.test(text[i])) kept.push(i);
  const at = kept.map((i) => text[i]).join("").indexOf(wanted);
  return [kept[at], kept[at + wanted.length - 1] + 1];
}
