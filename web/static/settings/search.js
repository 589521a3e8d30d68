// The settings of search: engines in their order, sites, country; and the library's folders.

import * as api from "../lib/api.js";
import { h, icon, iconButton } from "../lib/dom.js";
import { errorText } from "../lib/messages.js";
import { settingField } from "./settings.js";
import { nameOf, t } from "../locales/index.js";
import { reasonOf } from "../composer/search_switch.js";

const TRIAL = "weather"; // what a test searches for
const OFFLINE = "offline";

/** Engines, each with its state and a test, and what every search is held to. */
export async function enginesPage(body, { store, changed, show }) {
  const list = h("ol", { class: "rows" });
  const problem = h("p", { class: "problem", role: "alert" });
  const offline = h("p", { class: "muted", hidden: true }, t("settings.search.offline"));
  body.append(h("p", { class: "muted" }, t("settings.search.lead")), offline, list, problem);
  body.append(
    settingField(store, "SEARCH_ALLOWED_DOMAINS", { hint: t("settings.sites") }),
    settingField(store, "SEARCH_BLOCKED_DOMAINS", { hint: t("settings.sites") }),
    settingField(store, "SEARCH_COUNTRY"),
  );
  await draw();

  async function draw() {
    const { engines } = await api.engines();
    offline.hidden = !engines.some((e) => e.problem?.code === OFFLINE);
    const chain = engines.filter((e) => e.position).sort((a, b) => a.position - b.position);
    const others = engines.filter((e) => !e.position).sort((a, b) => b.available - a.available);
    const names = chain.map((e) => e.name);
    const free = store.get("SEARCH_ENGINES").changeable;
    const order = (to) => () => reorder(to);
    const rows = chain.map((engine, i) => {
      const swapped = names.with(i, names[i - 1]).with(i - 1, names[i]);
      return row(engine, [
        i ? iconButton("up", t("engine.up", { name: nameOf(engine.name) }), order(swapped), { class: "quiet", disabled: !free }) : null,
        names.length > 1
          ? iconButton("close", t("engine.remove", { name: nameOf(engine.name) }), order(names.toSpliced(i, 1)), { class: "quiet", disabled: !free })
          : null,
      ]);
    });
    const keyless = (engine) => engine.missing?.some((name) => name.endsWith("_KEY"));
    const addKey = ({ name }) =>
      h("button", { type: "button", class: "small", onclick: () => show("keys"), "aria-label": t("engine.key.of", { name: nameOf(name) }) }, t("engine.key"));
    const use = ({ name, available }) =>
      h("button", { type: "button", class: "small", disabled: !free || !available, onclick: order([...names, name]) }, t("engine.use"));
    const unused = others.map((engine) => row(engine, [keyless(engine) ? addKey(engine) : use(engine)]));
    list.replaceChildren(...rows, ...unused);
  }

  async function reorder(names) {
    problem.textContent = "";
    try {
      await store.change({ SEARCH_ENGINES: names.join(",") });
      changed();
      await draw();
    } catch (failure) {
      problem.textContent = errorText(failure);
    }
  }
}

function row(engine, buttons) {
  const known = engine.available || engine.problem?.code === OFFLINE; // said once for all of them
  const said = h("p", { class: "muted", role: "status" }, known ? "" : reasonOf(engine));
  const test = h("button", { type: "button", class: "small", disabled: !engine.available }, t("engine.test"));
  test.addEventListener("click", async () => {
    if (test.ariaBusy) return;
    test.ariaBusy = "true"; // not disabled: the focus stays where it is
    said.textContent = t("engine.testing");
    said.textContent = await trial(engine.name);
    test.ariaBusy = null;
  });
  const place = engine.position ? String(engine.position) : "·";
  return h(
    "li",
    { class: engine.available ? "row" : "row away" },
    h("span", { class: "number" }, place),
    h("div", { class: "grow" }, h("strong", {}, nameOf(engine.name)), said),
    h("div", { class: "acts" }, engine.available ? test : null, buttons),
  );
}

