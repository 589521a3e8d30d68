// Projects and the archive: what can be done with a chat in the list, and a project's own page.

import { drawTemplates } from "./composer/templates.js";
import * as api from "./lib/api.js";
import { h, icon, iconButton, plainly, saveFile } from "./lib/dom.js";
import { openMenu } from "./lib/menu.js";
import { t, titleOf } from "./locales/index.js";
import { formAt } from "./settings/chat_setup.js";
import { attempt, choice, fileButton, problemLine, savedField, styled, textArea, textBox } from "./settings/kit.js";

const SEARCHES = ["off", "auto", "native", "local"];

/**
 * What can be done with `sessions` of the list, below `anchor`. `on` holds projects(), changeMany(ids, changes),
 * create(name), complain(failure) and, for a row of the list, `one`: {change, rename, remove, pick}, each of a session.
 */
export function openRow(anchor, sessions, on) {
  const archived = sessions.every(s => s.settings?.archived);
  const ids = sessions.map(s => s.id);
  const choose = () => openMove(anchor, sessions, on);
  const [first] = sessions;
  const pinned = Boolean(first.settings?.pinned);
  const row = (label, run) => (on.one ? { label: t(label), run } : undefined);
  const items = [
    row(pinned ? "row.unpin" : "row.pin", () => on.one.change(first.id, { pinned: !pinned })),
    row("row.rename", () => on.one.rename(first)),
    { label: t("project.move"), run: () => setTimeout(choose) },
    { label: t(archived ? "archive.back" : "archive.do"), run: () => on.changeMany(ids, { archived: !archived }) },
    { label: t("tags.do"), run: () => setTimeout(() => nameTags(anchor, sessions, on)) },
    { label: t("chats.save"), run: () => save(ids).catch(on.complain) },
    row("archive.several", () => on.one.pick(first)),
    row("row.delete", () => on.one.remove(first)),
  ];
  openMenu(anchor, t("row.menu"), items);
}

async function save(ids) {
  const texts = [];
  for (const id of ids) texts.push(await api.exported(id, "md"));
  saveFile("chats.md", texts.join("\n\n---\n\n"), "text/markdown");
}

// Of several chats those that all of them have.
function nameTags(anchor, sessions, on) {
  const [first, ...others] = sessions.map(s => s.settings?.tags ?? []);
  const shared = first.filter(tag => others.every(tags => tags.includes(tag)));
  const box = textBox(shared.join(", "), { id: "chat-tags" });
  const words = { label: t("tags.do"), path: t("tags.path"), use: t("project.save") };
  const tagsOf = text => (text ?? "").split(/[,，、]/).map(tag => tag.trim());
  const ids = sessions.map(s => s.id);
  formAt(anchor, words, { box }, text => on.changeMany(ids, { tags: tagsOf(text) }));
}

function openMove(anchor, sessions, on) {
  const ids = sessions.map(s => s.id);
  const inside = id => sessions.every(s => (s.settings?.project ?? null) === id);
  const move = project => on.changeMany(ids, { project });
  const entry = ({ id, name }) => ({ label: name, checked: inside(id), run: () => move(id) });
  const fresh = {
    label: t("project.new.move"),
    run: () => setTimeout(() => nameProject(anchor, async name => move((await on.create(name)).id))),
  };
  openMenu(anchor, t("project.move"), [
    { label: t("project.none"), checked: inside(null), run: () => move(null) },
    ...on.projects().map(entry),
    null,
    fresh,
  ]);
}

/** A form below `anchor` that asks for a name; `use(name)` may be refused by the server. */
export function nameProject(anchor, use, value = "") {
  const box = textBox(value, { id: "project-name", maxlength: "100" });
  const words = { label: t("project.name"), path: t("project.name"), use: t("project.save") };
  formAt(anchor, words, { box }, (name, refused) => use(name ?? "").catch(refused));
}

/**
 * Draws the page of project `id` into `section`; `on` holds facts(), open(id), changed(), deleted(), gone(failure),
 * begins(project, settings) for what a new chat of it begins with, and complain(failure).
 */
export async function drawProject(section, id, on) {
  const key = `project ${id}`;
  if (section.dataset.key === key) return;
  section.dataset.key = key;
  section.replaceChildren();
  let project;
  try {
    project = await api.project(id);
    const { sessions } = await api.sessions("", 200, { project: id });
    const [agents, { collections }] = await Promise.all([api.agents(), api.library(), styled()]);
    if (section.dataset.key !== key) return;
    on.begins(project, { ...chosen(agents.find(({ name }) => name === project.agent)), ...chosen(project) });
    section.replaceChildren(...parts(section, project, sessions, agents, collections, on));
  } catch (failure) {
    if (failure.status === 404) on.gone(failure);
    else on.complain(failure);
  }
}

// What an agent or a project sets of a new chat.
function chosen(from = {}) {
  return Object.fromEntries(["model", "mode", "search"].filter(name => from[name]).map(name => [name, from[name]]));
}

