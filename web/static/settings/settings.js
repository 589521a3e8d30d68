// Settings: a dialog with a room for each task, fetched when it is first opened, and a search over all.
//
// A value is the server's: a control asks it to change the setting and then shows what it answered.

import { templatesPage } from "../composer/templates.js";
import * as api from "../lib/api.js";
import { drawing, h, icon, iconButton } from "../lib/dom.js";
import { errorText, prose } from "../lib/messages.js";
import { want, wants } from "../lib/notices.js";
import { voiceTold } from "../lib/voice.js";
import { chooseLanguage, chosenLanguage, has, languages, nameOf, t, translated } from "../locales/index.js";
import { agentsPage } from "./agents.js";
import { card, choice, field, labelOf, problemLine, segments, settingField, styled, textBox, toggle } from "./kit.js";
import { libraryPage } from "./library.js";
import { modelsPage } from "./models.js";
import { privacyPage } from "./privacy.js";
import { programsPage } from "./programs.js";
import { roomStates } from "./rooms.js";
import { enginesPage } from "./search.js";
import { toolsPage } from "./tools.js";

const LIMITS = ["steps", "searches", "pages", "tokens", "seconds", "cost_usd"];
const LIMIT = "SEARCHLOOP_LIMITS";
const ROOMS = {
  models: ["M9 9h6v6H9zM6 6h12v12H6zM10 3v3M14 3v3M10 18v3M14 18v3M3 10h3M3 14h3M18 10h3M18 14h3", modelsPage],
  search: [
    "M12 3.5a8.5 8.5 0 1 0 0 17a8.5 8.5 0 1 0 0-17M3.5 12h17M12 3.5c5 5 5 12 0 17M12 3.5c-5 5-5 12 0 17",
    enginesPage,
  ],
  tools: ["M9 3v5M15 3v5M6 8h12v3a6 6 0 0 1-12 0zM12 17v4", toolsPage],
  programs: ["M4 5.500h16v13H4zM7.500 9.500l2.500 2.500-2.500 2.500M12.500 15h4", programsPage],
  templates: ["M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6", templatesPage],
  library: ["M5 4.500h9a3 3 0 0 1 3 3v12H8a3 3 0 0 1-3-3zM5 16.500a3 3 0 0 1 3-3h9M19.500 8v13H9", libraryPage],
  agents: [
    "M8 8h8a3 3 0 0 1 3 3v5a3 3 0 0 1-3 3H8a3 3 0 0 1-3-3v-5a3 3 0 0 1 3-3zM12 8V4M9.500 13v1.500M14.500 13v1.500",
    agentsPage,
  ],
  privacy: ["M12 3.500l7 2.500v6c0 4.500-3 7.500-7 8.500-4-1-7-4-7-8.500V6z", privacyPage],
  appearance: [
    "M12 8a4 4 0 1 0 0 8a4 4 0 1 0 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6L19 19M19 5l-1.4 1.4M6.4 17.6L5 19",
    appearancePage,
  ],
  advanced: ["M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4", advancedPage],
};
// Which room has a setting; all others are under "Advanced".
const PLACES = {
  SEARCHLOOP_MODEL: "models",
  SEARCHLOOP_SEARCH: "search",
  SEARCH_ALLOWED_DOMAINS: "search",
  SEARCH_BLOCKED_DOMAINS: "search",
  SEARCH_COUNTRY: "search",
  SEARCH_CONTACT: "search",
  SEARCH_ENGINES: "search",
  SEARCHLOOP_CLIENT_SEARCH: "programs",
  ZIM_FILES: "library",
  SEARCHLOOP_OFFLINE: "privacy",
};

