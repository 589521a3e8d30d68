// Answers to one question side by side, as they come in. They stand in the place of the one answer.

import { h } from "../lib/dom.js";
import { t, titleOf } from "../locales/index.js";
import { turnView } from "./turn.js";

const MOST = 3; // columns; the newest are shown

/**
 * {update(host, turns), end}: `host` is the turn's element in the chat, `turns` are the versions of its question,
 * `end` is the button that closes it. `on` is what turn.js needs, keep(turn) goes on with one answer, closed()
 * hears of the end.
 */
export function compareView(on) {
  const columns = new Map(); // by the turn's id
  const grid = h("div.columns");
  const end = h("button.small", { onclick: () => close() }, t("compare.close"));
  const element = h("section.compare", { "aria-label": t("compare.title") }, grid, h("div.note-buttons", end));
  let host = null;

  function update(next, turns) {
    if (host !== next) {
      host?.classList.remove("compared");
      host = next;
      host.classList.add("compared");
      host.append(element);
    }
    const shown = turns.slice(-MOST);
    for (const [id, { node }] of columns) {
      if (shown.some(turn => turn.id === id)) continue;
      node.remove();
      columns.delete(id);
    }
    for (const turn of shown) {
      if (!columns.has(turn.id)) columns.set(turn.id, column(turn));
      columns.get(turn.id).update(turn);
    }
  }

  function column(first) {
    const view = turnView(first, on);
    const keep = h("button.small", t("compare.keep"));
    const node = h("div.column", h("header", h("h3", titleOf({ id: first.model ?? "" })), keep), view.element);
    grid.append(node);
    keep.addEventListener("click", () => {
      on.keep(first);
      close();
    });
    const update = turn => {
      node.querySelector("h3").textContent = titleOf({ id: turn.model ?? "" });
      keep.disabled = turn.running;
      view.update(turn);
    };
    return { node, update };
  }

  function close() {
    host?.classList.remove("compared");
    element.remove();
    on.closed();
  }

  return { update, end };
}
