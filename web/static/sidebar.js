// The list of projects, and of chats: by date, searchable, renamed, archived and deleted in place.

import { h, icon, iconButton, isComposing, keepFocus, MENU, plainly } from "./lib/dom.js";
import { t } from "./locales/index.js";

const NARROW = "(max-width: 900px)";

/**
 * Draws into `nav`. `on` holds open(id, {turn}), change(id, changes), older(), menu(button, sessions),
 * pick(picked), archive(shown), only(tag).
 * Returns {update({sessions, current, query, hidden, more, archive, archived, picked}, running), rename(session)}.
 * `running`: whether the open chat is being answered; its own events tell that before the list does.
 */
export function sessionList(nav, on) {
  let renaming = null;
  let drawn = "";
  let latest = null;

  function update(state, running) {
    latest = [state, running];
    if (renaming) return; // what is being typed is not pulled away
    const all = state.sessions
      .filter(s => !state.hidden.has(s.id))
      .map(s => (s.id === state.current ? { ...s, running } : s));
    const tags = [...new Set(all.flatMap(tagsOf))].sort((a, b) => a.localeCompare(b));
    const tag = tags.includes(state.tag) ? state.tag : null;
    const rows = tag ? all.filter(s => tagsOf(s).includes(tag)) : all;
    const key = JSON.stringify([
      { ...state, hidden: 0, projects: 0, sessions: all },
      state.picked && [...state.picked],
    ]);
    if (key === drawn) return;
    drawn = key;
    const shown = state.query ? [["found", rows]] : state.archived ? [["archived", rows]] : groups(rows);
    const parts = shown.filter(([, list]) => list.length).flatMap(([label, list]) => group(label, list, state));
    if (!rows.length) parts.push(emptyLine(state));
    if (tags.length) parts.unshift(tagBar(tags, tag));
    if (state.picked) parts.unshift(pickBar(rows, state.picked));
    if (state.more) parts.push(h("button.quiet", { "data-focus": "older", onclick: older }, t("sidebar.older")));
    if (!state.query && (state.archived || state.archive))
      parts.push(
        h(
          "button.quiet",
          { "data-focus": "archive", onclick: () => on.archive(!state.archived) },
          state.archived ? t("archive.leave") : t("archive.show", { n: state.archive }),
        ),
      );
    keepFocus(nav, () => nav.replaceChildren(...parts));
  }

  function tagBar(tags, now) {
    const one = tag => {
      const props = { "aria-pressed": String(tag === now), "data-focus": `tag-${tag}`, dir: "auto" };
      return h("button.tag", { ...props, onclick: () => on.only(tag === now ? null : tag) }, tag);
    };
    return h("div.line", { role: "group", "aria-label": t("tags.filter") }, tags.map(one));
  }

  // What is done with the chats that are ticked.
  function pickBar(rows, picked) {
    const chosen = rows.filter(s => picked.has(s.id));
    return h(
      "div.pick-bar",
      { role: "group", "aria-label": t("archive.several") },
      h("span", { role: "status" }, t("pick.count", { n: chosen.length })),
      h(
        "button.small",
        { ...MENU, disabled: !chosen.length, onclick: e => on.menu(e.currentTarget, chosen) },
        t("pick.act"),
      ),
      h("button.small", { onclick: () => on.pick(null) }, t("pick.end")),
    );
  }

  function tick(session, picked) {
    const flip = () => {
      const next = new Set(picked);
      if (!next.delete(session.id)) next.add(session.id);
      on.pick(next);
    };
    return h("input", {
      type: "checkbox",
      checked: picked.has(session.id),
      "data-focus": `tick-${session.id}`,
      "aria-label": t("pick.one", { title: session.title || t("untitled") }),
      onchange: flip,
    });
  }

  // The focus goes to the first of those that came.
  async function older() {
    const last = nav.querySelectorAll(".session").length;
    await on.older();
    nav.querySelectorAll(".session")[last]?.querySelector("a").focus();
  }

  function group(label, list, state) {
    const id = `group-${label}`;
    return [
      h("h2", { id }, t(`sidebar.${label}`)),
      h("ul", { "aria-labelledby": id }, ...list.map(s => row(s, state.current === s.id, state.picked))),
    ];
  }

  function row(session, current, picked) {
    const title = session.title || t("untitled");
    const about = { "aria-current": current ? "page" : null, "data-focus": `open-${session.id}`, dir: "auto", title };
    const link = h(
      "a",
      { ...about, href: `#/s/${session.id}`, onclick: plainly(() => on.open(session.id)) },
      session.running && h("span.dot", { role: "img", "aria-label": t("sidebar.running") }),
      title,
    );
    if (picked) return h("li.session", { "data-id": session.id }, tick(session, picked), link);
    return h(
      "li.session",
      { "data-id": session.id },
      link,
      session.settings?.archived && latest[0].query && h("span.badge", t("archive.badge")),
      iconButton("more", t("row.more", { title }), e => on.menu(e.currentTarget, [session]), {
        ...MENU,
        "data-focus": `more-${session.id}`,
      }),
      session.found?.some(place => place.turn) &&
        h(
          "ul.places",
          session.found.filter(p => p.turn).map(p => place(session, p)),
        ),
    );
  }

  // A place in a chat that holds the words, and leads to it.
  function place(session, { turn, part, snippet, marks }) {
    const onclick = plainly(() => on.open(session.id, { turn }));
    const props = { href: `#/s/${session.id}/${turn}`, dir: "auto", onclick };
    return h("li", h("a", props, h("span.vh", `${t(`sidebar.in.${part}`)}: `), marked(snippet, marks)));
  }

  function rename(session) {
    const line = nav.querySelector(`[data-id="${CSS.escape(session.id)}"]`);
    const input = h("input", { type: "text", "aria-label": t("sidebar.newname"), maxlength: "200", dir: "auto" });
    input.value = session.title;
    renaming = session.id;
    line.replaceChildren(input);
    input.select();
    input.focus();
    const end = save => {
      if (renaming !== session.id) return;
      renaming = null;
      drawn = "";
      const title = input.value.trim();
      update(...latest);
      nav.querySelector(`[data-focus="open-${CSS.escape(session.id)}"]`)?.focus();
      if (save && title && title !== session.title) on.change(session.id, { title });
    };
    input.addEventListener("blur", () => end(true));
    input.addEventListener("keydown", e => {
      if (isComposing(e) || !["Enter", "Escape"].includes(e.key)) return;
      e.preventDefault();
      e.stopPropagation();
      end(e.key === "Enter");
    });
  }

  return { update, rename };
}

