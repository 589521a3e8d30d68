// The page: which chat is open, what is asked of the server, and how the parts are told.

import { chatView, connectionLine } from "./chat/chat.js";
import { asking } from "./chat/commands.js";
import { adopt, draft, isUnused, learn, newFacts, turnTo, worthListing } from "./chat/server_state.js";
import { composer } from "./composer/composer.js";
import { engineFacts } from "./composer/search_switch.js";
import * as api from "./lib/api.js";
import { h, isComposing, plainly } from "./lib/dom.js";
import { errorBox, toast, waysOut } from "./lib/messages.js";
import { t, translate } from "./locales/index.js";
import { makeDrawer, projectList, sessionList } from "./sidebar.js";
import { chips } from "./sources/sources.js";
import { drawWelcome } from "./welcome.js";

const GRACE = 1500; // milliseconds a connection may be away before it is mentioned
const REFRESH = 3000; // milliseconds between looks at the list while a chat is answering
const NAMING = 30; // seconds after an answer in which its chat may get a title
const TAGGED = 5000; // chats that are looked through for a tag
const TYPING = 150; // milliseconds of silence before a search in the list is sent

const el = id => document.getElementById(id);
const facts = newFacts();
const tabs = new BroadcastChannel("searchloop");
let connectionTimer = 0;
let refreshTimer = 0;
let findTimer = 0;
let [looks, loads] = [0, 0]; // at the list, and of models and engines: the newest counts
let news = ""; // what happened while nobody looked, in words
let away = false; // the stream was lost, and is not back
let barred = false; // the server does not know this page any more

translate(document);
const drawer = makeDrawer(el);
const openSettings = later(() =>
  import("./settings/settings.js").then(made =>
    made.settingsDialog(el("settings"), {
      facts: () => facts,
      changed: settingsChanged,
      newChat: temporary => openSession(null, { temporary }),
      keys: () => showKeys(),
      options: openChatMenu,
    }),
  ),
);
// What errors offer: see chat/ways_out.js.
const outs = {
  models: () => facts.models,
  servers: () => facts.servers,
  settings: (room, card) => openSettings(room, card),
  pull: model => api.pullModel(model).then(() => openSettings("models", `provider-${model.split(":")[0]}`), complain),
};
const fromProjects = () => import("./projects.js");
const rowMenu = later(() => fromProjects().then(made => made.openRow));
const askName = later(() => fromProjects().then(made => made.nameProject));
const showProject = later(() => fromProjects().then(made => made.drawProject));
const openReader = later(() =>
  import("./sources/reader.js").then(made => made.reader(el("reader"), () => facts.session.id)),
);
const openAudit = later(() => import("./sources/audit.js").then(made => made.auditView(el("reader"), models)));
const { chip, hide: hideCard } = chips(el("card"), openReader);
const ask = asking(facts, {
  draw,
  complain,
  calm,
  told: () => tabs.postMessage("changed"),
  follow: id => chat.show(id),
  toasts: el("toasts"),
});
const chat = chatView(
  { scroller: el("scroller"), turns: el("turns"), latest: el("latest"), announcer: el("announcer") },
  {
    ...ask,
    outs,
    again: thenWrite(ask.again),
    edit: thenWrite(ask.edit),
    goOn: thenWrite(ask.send),
    keep: text => box.giveBack(text),
    note,
    say,
    write: text => {
      box.giveBack(text);
      box.focus();
    },
    template: async text => {
      const { project } = facts.session.settings;
      const { propose } = await import("./composer/templates.js");
      propose(text, project && facts.list.projects.find(({ id }) => id === project));
      openSettings("templates");
    },
    chip,
    open: openReader,
    models,
    fileUrl: digest => api.fileUrl(facts.session.id, digest),
    changed: chatChanged,
    unseen,
    connection,
    refused,
    version: ask.show,
  },
);
const box = composer(el, {
  ...ask,
  change: ask.changeSettings,
  complain,
  say,
  note,
  newChat: temporary => openSession(null, { temporary }),
  settings: openSettings,
  keys: () => showKeys(),
  runPlan: () => ask.runNewest(chat.shown()),
  undo: ask.undoNewest,
  compact: () => compact(chat.shown()),
  models,
  recall: chat.lastQuestion,
});
const sidebar = sessionList(el("sessions"), { open: openSession, change, older, menu: openRow, pick, archive, only });
const projects = projectList(el("projects"), { open: project => openSession(null, { project }), add: addProject });

