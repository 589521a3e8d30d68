// Slash commands: what is typed at the start of an empty box instead of a question.

import * as api from "../lib/api.js";
import { h } from "../lib/dom.js";
import { t } from "../locales/index.js";

/**
 * The list above the box while a command is being typed. `on` holds change(changes), newChat(
 * temporary), settings(), pickModel(), pickWorkspace(), exportAs(format), runPlan(), undo(), compact(),
 * complain(failure). Returns {update(), key(event)}; `key` is true when it took the event.
 */
export function slashList(box, list, on) {
  let at = 0;
  let fits = [];
  let agents = null; // asked for when the first name of one is typed

  const all = [
    ["/search on", () => on.change({ search: "auto" })],
    ["/search off", () => on.change({ search: "off" })],
    ["/search native", () => on.change({ search: "native" })],
    ["/search local", () => on.change({ search: "local" })],
    ["/search offline", () => on.change({ search: "offline" })],
    ["/ask", () => on.change({ mode: "ask" })],
    ["/plan", () => on.change({ mode: "plan" })],
    ["/agent", () => on.change({ mode: "agent" })],
    ["/agent ", null, t("slash.agent.name")],
    ["/workspace ", null, t("slash.workspace.path")],
    ["/run", () => on.runPlan()],
    ["/undo", () => on.undo()],
    ["/compact", () => on.compact()],
    ["/model", on.pickModel],
    ["/new", () => on.newChat(false)],
    ["/temporary", () => on.newChat(true)],
    ["/export", () => on.exportAs("md")],
    ["/settings", () => on.settings()],
  ];

  function update() {
    fits = fitting(box.value);
    at = Math.min(at, Math.max(0, fits.length - 1));
    list.hidden = fits.length === 0;
    list.replaceChildren(...fits.map(option));
    if (list.hidden) box.removeAttribute("aria-activedescendant");
    else box.setAttribute("aria-activedescendant", `slash-${at}`);
  }

  function fitting(typed) {
    const [, command, given] = /^\/(agent|workspace) (.*)$/.exec(typed) ?? [];
    if (command === "workspace")
      return [
        [
          typed,
          () => (given.trim() ? on.change({ workspace: given.trim() }) : on.pickWorkspace()),
          t("slash.workspace.path"),
        ],
      ];
    if (command === "agent") return named(typed, given.trim());
    if (!/^\/[a-z ]*$/.test(typed)) return [];
    return all.filter(([name]) => name.startsWith(typed.trimEnd()));
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
      .map(({ name, description }) => [`/agent ${name}`, take(name), description]);
    if (!given) return [...known, ["/agent none", take(null), t("agent.none")]];
    return known.length ? known : [[typed, take(given === "none" ? null : given), t("slash.agent.name")]];
  }

  function option([name, , words], i) {
    const more = { "/agent ": t("slash.name"), "/workspace ": t("slash.path") }[name] ?? "";
    return h(
      "li",
      { role: "option", id: `slash-${i}`, "aria-selected": String(i === at), onclick: () => run(i) },
      h("code", {}, name, more),
      h("span", { class: "hint", dir: "auto" }, words ?? t(`slash.${name.slice(1).replace(" ", ".")}`)),
    );
  }

  function run(i) {
    const [name, act] = fits[i];
    box.value = act ? "" : name;
    box.dispatchEvent(new Event("input"));
    if (act) act();
    else box.focus();
  }

  function key(event) {
    if (list.hidden) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) at = (at + step + fits.length) % fits.length;
    else if (event.key === "Enter") run(at);
    else if (event.key === "Tab") box.value = `${fits[at][0]}`;
    else if (event.key === "Escape") box.value = "";
    else return false;
    event.preventDefault();
    event.stopPropagation();
    update();
    return true;
  }

  return { update, key };
}
