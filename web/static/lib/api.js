// The server's JSON API. Every failure becomes a Failure: {code, message, remedy}.

import { known, t } from "../locales/index.js";

/**
 * What went wrong, in words for people; `status` is 0 when the server did not answer. `own` says that
 * the words are the page's, not the server's.
 */
export class Failure extends Error {
  constructor(status, { code, message, remedy }, own = true) {
    super(message);
    this.status = status;
    this.code = code;
    this.remedy = remedy ?? "";
    this.own = own;
  }
}

const TELLS = /"message": *"/; // an error or a notice, alone or in a list

// What the server says in sentences is given on together with what its sentences are recognised by.
async function json(response) {
  const text = await response.text();
  if (TELLS.test(text)) await known();
  return JSON.parse(text);
}

async function call(method, path, body, { read = json, ...options } = {}) {
  let response;
  try {
    response = await fetch(path, {
      method,
      body: body === undefined ? undefined : JSON.stringify(body),
      headers: method === "GET" ? {} : { "Content-Type": "application/json" },
      credentials: "same-origin",
      ...options,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(0, unexplained(0));
  }
  const data = await (response.ok ? read : json)(response).catch(() => null);
  if (response.ok) return data;
  if (data?.error) throw new Failure(response.status, data.error, false);
  throw new Failure(response.status, unexplained(response.status));
}

function unexplained(status) {
  if (!status) return { code: "unreachable", message: t("net.unreachable"), remedy: t("net.unreachable.next") };
  if (status === 401 || status === 403) {
    return { code: "denied", message: t("net.denied"), remedy: t("net.denied.next") };
  }
  return { code: `http_${status}`, message: t("net.bad", { status }), remedy: t("net.bad.next") };
}

const PIECE = 40_000; // characters of a page that are asked for at a time
const session = id => `/api/sessions/${encodeURIComponent(id)}`;
const listOf = (data, name) => (Array.isArray(data) ? data : (data?.[name] ?? []));

export const health = () => call("GET", "/api/health");
/**
 * {list, servers, chosen, why, search, held}: the models there are, where, what a new chat begins with,
 * why with that model (`setting`, `last`, `best`, `none`), and why none may search by itself.
 */
export const models = async () => {
  const data = await call("GET", "/api/models");
  return {
    list: listOf(data, "models"),
    servers: data?.servers ?? [],
    chosen: data?.default,
    why: data?.default_why?.by,
    search: data?.search,
    held: data?.held_back,
  };
};
export const pulls = async () => listOf(await call("GET", "/api/models/pull"), "pulls");
export const pullModel = model => call("POST", "/api/models/pull", { model });
export const cancelPull = model => call("DELETE", `/api/models/pull?model=${encodeURIComponent(model)}`);
export const removeModel = model => call("DELETE", `/api/models?model=${encodeURIComponent(model)}`);
export const settings = async () => listOf(await call("GET", "/api/settings"), "settings");
export const changeSettings = async settings => listOf(await call("PATCH", "/api/settings", { settings }), "settings");
export const me = () => call("GET", "/api/me");
export const signOut = () => call("POST", "/api/sign-out", {});
export const newToken = () => call("POST", "/api/new-token", {});
export const usage = async () => listOf(await call("GET", "/api/usage"), "uses");
export const allChatsUrl = "/api/sessions/export";
export const importState = () => call("GET", "/api/sessions/import");
export const stopImport = () => call("DELETE", "/api/sessions/import");
/** Sends an export as it is. */
export const importChats = (file, signal) =>
  call("POST", "/api/sessions/import", undefined, {
    body: file,
    headers: { "Content-Type": "application/octet-stream" },
    signal,
  });
/** Audits a report; `told(event)` hears of each page. Resolves to the whole. */
export async function audit(body, told, signal) {
  const last = await call("POST", "/api/audit", body, { signal, read: response => eventsOf(response, told) });
  signal.throwIfAborted();
  if (last?.type !== "audit_finished") throw new Failure(0, unexplained(0));
  return last;
}

async function eventsOf(response, told) {
  await known();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let last = null;
  for (let rest = ""; ; ) {
    const { done, value } = await reader.read();
    if (done) return last;
    const frames = (rest + value).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) told((last = JSON.parse(frame.slice("data: ".length))));
  }
}
export const deleteEverything = () => call("DELETE", "/api/sessions");
export const providers = async () => listOf(await call("GET", "/api/providers"), "providers");
/** Asks a provider for its models, with {key?, address?} if given; `save: true` keeps what worked. */
export const testProvider = (name, changes) => call("POST", `/api/providers/${encodeURIComponent(name)}/test`, changes);
export const unloadModel = model => call("POST", "/api/models/unload", { model });
export const folders = path => call("GET", `/api/folders${path ? `?path=${encodeURIComponent(path)}` : ""}`);
export const keys = async () => listOf(await call("GET", "/api/keys"), "keys");
export const saveKey = async (name, value) => listOf(await call("PUT", `/api/keys/${name}`, { value }), "keys");
export const forgetKey = async name => listOf(await call("DELETE", `/api/keys/${name}`), "keys");
const inFolder = folder => (folder ? `?workspace=${encodeURIComponent(folder)}` : "");
export const mcp = folder => call("GET", `/api/mcp${inFolder(folder)}`);
export const trustMcp = (workspace, hash) => call("POST", "/api/mcp/trust", { workspace, hash });
export const addMcp = (config, save, replace) => call("POST", "/api/mcp", { config, save, replace: Boolean(replace) });
const server = name => `/api/mcp/${encodeURIComponent(name)}`;
export const mcpEntry = async name => (await call("GET", server(name))).config;
export const changeMcp = (name, changes) => call("PATCH", server(name), changes);
export const removeMcp = name => call("DELETE", server(name));
export const testMcp = (name, folder) => call("POST", `${server(name)}/test${inFolder(folder)}`, {});
export const approveMcpTool = (name, tool, definition, folder) =>
  call("POST", `${server(name)}/tools/${encodeURIComponent(tool)}/approve${inFolder(folder)}`, { definition });
/** Prompts of MCP servers that run: {name, takes, about}; and the text of one, filled from words. */
export const prompts = async folder => listOf(await call("GET", `/api/prompts${inFolder(folder)}`), "prompts");
export const promptText = async (name, words, workspace) =>
  (await call("POST", "/api/prompts", { name, words, workspace })).text;
export const policy = () => call("GET", "/api/policy");
export const changePolicy = policy => call("PUT", "/api/policy", policy);
/** The script that draws Mermaid's diagrams, where the person has put it. */
export const mermaid = () => call("GET", "/api/mermaid", undefined, { read: response => response.text() });
export const library = () => call("GET", "/api/library");
/** Files of the library, and pages read, that have these letters in their names: {url, title, kind}. */
export const documents = async q => listOf(await call("GET", `/api/library?q=${encodeURIComponent(q)}`), "documents");
/** The text of one, up to so many characters. */
export async function textOf(url, most) {
  let text = "";
  for (let offset = 0; offset !== null && text.length < most; ) {
    const page = await call("POST", "/api/open-page", { url, offset, max_length: PIECE });
    text += page.content;
    offset = page.next_offset ?? null;
  }
  return text.slice(0, most);
}
export const addToLibrary = (path, exclude) => call("POST", "/api/library", exclude ? { path, exclude } : { path });
export const pauseLibrary = path => call("PATCH", "/api/library", { path, paused: true });
export const removeFromLibrary = path => call("DELETE", "/api/library", { path });
export const search = query => call("POST", "/api/web-search", query);
export const engines = async () => {
  const data = await call("GET", "/api/engines", undefined, { read: response => response.json() });
  // Why one is missing is told where none is left, and in the settings.
  if (!listOf(data, "engines").some(({ position, available }) => position !== null && available)) await known();
  return data;
};
/** {sessions, projects?, archived?}: the chats that hold the words `q`, or those of `which` {project?, archived?}. */
export const sessions = (q, limit, which = {}) =>
  call("GET", `/api/sessions?${new URLSearchParams({ limit, ...(q ? { q } : {}), ...which })}`);
export const changeSessions = (ids, changes) => call("PATCH", "/api/sessions", { ids, ...changes });
const oneProject = id => `/api/projects/${encodeURIComponent(id)}`;
export const project = id => call("GET", oneProject(id));
export const createProject = project => call("POST", "/api/projects", project);
export const changeProject = (id, changes) => call("PATCH", oneProject(id), changes);
/** `chats`: what becomes of its chats, keep, archive or delete. */
export const deleteProject = (id, chats) => call("DELETE", `${oneProject(id)}?chats=${chats}`);
export const projectFileUrl = (id, digest) => `${oneProject(id)}/files/${digest}`;
export const addProjectFile = (id, file) => call("POST", `${oneProject(id)}/files`, file);
export const removeProjectFile = (id, digest) => call("DELETE", projectFileUrl(id, digest));
/** What the person tells every chat: {about, answer}. */
export const ownWords = () => call("GET", "/api/instructions");
export const changeOwnWords = words => call("PATCH", "/api/instructions", words);
export const createSession = settings => call("POST", "/api/sessions", settings);
export const readSession = id => call("GET", session(id));
export const changeSession = (id, changes) => call("PATCH", session(id), changes);
export const deleteSession = id => call("DELETE", session(id), undefined, { keepalive: true });
export const ask = (id, message) => call("POST", `${session(id)}/messages`, message);
export const changeTurn = (id, turn, change) => call("PATCH", `${session(id)}/turns/${turn}`, change);
export const check = (id, turn, model) => call("POST", `${session(id)}/check`, { turn, ...(model ? { model } : {}) });
export const approve = (id, callId, decision) =>
  call("POST", `${session(id)}/approvals/${encodeURIComponent(callId)}`, decision);
export const runPlan = (id, plan) => call("POST", `${session(id)}/plans/${encodeURIComponent(plan)}/run`, {});
export const undoFiles = id => call("POST", `${session(id)}/undo`, {});
export const agents = async () => listOf(await call("GET", "/api/agents"), "agents");
export const createAgent = agent => call("POST", "/api/agents", agent);
const preset = name => `/api/agents/${encodeURIComponent(name)}`;
export const changeAgent = (name, changes) => call("PATCH", preset(name), changes);
export const removeAgent = name => call("DELETE", preset(name));
export const programs = async () => listOf(await call("GET", "/api/programs"), "programs");
export const addProgram = program => call("POST", "/api/programs", program);
export const changeProgram = (name, rights) => call("PATCH", `/api/programs/${encodeURIComponent(name)}`, rights);
export const removeProgram = name => call("DELETE", `/api/programs/${encodeURIComponent(name)}`);
/** Templates of all chats, or of one project: {all(), keep(templates), remove(name)}; each gives those there are. */
export function templates(id) {
  if (id) {
    const all = async () => listOf(await project(id), "templates");
    const set = async templates => listOf(await changeProject(id, { templates }), "templates");
    const remove = async name => set((await all()).filter(({ command }) => command !== name));
    return { all, keep: async given => set([...(await all()), ...given]), remove };
  }
  const done = async (...request) => listOf(await call(...request), "templates");
  return {
    all: () => done("GET", "/api/templates"),
    keep: templates => done("POST", "/api/templates", { templates }),
    remove: name => done("DELETE", `/api/templates/${encodeURIComponent(name)}`),
  };
}
export const compact = id => call("POST", `${session(id)}/compact`, {});
export const editSummary = (id, text) => call("PATCH", `${session(id)}/summary`, { text });
export const cancel = id => call("POST", `${session(id)}/cancel`, {});
/** The bytes of a file as the server takes them. */
export async function base64(blob) {
  const read = new FileReader();
  const done = new Promise((resolve, reject) => ([read.onload, read.onerror] = [resolve, reject]));
  read.readAsDataURL(blob);
  await done;
  return read.result.slice(read.result.indexOf(",") + 1);
}
/** Checks a file {name, media_type, data (base64)} before it is sent: its kind, size and pages. */
export const lookAt = file => call("POST", "/api/attachments", file);
/** Where a file of a chat's questions is. */
export const fileUrl = (id, digest) => `${session(id)}/attachments/${digest}`;
const ATTACHED = /^attachment:\/\/(\w+)\/[^#]*(?:#page=(\d+))?$/;
/** Where the page of a file is that a source names, null for a source of another kind. */
export function attachedUrl(url, id) {
  const [, digest, number] = ATTACHED.exec(url) ?? [];
  return digest ? `${fileUrl(id, digest)}${number ? `#page=${number}` : ""}` : null;
}
/** The text of a page: of the web, of the library, or of a file in the chat `id`. */
export function openPage(page, signal, id) {
  const [, digest, number = 1] = ATTACHED.exec(page.url) ?? [];
  if (!digest) return call("POST", "/api/open-page?view=page", page, { signal });
  return call("GET", `${fileUrl(id, digest)}/pages/${number}`, undefined, { signal });
}

/** Where a session can be had as a file in the page's language; with `turn` the answer of that turn alone. */
export const exportUrl = (id, format, turn) =>
  `${session(id)}/export?lang=${document.documentElement.lang}&format=${format}${turn ? `&turn=${turn}` : ""}`;
export const exported = (id, format, turn) =>
  call("GET", exportUrl(id, format, turn), undefined, { read: response => response.text() });

/** The address of a session's event stream, after event number `seq`. */
export const eventsUrl = (id, seq) => `${session(id)}/events?view=page&after=${seq}`;
