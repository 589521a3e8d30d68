// The question box and what belongs to it: switch, source of the search, mode, model, Send, Stop, and
// at the head of the chat its agent and its folder.
//
// The controls show what the server last said of the session and nothing else. Changing one asks
// the server; until it answers the control is busy, and if it refuses the control goes back.

import { partsOf } from "../chat/turn_actions.js";
import * as api from "../lib/api.js";
import { isComposing, setText } from "../lib/dom.js";
import { named, nameOf, t, titleOf } from "../locales/index.js";
import { unsentTexts } from "./drafts.js";
import { costText, describeSwitch, heldIn, leavingText, modelOf } from "./search_switch.js";

const PHONE = "(max-width: 620px)"; // there the model stands in the head of the page
const NO_FILES = { text: "", more: {}, back() {} };
const MOST_TEXT = 200_000; // characters of a page or file that goes along
const MOST_NAME = 200; // characters of a file's name
const LONG_PASTE = 20_000; // characters; more of them make a box slow, and go along as a file
const LONGEST = 1_000_000; // characters; the server takes no more
const LINES = 2.2; // of a box with its edges that holds more than one line

/**
 * `el(id)` finds the page's elements.
 * `on` holds change(changes) -> promise, send(text, more, place) -> promise<boolean>, stop(), recall() -> text,
 * tooLong(length, most), complain(failure), note(text), newChat(temporary), settings(page), exportAs(format),
 * runPlan(), undo(), compact(). A change may be given who is told when it is refused.
 * Returns {update(facts), giveBack(text), ask(text), leave(texts), forget(chat), carry(chat), focus()}.
 */
