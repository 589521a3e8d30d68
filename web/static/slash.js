// Slash commands: what is typed at the start of an empty box instead of a question.

import { h } from "./dom.js";
import { t } from "./strings.js";

/**
 * The list above the box while a command is being typed. `on` holds change(changes), newChat(
 * temporary), settings(), pickModel(), exportAs(format). Returns {update(), key(event)}; `key` is
 * true when it took the event.
 */
export function slashList(box, list, on) {
  let at = 0;
  let fits = [];

  const all = [
    ["/search on", () => on.change({ search: "auto" })],
    ["/search off", () => on.change({ search: "off" })],
    ["/search native", () => on.change({ search: "native" })],
    ["/search local", () => on.change({ search: "local" })],
    ["/ask", () => on.change({ mode: "ask" })],
    ["/plan", () => on.change({ mode: "plan" })],
    ["/agent", () => on.change({ mode: "agent" })],
    ["/model", on.pickModel],
    ["/new", () => on.newChat(false)],
    ["/temporary", () => on.newChat(true)],
    ["/export", () => on.exportAs("md")],
    ["/settings", () => on.settings()],
  ];

  function update() {
    const typed = box.value;
    fits = /^\/[a-z ]*$/.test(typed) ? all.filter(([name]) => name.startsWith(typed.trimEnd())) : [];
    at = Math.min(at, Math.max(0, fits.length - 1));
    list.hidden = fits.length === 0;
    list.replaceChildren(...fits.map(option));
    if (list.hidden) box.removeAttribute("aria-activedescendant");
    else box.setAttribute("aria-activedescendant", `slash-${at}`);
  }

  function option([name], i) {
    const words = t(`slash.${name.slice(1).replace(" ", ".")}`);
    return h(
      "li",
      { role: "option", id: `slash-${i}`, "aria-selected": String(i === at), onclick: () => run(i) },
      h("code", {}, name),
      h("span", { class: "hint" }, words),
    );
  }

  function run(i) {
    const [, act] = fits[i];
    box.value = "";
    box.dispatchEvent(new Event("input"));
    act();
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