function parts(section, project, sessions, agents, collections, on) {
  const again = () => {
    delete section.dataset.key;
    on.changed();
    return drawProject(section, project.id, on);
  };
  const title = h("h2", { dir: "auto" }, project.name);
  const rename = iconButton("pencil", t("project.rename"), e =>
    nameProject(e.currentTarget, name => api.changeProject(project.id, { name }).then(again), project.name),
  );
  const remove = iconButton("trash", t("project.delete"), e => askFate(e.currentTarget, project, on));
  const listed = sessions.filter(s => s.messages || s.running);
  return [
    h("div.project-head", title, rename, remove),
    h("p.lead", t("project.lead")),
    instructions(project),
    files(project, again),
    folders(project, collections),
    templates(project),
    defaults(project, agents, on),
    h("h3", { id: "project-chats" }, t("project.chats", { n: listed.length })),
    listed.length
      ? h(
          "ul.project-list",
          { "aria-labelledby": "project-chats" },
          listed.map(s => chatLine(s, on)),
        )
      : h("p.muted", t("project.nochats")),
  ];
}

function chatLine(session, on) {
  const badge = session.settings?.archived ? h("span.badge", t("archive.badge")) : null;
  const link = { href: `#/s/${session.id}`, dir: "auto", onclick: plainly(() => on.open(session.id)) };
  return h("li", h("a", link, session.title || t("untitled")), badge);
}

function instructions(project) {
  const box = textArea(project.instructions, { rows: "4", maxlength: "20000" });
  return savedField("project-instructions", t("project.instructions"), box, t("project.instructions.hint"), text =>
    api.changeProject(project.id, { instructions: text }),
  );
}

function defaults(project, agents, on) {
  const pick = (field, label, options) => {
    const select = choice([["", t("project.usual")], ...options])(project[field] ?? "");
    return savedField(`project-${field}`, label, select, "", async value => {
      Object.assign(project, await api.changeProject(project.id, { [field]: value || null }));
      on.begins(project, { ...chosen(agents.find(({ name }) => name === project.agent)), ...chosen(project) });
    });
  };
  const models = on.facts().models.filter(m => m.available !== false);
  const [named, places] = [agents.map(({ name }) => [name, name]), SEARCHES.map(way => [way, t(`via.${way}`)])];
  return h(
    "details.project-defaults",
    h("summary", t("project.defaults")),
    pick(
      "model",
      t("model.label"),
      models.map(m => [m.id, titleOf(m)]),
    ),
    pick("agent", t("agent.label"), named),
    pick("search", t("switch.label"), places),
  );
}

// Of the library; without a tick searches see all of it.
function folders(project, collections) {
  const own = collections.filter(({ kind }) => kind !== "docs" && kind !== "pages");
  const gone = project.folders.filter(name => !own.some(({ path, name: short }) => name === path || name === short));
  if (!own.length && !gone.length) return "";
  const problem = problemLine();
  const tick = ([value, _, checked]) => h("input", { type: "checkbox", value, checked });
  const line = each => h("li", h("label", tick(each), " ", h("span", { dir: "auto" }, each[1])));
  const rows = [
    ...own.map(({ path, name }) => [path, path, project.folders.includes(path) || project.folders.includes(name)]),
    ...gone.map(name => [name, name, true]),
  ];
  const list = h("ul.project-folders", rows.map(line));
  list.addEventListener("change", () => {
    const chosen = [...list.querySelectorAll(":checked")].map(({ value }) => value);
    attempt(problem, () => api.changeProject(project.id, { folders: chosen }));
  });
  return part("folders", list, problem);
}

function part(name, ...content) {
  const title = h("h3", { id: `project-${name}` }, t(`project.${name}`));
  return h("section", { "aria-labelledby": title.id }, title, h("p.muted", t(`project.${name}.hint`)), ...content);
}

function templates({ id }) {
  const place = part("templates");
  drawTemplates(place, id);
  return place;
}

function files(project, again) {
  const problem = problemLine();
  const tried = work => attempt(problem, () => work().then(() => again()));
  const add = given =>
    tried(async () => {
      for (const file of given)
        await api.addProjectFile(project.id, { name: file.name, media_type: file.type, data: await api.base64(file) });
    });
  const line = ({ name, digest, pages }) =>
    h(
      "li.file",
      icon("page"),
      h("a", { href: api.projectFileUrl(project.id, digest), download: name, dir: "auto" }, name),
      pages > 1 && h("span.muted", t("file.pages", { n: pages })),
      iconButton("close", t("project.removefile", { name }), () =>
        tried(() => api.removeProjectFile(project.id, digest)),
      ),
    );
  const list = project.files.length ? h("ul.project-files", project.files.map(line)) : null;
  return part("files", list, ...fileButton(t("project.addfiles"), add, { multiple: true }), problem);
}

// What becomes of the chats is asked before anything is deleted.
function askFate(anchor, project, on) {
  const end = async chats => {
    try {
      await api.deleteProject(project.id, chats);
      on.deleted();
    } catch (failure) {
      on.complain(failure);
    }
  };
  const fates = project.chats ? ["keep", "archive", "delete"] : ["keep"];
  const items = fates.map(fate => ({
    label: t(project.chats ? `project.fate.${fate}` : "project.fate.none", { n: project.chats }),
    run: () => end(fate),
  }));
  openMenu(anchor, t("project.delete"), items);
}
