// The room of the library: what it holds, how far it is read, and a picker of folders to add.

import * as api from "../lib/api.js";
import { h } from "../lib/dom.js";
import { folderTree } from "../lib/folders.js";
import { errorText } from "../lib/messages.js";
import { clauses, t } from "../locales/index.js";
import { attempt, button, card, confirmed, field, progress, row, sends, settingField, tag, textBox } from "./kit.js";

/** The folders with their progress, and the form that adds one. */
export async function libraryPage(body, { store }) {
  const list = h("ul.rows");
  const said = h("p.muted", { role: "status" });
  const named = h("ul.muted");
  const more = h("details", { hidden: true }, h("summary", t("library.named")), named);
  const total = h("span.muted");
  const box = textBox("", { id: "library-path", dir: "ltr", placeholder: t("library.example") });
  const rules = textBox("", { id: "library-exclude", dir: "ltr", placeholder: "drafts/ *.log" });
  const add = sends(t("library.add"));
  const picker = h("div.picker-place");
  const choose = button(t("library.choose"), () => (picker.childElementCount ? close() : browse()), {
    "aria-expanded": "false",
  });
  const me = await api.me();
  const submit = () => {
    const patterns = rules.value.trim() ? rules.value.trim().split(/\s+/) : undefined;
    if (box.value.trim()) work(box.value.trim(), patterns);
  };
  const form = h(
    "form.settings-page",
    { onsubmit: submit },
    h("div.field", h("label", { for: box.id }, t("library.path")), h("div.line", box, me.name ? null : choose)),
    picker,
    field(t("library.exclude"), rules),
    h("div.line", add, said),
    more,
  );
  body.append(
    card({ id: "folders", title: t("library.folders"), state: total }, list),
    card({ id: "add-folder", title: t("library.new") }, form),
  );
  const archives = settingField(store, "ZIM_FILES");
  if (archives) body.append(card({ id: "archives", title: t("library.archives") }, archives));
  let drawn = new Map(); // what a row is about -> the row
  await draw();

  async function browse() {
    const show = async () => picker.replaceChildren(await folderTree(path => (box.value = path)));
    if (await attempt(said, show)) choose.setAttribute("aria-expanded", "true");
  }

  function close() {
    picker.replaceChildren();
    choose.setAttribute("aria-expanded", "false");
    choose.focus();
  }

  async function work(path, exclude) {
    if (add.ariaBusy) return;
    add.ariaBusy = "true";
    said.textContent = t("library.adding");
    try {
      const its = await api.addToLibrary(path, exclude);
      const { added = 0, updated = 0, unchanged = 0, skipped = 0, state } = its;
      const n = added + updated + unchanged;
      said.textContent = state ? t("library.goes_on") : t("library.added", { n, added, updated, skipped });
      const files = [...(its.skipped_files ?? []), ...(its.kept_files ?? [])];
      named.replaceChildren(...files.map(f => h("li", { dir: "auto" }, `${f.path}: ${f.why}`)));
      more.hidden = !files.length;
      box.value = rules.value = "";
    } catch (failure) {
      said.textContent = errorText(failure);
    }
    add.ariaBusy = null;
    await draw();
  }

  // While a folder is read, its progress is looked up every second. A row that says the same stays:
  // it may have the focus, or ask whether to forget.
  async function draw() {
    const { collections } = await api.library();
    const was = drawn;
    drawn = new Map(collections.map(c => [c.state === "reading" ? c.path : JSON.stringify(c), c]));
    for (const [key, c] of drawn) drawn.set(key, moved(was.get(key), c) ?? collection(c));
    const rows = [...drawn.values()];
    if (rows.length !== list.childElementCount || rows.some(row => row.parentNode !== list))
      list.replaceChildren(...rows);
    total.textContent = t("library.documents", { n: collections.reduce((sum, each) => sum + each.documents, 0) });
    const reading = collections.some(c => c.state === "reading");
    if (reading) setTimeout(() => list.isConnected && draw().catch(() => {}), 1000);
  }

  function moved(row, { state, done, total: all }) {
    const bar = row?.querySelector("progress");
    if (bar) [bar.value, bar.max] = [done, all || 1];
    if (bar) row.querySelector(".muted").textContent = t(`library.${state}`, { done, total: all });
    return row;
  }

  async function change(how) {
    await attempt(said, () => how());
    await draw();
  }

  function collection({ name, path, kind, documents, state, done, total: all, skipped, kept, note }) {
    const own = kind === "docs" || kind === "pages";
    const reading = state === "reading";
    const goesOn = reading || state === "paused";
    const counts = [
      t("library.documents", { n: documents }),
      skipped && t("library.skipped", { n: skipped }),
      kept && t("library.kept", { n: kept }),
      note && t("library.away"),
    ];
    const said = goesOn ? t(`library.${state}`, { done, total: all }) : clauses(counts);
    const again = { "aria-label": t("library.again.of", { name }) };
    const forget = () => change(() => api.removeFromLibrary(path));
    const [kindOf, word] = goesOn ? [reading ? "busy" : "warn", state] : note ? ["warn", "away"] : ["ok", "ready"];
    const made = row(
      own ? t(`library.${kind}`) : path,
      said,
      tag(kindOf, t(word === "ready" ? "state.ready" : `library.state.${word}`)),
      reading && progress(done, all, t("library.reading", { done, total: all })),
    );
    if (!own && !reading) made.append(button(t(goesOn ? "library.go_on" : "library.again"), () => work(path), again));
    if (reading) made.append(button(t("library.pause"), () => change(() => api.pauseLibrary(path))));
    if (kind !== "docs")
      made.append(confirmed(t("library.forget"), t("library.sure"), forget, t("library.remove", { name })));
    return made;
  }
}