// The button that was pressed goes away with its turn: the focus goes to the question box, unless that
// would bring up a keyboard on the screen.
function thenWrite(act) {
  return (...given) => {
    if (!matchMedia("(pointer: coarse)").matches) box.focus();
    return act(...given);
  };
}

// The answer to it is an event of the chat, which shows the summary.
async function compact(turns) {
  el("chat-menu").setAttribute("aria-busy", "true"); // before: the summary may come first
  if (!(await ask.compact(turns))) el("chat-menu").removeAttribute("aria-busy");
}

async function openChatMenu() {
  const { openChat } = await import("./settings/chat_setup.js");
  const taken = facts.models.find(m => m.id === facts.session.model)?.options.filter(name => name !== "effort") ?? [];
  const row = () => openRow(el("chat-menu"), [facts.session]);
  const on = { ...ask, session: facts.session, taken, compact, change: ask.changeSettings, row };
  openChat(el("chat-menu"), chat.shown(), on);
}

function summarised() {
  el("chat-menu").removeAttribute("aria-busy");
  el("announcer").append(h("p", t("compact.done")));
}

/** A part of the page that is fetched when it is first used. */
function later(fetched) {
  let part = null;
  return async (...given) => (await (part ??= fetched()))(...given);
}

// -- drawing --------------------------------------------------------------------------------------

function draw() {
  box.update({ ...facts });
  const title = facts.session.title || t("untitled");
  el("title").textContent = title;
  el("temporary").hidden = !facts.session.settings?.temporary;
  document.title = [news, facts.session.title ? `${title} - searchloop` : "searchloop"].filter(Boolean).join(": ");
  sidebar.update(facts.list, facts.running);
  const project = facts.session.settings?.project;
  projects.update(facts.list.projects, project);
  const { messages, pending } = facts.session;
  const empty = !messages && !pending && !facts.running && chat.turns() === 0;
  el("welcome").hidden = !empty;
  el("ideas").hidden = !empty || Boolean(project);
  el("main").className = !empty ? (chat.shown().some(hasRail) ? "railed" : "") : project ? "new" : "new ideas";
  el("chat-menu").hidden = pending;
  drawRemoved(chat.removed());
  el("archived").hidden = !facts.session.settings?.archived;
  drawHome(
    facts.list.projects.find(each => each.id === project),
    empty,
  );
  if (empty && project)
    showProject(el("welcome"), project, {
      facts: () => facts,
      open: openSession,
      changed: changedProjects,
      begins: beginProject,
      deleted: leaveProject,
      gone: leaveProject,
      complain,
    });
  else if (empty)
    drawWelcome(el("welcome"), el("ideas"), facts, askWithSearch, openSettings, keyed, model =>
      ask.changeSettings({ model }),
    );
}

// Whether sources stand, or are to stand, beside an answer; a chat without any is set in the middle.
const hasRail = ({ sources, citations, running, search }) =>
  sources.length + citations.length > 0 || (running && (search ?? facts.session.search) !== "off");

// The project that the chat is in, and leads to.
function drawHome(project, empty) {
  el("project").hidden = !project || empty;
  if (!project) return;
  el("project").href = `#/p/${project.id}`;
  el("project").lastElementChild.textContent = project.name;
  el("project").setAttribute("aria-label", t("project.open", { name: project.name }));
}

// What was removed can be put back for as long as there is the chat: its log has it all.
function drawRemoved(ids) {
  const line = el("removed");
  if (line.dataset.ids === String(ids)) return;
  line.dataset.ids = String(ids);
  line.hidden = !ids.length;
  const back = () => ask.restore(ids.at(-1));
  line.replaceChildren(t("turn.gone", { n: ids.length }), " ", h("button.small", { onclick: back }, t("turn.putback")));
}

