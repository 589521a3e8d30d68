// The small menus of the composer: mode, thinking and place of the search. Fetched when one of them is
// first wanted.

import { keepEffort, keptEffort } from "../chat/server_state.js";
import { h } from "../lib/dom.js";
import { openAt, openMenu } from "../lib/menu.js";
import { named, nameOf, t } from "../locales/index.js";
import { costText, heldIn, modelOf } from "./search_switch.js";

const MODES = ["ask", "plan", "agent"];
const sentence = text => text[0].toUpperCase() + text.slice(1);
const choiceOf = (value, current, pick, label, hint) => ({
  label,
  hint: sentence(hint),
  checked: value === current,
  run: () => value === current || pick(value),
});

/** The modes at `anchor`, each with what it may do, below `more`; `pick(mode)` is called with another one. */
export function openModes(anchor, current, pick, more = []) {
  const entry = mode => choiceOf(mode, current, pick, t(`mode.${mode}`), t(`mode.${mode}.effect`));
  const [label, between] = more.length ? ["plus.label", [null]] : ["mode.label", []];
  openMenu(anchor, t(label), [...more, ...between, ...MODES.map(entry)], "tall");
}

/** How long a model may think, in its own words, or as it does by itself (undefined). */
export async function openEfforts(anchor, model, levels, current, pick) {
  const { segments, styled, toggle } = await import("../settings/kit.js");
  await styled();
  const options = ["", ...levels].map(level => [level, t(level ? `effort.${level}` : "effort.own")]);
  let now = levels.includes(current) ? current : "";
  const keeps = toggle(t("effort.keep"), now && now === keptEffort(), on => keepEffort(on ? now : ""));
  const choice = segments("effort", t("effort.label"), options, now, level => {
    now = level;
    if (keeps.firstChild.checked) keepEffort(level);
    pick(level || undefined);
  });
  const box = h("div.menu.form", { popover: "auto", role: "dialog", "aria-label": t("effort.label") }, choice);
  box.append(h("p.hint", t("effort.lead", { model })), keeps);
  openAt(anchor, box);
  box.querySelector(":checked").focus();
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
