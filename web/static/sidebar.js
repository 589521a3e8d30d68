// The list of chats: by date, searchable, renamed and deleted in place.

import { h, iconButton, isComposing } from "./lib/dom.js";
import { t } from "./locales/index.js";

const NARROW = "(max-width: 760px)";

/**
 * Draws into `nav`. `on` holds open(id, {turn}), change(id, changes), remove(session), older().
 * Returns {update({sessions, current, query, hidden, more}, running)}; `running`: whether the open chat
 * is being answered, which its own events tell sooner than the list.
 */
export function sessionList(nav, on) {
  let renaming = null;
  let drawn = "";
  let latest = null;

  function update(state, running) {
    latest = [state, running];
    if (renaming) return; // what is being typed is not pulled away
    const rows = state.sessions
      .filter((s) => !state.hidden.has(s.id))
      .map((s) => (s.id === state.current ? { ...s, running } : s));
    const key = JSON.stringify([state.current, state.query, state.more, rows.map((s) => [s.id, s.title, s.running, s.updated, pinned(s), s.found])]);
    if (key === drawn) return;
    drawn = key;
    const focused = document.activeElement?.closest?.("[data-focus]")?.dataset.focus;
    const shown = state.query ? [["found", rows]] : groups(rows);
    nav.replaceChildren(...shown.filter(([, list]) => list.length).flatMap(([label, list]) => group(label, list, state)));
    if (!rows.length) nav.append(emptyLine(state.query));
    if (state.more) nav.append(h("button", { type: "button", class: "quiet", "data-focus": "older", onclick: older }, t("sidebar.older")));
    if (focused) nav.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
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
      h("ul", { "aria-labelledby": id }, list.map((s) => row(s, state.current === s.id))),
    ];
  }

  function row(session, current) {
    const title = session.title || t("untitled");
    const link = h(
      "a",
      {
        href: `#/s/${session.id}`,
        "aria-current": current ? "page" : null,
        "data-focus": `open-${session.id}`,
        dir: "auto",
        title,
        onclick: (event) => openOnPlainClick(event, session.id),
      },
      session.running ? h("span", { class: "dot", role: "img", "aria-label": t("sidebar.running") }) : null,
      title,
    );
    return h(
      "li",
      { class: "session", "data-id": session.id },
      link,
      iconButton("pin", t(pinned(session) ? "sidebar.unpin" : "sidebar.pin", { title }), () => on.change(session.id, { pinned: !pinned(session) }), { class: "quiet", "data-focus": `pin-${session.id}`, "aria-pressed": String(pinned(session)) }),
      iconButton("pencil", t("sidebar.rename", { title }), (e) => rename(e, session), { class: "quiet", "data-focus": `rename-${session.id}` }),
      iconButton("trash", t("sidebar.delete", { title }), () => on.remove(session), { class: "quiet", "data-focus": `delete-${session.id}` }),
      session.found?.some((place) => place.turn) ? h("ul", { class: "places" }, session.found.filter((p) => p.turn).map((p) => place(session, p))) : null,
    );
  }

  // A place in a chat that holds the words, and leads to it.
  function place(session, { turn, part, snippet, marks }) {
    const follow = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      on.open(session.id, { turn });
    };
    const props = { href: `#/s/${session.id}/${turn}`, dir: "auto", "data-focus": `place-${session.id}-${turn}`, onclick: follow };
    return h("li", {}, h("a", props, h("span", { class: "vh" }, `${t(`sidebar.in.${part}`)}: `), marked(snippet, marks)));
  }

  function openOnPlainClick(event, id) {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    on.open(id);
  }

  function rename(event, session) {
    const line = event.currentTarget.closest("li");
    const input = h("input", { type: "text", "aria-label": t("sidebar.newname"), maxlength: "200", dir: "auto" });
    input.value = session.title;
    renaming = session.id;
    line.replaceChildren(input);
    input.select();
    input.focus();
    const end = (save) => {
      if (renaming !== session.id) return;
      renaming = null;
      drawn = "";
      const title = input.value.trim();
      update(...latest);
      nav.querySelector(`[data-focus="open-${CSS.escape(session.id)}"]`)?.focus();
      if (save && title && title !== session.title) on.change(session.id, { title });
    };
    input.addEventListener("blur", () => end(true));
    input.addEventListener("keydown", (e) => {
      if (isComposing(e) || !["Enter", "Escape"].includes(e.key)) return;
      e.preventDefault();
      e.stopPropagation();
      end(e.key === "Enter");
    });
  }

  return { update };
}

/** A text with its marks; their places count code points. */
function marked(text, marks) {
  const letters = Array.from(text);
  const nodes = [];
  let at = 0;
  for (const [start, end] of marks) {
    nodes.push(letters.slice(at, start).join(""), h("mark", {}, letters.slice(start, end).join("")));
    at = end;
  }
  return [...nodes, letters.slice(at).join("")];
}

function pinned(session) {
  return Boolean(session.settings?.pinned);
}

function emptyLine(query) {
  return h("p", { class: "muted" }, query ? t("sidebar.nomatch", { q: query }) : t("sidebar.none"));
}

/** Sessions in groups [label, sessions], by the day of their last change in local time. */
export function groups(sessions, now = new Date()) {
  const today = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime() / 1000;
  const yesterday = new Date(now.getFullYear(), now.getMonth(), now.getDate() - 1).getTime() / 1000;
  const parts = { pinned: [], today: [], yesterday: [], earlier: [] };
  for (const session of [...sessions].sort((a, b) => b.updated - a.updated)) {
    const label = pinned(session) ? "pinned" : session.updated >= today ? "today" : session.updated >= yesterday ? "yesterday" : "earlier";
    parts[label].push(session);
  }
  return Object.entries(parts).filter(([, list]) => list.length);
}

/** The list as a drawer on a narrow screen. `el(id)` finds elements. Returns {close, isOpen}. */
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

  function dismiss() {
    set(false);
    el("open-sidebar").focus();
  }

  set(false);
  narrow.addEventListener("change", () => set(false));
  el("open-sidebar").addEventListener("click", () => {
    set(true);
    el("new-chat").focus();
  });
  el("close-sidebar").addEventListener("click", dismiss);
  el("backdrop").addEventListener("click", dismiss);

  return {
    close: () => narrow.matches && set(false),
    isOpen: () => document.body.classList.contains("drawer-open"),
  };
}
