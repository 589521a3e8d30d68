// The settings of agents: named presets, listed, made, copied, changed and removed.

import * as api from "../lib/api.js";
import { h, iconButton } from "../lib/dom.js";
import { errorText } from "../lib/messages.js";
import { aboutOf, setsText } from "./chat_setup.js";
import { attempt, tag } from "./kit.js";
import { ownWordsFields } from "./own_words.js";
import { t } from "../locales/index.js";

const MODES = ["ask", "plan", "agent"];
const SEARCHES = ["off", "auto", "native", "local"];
const EMPTY = { name: "", description: "", system: "", model: null, mode: null, search: "off", tools: null, servers: null };

/** The list of agents, and the form of one. */
export async function agentsPage(body, { facts }) {
  const part = h("div", { class: "settings-page" });
  body.append(...(await ownWordsFields()), part);
  await list();

  /** Shows all; `from` is the agent whose row the focus goes back to. */
  async function list(from = null, problem = "") {
    const agents = await api.agents();
    const fresh = h("button", { type: "button", class: "small primary", onclick: () => edit(EMPTY, null) }, t("agents.new"));
    part.replaceChildren(
      h("ul", { class: "cards" }, agents.map((agent) => row(agent, agents))),
      h("p", { class: "problem", role: "alert" }, problem),
      h("div", {}, fresh),
    );
    if (from !== null) (part.querySelector(`[data-edit="${CSS.escape(from)}"]`) ?? fresh).focus();
  }

  function row(agent, agents) {
    const { name, builtin, changed } = agent;
    const origin = builtin ? "agents.builtin" : changed ? "agents.changed" : null;
    return h(
      "li",
      { class: "card" },
      h(
        "div",
        { class: "head" },
        h("h4", {}, name),
        tag("none", t(`mode.${agent.mode ?? "ask"}`)),
        origin ? h("span", { class: "muted" }, t(origin)) : null,
        h(
          "span",
          { class: "acts" },
          iconButton("pencil", t("agents.edit", { name }), () => edit(agent, name), { class: "quiet", "data-edit": name }),
          iconButton("copy", t("agents.copy", { name }), () => edit({ ...agent, name: free(name, agents) }, null), { class: "quiet" }),
          builtin ? null : goes(name, changed),
        ),
      ),
      h("p", { dir: "auto" }, aboutOf(agent)),
      h("p", { class: "muted", dir: "auto" }, setsText(agent)),
    );
  }

  // Changes to a built-in agent go with a second press: they cannot be brought back.
  function goes(name, changed) {
    if (!changed) return iconButton("trash", t("agents.delete", { name }), () => remove(name), { class: "quiet" });
    const sure = h("button", { type: "button", class: "small", onclick: () => remove(name) }, t("agents.restore.sure"));
    const back = iconButton("again", t("agents.restore", { name }), () => {
      back.replaceWith(sure);
      sure.focus();
    }, { class: "quiet" });
    return back;
  }

  async function remove(name) {
    const problem = await api.removeAgent(name).then(() => "", errorText);
    await list(name, problem);
  }

  /** The form of one; `existing` is its name at the server, null for a new one. */
  function edit(agent, existing) {
    const problem = h("p", { class: "problem", role: "alert" });
    const models = facts().models.map((model) => [model.id, model.id]);
    const fields = {
      name: text(agent.name, { disabled: existing !== null }),
      description: text(agent.description),
      system: area(agent.system),
      model: select(agent.model ?? "", [["", t("agents.any")], ...models]),
      mode: select(agent.mode ?? "", [["", t("agents.any")], ...MODES.map((m) => [m, t(`mode.${m}`)])]),
      search: select(agent.search, SEARCHES.map((s) => [s, t(`via.${s}`)])),
      tools: text(patternsText(agent.tools), { placeholder: t("agents.all") }),
      servers: text(patternsText(agent.servers), { placeholder: t("agents.all") }),
    };
    const save = async (event) => {
      event.preventDefault();
      const { name, ...data } = read(fields);
      await attempt(problem, async () => {
        await (existing === null ? api.createAgent({ name, ...data }) : api.changeAgent(existing, data));
        await list(name);
      });
    };
    const cancel = h("button", { type: "button", class: "small", onclick: () => list(existing ?? "") }, t("cancel"));
    const send = h("button", { type: "submit", class: "small primary" }, t("keys.save"));
    part.replaceChildren(
      h(
        "form",
        { class: "settings-page", onsubmit: save },
        Object.entries(fields).map(([name, control]) => field(name, control)),
        problem,
        h("div", { class: "line" }, send, cancel),
      ),
    );
    (existing === null ? fields.name : fields.description).focus();
  }
}

function field(name, control) {
  control.id = `preset-${name}`;
  const hint = { name: "agents.name.hint", tools: "agents.patterns", servers: "agents.patterns", system: "agents.system.hint" }[name];
  if (hint) control.setAttribute("aria-describedby", `${control.id}-hint`);
  return h(
    "div",
    { class: "field" },
    h("label", { for: control.id }, t(`agents.${name}`)),
    control,
    hint ? h("p", { class: "muted", id: `${control.id}-hint` }, t(hint)) : null,
  );
}

function text(value, more = {}) {
  const box = h("input", { type: "text", autocomplete: "off", spellcheck: "false", dir: "auto", ...more });
  box.value = value;
  return box;
}

function area(value) {
  const box = h("textarea", { rows: "6", dir: "auto" });
  box.value = value;
  return box;
}

// A value that is not among the options stays choosable.
function select(value, options) {
  const all = options.some(([v]) => v === value) ? options : [...options, [value, value]];
  const made = h("select", {}, all.map(([v, label]) => h("option", { value: v }, label)));
  made.value = value;
  return made;
}

function read(fields) {
  const { tools, servers, model, mode, ...texts } = fields;
  const plain = Object.entries(texts).map(([name, control]) => [name, control.value.trim()]);
  return {
    ...Object.fromEntries(plain),
    model: model.value || null,
    mode: mode.value || null,
    tools: patternsOf(tools.value),
    servers: patternsOf(servers.value),
  };
}

// As `searchloop agents` has it: nothing or `all` is all, `none` is none, else patterns with commas.
function patternsText(patterns) {
  if (patterns === null) return "";
  return patterns.length ? patterns.join(", ") : "none";
}

function patternsOf(text) {
  const names = text.split(",").map((name) => name.trim()).filter(Boolean);
  if (!names.length || (names.length === 1 && names[0] === "all")) return null;
  return names.length === 1 && names[0] === "none" ? [] : names;
}

function free(name, agents) {
  const taken = new Set(agents.map((agent) => agent.name));
  for (let n = 2; ; n++) if (!taken.has(`${name}-${n}`)) return `${name}-${n}`;
}