// What is found by its words although it is no setting of the server's.
const FIXED = [
  ["appearance", "set-theme", "set.theme"],
  ["appearance", "set-size", "set.size"],
  ["appearance", "set-language", "set.language"],
  ["appearance", "notices", "set.notices"],
  ["appearance", "voice", "set.voice"],
  ["search", "set-sites", "engine.fitting"],
  ["advanced", "diagrams", "diagrams.title"],
  ["tools", "mcp-name", "tools.add"],
  ["tools", "rules", "rules.title"],
  ["library", "library-path", "library.new"],
  ["agents", undefined, "agents.new"],
  ["agents", "words-about", "words.about"],
  ["agents", "words-answer", "words.answer"],
  ["privacy", "chat-files", "import.title"],
  ["privacy", "chats", "privacy.chats"],
  ["privacy", "who", "privacy.who"],
  ["privacy", "delete", "privacy.delete"],
  ...Object.keys(ROOMS).map(room => [room, undefined, `settings.${room}`]),
  ["privacy", "chat-files", "import.export"],
];
// What is found here and done elsewhere, by the name of a function of `on`.
const ELSEWHERE = { keys: "keys.title", options: "options.hint" };

const LOOKS = { theme: [["", "light", "dark"], "system"], size: [["small", "", "large"], "normal"] };
const AGAIN = 3000; // milliseconds until a server that did not answer is asked again

