// The settings of agents: named presets, listed, made, copied, changed and removed.

import * as api from "../lib/api.js";
import { h, iconButton } from "../lib/dom.js";
import { errorText } from "../lib/messages.js";
import { t } from "../locales/index.js";
import { aboutOf, setsText } from "./chat_setup.js";
import {
  attempt,
  button,
  choice,
  field,
  iconConfirmed,
  problemLine,
  savedField,
  sends,
  tag,
  textArea,
  textBox,
} from "./kit.js";

const MODES = ["ask", "plan", "agent"];
const SEARCHES = ["off", "auto", "native", "local"];
const EMPTY = {
  name: "",
  description: "",
  system: "",
  model: null,
  mode: null,
  search: "off",
  tools: null,
  servers: null,
};

/** The list of agents, and the form of one. */
export async function agentsPage(body, { facts }) {
  const part = h("div.settings-page");
  body.append(...(await ownWordsFields()), part);
  await list();

  /** Shows all; `from` is the agent whose row the focus goes back to. */
  async function list(from = null, problem = "") {
    const agents = await api.agents();
    const fresh = h("button.small.primary", { onclick: () => edit(EMPTY, null) }, t("agents.new"));
    part.replaceChildren(
      h("ul.cards", ...agents.map(agent => row(agent, agents))),
      h("p.problem", { role: "alert" }, problem),
      h("div", fresh),
    );
    if (from !== null) (part.querySelector(`[data-edit="${CSS.escape(from)}"]`) ?? fresh).focus();
  }

  function row(agent, agents) {
    const { name, builtin, changed } = agent;
    const origin = builtin ? "agents.builtin" : changed ? "agents.changed" : null;
    return h(
      "li.card",
      h(
        "div.head",
        h("h4", name),
        tag("none", t(`mode.${agent.mode ?? "ask"}`)),
        origin && h("span.muted", t(origin)),
        h(
          "span.acts",
          button(t("template.edit"), () => edit(agent, name), {
            "aria-label": t("agents.edit", { name }),
            "data-edit": name,
          }),
          button(t("copy"), () => edit({ ...agent, name: free(name, agents) }, null), {
            "aria-label": t("agents.copy", { name }),
          }),
          builtin ? null : goes(name, changed),
        ),
      ),
      h("p", { dir: "auto" }, aboutOf(agent)),
      h("p.muted", { dir: "auto" }, setsText(agent)),
    );
  }

  // Changes to a built-in agent go with a second press: they cannot be brought back.
  function goes(name, changed) {
    if (!changed) return iconButton("trash", t("agents.delete", { name }), () => remove(name));
    return iconConfirmed("again", t("agents.restore", { name }), t("agents.restore.sure"), () => remove(name));
  }

  async function remove(name) {
    const problem = await api.removeAgent(name).then(() => "", errorText);
    await list(name, problem);
  }

  /** The form of one; `existing` is its name at the server, null for a new one. */
  function edit(agent, existing) {
    const problem = problemLine();
    const models = facts().models.map(model => [model.id, model.id]);
    const fields = {
      name: textBox(agent.name, { disabled: existing !== null }),
      description: textBox(agent.description),
      system: textArea(agent.system, { rows: "6" }),
      model: choice([["", t("agents.any")], ...models])(agent.model ?? ""),
      mode: choice([["", t("agents.any")], ...MODES.map(m => [m, t(`mode.${m}`)])])(agent.mode ?? ""),
      search: choice(SEARCHES.map(s => [s, t(`via.${s}`)]))(agent.search),
      tools: textBox(patternsText(agent.tools), { placeholder: t("agents.all") }),
      servers: textBox(patternsText(agent.servers), { placeholder: t("agents.all") }),
    };
    const save = async () => {
      const { name, ...data } = read(fields);
      await attempt(problem, async () => {
        await (existing === null ? api.createAgent({ name, ...data }) : api.changeAgent(existing, data));
        await list(name);
      });
    };
    const cancel = button(t("cancel"), () => list(existing ?? ""));
    const send = sends(t("keys.save"));
    part.replaceChildren(
      h(
        "form.settings-page",
        { onsubmit: save },
        Object.entries(fields).map(([name, control]) => fieldOf(name, control)),
        problem,
        h("div.line", send, cancel),
      ),
    );
    (existing === null ? fields.name : fields.description).focus();
  }
}

function fieldOf(name, control) {
  control.id = `preset-${name}`;
  const hint = {
    name: "agents.name.hint",
    tools: "agents.patterns",
    servers: "agents.patterns",
    system: "agents.system.hint",
  }[name];
  if (hint) control.setAttribute("aria-describedby", `${control.id}-hint`);
  return field(t(`agents.${name}`), control, hint ? h("p.muted", { id: `${control.id}-hint` }, t(hint)) : null);
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
  const names = text
    .split(",")
    .map(name => name.trim())
    .filter(Boolean);
  if (!names.length || (names.length === 1 && names[0] === "all")) return null;
  return names.length === 1 && names[0] === "none" ? [] : names;
}

function free(name, agents) {
  const taken = new Set(agents.map(agent => agent.name));
  for (let n = 2; ; n++) if (!taken.has(`${name}-${n}`)) return `${name}-${n}`;
}

// What the person tells every chat: who they are, and how they want to be answered; as the server has them.
async function ownWordsFields() {
  const words = await api.ownWords();
  return ["about", "answer"].map(name => {
    const box = textArea(words[name], { rows: "3", maxlength: "20000" });
    return savedField(`words-${name}`, t(`words.${name}`), box, t(`words.${name}.hint`), text =>
      api.changeOwnWords({ [name]: text }),
    );
  });
}
