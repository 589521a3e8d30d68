// The room of tools: MCP servers, each of their tools, and what runs without asking.

import * as api from "../lib/api.js";
import { h, icon, iconButton, keepFocus } from "../lib/dom.js";
import { errorText } from "../lib/messages.js";
import { has, number, t } from "../locales/index.js";
import { attempt, button, card, confirmed, problemLine, row, tag, toggle } from "./kit.js";
import { serverForm } from "./mcp_form.js";

const LOOK = 1000; // milliseconds between looks at servers that are starting

/** MCP servers, those of the open chat's folder among them, and the rules for approvals. */
export async function toolsPage(body, { facts, changed: tell }) {
  const folder = facts().session.workspace ?? null;
  const list = h("div.rows");
  const problem = problemLine();
  const rules = h("div.settings-page");
  let drawn = "";
  let timer = 0;
  body.append(
    card({ id: "servers", title: t("tools.servers") }, list, problem),
    card(
      { id: "add-server", title: t("tools.add") },
      serverForm(async (config, names) => {
        await api.addMcp(config, true);
        await show();
        names.forEach(start);
      }),
    ),
    card({ id: "rules", title: t("rules.title") }, rules),
  );
  await show();
  drawRules(await api.policy());
  return () => clearTimeout(timer);

  // A first start may load a whole program: what happens meanwhile is shown.
  async function show() {
    clearTimeout(timer);
    const found = await api.mcp(folder);
    drawServers(found);
    if (found.servers.some(server => server.state === "connecting"))
      timer = setTimeout(() => show().catch(() => {}), LOOK);
  }

  function start(name) {
    act(() => api.testMcp(name, folder));
    setTimeout(() => show().catch(() => {}), LOOK / 4);
  }

  /** Does it, then shows what there is; what went wrong is said. */
  async function act(work) {
    await attempt(problem, work);
    await show();
  }

  // What is open stays open, and the focus stays where it is: switching goes tool by tool.
  function drawServers(found) {
    const { servers, problems, untrusted } = found;
    if (drawn === JSON.stringify(found)) return; // a question that was asked meanwhile stays
    if (drawn && list.querySelector("form")) return; // and what is being edited
    const open = new Set([...list.querySelectorAll(".server[open]")].map(part => part.dataset.name));
    const known = new Set([...list.querySelectorAll(".server")].map(part => part.dataset.name));
    keepFocus(list, () => {
      list.replaceChildren(...servers.map(serverPart));
      for (const part of list.querySelectorAll(".server")) {
        part.open = open.has(part.dataset.name) || (drawn !== "" && !known.has(part.dataset.name));
      }
    });
    drawn = JSON.stringify(found);
    if (untrusted) list.prepend(untrustedPart(untrusted));
    else if (!servers.length) list.append(h("p.muted", t("tools.none")));
    for (const told of problems) list.append(h("p.problem", errorText(told)));
  }

  // Somebody's repository may name programs to run, so what would run is shown first, and trusted is
  // the very content that was shown: the server refuses if the file is another one by now.
  function untrustedPart({ file, hash, commands }) {
    const what = commands.map(({ name, command }) =>
      h("li", h("strong", { dir: "auto" }, name), " ", h("code", { dir: "ltr" }, command.join(" "))),
    );
    const trust = () => act(() => api.trustMcp(folder, hash));
    return h(
      "div.note.warn",
      { role: "region", "aria-label": t("tools.untrusted") },
      icon("warn"),
      h(
        "div",
        h("p", t("tools.untrusted"), " ", h("code", { dir: "ltr" }, file)),
        h("ul", what.length ? what : h("li", t("tools.nothing"))),
        h("div.note-buttons", h("button.small", { onclick: trust }, t("tools.trust"))),
      ),
    );
  }

  function serverPart(server) {
    const project = server.workspace !== null; // its file belongs to the folder, so it is not edited here
    const { name } = server;
    const on = flag(t("tools.enabled", { name }), !server.disabled, `${name}/on`, value =>
      act(() => api.changeMcp(name, { disabled: !value })),
    );
    const own = flag(t("tools.private"), server.private, `${name}/private`, value =>
      act(() => api.changeMcp(name, { private: value })),
    );
    const ask = h("button.small", { "data-focus": `${name}/test` }, t("engine.test"));
    ask.addEventListener(
      "click",
      () => {
        ask.setAttribute("aria-disabled", "true"); // not disabled: that would take the focus away
        start(name);
      },
      { once: true },
    );
    const form = h("div");
    const edit = button(
      t("tools.edit"),
      () =>
        act(async () =>
          form.replaceChildren(
            form.firstChild
              ? ""
              : serverForm(
                  async config => {
                    await api.addMcp(config, true, true);
                    drawn = "";
                    await show();
                    start(name);
                  },
                  await api.mcpEntry(name),
                ),
          ),
        ),
      { "data-focus": `${name}/edit` },
    );
    const cost = server.tools.length ? t("tools.cost", { n: server.tools.length, tokens: number(server.tokens) }) : "";
    return h(
      "details.server",
      { "data-name": name, id: `server-${name}` },
      h("summary", h("strong", { dir: "auto" }, server.name), " ", stateOf(server), " ", h("span.muted", cost)),
      server.error && h("p.problem", errorText(server.error)),
      h("p.muted", h("code", { dir: "ltr" }, server.command.join(" "))),
      project && h("p.muted", t("tools.project"), " ", h("code", { dir: "ltr" }, server.file)),
      h(
        "div.line",
        project ? null : [on, own],
        h(
          "div.acts",
          ask,
          project ? null : edit,
          project
            ? null
            : confirmed(t("tools.remove", { name }), t("tools.sure"), () => act(() => api.removeMcp(name))),
        ),
      ),
      form,
      h("ul.rows", ...server.tools.map(tool => toolRow(server, tool))),
    );
  }

  function stateOf({ state }) {
    const kinds = { ready: "ok", failed: "bad", connecting: "busy" };
    return tag(kinds[state] ?? "none", t(`tools.state.${state}`));
  }

  function toolRow(server, tool) {
    const effect = tool.effect ?? server.effect;
    const key = `effect.${effect}`;
    const words = [has(key) ? t(key) : effect, t("tools.tokens", { n: number(tool.tokens) }), tool.unusable].filter(
      Boolean,
    );
    const change = value => act(() => api.changeMcp(server.name, { tools: { [tool.name]: { enabled: value } } }));
    const use = () =>
      bareFlag(t("tools.use", { name: tool.name }), tool.enabled, `${server.name}/${tool.name}`, change);
    const beside = tool.suspended ? changed(server, tool) : server.workspace === null && use();
    return row(tool.name, tool.description, beside, h("p.muted", words.join(" · ")));
  }

  // A definition that changed is not offered to any model until somebody has looked at it.
  function changed(server, tool) {
    const approve = () => act(() => api.approveMcpTool(server.name, tool.name, tool.definition, folder));
    return h(
      "div",
      h("p.problem", t("tools.changed")),
      h("pre.plain-text", { tabindex: "0" }, String(tool.suspended.diff ?? "")),
      h("button.small", { onclick: approve }, t("tools.approve")),
    );
  }

  function drawRules(policy) {
    const change = async changes => {
      const kept = await attempt(problem, async () => drawRules(await api.changePolicy({ ...policy, ...changes })));
      if (kept) tell();
      else drawRules(policy);
    };
    const parts = [
      flag(t("rules.review"), policy.review_queries, "review", value => change({ review_queries: value })),
      h(
        "ul.rows",
        policy.rules.map((rule, i) => ruleRow(rule, () => change({ rules: policy.rules.toSpliced(i, 1) }))),
      ),
      policy.rules.length ? null : h("p.muted", t("rules.none")),
    ];
    rules.replaceChildren(...parts.filter(Boolean));
  }

  function ruleRow(rule, remove) {
    const { action, decision, ...rest } = rule;
    const words = Object.entries(rest).map(
      ([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`,
    );
    return row(String(action ?? decision ?? ""), words.join(" · "), iconButton("trash", t("rules.remove"), remove));
  }
}

// Beside the name that it switches, which its own words would only repeat.
function bareFlag(label, value, key, change) {
  const whole = flag("", value, key, change);
  whole.title = label;
  whole.querySelector("input").setAttribute("aria-label", label);
  return whole;
}

const flag = (label, value, key, change) => toggle(label, value, change, { "data-focus": key });