/** A text with its marks; their places count code points. */
function marked(text, marks) {
  const letters = Array.from(text);
  const nodes = [];
  let at = 0;
  for (const [start, end] of marks) {
    nodes.push(letters.slice(at, start).join(""), h("mark", letters.slice(start, end).join("")));
    at = end;
  }
  return [...nodes, letters.slice(at).join("")];
}

const tagsOf = ({ settings }) => settings?.tags ?? [];

function pinned(session) {
  return Boolean(session.settings?.pinned);
}

function emptyLine({ query, archived }) {
  return h("p.muted", query ? t("sidebar.nomatch", { q: query }) : t(archived ? "archive.none" : "sidebar.none"));
}

/**
 * The projects in `nav`. `on` holds open(id), add(button). Returns {update(projects, current)}.
 */
export function projectList(nav, on) {
  let drawn = "";

  function update(projects, current) {
    const key = JSON.stringify([projects, current]);
    if (key === drawn) return;
    drawn = key;
    const add = iconButton("plus", t("project.new"), e => on.add(e.currentTarget), {
      ...MENU,
      "aria-haspopup": "dialog",
    });
    const head = h("div.projects-head", h("h2", { id: "projects-title" }, t("sidebar.projects")), add);
    const list = projects.length
      ? h(
          "ul",
          { "aria-labelledby": "projects-title" },
          projects.map(each => row(each, current)),
        )
      : "";
    keepFocus(nav, () => nav.replaceChildren(head, list));
  }

  function row({ id, name, chats }, current) {
    const count = h("span.count", { "aria-hidden": "true" }, chats || "");
    const told = h("span.vh", `, ${t("project.count", { n: chats })}`);
    const link = h(
      "a",
      {
        href: `#/p/${id}`,
        "aria-current": current === id ? "page" : null,
        "data-focus": id,
        title: name,
        onclick: plainly(() => on.open(id)),
      },
      icon("folder"),
      h("span", { dir: "auto" }, name),
      count,
      told,
    );
    return h("li.project", link);
  }

  return { update };
}

/** Sessions in groups [label, sessions], by the day of their last change in local time. */
export function groups(sessions, now = new Date()) {
  const today = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime() / 1000;
  const yesterday = new Date(now.getFullYear(), now.getMonth(), now.getDate() - 1).getTime() / 1000;
  const parts = { pinned: [], today: [], yesterday: [], earlier: [] };
  for (const session of [...sessions].sort((a, b) => b.updated - a.updated)) {
    const label = pinned(session)
      ? "pinned"
      : session.updated >= today
        ? "today"
        : session.updated >= yesterday
          ? "yesterday"
          : "earlier";
    parts[label].push(session);
  }
  return Object.entries(parts).filter(([, list]) => list.length);
}

/**
 * The list as a drawer on a narrow screen; on a wide one it is hidden until a button opens it.
 * `el(id)` finds elements. Returns {open, close, isOpen}.
 */
export function makeDrawer(el) {
  const narrow = matchMedia(NARROW);

  function set(open) {
    document.body.classList.toggle("drawer-open", open);
    el("open-sidebar").setAttribute("aria-expanded", String(open));
    el("backdrop").hidden = !open;
    // What is covered or away must not be reached by Tab or by a screen reader.
    el("sidebar").inert = narrow.matches && !open;
    el("main").inert = narrow.matches && open;
  }

  function show(shown) {
    if (narrow.matches) return set(shown);
    document.documentElement.dataset.side = shown ? "" : "away";
    localStorage.setItem("searchloop.side", shown ? "" : "away");
  }

  function dismiss() {
    show(false);
    el("open-sidebar").focus();
  }

  set(false);
  narrow.addEventListener("change", () => set(false));
  el("open-sidebar").addEventListener("click", () => {
    show(true);
    el("new-chat").focus();
  });
  el("close-sidebar").addEventListener("click", dismiss);
  el("backdrop").addEventListener("click", dismiss);

  return {
    open: () => show(true),
    close: () => narrow.matches && set(false),
    isOpen: () => document.body.classList.contains("drawer-open"),
  };
}