function complain(...failures) {
  const known = failure => (failure instanceof api.Failure ? failure : { code: "page", message: String(failure) });
  const notice = el("composer-notice");
  const ways = ({ code }) =>
    waysOut(code, facts.session.model ?? "", { ...outs, use: model => ask.changeSettings({ model }).then(calm) });
  notice.replaceChildren(...failures.map(known).map(failure => errorBox(failure, { ways: ways(failure) })));
  notice.tabIndex = failures.length > 1 ? 0 : -1; // many have to be scrolled, by keys too
}

function say(text) {
  el("announcer").textContent = text;
}

function note(message) {
  el("composer-notice").replaceChildren(errorBox({ message }, { tone: "info" }));
}

function calm() {
  el("composer-notice").replaceChildren();
}

function chatChanged(state, events) {
  learn(facts, state, events);
  if (el("chat-menu").ariaBusy && events.some(e => e.type === "summary")) summarised();
  const telling = ["user_message", "run_started", "run_finished", "title"];
  if (events.some(e => telling.includes(e.type))) refresh();
  if (events.some(e => e.type === "run_finished" && e.search_path?.startsWith("local"))) lookAtEngines();
  draw();
}

// In a tab that nobody sees no frame is drawn, so this does not wait for one.
async function unseen(event, turn) {
  const { newsOf } = await import("./lib/notices.js");
  news = newsOf(event, turn, facts.session) || news;
  draw();
}

// What a search found out about an engine holds for the next one.
async function lookAtEngines() {
  try {
    facts.engines = engineFacts(await api.engines());
    draw();
  } catch {
    // the stream's own line says that the server is away
  }
}

// Each failed attempt is told; the time of grace runs from the first.
function connection(state) {
  if (state === "live") {
    clearTimeout(connectionTimer);
    connectionTimer = 0;
    connectionLine(el("connection"), "");
    if (away) lookAtAll(); // who is back may have been started with other settings, or be another version
    away = false;
  } else {
    away = true;
    connectionTimer ||= setTimeout(() => connectionLine(el("connection"), t("net.lost")), GRACE);
  }
}

// -- chats ----------------------------------------------------------------------------------------

/** Opens a chat; without an id a new one. */
async function openSession(id, { push = true, temporary = false, turn = null, project = null } = {}) {
  drawer.close();
  delete el("welcome").dataset.key;
  if (id && id === facts.session.id) return turn && chat.seek(turn);
  el("preview")?.close();
  forget();
  away = false;
  connection("live");
  hideCard();
  calm();
  el("chat-menu").removeAttribute("aria-busy");
  facts.running = false;
  turnTo(facts, facts.list.sessions.find(s => s.id === id) ?? draft(facts, id));
  if (temporary) facts.session.settings.temporary = true;
  if (project) facts.session.settings.project = project;
  if (push) history.pushState(null, "", id ? `#/s/${id}` : project ? `#/p/${project}` : "#/");
  chat.show(id, turn);
  draw();
  if (!turn) box.focus();
  if (project) refresh();
  if (id) await reread(id);
}

// A chat that was only switched, or that was to be temporary, does not outlive its being looked at.
function forget() {
  const { id, settings } = facts.session;
  const gone = settings?.temporary || isUnused(facts, chat.turns());
  if (!id || !gone) return;
  box.carry(id);
  api.deleteSession(id).catch(() => {});
}

async function reread(id) {
  const { place, changes } = facts;
  try {
    const session = await api.readSession(id);
    if (facts.place !== place) return;
    if (facts.changes === changes) adopt(facts, session);
    if (barred) resume(id);
    draw();
  } catch (failure) {
    if (facts.session.id === id && failure.status) refused(failure);
  }
}

// The server was started anew, and this browser has its new address: the chat is followed again.
function resume(id) {
  barred = false;
  calm();
  chat.show(id);
}

