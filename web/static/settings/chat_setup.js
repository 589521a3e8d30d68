// What a chat works as and with: the lists behind the two buttons in its head.

import * as api from "../lib/api.js";
import { h } from "../lib/dom.js";
import { folderTree } from "../lib/folders.js";
import { openAt, openMenu } from "../lib/menu.js";
import { errorText } from "../lib/messages.js";
import { clauses, named, t, worded } from "../locales/index.js";
import { sends, styled, textArea, textBox } from "./kit.js";

/**
 * The agents below `anchor`, each with what it is for and what it sets. `on` holds change(changes),
 * complain(failure) and settings(page).
 */
export async function openAgents(anchor, session, on) {
  let agents;
  try {
    agents = await api.agents();
  } catch (failure) {
    on.complain(failure);
    return;
  }
  const gone = session.agent && !agents.some(agent => agent.name === session.agent);
  const entry = agent => ({
    label: agent.name,
    hint: [aboutOf(agent), setsText(agent)].filter(Boolean).join(" · "),
    checked: agent.name === session.agent,
    run: () => on.change({ agent: agent.name }),
  });
  openMenu(
    anchor,
    t("agent.label"),
    [
      { label: t("agent.none"), checked: !session.agent, run: () => on.change({ agent: null }) },
      gone ? { label: session.agent, hint: t("agent.gone"), checked: true, run: () => {} } : undefined,
      ...agents.map(entry),
      null,
      { label: t("agent.edit"), run: () => on.settings("agents") },
    ],
    "tall",
  );
}

/** What an agent is for. Those that came with the program say it in the language of the page. */
export function aboutOf({ name, description, builtin }) {
  return builtin ? worded(`about.${name}`, description) : description;
}

/** What an agent sets when it is taken; everything can be changed afterwards. */
export function setsText({ model, mode, search, tools, servers }) {
  const parts = [
    mode ? t("agent.mode", { mode: t(`mode.${mode}`) }) : null,
    model,
    t("agent.search", { search: t(`via.${search}`) }),
  ];
  if (tools) parts.push(tools.length ? t("agent.tools", { names: named(tools) }) : t("agent.notools"));
  if (servers) parts.push(servers.length ? t("agent.servers", { names: named(servers) }) : t("agent.noservers"));
  return t("agent.sets", { what: clauses(parts) });
}

/** A form below `anchor` for the chat's folder; what the server says against one stands in it. */
export function openWorkspace(anchor, session, on) {
  const box = textBox(session.workspace ?? "", {
    id: "workspace-path",
    dir: "ltr",
    placeholder: t("workspace.example"),
  });
  const tree = h("div.picker-place");
  const show = part => tree.replaceChildren(part);
  const browse = () => folderTree(path => (box.value = path)).then(show, failure => show(errorText(failure)));
  const more = [h("button.small", { onclick: browse }, t("library.choose"))];
  if (session.workspace) more.push(h("button.small", { onclick: () => use(null) }, t("workspace.remove")));
  const hint = h("p.hint", t("workspace.lead"));
  const words = { label: t("workspace.label"), path: t("workspace.path"), use: t("workspace.use") };
  const use = formAt(anchor, words, { box, hint, more }, (workspace, refused) => on.change({ workspace }, refused));
  hint.after(tree);
  styled();
}

/** What can be done with the whole chat: a summary of its older turns, and the words of that one. */
export function openChat(anchor, turns, on) {
  const summary = turns.findLast(turn => turn.summary)?.summary;
  const edit = { label: t("summary.edit"), hint: t("summary.edit.hint"), run: () => openSummary(anchor, summary, on) };
  const make = { label: t("compact"), hint: t("compact.hint"), run: () => on.compact(turns) };
  const share = { label: t("share.page"), hint: t("share.page.hint"), run: () => on.exportAs("html") };
  const options = {
    label: t("options.open"),
    hint: on.taken.length ? t("options.hint") : t("options.none"),
    run: () => on.taken.length && setTimeout(() => openOptions(anchor, on)),
  };
  const keep = { label: t("chat.keep"), hint: t("chat.keep.hint"), run: () => setTimeout(on.row) };
  openMenu(
    anchor,
    t("chat.menu"),
    turns.length ? [share, make, keep, options, ...(summary ? [edit] : [])] : [options],
    "tall",
  );
}

// The options that the chat's model takes, each empty where the model's own holds.
function openOptions(anchor, { session, taken, change }) {
  const given = session.settings.options ?? {};
  const now = name => (name === "stop" ? (given.stop ?? []).join("\n") : (given[name] ?? ""));
  const boxes = taken.map(name =>
    textBox(now(name), { id: `option-${name}`, dir: "ltr", inputmode: name === "stop" ? null : "decimal" }),
  );
  const rest = boxes.slice(1).flatMap((box, i) => [h("label", { for: box.id }, t(`option.${taken[i + 1]}`)), box]);
  const hint = h("div", rest, h("p.hint", t("options.lead")));
  const clear = h("button.small", { onclick: () => use(null) }, t("options.reset"));
  const value = (name, text) => (name === "stop" ? [text] : Number.isNaN(Number(text)) ? text : Number(text));
  const all = () => {
    const pairs = taken.map((name, i) => [name, boxes[i].value.trim()]).filter(([, text]) => text);
    return pairs.length ? Object.fromEntries(pairs.map(([name, text]) => [name, value(name, text)])) : null;
  };
  const use = formAt(
    anchor,
    { label: t("options.open"), path: t(`option.${taken[0]}`), use: t("summary.use") },
    { box: boxes[0], hint, more: clear, value: all },
    (options, refused) => change({ options }, refused),
  );
}

function openSummary(anchor, summary, on) {
  const box = textArea(summary, { id: "summary-text", rows: "10" });
  const hint = h("p.hint", t("summary.edit.hint"));
  const words = { label: t("summary.edit"), path: t("summary.text"), use: t("summary.use") };
  formAt(anchor, words, { box, hint }, (text, refused) => on.editSummary(text ?? "", refused));
}

/**
 * A form below `anchor` with one box; `send(value, refused)` has `refused(failure)` told what the server
 * says against it. Returns what sends another value.
 */
export function formAt(anchor, words, { box, hint = "", more = "", value = () => box.value.trim() || null }, send) {
  const problem = h("p.problem", { id: `${box.id}-problem`, role: "alert" });
  const form = h(
    "form.menu.form",
    { popover: "auto", "aria-label": words.label },
    h("label", { for: box.id }, words.path),
    box,
    hint,
    problem,
    h("div.note-buttons", sends(words.use), more),
  );

  if (hint) hint.id = `${box.id}-hint`;
  for (const each of form.querySelectorAll("input, textarea"))
    each.setAttribute("aria-describedby", hint ? `${hint.id} ${problem.id}` : problem.id);

  async function use(value) {
    let refused = null;
    await send(value, failure => (refused = failure));
    problem.textContent = errorText(refused);
    if (refused) box.focus();
    else form.hidePopover();
  }

  form.addEventListener("submit", () => use(value()));
  openAt(anchor, form);
  box.focus();
  return use;
}