async function trial(engine) {
  const began = performance.now();
  try {
    const answer = await api.search({ query: TRIAL, engine, max_results: 3 });
    const ms = Math.round(performance.now() - began);
    const failed = answer.attempts.find((a) => a.status !== "ok" && a.error);
    if (failed) return errorText(failed.error);
    return t("engine.answered", { n: answer.results.length, ms });
  } catch (failure) {
    return errorText(failure);
  }
}

/** The library: what it holds, how far it is read, and folders to add. */
export async function libraryPage(body) {
  const list = h("ul", { class: "rows" });
  const said = h("p", { class: "muted", role: "status" });
  const named = h("ul", { class: "muted" });
  const more = h("details", { hidden: true }, h("summary", {}, t("library.named")), named);
  const box = h("input", { type: "text", id: "library-path", spellcheck: "false", autocomplete: "off", placeholder: t("library.example") });
  const rules = h("input", { type: "text", id: "library-exclude", spellcheck: "false", autocomplete: "off", placeholder: "drafts/ *.log" });
  const add = h("button", { type: "submit", class: "small primary" }, t("library.add"));
  const form = h(
    "form",
    { class: "field" },
    h("label", { for: box.id }, t("library.path")),
    h("div", { class: "line" }, box, add),
    h("label", { for: rules.id }, t("library.exclude")),
    rules,
    said,
    more,
  );
  body.append(h("p", { class: "muted" }, t("library.lead")), list, form);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const patterns = rules.value.trim() ? rules.value.trim().split(/\s+/) : undefined;
    if (box.value.trim()) work(box.value.trim(), patterns);
  });
  let drawn = "";
  await draw();

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
      named.replaceChildren(...files.map((f) => h("li", { dir: "auto" }, `${f.path}: ${f.why}`)));
      more.hidden = !files.length;
      box.value = rules.value = "";
    } catch (failure) {
      said.textContent = errorText(failure);
    }
    add.ariaBusy = null;
    await draw();
  }

  // While a folder is read, its progress is looked up every second.
  async function draw() {
    const { collections } = await api.library();
    const key = JSON.stringify(collections);
    if (key !== drawn) list.replaceChildren(...collections.map(collection));
    drawn = key;
    const reading = collections.some((c) => c.state === "reading");
    if (reading) setTimeout(() => list.isConnected && draw().catch(() => {}), 1000);
  }

  async function change(how) {
    try {
      await how;
    } catch (failure) {
      said.textContent = errorText(failure);
    }
    await draw();
  }

  function collection({ name, path, kind, documents, state, done, total, skipped, kept, note }) {
    const own = kind === "docs" || kind === "pages";
    const reading = state === "reading";
    const progress = reading || state === "paused";
    const counts = [skipped && t("library.skipped", { n: skipped }), kept && t("library.kept", { n: kept }), note && t("library.away")];
    return h(
      "li",
      { class: "row" },
      icon("page"),
      h(
        "div",
        { class: "grow" },
        h("strong", { dir: "auto" }, name),
        h("p", { class: "muted", dir: "auto" }, own ? t(`library.${kind}`) : path),
        progress ? h("p", { class: "muted" }, t(`library.${state}`, { done, total })) : null,
        reading ? h("progress", { max: String(total || 1), value: String(done), "aria-label": t("library.reading", { done, total }) }) : null,
        counts.some(Boolean) ? h("p", { class: "muted" }, counts.filter(Boolean).join(" · ")) : null,
      ),
      h("span", { class: "muted" }, t("library.documents", { n: documents })),
      own || reading ? null : h("button", { type: "button", class: "small", onclick: () => work(path) }, t(progress ? "library.go_on" : "library.again")),
      reading ? h("button", { type: "button", class: "small", onclick: () => change(api.pauseLibrary(path)) }, t("library.pause")) : null,
      own ? null : iconButton("trash", t("library.remove", { name }), () => change(api.removeFromLibrary(path)), { class: "quiet" }),
    );
  }
}