function refused(failure) {
  away = false;
  connection("live");
  facts.running = false;
  barred = failure.status !== 404;
  if (barred) {
    chat.lose();
  } else {
    chat.stop();
    const { id } = facts.session;
    turnTo(facts, draft(facts));
    chat.show(null);
    box.carry(id);
    history.replaceState(null, "", "#/");
    refresh();
    failure = new api.Failure(404, { code: "no_session", message: t("session.gone"), remedy: t("session.gone.next") });
  }
  draw();
  complain(failure);
}

async function refresh() {
  clearTimeout(refreshTimer);
  const { list, changes } = facts;
  const look = (looks += 1);
  try {
    const { most, archived } = list;
    const found = await api.sessions(list.query, most, archived && !list.query ? { archived } : {});
    if (look < looks) return;
    list.sessions = worthListing(found.sessions);
    list.more = found.sessions.length >= most;
    list.projects = found.projects ?? list.projects;
    list.archive = found.archived ?? list.archive;
  } catch {
    return; // the stream's own line says that the server is away
  }
  const own = list.sessions.find(s => s.id === facts.session.id);
  if (own && facts.changes === changes) adopt(facts, own);
  draw();
  if (list.sessions.some(isMoving)) refreshTimer = setTimeout(refresh, REFRESH);
}

// A chat that is being answered, or may be named in a moment.
function isMoving({ running, settings, updated }) {
  return running || (settings?.provisional && Date.now() / 1000 - updated < NAMING);
}

function older() {
  facts.list.most *= 5;
  return refresh();
}

async function change(id, changes) {
  try {
    await api.changeSession(id, changes);
  } catch (failure) {
    complain(failure);
  }
  await refresh();
  tabs.postMessage("changed");
}

// -- projects and the archive ---------------------------------------------------------------------

async function changeMany(ids, changes) {
  const done = { n: ids.length };
  try {
    await api.changeSessions(ids, changes);
    calm();
    const told = "tags" in changes ? "tags.done" : "project" in changes ? "project.moved" : "";
    el("announcer").append(h("p", t(told || (changes.archived ? "archive.done" : "archive.undone"), done)));
  } catch (failure) {
    complain(failure);
  }
  facts.list.picked = null;
  delete el("welcome").dataset.key; // a project's page lists its chats
  await refresh();
  if (ids.includes(facts.session.id)) await reread(facts.session.id);
  tabs.postMessage("changed");
}

function pick(picked) {
  facts.list.picked = picked;
  draw();
}

// The chats with a tag, the older ones among them.
function only(tag) {
  Object.assign(facts.list, { tag, most: Math.max(facts.list.most, TAGGED) });
  return refresh();
}

async function archive(shown) {
  Object.assign(facts.list, { archived: shown, picked: null });
  await refresh();
  el("sessions").querySelector('[data-focus="archive"], a')?.focus();
}

function openRow(anchor, sessions) {
  const make = async name => {
    const made = await api.createProject({ name });
    await changedProjects();
    return made;
  };
  const listed = sessions.length === 1 && !facts.list.picked && anchor.id !== "chat-menu";
  rowMenu(anchor, sessions, {
    projects: () => facts.list.projects,
    changeMany,
    create: make,
    one: listed && { change, rename: sidebar.rename, remove, pick: session => pick(new Set([session.id])) },
  });
}

function addProject(button) {
  askName(button, async name => {
    const { id } = await api.createProject({ name });
    await changedProjects();
    openSession(null, { project: id });
  });
}

async function changedProjects() {
  await refresh();
  tabs.postMessage("changed");
}

// A new chat of a project begins with what the project says, and shows so.
function beginProject({ id, agent }, settings) {
  const { session } = facts;
  if (session.id || session.settings.project !== id) return;
  facts.session = { ...draft(facts), settings: session.settings, agent, ...settings };
  draw();
}

// The project on show is not there any more.
function leaveProject(failure) {
  openSession(null);
  changedProjects();
  if (failure) complain(failure);
}

