// The settings of tools: MCP servers, each of their tools, and what runs without asking.

import * as api from "../lib/api.js";
import { h, icon, iconButton } from "../lib/dom.js";
import { errorText } from "../lib/messages.js";
import { has, number, t } from "../locales/index.js";

/** MCP servers, those of the open chat's folder among them, and the rules for approvals. */
export async function toolsPage(body, { facts, changed: tell }) {
  const folder = facts().session.workspace ?? null;
  const list = h("div", { class: "rows" });
  const problem = h("p", { class: "problem", role: "alert" });
  const rules = h("section", {});
  let drawn = false;
  body.append(h("p", { class: "muted" }, t("tools.lead")), list, problem, addForm(), rules);
  drawServers(await api.mcp(folder));
  drawRules(await api.policy());

  /** Does it, then shows what there is; what went wrong is said. */
  async function act(work) {
    problem.textContent = "";
    try {
      await work();
    } catch (failure) {
      problem.textContent = errorText(failure);
    }
    drawServers(await api.mcp(folder));
  }

  // What is open stays open, and the focus stays where it is: switching goes tool by tool.
  function drawServers({ servers, problems, untrusted }) {
    const open = new Set([...list.querySelectorAll(".server[open]")].map((part) => part.dataset.name));
    const known = new Set([...list.querySelectorAll(".server")].map((part) => part.dataset.name));
    const at = list.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    list.replaceChildren(...servers.map(serverPart));
    for (const part of list.querySelectorAll(".server")) {
      part.open = open.has(part.dataset.name) || (drawn && !known.has(part.dataset.name));
    }
    if (at) list.querySelector(`[data-key="${CSS.escape(at)}"]`)?.focus();
    drawn = true;
    if (untrusted) list.prepend(untrustedPart(untrusted));
    else if (!servers.length) list.append(h("p", { class: "muted" }, t("tools.none")));
    for (const told of problems) list.append(h("p", { class: "problem" }, errorText(told)));
  }

  // Somebody's repository may name programs to run, so what would run is shown first, and trusted is
  // the very content that was shown: the server refuses if the file is another one by now.
  function untrustedPart({ file, hash, commands }) {
    const what = commands.map(({ name, command }) =>
      h("li", {}, h("strong", { dir: "auto" }, name), " ", h("code", { dir: "ltr" }, command.join(" "))),
    );
    const trust = () => act(() => api.trustMcp(folder, hash));
    return h(
      "div",
      { class: "note warn", role: "region", "aria-label": t("tools.untrusted") },
      icon("warn"),
      h(
        "div",
        {},
        h("p", {}, t("tools.untrusted"), " ", h("code", { dir: "ltr" }, file)),
        h("ul", {}, what.length ? what : h("li", {}, t("tools.nothing"))),
        h("div", { class: "note-buttons" }, h("button", { type: "button", class: "small", onclick: trust }, t("tools.trust"))),
      ),
    );
  }

  function serverPart(server) {
    const project = server.workspace !== null; // its file belongs to the folder, so it is not edited here
    const { name } = server;
    const on = flag(t("tools.enabled", { name }), !server.disabled, `${name}/on`, (value) =>
      act(() => api.changeMcp(name, { disabled: !value })),
    );
    const own = flag(t("tools.private"), server.private, `${name}/private`, (value) =>
      act(() => api.changeMcp(name, { private: value })),
    );
    const ask = h("button", { type: "button", class: "small", "data-key": `${name}/test` }, t("engine.test"));
    ask.addEventListener("click", () => {
      ask.setAttribute("aria-disabled", "true"); // not disabled: that would take the focus away
      ask.textContent = t("engine.testing");
      act(() => api.testMcp(name, folder));
    }, { once: true });
    const state = server.error ? errorText(server.error) : t(`tools.state.${server.state}`);
    const cost = server.tools.length ? t("tools.cost", { n: server.tools.length, tokens: number(server.tokens) }) : "";
    return h(
      "details",
      { class: "server", "data-name": name },
      h("summary", {}, h("strong", { dir: "auto" }, server.name), " ", h("span", { class: "muted" }, [state, cost].filter(Boolean).join(" · "))),
      h("p", { class: "muted" }, h("code", { dir: "ltr" }, server.command.join(" "))),
      project ? h("p", { class: "muted" }, t("tools.project"), " ", h("code", { dir: "ltr" }, server.file)) : null,
      h(
        "div",
        { class: "line" },
        project ? null : [on, own],
        h("div", { class: "acts" }, ask, project ? null : iconButton("trash", t("tools.remove", { name }), () => act(() => api.removeMcp(name)), { class: "quiet" })),
      ),
      h("ul", { class: "rows" }, server.tools.map((tool) => toolRow(server, tool))),
    );
  }

  function toolRow(server, tool) {
    const effect = tool.effect ?? server.effect;
    const key = `effect.${effect}`;
    const words = [has(key) ? t(key) : effect, t("tools.tokens", { n: number(tool.tokens) }), tool.unusable].filter(Boolean);
    const change = (value) => act(() => api.changeMcp(server.name, { tools: { [tool.name]: { enabled: value } } }));
    return h(
      "li",
      { class: "row" },
      h("div", { class: "grow" }, h("strong", {}, tool.name), h("p", { class: "muted", dir: "auto" }, tool.description ?? ""), h("p", { class: "muted" }, words.join(" · "))),
      tool.suspended ? changed(server, tool) : server.workspace !== null ? null : bareFlag(t("tools.use", { name: tool.name }), tool.enabled, `${server.name}/${tool.name}`, change),
    );
  }

  // A definition that changed is not offered to any model until somebody has looked at it.
  function changed(server, tool) {
    const approve = () => act(() => api.approveMcpTool(server.name, tool.name, tool.definition, folder));
    return h(
      "div",
      {},
      h("p", { class: "problem" }, t("tools.changed")),
      h("pre", { class: "plain-text", tabindex: "0" }, String(tool.suspended.diff ?? "")),
      h("button", { type: "button", class: "small", onclick: approve }, t("tools.approve")),
    );
  }

  function addForm() {
    const box = h("textarea", { id: "mcp-config", rows: "4", spellcheck: "false", placeholder: '{"mcpServers": {"name": {"command": "…", "args": []}}}' });
    const plan = h("div", {});
    const look = async (event) => {
      event.preventDefault();
      plan.replaceChildren();
      problem.textContent = "";
      try {
        const { servers } = await api.addMcp(box.value, false);
        plan.replaceChildren(...planned(servers, box, plan));
      } catch (failure) {
        problem.textContent = errorText(failure);
      }
    };
    return h(
      "form",
      { class: "field", onsubmit: look },
      h("label", { for: box.id }, t("tools.add")),
      box,
      h("div", {}, h("button", { type: "submit", class: "small" }, t("tools.look"))),
      plan,
    );
  }

  // Adding a server runs a program, so the exact commands are shown before.
  function planned(servers, box, plan) {
    const keep = async () => {
      await act(async () => {
        await api.addMcp(box.value, true);
        box.value = "";
        plan.replaceChildren();
      });
    };
    return [
      h("p", {}, t("tools.willrun")),
      h("ul", {}, servers.map((s) => h("li", {}, h("code", { dir: "ltr" }, s.command.join(" "))))),
      h("button", { type: "button", class: "small primary", onclick: keep }, t("tools.keep")),
    ];
  }

  function drawRules(policy) {
    const change = async (changes) => {
      problem.textContent = "";
      try {
        drawRules(await api.changePolicy({ ...policy, ...changes }));
        tell();
      } catch (failure) {
        problem.textContent = errorText(failure);
        drawRules(policy);
      }
    };
    const parts = [
      h("h4", {}, t("rules.title")),
      flag(t("rules.review"), policy.review_queries, "review", (value) => change({ review_queries: value })),
      h("ul", { class: "rows" }, policy.rules.map((rule, i) => ruleRow(rule, () => change({ rules: policy.rules.toSpliced(i, 1) })))),
      policy.rules.length ? null : h("p", { class: "muted" }, t("rules.none")),
    ];
    rules.replaceChildren(...parts.filter(Boolean));
  }

  function ruleRow(rule, remove) {
    const { action, decision, ...rest } = rule;
    const words = Object.entries(rest).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`);
    return h(
      "li",
      { class: "row" },
      h("div", { class: "grow" }, h("strong", {}, String(action ?? decision ?? "")), h("p", { class: "muted", dir: "auto" }, words.join(" · "))),
      iconButton("trash", t("rules.remove"), remove, { class: "quiet" }),
    );
  }
}

// Beside the name that it switches, which its own words would only repeat.
function bareFlag(label, value, key, change) {
  const whole = flag("", value, key, change);
  whole.title = label;
  whole.querySelector("input").setAttribute("aria-label", label);
  return whole;
}

function flag(label, value, key, change) {
  const box = h("input", { type: "checkbox", "data-key": key });
  box.checked = value;
  box.addEventListener("change", () => change(box.checked));
  return h("label", { class: "flag" }, box, label);
}
