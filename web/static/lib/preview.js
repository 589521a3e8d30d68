// What an answer or a question holds, to look at: drawings, pages and tables beside the code that made
// them, and pictures at full size. Drawings and pages are foreign: see app/frame.html.

import { number, t } from "../locales/index.js";
import { mermaid } from "./api.js";
import { h, icon, iconButton, saveFile } from "./dom.js";
import { errorBox } from "./messages.js";

const MOST = 1_000_000; // characters that are drawn
const ROWS = 1000; // of a table
const TYPES = { svg: "image/svg+xml", csv: "text/csv", tsv: "text/tab-separated-values", mermaid: "text/plain" };
const MIDDLE = `<style>body{margin:0;min-height:100vh;display:grid;place-items:center}svg{max-width:100%;height:auto}</style>`;
let shut = () => {};

/** Shows the text of a code block of this kind beside the chat; `from` has the focus back at the end. */
export async function preview(kind, text, from) {
  const library = kind === "mermaid" ? await mermaid().catch(failure => errorBox(failure, { tone: "info" })) : null;
  from.closest(".code").querySelector(".note")?.remove();
  if (library instanceof Element) return from.closest(".code").append(library);
  const sheet = open(`${t("preview.open")}: ${kind.toUpperCase()}`, from, [
    iconButton("large", t("preview.large"), () => enlarge(sheet)),
    iconButton("save", t("preview.save"), () => saveFile(`searchloop.${kind}`, text, TYPES[kind] ?? "text/html")),
  ]);
  document.getElementById("shell").classList.add("previewing");
  sheet.append(
    ...(text.length > MOST ? [note(t("preview.toolong", { most: number(MOST) }))] : drawn(kind, text, library)),
  );
  sheet.show();
  sheet.querySelector("button").focus();
}

/** Shows a picture of a question at full size; the arrow keys lead to the others of the chat. */
export function showPicture(shot) {
  const all = [...document.querySelectorAll("a.shot")];
  const at = all.indexOf(shot);
  const step = (name, label, by) =>
    iconButton(name, t(label), () => showPicture(all[at + by]), { disabled: !all[at + by] });
  const { src, alt } = shot.querySelector("img");
  const name = t("preview.save");
  const sheet = open(alt, shot, [
    step("left", "picture.before", -1),
    step("right", "picture.after", 1),
    h("a.quiet", { href: src, download: alt, "aria-label": name, title: name }, icon("save")),
  ]);
  sheet.append(h("div.stage", h("img", { src, alt })));
  sheet.addEventListener("keydown", ({ key }) => {
    const other = all[at + ({ ArrowLeft: -1, ArrowRight: 1 }[key] ?? NaN)];
    if (other) showPicture(other);
  });
  sheet.showModal();
  sheet.querySelector("header button:last-child").focus();
}

function open(title, from, tools) {
  shut();
  const close = iconButton("close", t("close"), () => shut());
  const head = h("header.preview-head", h("h2", { id: "preview-title", dir: "auto" }, title), tools, close);
  const sheet = h("dialog", { id: "preview", "aria-labelledby": "preview-title" }, head);
  shut = () => {
    shut = () => {};
    sheet.remove();
    document.getElementById("shell").classList.remove("previewing");
    if (from.isConnected) from.focus();
  };
  sheet.addEventListener("close", () => sheet.open || shut()); // it closes for a moment to be enlarged
  sheet.addEventListener("click", event => event.target === sheet && shut());
  sheet.addEventListener("keydown", event => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    shut();
  });
  document.body.append(sheet);
  return sheet;
}

function enlarge(sheet) {
  const large = sheet.matches(":modal");
  sheet.close();
  if (large) sheet.show();
  else sheet.showModal();
  sheet.querySelector("button").focus();
}

function drawn(kind, text, library) {
  if (library) return [framed({ library, before: MIDDLE, text }), note(t("preview.drawn"))];
  if (kind === "svg") return [framed(MIDDLE + text), note(t("preview.sealed"))];
  if (kind === "html") return [framed(text), note(t("preview.sealed"))];
  const [head = [], ...rows] = rowsOf(text);
  const cells = (row, tag, props) => h("tr", ...row.map(cell => h(tag, props, cell)));
  const table = h(
    "table",
    h("thead", cells(head, "th", { scope: "col" })),
    h("tbody", ...rows.slice(0, ROWS).map(row => cells(row, "td", {}))),
  );
  const body = { class: "stage reader-body", tabindex: "0", role: "group", "aria-label": t("table.label") };
  return [h("div", body, table), rows.length > ROWS ? note(t("preview.rows", { n: ROWS })) : ""];
}

function framed(given) {
  const src = new URL("../app/frame.html", import.meta.url);
  const frame = h("iframe", { src, sandbox: "allow-scripts", title: t("preview.open") });
  const hand = () => frame.contentWindow.postMessage(given, "*"); // it has no origin
  frame.addEventListener("load", hand, { once: true });
  return h("div.stage", frame);
}

const note = words => h("p.muted", words);

// The rows of a table, one more than are shown; what stands in quotes may hold anything.
function rowsOf(text) {
  const [first] = text.split("\n", 1);
  const [mark] = [",", ";", "\t"].sort((a, b) => first.split(b).length - first.split(a).length);
  const rows = [[""]];
  let quoted = false;
  const add = part => rows.at(-1).push(rows.at(-1).pop() + part);
  for (const [part] of text.trim().matchAll(/""|"|\r?\n|[,;\t]|[^",;\t\r\n]+|\r/g)) {
    if (part === '""' && quoted) add('"');
    else if (part === '"') quoted = !quoted;
    else if (quoted || (part !== mark && !part.endsWith("\n"))) add(part === '""' ? "" : part);
    else if (part === mark) rows.at(-1).push("");
    else if (rows.length > ROWS + 1) break;
    else rows.push([""]);
  }
  return rows;
}