// Notes which chat is being deleted, and returns the one before: a page that is left in between lets the
// next one make sure of it, which would list it still.
function beingDeleted(id) {
  try {
    const before = sessionStorage.getItem("searchloop.deleting");
    sessionStorage.setItem("searchloop.deleting", id);
    return before;
  } catch {
    return ""; // the browser keeps nothing
  }
}

function remove(session) {
  const { hidden } = facts.list;
  const wasOpen = session.id === facts.session.id;
  hidden.add(session.id);
  if (wasOpen) openSession(null);
  draw();
  el("new-chat").focus();
  const title = session.title || t("untitled");
  toast(el("toasts"), t("sidebar.deleted", { title }), t("undo"), async undone => {
    if (!undone) {
      box.forget(session.id);
      tabs.postMessage({ deleted: session.id });
      beingDeleted(session.id);
      await api.deleteSession(session.id).catch(complain);
      beingDeleted("");
    }
    hidden.delete(session.id);
    delete el("welcome").dataset.key;
    await refresh();
    if (undone && wasOpen && !facts.session.id) openSession(session.id);
    tabs.postMessage("changed");
  });
}

// -- asking ---------------------------------------------------------------------------------------

async function askWithSearch(question) {
  if (facts.session.search === "off") await ask.changeSettings({ search: "auto" });
  if (facts.session.search === "off") return;
  await box.ask(question);
}

/** The models that can be chosen. */
function models() {
  return facts.models.filter(model => model.available !== false);
}

// -- the window -----------------------------------------------------------------------------------

// Single keys act only where nothing is typed, and can be turned off in the list of keys.
function onShortcut(event) {
  if (event.defaultPrevented || isComposing(event) || event.altKey || document.querySelector("dialog:modal")) return;
  const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
  const name =
    event.ctrlKey || event.metaKey
      ? { k: "find", o: event.shiftKey ? "new" : null, "/": "keys" }[event.key.toLowerCase()]
      : typing || localStorage.getItem("searchloop.keys") === "off"
        ? null
        : { "?": "keys", "/": "box" }[event.key];
  const act = { find: findChat, new: () => openSession(null), box: box.focus, keys: showKeys }[name];
  if (!act) return;
  event.preventDefault();
  act();
}

const showKeys = later(() => import("./lib/shortcuts.js").then(made => made.showShortcuts));

function findChat() {
  drawer.open();
  el("find-session").focus();
}

// From the search down the list of chats, and up again.
function walk(event) {
  const rows = [el("find-session"), ...el("sessions").querySelectorAll("a")];
  const to = rows[rows.indexOf(event.target) + ({ ArrowDown: 1, ArrowUp: -1 }[event.key] ?? NaN)];
  if (!to || !rows.includes(event.target)) return;
  event.preventDefault();
  to.focus();
}

function onKey(event) {
  if (event.key !== "Escape" || event.defaultPrevented || isComposing(event)) return;
  if (event.target.closest?.(".approval") || (event.target.type === "search" && event.target.value)) return;
  if (document.querySelector("dialog:modal, [popover]:popover-open:not(#card)")) return;
  if (drawer.isOpen()) drawer.close();
  else ask.stop();
}

function fromAddress() {
  const [, project] = /^#\/p\/([\w-]+)$/.exec(location.hash) ?? [];
  if (project) return [null, { push: false, project }];
  const [, id = null, turn] = /^#\/s\/([\w-]+)(?:\/(\d+))?$/.exec(location.hash) ?? [];
  return [id, { push: false, turn: Number(turn) || null }];
}

function find(event) {
  facts.list.query = event.target.value.trim();
  clearTimeout(findTimer);
  findTimer = setTimeout(refresh, TYPING);
}

// What had the focus may go away with what it belonged to: then the question box has it, not nobody.
let focused = null;
function catchFocus() {
  if (!focused || focused.isConnected || document.activeElement !== document.body) return;
  focused = null;
  const inside = document.querySelector(":modal [tabindex='-1'], :modal button");
  if (inside) inside.focus();
  else if (!matchMedia("(pointer: coarse)").matches) box.focus();
}

