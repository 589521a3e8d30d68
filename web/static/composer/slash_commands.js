// The list above the box: `/` commands at the start of it, and within the text `@` models and `#` texts.

import * as api from "../lib/api.js";
import { h, hostOf } from "../lib/dom.js";
import { nameOf, t, titleOf } from "../locales/index.js";
import { badges } from "./model_picker.js";
import { fieldsOf, filling, sketchOf } from "./template_fields.js";

const MOST = 8; // models or texts at once
const WAIT = 120; // milliseconds of silence before the library is asked
// What other programs call a command.
const ALSO = {
  "/new": ["/clear", "/reset"],
  "/search on": ["/web"],
  "/compact": ["/summarize", "/summarise"],
  "/template": ["/prompt"],
};

/** How a model is called in a question: without its provider, if no other is called so. */
export function callName({ id }, models) {
  const short = id.slice(id.indexOf(":") + 1);
  return models.filter(other => other.id.endsWith(`:${short}`)).length === 1 ? short : id;
}

/** The model that a question calls by `@name`, and the question without that; null where it calls none. */
export function calledIn(text, models) {
  for (const [whole, name] of text.matchAll(/(?<!\S)@(\S+)\s*/g)) {
    const model = models.find(
      each => each.available !== false && (name === each.id || name === callName(each, models)),
    );
    if (model) return { model, text: text.replace(whole, "").trim() || text };
  }
  return null;
}

/**
 * `on` holds change(changes), newChat(temporary), settings(), keys(), open(control), exportAs(format),
 * runPlan(), undo(), compact(), complain(failure), models() and attach(document). Returns {update(), key(event)};
 * `key` is true when it took the event.
 */
