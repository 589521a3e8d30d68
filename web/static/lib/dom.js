// Elements out of data. The only place where the page makes elements, and none is made of markup.
//
// `render` turns the server's node tree into elements through an allow-list of tags and, for each,
// of attributes. Text only ever becomes text nodes. Anything unknown is shown as its text.

import { t } from "../locales/index.js";

const SVG = "http://www.w3.org/2000/svg";

/** An element: h("p.note.bad", {onclick: f, hidden: true}, "text", child, null); properties may be left out. */
export function h(what, ...given) {
  const [tag, ...classes] = what.split(".");
  const node = document.createElement(tag);
  const props = given[0]?.constructor === Object ? given.shift() : {};
  if (tag === "button") node.type = "button"; // that it sends a form has to be said
  if (tag === "form") node.addEventListener("submit", event => event.preventDefault()); // what it sends, the page does
  if (classes.length) node.className = classes.join(" ");
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else
      node.setAttribute(name, name === "class" ? [...classes, value].join(" ") : value === true ? "" : String(value));
  }
  node.append(...given.flat().filter(c => c || c === 0));
  return node;
}

/** Follows a link inside the page by `act`; a click that asks for a tab of its own opens one. */
export const plainly = act => event => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  act(event);
};

/** Does `act` for an event, unless what it did before is not over, or gave true: then it is done for good. */
export const unlessBusy = (control, act) => async event => {
  event.preventDefault();
  if (control.ariaBusy) return;
  control.ariaBusy = "true"; // not disabled: the focus stays where it is
  if ((await act()) !== true) control.ariaBusy = null;
};

/** Whether a key belongs to the composition of a word, as some say by its code alone. */
export function isComposing(event) {
  return event.isComposing || event.keyCode === 229;
}

/** A symbol of the sprite in index.html. */
export const icon = name => drawing("use", "href", `#i-${name}`);

/** A symbol of one shape, which has one attribute; `props` are those of the whole. */
export function drawing(shape, name, value, props = {}) {
  const [svg, part] = ["svg", shape].map(tag => document.createElementNS(SVG, tag));
  for (const [key, given] of Object.entries({ class: "icon", "aria-hidden": "true", ...props }))
    svg.setAttribute(key, given);
  part.setAttribute(name, value);
  svg.append(part);
  return svg;
}

/** A button with an icon and a name that is read aloud and shown on hover. */
export function iconButton(name, label, onclick, props = {}) {
  return h("button.quiet", { "aria-label": label, title: label, onclick, ...props }, icon(name));
}

/** Of a button that opens a menu. */
export const MENU = { "aria-haspopup": "menu", "aria-expanded": "false" };

/** Draws parts of `root` anew by `draw`, and gives the focus back to what had it: by its data-focus, id or name. */
export function keepFocus(root, draw) {
  const focused = root.contains(document.activeElement) && document.activeElement;
  const keyOf = node => node.dataset.focus || node.id || node.ariaLabel || node.textContent;
  const key = focused && keyOf(focused);
  const alike = () => [...root.querySelectorAll(focused.localName)].filter(node => keyOf(node) === key);
  const at = focused && alike().indexOf(focused);
  draw();
  if (focused && document.activeElement === document.body) alike()[at]?.focus();
}

/** Writes text only when it differs, so that screen readers are not told twice. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** A link that leaves: own tab, and the site learns nothing of where it was clicked. */
export function outLink(url, props, ...children) {
  if (!isWeb(url)) return h("span", props, ...children);
  return h(
    "a",
    { ...props, href: url, target: "_blank", rel: "noopener noreferrer nofollow", referrerpolicy: "no-referrer" },
    ...children,
  );
}

/** Whether this is an address that a browser may be sent to. */
export function isWeb(url) {
  try {
    return ["http:", "https:"].includes(new URL(url).protocol);
  } catch {
    return false;
  }
}

/** Who stands behind an address: the host in its ASCII form, the library, or an archive's name. */
export function hostOf(url) {
  try {
    const parsed = new URL(url);
    if (parsed.protocol === "library:") return t("source.library");
    if (parsed.protocol === "zim:") return decoded(parsed.hostname);
    if (parsed.protocol === "attachment:") return t("source.attached");
    return parsed.hostname.replace(/^www\./, "") || String(url);
  } catch {
    return String(url);
  }
}