// Another tab, or another program, may have changed what is shown here.
async function look() {
  lookForUpdate();
  await refresh();
  if (facts.session.id) await reread(facts.session.id);
}

function lookAtAll() {
  load();
  look();
}

// A server of another version may not understand this page. What is typed outlives the reload.
async function lookForUpdate() {
  const { version } = await api.health().catch(() => ({}));
  if (!version || version === document.documentElement.dataset.version || el("updated")) return;
  const reload = h("button.small", { onclick: () => location.reload() }, t("net.reload"));
  el("toasts").append(h("div.toast", { id: "updated" }, h("span", t("net.updated")), reload));
}

// The first key: its models are there, and one of them is to be chosen.
async function keyed() {
  tabs.postMessage("settings");
  await load();
  if (facts.defaultWhy === "none") el("model").click();
}

function settingsChanged() {
  lookAtAll();
  tabs.postMessage("settings");
}

async function load() {
  const mine = (loads += 1);
  const [models, engines] = await Promise.allSettled([api.models(), api.engines()]);
  if (mine < loads) return;
  if (models.status === "fulfilled") {
    facts.models = models.value.list;
    facts.servers = models.value.servers;
    facts.defaultModel = models.value.chosen ?? facts.defaultModel;
    facts.defaultWhy = models.value.why ?? facts.defaultWhy;
    facts.defaultSearch = models.value.search ?? "off";
    facts.held = models.value.held ?? {};
  }
  if (engines.status === "fulfilled") facts.engines = engineFacts(engines.value);
  facts.loaded = true;
  const { id, settings } = facts.session;
  if (!id) adopt(facts, { ...draft(facts), settings });
  if (!id && settings?.project) delete el("welcome").dataset.key; // which sets other settings
  const failed = [models, engines].find(r => r.status === "rejected");
  if (failed) complain(failed.reason);
  draw();
}

const press = (id, act) => el(id).addEventListener("click", act);
press("chat-menu", openChatMenu);
press(
  "project",
  plainly(() => openSession(null, { project: facts.session.settings.project })),
);
press("open-settings", () => openSettings());
press("open-audit", () => openAudit());
press("skip", plainly(box.focus)); // an address of its own would be another chat's
press("new-chat", () => openSession(null));
press("new-temporary", () => openSession(null, { temporary: true }));
el("find-session").addEventListener("input", find);
el("sidebar").addEventListener("keydown", walk);
addEventListener("keydown", onKey);
addEventListener("keydown", onShortcut);
addEventListener("popstate", () => openSession(...fromAddress()));
addEventListener("pagehide", event => {
  box.leave(chat.unsent());
  chat.stop();
  if (!event.persisted && facts.session.settings?.temporary) forget();
});
addEventListener("pageshow", event => event.persisted && chat.show(facts.session.id));
addEventListener("focus", look);
document.addEventListener("visibilitychange", () => {
  news = "";
  draw();
});
addEventListener("focusin", event => (focused = event.target));
addEventListener("focusout", ({ target }) =>
  setTimeout(() => target === focused && target.isConnected && (focused = null)),
);
new MutationObserver(catchFocus).observe(document.body, { childList: true, subtree: true });
tabs.addEventListener("message", ({ data }) => {
  if (data.deleted) box.forget(data.deleted);
  else if (data === "settings") lookAtAll();
  else look();
});
// A question in the address, of a browser's search box or another app's share: it waits in the box for
// the person to send it, and is asked for once.
function receive() {
  const given = new URLSearchParams(location.search);
  const asked = ["q", "title", "text", "url"].map(name => given.get(name)?.trim()).filter(Boolean);
  if (location.search || location.pathname !== "/") history.replaceState(null, "", `/${location.hash}`);
  if (asked.length) box.receive(asked.join("\n"));
}

if (location.hash.length > 2) openSession(...fromAddress());
else draw();
receive();
const left = beingDeleted("");
if (left)
  api
    .deleteSession(left)
    .catch(() => {})
    .then(refresh); // 404, if the server has heard of it
else refresh();
load();
box.focus();