export function slashList(box, list, on) {
  let at = 0;
  let fits = []; // {name, act, words, title, head}
  let prompts = []; // of MCP servers
  let templates = null; // asked for with the first slash of a text
  let own = []; // those of the chat's project, which come first
  let fill = null; // takes the keys while a template is filled
  let agents = null; // asked for when the first name of one is typed
  let found = { part: null, documents: [] }; // of the library
  let library = null; // its folders, asked for with the first # of a text
  let sought = null; // what the library was asked last
  let shut = null; // the mark whose list was closed
  let [timer, looks] = [0, 0];

  const command = (name, act, words) => ({ name, act, words, head: "slash.label" });
  const all = [
    ...Object.entries({ on: "auto", off: "off", native: "native", local: "local", offline: "offline" }).map(
      ([word, search]) => command(`/search ${word}`, () => on.change({ search })),
    ),
    ...["ask", "plan", "agent"].map(mode => command(`/${mode}`, () => on.change({ mode }))),
    command("/agent ", null, t("slash.agent.name")),
    command("/workspace ", null, t("slash.workspace.path")),
    command("/run", () => on.runPlan()),
    command("/undo", () => on.undo()),
    command("/compact", () => on.compact()),
    command("/model", () => on.open("model")),
    command("/new", () => on.newChat(false)),
    command("/temporary", () => on.newChat(true)),
    command("/export", () => on.exportAs("md")),
    command("/settings", () => on.settings()),
    command("/template", () => on.settings("templates")),
    command("/help", () => on.keys()),
  ];

  function update() {
    const mark = markAt();
    if (!box.value) templates = library = fill = null;
    if (mark?.start !== shut) shut = null;
    fits = shut === null ? fitting(mark) : [];
    at = Math.min(at, Math.max(0, fits.length - 1));
    list.hidden = fits.length === 0;
    list.replaceChildren(...fits.flatMap(option));
    list.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
    if (list.hidden) box.removeAttribute("aria-activedescendant");
    else box.setAttribute("aria-activedescendant", `slash-${at}`);
  }

  // What is being called where one types; a number behind # calls nothing.
  function markAt() {
    if (box.value.startsWith("/")) return { kind: "/", start: 0, typed: box.value };
    const before = box.value.slice(0, box.selectionStart);
    const [, kind, typed] = /(?<!\S)([@#])(?!\d+$)(\S*)$/.exec(before) ?? [];
    return kind ? { kind, typed, start: before.length - typed.length - 1 } : null;
  }

  function fitting(mark) {
    if (!mark) return [];
    if (mark.kind === "@") return modelsFor(mark);
    if (mark.kind === "#") return documentsFor(mark);
    const { typed } = mark;
    const [, kind, given] = /^\/(agent|workspace) (.*)$/.exec(typed) ?? [];
    if (kind === "workspace") {
      const use = () => (given.trim() ? on.change({ workspace: given.trim() }) : on.open("workspace"));
      return [command(typed, use, t("slash.workspace.path"))];
    }
    if (kind === "agent") return named(typed, given.trim());
    const [whole, prompt] = /^\/([^\s:/]+:[^\s:/]+)(?: |$)/.exec(typed) ?? [];
    if (prompt) return promptsFor(prompt, typed.slice(whole.length));
    if (!templates) ask();
    const wanted = ({ name }) => [name, ...(ALSO[name] ?? [])].some(each => each.startsWith(typed.trimEnd()));
    const servers = prompts.map(promptOf).filter(wanted);
    const commands = /^\/[a-z ]*$/.test(typed) ? all : [];
    return [...[...own, ...commands, ...templates].filter(wanted), ...servers];
  }

  async function ask() {
    templates = own = prompts = [];
    const { workspace, settings } = on.session();
    prompts = await api.prompts(workspace).catch(() => []);
    own = settings.project ? await templatesOf(settings.project) : [];
    templates = (await templatesOf()).filter(({ name }) => own.every(each => each.name !== name));
    update();
  }

  async function templatesOf(project) {
    const found = await api.templates(project).all().catch(on.complain);
    return (found ?? []).map(each => ({
      name: `/${each.command}`,
      head: project ? "head.own" : "settings.templates",
      words: `${each.title || sketchOf(each.content)} · ${t("template.fields", { n: fieldsOf(each.content).length })}`,
      act: () => use(each),
    }));
  }

  const promptOf = ({ name, takes, about }) => ({
    head: "head.mcp",
    name: `/${name}${takes ? " " : ""}`,
    words: [takes, about].filter(Boolean).join(" · "),
    act: takes ? null : () => say(name, ""),
  });

  // Words after its name fill it; one that no running server has is its server's to refuse.
  function promptsFor(name, given) {
    const act = () => say(name, given);
    const whole = { head: "head.mcp", name: `/${name} ${given}`, words: t("slash.prompt"), act };
    const known = prompts.filter(each => each.name.startsWith(name));
    return given || !known.length ? [whole] : known.map(promptOf);
  }

  // Its text is somebody else's: it waits in the box to be looked at.
  async function say(name, words) {
    try {
      box.value = await api.promptText(name, words, on.session().workspace);
      box.dispatchEvent(new Event("input"));
    } catch (failure) {
      on.complain(failure);
    }
  }

  function use({ command, content }) {
    box.value = content;
    box.dispatchEvent(new Event("input"));
    fill = filling(box);
    if (fieldsOf(content).length) on.note(t("template.keys", { name: command }));
    else fill = null;
    box.focus();
  }

  // One that is not in the list is the server's to refuse.
  function named(typed, given) {
    if (!agents) {
      agents = [];
      api.agents().then(known => {
        agents = known;
        update();
      }, on.complain);
    }
    const take = agent => () => on.change({ agent });
    const known = agents
      .filter(({ name }) => name.startsWith(given))
      .map(({ name, description }) => command(`/agent ${name}`, take(name), description));
    if (!given) return [...known, command("/agent none", take(null), t("agent.none"))];
    return known.length ? known : [command(typed, take(given === "none" ? null : given), t("slash.agent.name"))];
  }

  function modelsFor({ typed, start }) {
    const models = on.models();
    const words = typed.toLowerCase();
    return models
      .filter(model => `${model.id} ${titleOf(model)}`.toLowerCase().includes(words))
      .slice(0, MOST)
      .map(model => ({
        head: "settings.models",
        name: `@${callName(model, models)}`,
        title: titleOf(model),
        words: [nameOf(model.id.split(":")[0]), ...badges(model)].join(" · "),
        act: () => put(start, `@${callName(model, models)} `),
      }));
  }

  // Folders and files of the library, and pages that were read in any chat.
  function documentsFor({ typed, start }) {
    if (typed !== sought) {
      sought = typed;
      clearTimeout(timer);
      timer = setTimeout(() => look(typed), found.part === null ? 0 : WAIT);
    }
    const fits = ({ title, url }) => `${title} ${url}`.toLowerCase().includes(typed.toLowerCase());
    return found.documents.filter(fits).map(document => ({
      head: ["folder", "pages"].includes(document.kind) ? `head.${document.kind}` : "settings.library",
      name: document.url,
      title: document.title || document.url,
      words: wordsOf(document),
      act: () => {
        put(start, "");
        on.attach(document);
      },
    }));
  }

  function wordsOf({ kind, url, documents: n }) {
    if (kind === "folder") return t("menu.folder", { n });
    return kind === "pages" ? t("menu.read", { host: hostOf(url) }) : t("menu.library");
  }

  // A folder is as a document whose address is its path.
  async function foldersOf() {
    const { collections } = await api.library();
    const own = collections.filter(({ kind, documents }) => kind !== "docs" && kind !== "pages" && documents > 1);
    return own.map(({ path, name, documents }) => ({ kind: "folder", url: path, title: name, documents }));
  }

  async function look(part) {
    const mine = (looks += 1);
    try {
      const [folders, documents] = await Promise.all([(library ??= foldersOf()), api.documents(part)]);
      if (mine !== looks) return; // an answer that is late asks nothing anew
      documents.sort((a, b) => (a.kind === "pages") - (b.kind === "pages"));
      found = { part, documents: [...folders, ...documents] };
    } catch (failure) {
      return on.complain(failure);
    }
    update();
  }

  // In place of what called it.
  function put(start, text) {
    box.setRangeText(text, start, box.selectionStart, "end");
    box.dispatchEvent(new Event("input"));
    box.focus();
  }

  // One of the list, below the heading of its kind where that begins.
  function option({ name, title, words, head }, i) {
    const more = { "/agent ": t("slash.name"), "/workspace ": t("slash.path") }[name] ?? "";
    const one = h(
      "li",
      { role: "option", id: `slash-${i}`, "aria-selected": String(i === at), onclick: () => run(i) },
      title ? h("span.called", { dir: "auto" }, title) : h("code", name, more),
      h("span.hint", { dir: "auto" }, words ?? t(`slash.${name.slice(1).replace(" ", ".")}`)),
    );
    return head === fits[i - 1]?.head ? [one] : [h("li.muted", { role: "presentation" }, t(head)), one];
  }

  function run(i) {
    const { name, title, act } = fits[i];
    at = 0;
    if (title) return act();
    box.value = act ? "" : name;
    box.dispatchEvent(new Event("input"));
    if (act) act();
    else box.focus();
  }

  function key(event) {
    if (list.hidden) return Boolean(fill) && fills(event);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) at = (at + step + fits.length) % fits.length;
    else if (event.key === "Enter" || (event.key === "Tab" && fits[at].title)) run(at);
    else if (event.key === "Tab") box.value = `${fits[at].name}`;
    else if (event.key === "Escape") shut = markAt().start;
    else return false;
    event.preventDefault();
    event.stopPropagation();
    update();
    return true;
  }

  function fills(event) {
    const took = fill(event);
    if (took === null) fill = null;
    if (took || (took === null && event.key === "Escape")) {
      event.preventDefault();
      event.stopPropagation();
      return true;
    }
    return false;
  }

  return { update, key };
}