export function composer(el, on) {
  const question = el("question");
  let shelf = null;
  let shelving = null; // what is on its way to become `shelf`
  let arriving = null; // files that were given and are not on the shelf yet
  let slash = null;
  let commands = null; // what is on its way to become `slash`
  let calledIn = () => null;
  let facts = null;
  let sending = Promise.resolve();
  let held = null; // the place of the chat whose settings a question waits for
  let line = null; // the questions that wait for the answer before them
  let lining = null; // what is on its way to become `line`
  const unsent = unsentTexts();
  let at = { place: null, chat: null }; // whose words are in the box
  let rest = ""; // files among them that are not on the shelf yet
  let unpacking = null;

  function update(next) {
    facts = next;
    const { session } = facts;
    follow(facts);
    setText(el("model-name"), session.pending ? "…" : modelName(facts.models, session.model));
    el("model").dataset.id = session.model;
    const [mode, effect] = [t(`mode.${session.mode}`), t(`mode.${session.mode}.effect`)];
    setText(el("mode-name"), mode);
    setText(el("mode-effect"), t("mode.effect", { mode, effect }));
    el("mode-effect").dataset.mode = session.mode;
    el("mode").dataset.value = session.mode;
    const levels = modelOf(session, facts.models).capabilities.efforts ?? [];
    const level = session.settings?.options?.effort;
    el("effort").hidden = !levels.length;
    el("effort").title = t("effort.label");
    setText(el("effort-name"), t(levels.includes(level) ? `effort.${level}` : "effort.own"));
    updateHead(session);
    updateSwitch();
    follows();
    question.placeholder = t(
      facts.running ? "composer.next" : session.messages ? "composer.more" : "composer.placeholder",
    );
    el("send").hidden = facts.running;
    el("stop").hidden = !facts.running;
    for (const control of [el("web-search"), el("via"), el("mode"), el("model"), el("agent"), el("workspace")]) {
      control.disabled = Boolean(session.pending);
    }
    el("send").disabled = Boolean(session.pending && session.id);
    if (!held || session.pending) return;
    const same = held === facts.place;
    held = null;
    if (same) send();
  }

  function updateHead({ agent, workspace }) {
    setText(el("agent-name"), agent ?? t("agent.none"));
    el("agent").title = agent ?? t("agent.none");
    el("agent").dataset.set = String(Boolean(agent));
    setText(el("workspace-name"), workspace ? folderName(workspace) : t("workspace.none"));
    el("workspace").dataset.set = String(Boolean(workspace));
    el("workspace").title = workspace ?? t("workspace.lead");
  }

  function updateSwitch() {
    const { session, models, engines } = facts;
    if (session.pending) return setText(el("switch-state"), t("switch.asking"));
    const called = calledIn(question.value)?.model;
    const model = called ?? modelOf(session, models);
    const state = describeSwitch(session, model, engines, heldIn(facts));
    const once = called ? t("menu.once", { model: titleOf(called), provider: nameOf(called.id.split(":")[0]) }) : "";
    el("web-search").checked = state.on;
    el("switch").dataset.kind = state.kind;
    const known = [session, model, engines, heldIn(facts)];
    el("switch").title = [leavingText(...known), costText(...known)].join("\n");
    el("via").hidden = !state.on;
    if (state.on) setText(el("via-name"), t(`via.${session.search}`));
    el("via").dataset.value = session.search;
    const text = (phone.matches && state.brief) || state.text;
    const folders = shelf?.folders() ?? [];
    const goes = model.local ? "" : t("menu.inside.goes", { to: nameOf((model.id ?? "").split(":")[0]) });
    const inside = folders.length && `${t("menu.inside", { names: named(folders) })} ${goes}`;
    const files = filesGo(model, shelf?.count() - folders.length);
    setText(el("switch-state"), [once, inside || text, files].filter(Boolean).join(" "));
    el("switch-state").dataset.kind = state.kind;
  }

  async function change(control, changes, complain) {
    control.setAttribute("aria-busy", "true");
    try {
      await on.change(changes, complain);
    } finally {
      control.removeAttribute("aria-busy");
      update(facts);
    }
  }

  // What each control opens, fetched when it is first pressed; `set` changes the chat, and keeps the control busy.
  const menus = () => import("./menus.js");
  const setup = () => import("../settings/chat_setup.js");
  const opened = {
    async model(at, set) {
      const { openPicker } = await import("./model_picker.js");
      openPicker(at, facts.models, facts.session.model, model => set({ model }));
    },
    async effort(at, set) {
      const { options } = facts.session.settings ?? {};
      const { efforts } = modelOf(facts.session, facts.models).capabilities;
      const pick = effort => set({ options: { ...options, effort } });
      (await menus()).openEfforts(at, modelName(facts.models, facts.session.model), efforts, options?.effort, pick);
    },
    mode: async (at, set) => (await menus()).openModes(at, facts.session.mode, mode => set({ mode })),
    via: async (at, set) => (await menus()).openVias(at, facts, search => set({ search })),
    agent: async (at, set) => (await setup()).openAgents(at, facts.session, { ...on, change: set }),
    workspace: async (at, set) => (await setup()).openWorkspace(at, facts.session, { ...on, change: set }),
  };
  const open = name => opened[name](el(name), (changes, complain) => change(el(name), changes, complain));

  // Each chat has its own words, which wait for it while another is on show.
  function follow({ place, session }) {
    const chat = chatOf(session);
    const turned = place !== at.place;
    if (!turned) shelf?.follow(chat, false);
    if (!turned && chat !== at.chat) unsent.move(at.chat, chat);
    const typed = at.place ? "" : question.value; // before this script was there
    at = { place, chat };
    if (turned) unpacking = unpack(joined(unsent.get(chat), typed));
  }

  async function unpack(text) {
    const { place } = at;
    const parts = partsOf(text);
    rest = parts.rest;
    shelf?.follow(at.chat, true);
    fill(parts.words);
    slash?.update();
    if (!rest) return;
    await shelved();
    if (place !== at.place) return;
    rest = "";
    shelf.put(parts.files, here());
  }

  function keep() {
    unsent.put(at.chat, question.value + rest + (shelf?.text() ?? ""));
  }

  // The box is emptied at once, so that what is typed meanwhile is never lost; a question that the
  // server did not take comes back. In a chat that is being opened it waits for the settings.
  async function send() {
    const { place } = facts;
    if (rest) await unpacking;
    if (arriving) await arriving;
    const text = question.value;
    if (!text.trim() || facts.place !== place) return;
    if (facts.running) return enqueue(text);
    if (place.session.pending && place.session.id) held = place;
    if (held) return;
    if (shelf?.looking()) return shelf.looked().then(good => good && facts.place === place && send());
    const home = here();
    const files = shelf?.take() ?? NO_FILES;
    const release = unsent.hold(at.chat, text + files.text);
    fill("");
    question.focus();
    const answered = () => facts.running && facts.place === place;
    sending = sending.then(() => !answered() && post(text, files, place));
    const sent = await sending;
    release();
    const chat = home();
    if (sent || chat === undefined) return;
    if (chat === at.chat) giveBack(text);
    else unsent.put(chat, joined(text + files.text, unsent.get(chat)));
    files.back(chat);
  }

  // While an answer is written the next question waits for it. Files that are no text would be lost by
  // a reload, so they wait on the shelf, and their question in the box.
  function enqueue(text) {
    if (facts.session.settings?.temporary || shelf?.count()) return on.note(t("queue.not"));
    const texts = [...unsent.queue(at.chat).texts, text];
    unsent.setQueue(at.chat, texts);
    fill("");
    unsent.store();
    on.say(t("queue.added", { n: texts.length }));
    return queued(facts.place);
  }

  // `seen` is the chat whose answer was being written; it may end before the queue is loaded.
  function queued(seen, since = seen?.endings ?? 0) {
    const made = ({ questionQueue }) =>
      (line = questionQueue(el("queue"), {
        unsent,
        send: deliver,
        edit: giveBack,
        say: on.say,
        focus: () => question.focus(),
      }));
    const go = () => line.follow(at.chat, facts, facts.place === seen ? since : null);
    return (lining ??= import("./queue.js").then(made)).then(go);
  }

  // Another chat, or the end of an answer: the queue is shown, or moves on.
  function follows() {
    if (line) line.follow(at.chat, facts);
    else if (at.chat !== null && unsent.queue(at.chat).texts.length) queued();
  }

  function deliver(text) {
    const { place } = facts;
    return (sending = sending.then(() => facts.place === place && !facts.running && post(text, NO_FILES, place)));
  }

  // A model that is called in the question answers this one alone.
  async function post(text, files, place) {
    if (/(?<!\S)@/.test(text)) await typed();
    const called = calledIn(text);
    const more = called ? { ...files.more, model: called.model.id, aside: true } : files.more;
    return on.send((called?.text ?? text) + files.text, more, place);
  }

  /** Asks this, and leaves what is in the box there. */
  function ask(text) {
    const own = question.value;
    fill(text);
    const sent = send();
    if (own) giveBack(own);
    return sent;
  }

  /** Puts words back that were not sent, before what was written since. */
  function giveBack(text) {
    fill(joined(text, question.value));
  }

  /** Keeps these texts too: the page is about to go. */
  function leave(texts) {
    const own = question.value + rest + (shelf?.text() ?? "");
    unsent.put(
      at.chat,
      texts.reduceRight((all, text) => joined(text, all), own),
    );
    unsent.store();
  }

  /** What waited in a chat that is deleted goes with it. */
  function forget(chat) {
    if (chat === at.chat) return;
    shelf?.forget(chat);
    unsent.put(chat, "");
    unsent.setQueue(chat, []);
    unsent.store();
  }

  /** What waited in a chat that is no more waits in a new one. */
  function carry(chat) {
    const text = [unsent.get(chat), ...unsent.queue(chat).texts].filter(Boolean).join("\n\n");
    unsent.put(chat, "");
    unsent.setQueue(chat, []);
    unsent.put("", joined(text, unsent.get("")));
  }

  function fill(text) {
    question.value = text;
    grow();
    keep();
  }

  // Commands are fetched when somebody types the first slash, @ or #.
  async function typed() {
    grow();
    keep();
    if (!commands && !/^\/|(?<!\S)[@#]/.test(question.value)) return;
    commands ??= import("./slash_commands.js").then(made => {
      slash = made.slashList(question, el("slash"), { ...on, open, attach, session: () => facts.session });
      calledIn = text => made.calledIn(text, on.models());
    });
    await commands;
    slash.update();
    updateSwitch();
  }

  function command() {
    fill("/");
    question.focus();
    typed();
  }

  // A command that was finished before the commands were fetched is no question.
  async function enter(event) {
    const { place } = facts;
    if (commands && !slash) {
      await typed();
      if (facts.place !== place || slash.key(event)) return;
    }
    send();
  }

  const shelfNews = {
    complain: on.complain,
    say: on.say,
    leave: () => question.focus(),
    aside: (chat, text) => unsent.put(chat, unsent.get(chat) + text),
    changed() {
      keep();
      updateSwitch();
    },
  };

  function shelved() {
    const ready = made => (shelf = made.fileShelf(el("shelf"), { ...shelfNews, chat: at.chat }));
    return (shelving ??= import("./attachments.js").then(ready));
  }

  // The chat on show now, by the name that it has when it is asked for; undefined for one that is gone.
  function here() {
    const { place } = at;
    return () => (!place || place === at.place ? at.chat : (chatOf(place.session) ?? undefined));
  }

  // A folder of the library, or the text of one of its files or of a page.
  function attach({ kind, url, title }) {
    if (kind === "folder") return add([{ name: title, folder: url }]);
    const named = text => ({ name: `${title} (${url})`.slice(0, MOST_NAME), text });
    return add([api.textOf(url, MOST_TEXT).then(named, on.complain)]);
  }

  // Files, texts with a name, and promises of them.
  async function add(given) {
    const home = here();
    if (!given.length) return;
    const put = async () => (await shelved()).add((await Promise.all(given)).filter(Boolean), home);
    const all = (arriving = Promise.all([arriving, put()]));
    await all.finally(() => arriving === all && (arriving = null));
  }

  function onDrop(event) {
    const files = [...(event.dataTransfer?.files ?? [])];
    document.body.classList.remove("dropping");
    if (!files.length) return;
    event.preventDefault();
    add(files);
  }

  function onDrag(event) {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    document.body.classList.toggle("dropping", event.type === "dragover");
  }

  // On a phone the question has a row of its own only while it needs one.
  function grow() {
    question.style.setProperty("height", "auto");
    const { classList } = el("composer");
    const lines = question.scrollHeight / parseFloat(getComputedStyle(question).lineHeight);
    classList.toggle("tall", Boolean(question.value) && (classList.contains("tall") || lines > LINES));
    question.style.setProperty("height", `${Math.min(question.scrollHeight, innerHeight * 0.4)}px`);
  }

  function onKey(event) {
    if (isComposing(event)) return;
    if (slash?.key(event)) return keep();
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      enter(event);
    } else if (event.key === "ArrowUp" && !question.value) {
      event.preventDefault();
      const { words, files } = partsOf(on.recall());
      fill(words);
      add(files);
      question.setSelectionRange(question.value.length, question.value.length);
    }
  }

  // Pasted text that could not be sent is refused whole: nothing is cut off in silence.
  function onPaste(event) {
    const files = [...(event.clipboardData?.files ?? [])];
    if (files.length) {
      event.preventDefault();
      return add(files);
    }
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (text.length <= LONG_PASTE) return;
    event.preventDefault();
    if (text.length > LONGEST) on.tooLong(text.length, LONGEST);
    else add([{ name: t("file.pasted"), text }]);
  }

  const phone = matchMedia(PHONE);
  function seat() {
    const left = [el("attach"), el("switch"), el("via")];
    if (phone.matches) el("title").before(el("model"), el("effort"));
    else el("send").before(el("effort"), el("model"));
    if (phone.matches) question.before(...left);
    else el("send").parentElement.prepend(...left);
    const [sign, label] = phone.matches ? ["plus", "plus.label"] : ["clip", "file.attach"];
    el("attach").querySelector("use").setAttribute("href", `#i-${sign}`);
    el("attach").ariaLabel = el("attach").title = t(label);
  }
  phone.addEventListener("change", () => {
    seat();
    if (facts) updateSwitch();
  });
  seat();

  question.addEventListener("input", typed);
  addEventListener("resize", grow);
  for (const kind of ["dragover", "dragleave"]) document.body.addEventListener(kind, onDrag);
  document.body.addEventListener("drop", onDrop);
  el("attach").addEventListener("click", async () => {
    if (!phone.matches) return el("files").click();
    const more = [
      { label: t("file.attach"), run: () => el("files").click() },
      { label: t("plus.template"), run: () => setTimeout(command) },
    ];
    (await menus()).openModes(el("attach"), facts.session.mode, mode => change(el("attach"), { mode }), more);
  });
  el("dictate").addEventListener("click", async () =>
    (await import("../lib/voice.js")).dictate(question, el("dictate"), message =>
      on.complain(new api.Failure(0, { code: "voice", message })),
    ),
  );
  el("files").addEventListener("change", async () => {
    await add([...el("files").files]);
    el("files").value = "";
    question.focus();
  });
  question.addEventListener("paste", onPaste);
  question.addEventListener("keydown", onKey);
  el("composer").addEventListener("submit", event => {
    event.preventDefault();
    send();
  });
  el("stop").addEventListener("click", () => {
    on.stop();
    question.focus();
  });
  el("web-search").addEventListener("change", () =>
    change(el("web-search"), { search: el("web-search").checked ? "auto" : "off" }),
  );
  for (const name of Object.keys(opened)) el(name).addEventListener("click", () => open(name));

  /** Puts what came from elsewhere into the box, and sends nothing. */
  function receive(text) {
    if (text.length > LONGEST) on.tooLong(text.length, LONGEST);
    else giveBack(text);
  }

  return { update, giveBack, ask, receive, leave, forget, carry, focus: () => question.focus() };
}

// Where files go with the next question.
function filesGo({ id, local }, count) {
  if (!count) return "";
  return local ? t("file.stay", { n: count }) : t("file.go", { n: count, to: nameOf((id ?? "").split(":")[0]) });
}

// Under which name a chat's words are kept: a new chat's under none, a temporary one's nowhere.
function chatOf({ id, settings }) {
  return settings?.temporary ? null : (id ?? "");
}

// One text after the other; the files of both stay behind the words.
function joined(first, second) {
  const [one, two] = [partsOf(first), partsOf(second)];
  return [one.words, two.words].filter(Boolean).join("\n\n") + one.rest + two.rest;
}

// The last part of a path; the whole of it is told on hover.
function folderName(path) {
  return path.split(/[\\/]/).filter(Boolean).at(-1) ?? path;
}

// What stands on the button of the model picker.
function modelName(models, id) {
  const model = models.find(m => m.id === id);
  return model ? titleOf(model) : t("model.unlisted", { id });
}