/** Makes the dialog ready; returns open(room?, card?). `on` holds facts(), changed() and newChat(temporary). */
export function settingsDialog(dialog, on) {
  const store = settingsStore(on.changed);
  const body = h("div.settings-body", { tabindex: "-1" });
  const tabs = Object.entries(ROOMS).map(([name, [path]]) =>
    h(
      "button",
      { "data-page": name, onclick: () => show(name) },
      drawing("path", "d", path, { viewBox: "0 0 24 24" }),
      h("span", h("span.name", t(`settings.${name}`)), h("small", t(`room.${name}`))),
    ),
  );
  const find = h("input", {
    type: "search",
    id: "settings-find",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: t("settings.find"),
    "aria-label": t("settings.find"),
  });
  const nav = h("nav", { "aria-label": t("settings.title") }, find, tabs);
  let leaving = () => {};
  let known = null; // providers and engines, once somebody has searched for one
  const newChat = temporary => {
    dialog.close();
    on.newChat(temporary);
  };

  const leaveTo = act => {
    dialog.close();
    on[act]();
  };

  dialog.addEventListener("click", event => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => leaving());
  find.addEventListener("input", () => found(find.value.trim().toLowerCase()).catch(() => {}));

  function clear(name) {
    leaving();
    leaving = () => {};
    for (const tab of tabs) tab.removeAttribute("aria-current");
    const title = h("h3", { tabindex: "-1" }, t(name ? `settings.${name}` : "settings.found"));
    const page = h("div.settings-page", title);
    const back = h("button.quiet.small.back", { onclick: home }, icon("left"), t("settings.rooms"));
    dialog.dataset.at = "room";
    body.replaceChildren(back, page);
    body.scrollTop = 0;
    return page;
  }

  // On a phone the rooms are a list of their own.
  function home() {
    dialog.dataset.at = "rooms";
    (tabs.find(tab => tab.ariaCurrent) ?? find).focus();
  }

  async function show(name, target, again = false) {
    const page = clear(name);
    const tab = tabs.find(each => each.dataset.page === name);
    tab.setAttribute("aria-current", "page");
    if (!again) (tab.checkVisibility() ? tab : page.firstChild).focus();
    page.append(h("p.muted.lead", t(`settings.${name}.lead`)));
    page.setAttribute("aria-busy", "true");
    try {
      await store.load();
      const leave = (await ROOMS[name][1](page, { ...on, newChat, store, show })) ?? leaving;
      if (page.isConnected && dialog.open) leaving = leave;
      else leave();
    } catch (failure) {
      page.append(h("p.problem", { role: again ? null : "alert" }, errorText(failure)));
      const later =
        failure.code === "unreachable" &&
        page.isConnected &&
        dialog.open &&
        setTimeout(() => show(name, target, true), AGAIN);
      if (later) leaving = () => clearTimeout(later);
    }
    page.removeAttribute("aria-busy");
    const to = target && page.querySelector(`#${CSS.escape(target)}`);
    for (let at = to; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    to?.scrollIntoView({ block: "center" });
    const box = [...(to?.querySelectorAll("input, select") ?? [])].find(
      each => !each.disabled && each.checkVisibility(),
    );
    (box ?? to)?.focus();
  }

  // Every word of a label, of a help text or of a variable's name leads to its room.
  async function found(words) {
    if (!words) return show("models");
    if (!store.all().length) await store.load();
    known ??= await places();
    if (words !== find.value.trim().toLowerCase()) return;
    const placed = new Set(known.map(place => place.env));
    const all = [
      ...known,
      ...store
        .all()
        .filter(({ name }) => !placed.has(name))
        .map(placeOf),
    ];
    const named = ({ label }) => label.toLowerCase().includes(words);
    const parts = words.split(/\s+/).map(word => word.replace(/(?<=...)s$/, "")); // one or many
    const hits = all
      .filter(place => parts.every(part => place.text.toLowerCase().includes(part)))
      .sort((a, b) => named(b) - named(a));
    const page = clear(null);
    const row = ({ room, target, label, env, act }) =>
      h(
        "li",
        h(
          "button.hit",
          { onclick: () => (act ? leaveTo(act) : show(room, target)) },
          h("span", label),
          h("small", [room && t(`settings.${room}`), env].filter(Boolean).join(" · ")),
        ),
      );
    page.append(
      h("p.muted", { role: "status" }, t("settings.hits", { n: hits.length })),
      h("ul.hits", hits.slice(0, 60).map(row)),
    );
  }

  return async function open(wanted = undefined, target = undefined) {
    await styled();
    const head = h(
      "header",
      h("h2", { id: "settings-title" }, t("settings.title")),
      iconButton("close", t("close"), () => dialog.close()),
    );
    dialog.replaceChildren(head, nav, body);
    for (const [room, said] of Object.entries(roomStates(on.facts())))
      said.then(words => (nav.querySelector(`[data-page="${room}"] small`).textContent = words)).catch(() => {});
    const first = !dialog.open;
    find.value = "";
    if (first) dialog.showModal();
    const shown = show(wanted ?? "models", target);
    if (first && !wanted) home();
    await shown;
  };
}

// What else people call it, in the language of the page.
const otherWords = key => (has(`find.${key}`) ? t(`find.${key}`) : "");

// Where a setting is found, and all words that lead there.
function placeOf(setting) {
  const own = `set.${setting.name}`;
  const label = has(own) ? t(own) : labelOf(setting);
  const target = setting.name === LIMIT ? `set-${LIMIT}-steps` : `set-${setting.name}`;
  return {
    room: PLACES[setting.name] ?? "advanced",
    target,
    label,
    env: setting.name,
    text: `${label} ${setting.name} ${labelOf(setting)} ${otherWords(own)}`,
  };
}

// What is no setting of its own, by its words: providers, engines, and what each room does.
async function places() {
  const fixed = FIXED.map(([room, target, key]) => ({
    room,
    target,
    label: t(key),
    text: `${t(key)} ${t(`room.${room}`)} ${otherWords(key)}`,
  }));
  const elsewhere = Object.entries(ELSEWHERE).map(([act, key]) => {
    return { act, label: t(key), text: `${t(key)} ${otherWords(key)}` };
  });
  const [providers, { engines }] = await Promise.all([api.providers(), api.engines()]);
  const keys = ({ needs }) => (needs ?? []).join(" ");
  return [
    ...fixed,
    ...elsewhere,
    ...LIMITS.map(part => ({
      room: "advanced",
      target: `set-${LIMIT}-${part}`,
      label: t(`set.limit.${part}`),
      env: LIMIT,
      text: `${t(`set.limit.${part}`)} ${LIMIT}`,
    })),
    ...providers.map(({ name, key, address }) => ({
      room: "models",
      target: `provider-${name}`,
      label: nameOf(name),
      env: key?.name,
      text: `${nameOf(name)} ${key?.name ?? ""} ${address?.name ?? ""} ${key ? labelOf(key) : ""}`,
    })),
    ...owned(providers).map(setting => ({ ...placeOf(setting), room: "models" })),
    ...engines.map(engine => ({
      room: "search",
      target: `engine-${engine.name}`,
      label: nameOf(engine.name),
      env: keys(engine),
      text: `${nameOf(engine.name)} ${engine.title} ${keys(engine)}`,
    })),
  ];
}

// The settings that stand in the card of their provider.
const owned = providers => providers.flatMap(({ address, more }) => [...(address ? [address] : []), ...more]);

/** What the server last said of its settings. */
function settingsStore(changed) {
  let known = new Map();
  const adopt = list => (known = new Map(list.map(setting => [setting.name, setting])));
  return {
    load: async () => adopt(await api.settings()),
    get: name => known.get(name),
    all: () => [...known.values()],
    async change(changes) {
      adopt(await api.changeSettings(changes));
      changed();
    },
  };
}

// What belongs to this browser and not to the server.
async function appearancePage(body) {
  const voices = await Promise.all(["aloud", "dictate"].map(voiceSwitch));
  const kept = name => localStorage.getItem(`searchloop.${name}`) ?? "";
  const set = name => value => {
    localStorage.setItem(`searchloop.${name}`, value);
    document.documentElement.dataset[name] = value;
  };
  const language = choice([["", t("language.browser")], ...languages])(chosenLanguage());
  language.id = "set-language";
  language.addEventListener("change", () => {
    chooseLanguage(language.value);
    location.reload();
  });
  body.append(
    ...Object.entries(LOOKS).map(([name, [values, usual]]) => {
      const choices = values.map(value => [value, t(`${name}.${value || usual}`)]);
      return segments(name, t(`set.${name}`), choices, kept(name), set(name));
    }),
    field(t("set.language"), language),
    card(
      { id: "notices", title: t("set.notices") },
      h("p.muted", t("set.notices.lead")),
      ...["notices", "sound"].map(noticeSwitch),
    ),
    card({ id: "voice", title: t("set.voice") }, h("p.muted", t("set.voice.lead")), voices),
  );
}

function noticeSwitch(name) {
  const said = problemLine();
  const change = async on => {
    const is = await want(name, on);
    row.querySelector("input").checked = is;
    said.textContent = on && !is ? t("set.notices.refused") : "";
  };
  const row = h("div", toggle(t(`set.notices.${name}`), wants(name), change), said);
  return row;
}

async function voiceSwitch(name) {
  const told = await voiceTold(name);
  const change = async on => (document.documentElement.dataset[name] = (await want(name, on)) ? "on" : "");
  const control = toggle(t(`set.voice.${name}`), wants(name), change, { disabled: !told });
  return h("div", control, h("p.muted", told || t("voice.none")));
}

// Whether the library is there that draws them, or the command that gets it.
const diagramsTold = () =>
  api.mermaid().then(
    () => t("diagrams.there"),
    failure => prose(translated(failure).message),
  );

// Limits, and all that no other room has, as `searchloop config` lists it.
async function advancedPage(body, { store }) {
  const number = value => textBox(value, { inputmode: "decimal", placeholder: t("settings.nolimit") });
  const pairs = text =>
    new Map(
      text
        .split(",")
        .filter(Boolean)
        .map(pair => pair.split("=").map(word => word.trim())),
    );
  const limits = LIMITS.map(part => {
    const read = ({ value, default: usual }) => pairs(value).get(part) ?? pairs(usual).get(part) ?? "";
    const write = value => {
      const all = pairs(store.get(LIMIT).value).set(part, value);
      return [...all]
        .filter(([, each]) => each)
        .map(pair => pair.join("="))
        .join(",");
    };
    return settingField(store, LIMIT, { label: t(`set.limit.${part}`), make: number, part, read, write });
  });
  const elsewhere = new Set([LIMIT, ...Object.keys(PLACES), ...owned(await api.providers()).map(({ name }) => name)]);
  const rest = store.all().filter(({ name }) => !elsewhere.has(name));
  const part = (id, those) =>
    those.length
      ? card(
          { id, title: t(`settings.part.${id}`) },
          those.map(({ name }) => settingField(store, name)),
        )
      : null;
  body.append(
    ...[
      card(
        { id: "limits", title: t("settings.limits"), env: LIMIT },
        h("p.muted", t("settings.limits.lead")),
        h("div.two", limits),
      ),
      card({ id: "diagrams", title: t("diagrams.title") }, h("p.muted", await diagramsTold())),
      part(
        "change",
        rest.filter(setting => setting.changeable),
      ),
      part(
        "fixed",
        rest.filter(setting => !setting.changeable),
      ),
    ].filter(Boolean),
  );
}
