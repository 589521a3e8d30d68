// "Check a text": opens what a text of anybody cites, and shows what needs a look, the worst first.

import * as api from "../lib/api.js";
import { copyText, h, iconButton, isWeb, outLink, render, saveFile } from "../lib/dom.js";
import { errorBox } from "../lib/messages.js";
import { t, titleOf } from "../locales/index.js";
import { choice, field, row, sends, styled, tag, textArea, textBox } from "../settings/kit.js";

const HOLD = ["quoted", "supported"];
const LOOK = ["contradicted", "misquoted", "unclear", "unread"];
const PLAIN = /\.(md|markdown|txt|text)$/i;

/**
 * Makes the view in `dialog`; returns open(). A text stays until the next one is checked.
 * models() -> those that can read what words leave unclear.
 */
export function auditView(dialog, models) {
  let running = null;
  let view = null;
  dialog.addEventListener("close", () => running?.abort());

  async function open() {
    await styled();
    dialog.showModal();
    show(view ?? form());
  }

  function show(parts) {
    view = parts;
    const title = h("h2", { id: "reader-title" }, t("audit.title"));
    const close = iconButton("close", t("close"), () => dialog.close());
    dialog.replaceChildren(h("header.reader-head", title, close), ...parts);
    dialog.querySelector("textarea, div.reader-body").focus();
  }

  function form() {
    const text = textArea("", { id: "audit-text", rows: "10", "aria-describedby": "audit-hint" });
    const url = textBox("", { id: "audit-url", type: "url", inputmode: "url" });
    const file = h("input", {
      type: "file",
      id: "audit-file",
      accept: ".md,.txt,.html,.htm,.docx,.odt,.rtf,.pptx,.pdf,text/*",
    });
    const readers = models().filter(model => !model.id.startsWith("builtin:"));
    const reader = choice([["", t("check.words")], ...readers.map(model => [model.id, titleOf(model)])])("");
    reader.id = "audit-model";
    const said = h("div", { role: "status" });
    let chosen = null; // a file of another kind than plain text
    file.addEventListener("change", async () => {
      const [one] = file.files;
      chosen = one && !PLAIN.test(one.name) ? { name: one.name, media_type: one.type, data: await base64(one) } : null;
      text.value = one && !chosen ? await one.text() : "";
    });
    text.addEventListener("input", () => (chosen = null));
    const send = () => {
      const written = text.value.trim() ? { text: text.value } : { url: url.value.trim() };
      const more = reader.value ? { model: reader.value } : {};
      check({ ...(chosen ?? written), ...more, html: document.documentElement.lang.split("-")[0] }, said);
    };
    const hint = h("p.muted", { id: "audit-hint" }, t("audit.text.hint"));
    const fields = [field(t("audit.text"), text, hint), field(t("audit.file"), file), field(t("audit.url"), url)];
    if (readers.length) fields.push(field(t("audit.with"), reader));
    const asked = h("div.settings-page", fields, h("div", sends(t("audit.go"))));
    return [h("form.reader-body.audit.settings-page", { onsubmit: send }, asked, said)];
  }

  async function check(asked, said) {
    if (running) return;
    running = new AbortController();
    const stop = h("button.small", { onclick: () => running?.abort() }, t("composer.stop.short"));
    const count = h("strong.grow", t("audit.starting"));
    const rows = h("ul.rows");
    const bar = h("progress", { "aria-label": t("audit.title") });
    const form = said.previousElementSibling;
    form.hidden = true;
    said.replaceChildren(h("div.line", count, stop), bar, rows);
    stop.focus();
    const told = ({ type, done, of, url, state, problem }) => {
      if (type !== "page_opened") return;
      count.textContent = t("audit.running", { done, of });
      [bar.value, bar.max] = [done, of];
      rows.append(row(url, "", tag(problem ? "bad" : "ok", t(problemKey(problem, state)))));
    };
    try {
      show(result(await api.audit(asked, told, running.signal)));
    } catch (failure) {
      if (failure.name !== "AbortError") said.replaceChildren(errorBox(failure));
      stop.replaceWith(t("audit.left"));
      form.hidden = false;
      form.querySelector("textarea").focus();
    }
    running = null;
  }

  function result(found) {
    const again = h("button.small", { onclick: () => show(form()) }, t("audit.again"));
    const copy = h("button.small", { onclick: () => copyText(found.plain, copy) }, t("copy"));
    const save = h(
      "button.small.primary",
      { onclick: () => saveFile("audit.html", found.html, "text/html") },
      t("audit.save"),
    );
    return [
      h("div.reader-body.audit", { tabindex: "0" }, findings(found).flat()),
      h("div.reader-foot", again, copy, save),
    ];
  }

  return open;
}

async function base64(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  return btoa(Array.from(bytes, byte => String.fromCharCode(byte)).join(""));
}

const problemKey = (problem, state) =>
  problem ? `audit.${problem}` : state === "redirected" ? "audit.moved" : "audit.read";

function findings({ sentences, summary, pages, notes, blocks, cited }) {
  const look = sentences.filter(each => LOOK.includes(each.verdict));
  look.sort((a, b) => LOOK.indexOf(a.verdict) - LOOK.indexOf(b.verdict));
  const counts = [...HOLD, ...LOOK].filter(name => summary.by_verdict[name]);
  const told = counts.map(name => t("audit.count", { n: summary.by_verdict[name], words: t(`audit.${name}`) }));
  const unread = pages.filter(page => page.problem);
  const uncited = sentences.filter(each => !each.citations.length);
  const holds = summary.cited ? "audit.holds" : "audit.nothing";
  return [
    h(
      "p",
      { role: "status" },
      t("audit.of", { n: summary.cited, pages: summary.pages }),
      told.length ? "; " : "",
      told.join(", "),
    ),
    ...notes.map(note => h("p.muted", note)),
    look.length ? part("audit.look", look.map(entry)) : h("p", t(holds)),
    unread.length
      ? part(
          "audit.pages",
          unread.map(page => [source(page), " ", t(`audit.${page.problem}`)]),
        )
      : null,
    uncited.length
      ? part(
          "audit.uncited",
          uncited.map(each => each.text),
        )
      : null,
    h(
      "details",
      { open: true },
      h("summary", t("audit.marked")),
      h("div.answer", { dir: "auto" }, ...blocks.map(block => render(block, mark(cited)))),
    ),
  ];
}

const part = (title, rows) => [
  h("h3", t(title)),
  h("ul.cards", ...rows.map(row => h("li.card", { dir: "auto" }, row))),
];

const source = ({ url, title }) => (isWeb(url) ? outLink(url, {}, title || url) : title || url);

function entry({ text, verdict, citations }) {
  const rows = citations.map(each => {
    const day = each.published ? ` (${each.published.slice(0, 10)})` : "";
    return h("div.muted", source(each), `: ${each.why}`, each.passage ? h("blockquote", each.passage, day) : "");
  });
  return [
    tag(verdict === "unread" || verdict === "unclear" ? "none" : "bad", t(`audit.${verdict}`)),
    " ",
    text,
    ...rows,
  ];
}

// A chip that says its verdict; what the page says stands in the list above.
const mark = cited => (n, places) => {
  const found = cited.find(each => each.n === n)?.marks ?? [];
  const verdicts = (places?.length ? places : found.map((_, at) => at)).map(at => found[at]?.verdict);
  const verdict = [...LOOK, ...HOLD].find(name => verdicts.includes(name)) ?? "unread";
  return h("span", { class: `chip ${verdict}`, title: t(`verdict.${verdict}`) }, `${n} ${t(`audit.${verdict}`)}`);
};
