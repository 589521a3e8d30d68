// The folders of the server's machine as a tree: each is read when it is first opened.

import { t } from "../locales/index.js";
import * as api from "./api.js";
import { h, icon } from "./dom.js";
import { errorText } from "./messages.js";

/**
 * The tree, open down to the home folder; `pick(path)` is told where the focus is. The arrow keys walk it: up and
 * down, into a folder and out of it.
 */
export async function folderTree(pick) {
  const way = []; // from the top down to the home folder, as far as the server shows it
  for (let path = ""; path !== null; path = way[0].parent) {
    const found = await api.folders(path).catch(failure => way.length || Promise.reject(failure));
    if (!found.path) break;
    way.unshift(found);
  }

  function branch(name, path) {
    const list = h("ul");
    const summary = h("summary", { dir: "auto", onfocus: () => pick(path) }, icon("folder"), " ", name);
    const element = h("details", { ontoggle: open }, summary, list);
    element.open = way.some(each => each.path === path);

    async function open() {
      if (!element.open || list.querySelector("details")) return;
      try {
        const { folders, more } = way.find(each => each.path === path) ?? (await api.folders(path));
        const rows = folders.map(each => h("li", branch(each.name, each.path)));
        if (more || !rows.length) rows.push(h("li.muted", t(more ? "library.many" : "library.empty")));
        list.replaceChildren(...rows);
      } catch (failure) {
        list.replaceChildren(h("li.problem", errorText(failure)));
      }
    }

    return element;
  }

  function walk(event) {
    const seen = [...element.querySelectorAll("summary")].filter(each => each.checkVisibility());
    const now = seen.indexOf(document.activeElement);
    const { parentElement: folder } = document.activeElement;
    const inward = event.key === (document.dir === "rtl" ? "ArrowLeft" : "ArrowRight");
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key] ?? 0;
    if (now < 0 || !event.key.startsWith("Arrow")) return;
    event.preventDefault();
    if (step) seen[now + step]?.focus();
    else if (inward ? !folder.open : folder.open) folder.open = inward;
    else if (inward) seen[now + 1]?.focus();
    else folder.parentElement.closest("details")?.firstChild.focus();
  }

  const about = { role: "group", "aria-label": t("library.choose"), onkeydown: walk };
  const element = h("div.folders", about, branch(way[0].path, way[0].path));
  return element;
}
