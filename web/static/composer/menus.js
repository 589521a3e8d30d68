// The small menus of the composer, mode and place of the search, and what the switch says of itself
// when it is pointed at or has the focus. Fetched when one of them is first wanted.

import { h } from "../lib/dom.js";
import { openMenu, place } from "../lib/menu.js";
import { named, nameOf, t } from "../locales/index.js";
import { costText, heldIn, leavingText, modelOf } from "./search_switch.js";

const MODES = ["ask", "plan", "agent"];
const sentence = text => text[0].toUpperCase() + text.slice(1);
const choiceOf = (value, current, pick, label, hint) => ({
  label,
  hint: sentence(hint),
  checked: value === current,
  run: () => value === current || pick(value),
});

/** The modes above `anchor`, each with what it may do; `pick(mode)` is called with another one. */
export function openModes(anchor, current, pick) {
  const entry = mode => choiceOf(mode, current, pick, t(`mode.${mode}`), t(`mode.${mode}.effect`));
  openMenu(anchor, t("mode.label"), MODES.map(entry), "tall");
}

/** How long a model may think, in its own words, or as it does by itself (undefined). */
export function openEfforts(anchor, levels, current, pick) {
  const now = levels.includes(current) ? current : undefined;
  const entry = level => ({
    label: t(level ? `effort.${level}` : "effort.own"),
    checked: level === now,
    run: () => level === now || pick(level),
  });
  openMenu(anchor, t("effort.label"), [undefined, ...levels].map(entry));
}

/**
 * Where a search may happen, each with what it would be now. `facts` as for the composer;
 * `pick(search)` is called with another one.
 */
export function openVias(anchor, facts, pick) {
  const { session, models, engines } = facts;
  const model = modelOf(session, models);
  const held = heldIn(facts);
  const own = Boolean(model.capabilities?.native_search) && !engines.offline;
  const names = named(engines.ready.map(nameOf));
  const [first] = engines.ready;
  const ways = {
    auto: [t("via.auto"), t(own && held ? "via.held" : own ? "via.auto.native" : "via.auto.local")],
    native: [
      t("via.native"),
      own && held
        ? t("via.held")
        : own
          ? costText({ ...session, search: "native" }, model, engines)
          : t("switch.nonative"),
    ],
    local: [
      first ? t("via.local.engine", { name: nameOf(first) }) : t("via.local"),
      first ? t("via.local.order", { names }) : t("switch.noengine", { why: engines.why[0] ?? "" }),
    ],
    offline: [t("via.offline"), t("slash.search.offline")],
  };
  const entry = ([way, [label, hint]]) => choiceOf(way, session.search, pick, label, hint);
  openMenu(anchor, t("via.label"), Object.entries(ways).map(entry), "tall");
}

/**
 * Shows beside `anchor` what a search would send away and what it costs; goes with Escape, or when
 * neither the switch nor the words are pointed at. `facts()` as for the composer.
 */
export function tipOf(anchor, facts) {
  const tip = h("div.tip", { popover: "manual", role: "tooltip" });
  let timer = 0;

  function show() {
    clearTimeout(timer);
    const { session, models, engines } = facts();
    const known = [session, modelOf(session, models), engines, heldIn(facts())];
    const words = [leavingText(...known), costText(...known)];
    tip.replaceChildren(...words.map(text => h("p", text)));
    if (!tip.isConnected) document.querySelector("main").append(tip);
    tip.showPopover();
    place(tip, anchor);
  }

  function hide() {
    clearTimeout(timer);
    tip.remove();
  }

  const later = () => (timer = setTimeout(hide, 150));
  tip.addEventListener("pointerenter", () => clearTimeout(timer));
  tip.addEventListener("pointerleave", later);
  return { show, later, hide, shown: () => tip.isConnected };
}