/** The host of an address; of a document of the library or of an archive also which one. */
export function placeOf(url) {
  if (isWeb(url)) return hostOf(url);
  const path = decoded(String(url).replace(/^library:\/\/\/?|^(?:zim|attachment):\/\/[^/]*\/?|#.*$/g, ""));
  const words = String(url).startsWith("zim:") ? path.replaceAll("_", " ") : path;
  return [hostOf(url), words].filter(Boolean).join(" · ");
}

function decoded(path) {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}

const PLAIN = new Set("p ul blockquote em strong del thead tbody tr hr br code dl dt dd sup".split(" "));
const MATHML = new Set(
  (
    "math mrow mfrac msup msub msubsup msqrt mroot mtext mn mstyle mpadded mphantom mtr munder mover munderover" +
    " mmultiscripts menclose mi mo mspace mtable mtd"
  ).split(" "),
);
const MATH_ATTRIBUTES = new Set(
  "display alttext notation mathvariant stretchy fence form separator accent width displaystyle columnalign".split(" "),
);
const VOID = new Set(["hr", "br"]);
const ALIGN = new Set(["left", "right", "center"]);
const SPANS = new Set(["unlinked", "host", "math", "com", "str", "num", "key"]);
const DEEPEST = 100;

/**
 * A node of the server's tree as a DOM node.
 * `cite(n, marks)` makes the chip of citation `n`, for those of its marks that stand there.
 */
export function render(node, cite, depth = 0) {
  if (typeof node === "string") return document.createTextNode(node);
  if (!node || typeof node !== "object" || depth > DEEPEST) return document.createTextNode("");
  const attrs = node.a ?? {};
  const children = () => grouped(node.c ?? [], cite, depth + 1);
  if (PLAIN.has(node.t)) return VOID.has(node.t) ? h(node.t) : h(node.t, {}, children());
  if (MATHML.has(node.t)) return formula(node, attrs, children());
  const make = Object.hasOwn(SPECIAL, node.t) ? SPECIAL[node.t] : null;
  return make ? make(attrs, children, cite, node) : h("span", children());
}

/**
 * Turns the element of `old` into that of `now`, whose beginning is the same: only what is new is
 * made. False where it cannot, and the element must be made anew.
 */
export function grow(element, old, now, cite) {
  if (!old?.c || !now?.c || old.t !== now.t || old.t === "math") return false;
  if (JSON.stringify(old.a) !== JSON.stringify(now.a)) return false;
  if (old.t === "pre") return growCode(element, old.c[0], now.c[0]);
  const inside = old.t === "table" ? element.firstChild : element;
  if (inside.childNodes.length !== old.c.length) return false; // chips that stand as one
  let same = 0;
  while (same < old.c.length && old.c[same] === now.c[same]) same++;
  if (same < old.c.length && grow(inside.childNodes[same], old.c[same], now.c[same], cite)) same++;
  else while (same && (typeof now.c[same - 1] === "string" || now.c[same - 1].t === "cite")) same--; // see `held`
  while (inside.childNodes.length > same) inside.lastChild.remove();
  inside.append(...grouped(now.c.slice(same), cite, 0));
  return true;
}

const SAID = /^(.*)([“"„«「『][^“"„«「『]+[”"“»」』])(\s*)$/su;
const ALONE = 2; // chips side by side; of more the first is shown, and how many there are

// "1 +2": the sources of one claim, each reachable one by one.
function grouped(nodes, cite, depth) {
  const out = [];
  for (let i = 0; i < nodes.length; i++) {
    let end = i;
    while (nodes[end]?.t === "cite") end++;
    const node = render(held(nodes[i], nodes[i + 1]), cite, depth);
    if (out.length && node.matches?.(".chip.quoted")) out.push(inFace(out.pop()));
    out.push(node);
    if (end - i <= ALONE) continue;
    out.push(moreChips(nodes.slice(i + 1, end).map(node => render(node, cite, depth))));
    i = end - 1;
  }
  return out;
}

// The words before a mark that says they are on the page.
function inFace(node) {
  const [, before, quote, after] = (node.nodeType === Node.TEXT_NODE && SAID.exec(node.data)) || [];
  return quote ? h("span", before, h("span.said", quote), after) : node;
}

function moreChips(chips) {
  if (chips.some(chip => chip.matches(".contradicted, .misquoted"))) return h("span", chips); // no doubt is hidden
  const rest = h("span", { hidden: true }, chips);
  const label = t("cite.more", { n: chips.length });
  const button = h("button.chip", { "aria-label": label, title: label, "aria-expanded": "false" }, `+${chips.length}`);
  button.addEventListener("click", () => {
    rest.hidden = false;
    button.remove();
    rest.querySelector("a, button")?.focus();
  });
  return h("span.chips-more", button, rest);
}

// A chip stays on the line of the words that it is about.
function held(child, next) {
  return typeof child === "string" && next?.t === "cite" ? child.replace(/\s+$/, "\u00a0") : child;
}

function formula(node, attrs, children) {
  const element = document.createElementNS("http://www.w3.org/1998/Math/MathML", node.t);
  for (const [name, value] of Object.entries(attrs)) {
    if (MATH_ATTRIBUTES.has(name)) element.setAttribute(name, value);
  }
  element.append(...children);
  return node.t === "math" && attrs.display === "block"
    ? h("span.scroll-x", { tabindex: "0", role: "group", "aria-label": t("formula.label") }, element)
    : element;
}

const SPECIAL = {
  cite: (attrs, _children, cite) => cite(Number(attrs.n), attrs.m?.split(",").map(Number)),
  a: (attrs, children) => outLink(attrs.href, { class: "out" }, children()),
  span: (attrs, children) => h("span", { class: SPANS.has(attrs.class) ? attrs.class : null }, children()),
  li: (attrs, children) => h("li", { class: attrs.class === "task" ? "task" : null }, children()),
  div: (attrs, children) => h("div", { class: attrs.class === "footnote" ? "footnote" : null }, children()),
  ol: (attrs, children) => h("ol", { start: whole(attrs.start) }, children()),
  pre: (attrs, children, _cite, node) => codeBlock(attrs.lang, partsOf(node.c?.[0]) ?? children()),
  table: (_attrs, children) =>
    h("div.scroll-x", { tabindex: "0", role: "group", "aria-label": t("table.label") }, h("table", children())),
  th: (attrs, children) => h("th", { scope: "col", class: alignOf(attrs) }, children()),
  td: (attrs, children) => h("td", { class: alignOf(attrs) }, children()),
};
// The page's own headings are h1 (chat) and h2 (question), so an answer's start at h3.
for (let level = 1; level <= 6; level++) {
  SPECIAL[`h${level}`] = (_attrs, children) => h(`h${Math.min(level + 2, 6)}`, {}, children());
}

function alignOf(attrs) {
  return ALIGN.has(attrs.class) ? `align-${attrs.class}` : null;
}

function whole(value) {
  return /^\d{1,9}$/.test(value ?? "") ? value : null;
}

/** All the text under a node of the tree. */
export function textOf(node) {
  if (typeof node === "string") return node;
  if (node?.t === "cite") return "";
  if (node?.t === "br") return "\n";
  if (node?.t === "math") return node.a?.alttext ?? "";
  return (node?.c ?? []).map(textOf).join("");
}

export function codeBlock(lang, content) {
  const code = h("code", content);
  const copy = h("button.quiet.small", t("copy.code"));
  copy.addEventListener("click", () => copyText(code.textContent, copy));
  const label = lang ? `${t("code.label")}: ${lang}` : t("code.label");
  return h(
    "div.code",
    h("div.code-bar", h("span", lang ?? ""), previewOf(lang, code), copy),
    h("pre", { tabindex: "0", role: "group", "aria-label": label, dir: "ltr" }, code),
  );
}

const LONG_CODE = 20_000; // characters, from which on the server sets no colours

// Long code in parts of whole lines: what is off the screen is not laid out.
function partsOf(text) {
  if (!(text?.length > LONG_CODE)) return null;
  return inParts(text);
}

const inParts = text => text.match(/[\s\S]{1,4000}[^\n]*\n?/g).map(part => h("span.part", part));

function growCode(element, old, now) {
  if (!(old?.length > LONG_CODE) || !now.startsWith?.(old)) return false;
  const last = element.querySelector("code").lastChild;
  last.replaceWith(...inParts(last.textContent + now.slice(old.length)));
  return true;
}

// What can be looked at besides being read.
function previewOf(lang, code) {
  const kind = /^\s*(<\?xml[^>]*>\s*)?<svg[\s>]/.test(code.textContent) ? "svg" : lang?.toLowerCase();
  if (!["svg", "html", "csv", "tsv", "mermaid"].includes(kind)) return null;
  const show = async ({ currentTarget: from }) => (await import("./preview.js")).preview(kind, code.textContent, from);
  return h("button.quiet.small", { onclick: show }, t("preview.open"));
}

// Over plain HTTP from another machine there is no clipboard but the one of a selection.
async function toClipboard(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const focused = document.activeElement;
  const box = h("textarea", { readonly: true });
  box.style.setProperty("position", "fixed"); // where nothing needs to be scrolled to it
  box.value = text;
  (document.querySelector(":modal") ?? document.body).append(box);
  box.select();
  const done = document.execCommand("copy");
  box.remove();
  focused?.focus();
  if (!done) throw new Error("the browser did not copy");
}

/** Saves a text as a file. */
export function saveFile(download, text, type) {
  const href = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href, download }).click();
  setTimeout(() => URL.revokeObjectURL(href));
}

const labels = new WeakMap(); // button -> {nodes: what it says otherwise, timer}

/** Puts text on the clipboard and says so on the button for two seconds. */
export const copyText = (text, button) =>
  copyFrom(
    async () => text,
    button,
    () => {},
  );

/** As `copyText`, of a text that has yet to come; `complain(failure)` when it does not. */
export async function copyFrom(fetched, button, complain) {
  let text;
  try {
    text = await fetched();
  } catch (failure) {
    complain(failure);
    return;
  }
  const said = await toClipboard(text).then(
    () => t("copied"),
    () => t("copy.failed"),
  );
  if (!labels.has(button)) labels.set(button, { nodes: [...button.childNodes] });
  const small = Boolean(button.querySelector(".icon"));
  button.replaceChildren(small ? icon(said === t("copied") ? "check" : "warn") : said);
  if (small) button.append(h("span.vh", { role: "status" }, said));
  clearTimeout(labels.get(button).timer);
  labels.get(button).timer = setTimeout(() => button.replaceChildren(...labels.get(button).nodes), 2000);
}
