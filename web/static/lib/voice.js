// The browser's own speech: an answer read aloud, a question dictated. Both are off until somebody wants them,
// and the settings say before where text and sound go.

import { t } from "../locales/index.js";
import { h, textOf } from "./dom.js";

const Recognition = globalThis.SpeechRecognition ?? globalThis.webkitSpeechRecognition;
const WHY = {
  "not-allowed": "refused",
  "service-not-allowed": "refused",
  "audio-capture": "nomic",
  network: "network",
};
const QUIET = ["aborted", "canceled", "interrupted", "no-speech"]; // how speech ends that was ended
const WAIT = 300; // milliseconds for a browser to find its voices
let reading = null; // {turn, end()}: the answer that is read
let hearing = null;

/** In a sentence: who speaks, or who listens, and where text or sound go; empty where the browser has none. */
export async function voiceTold(name) {
  if (name === "dictate") return Recognition ? t("voice.dictate.goes") : "";
  const voices = globalThis.speechSynthesis;
  if (voices && !voices.getVoices().length)
    // some browsers look for them when they are first asked
    await Promise.race([
      new Promise(done => (voices.onvoiceschanged = done)),
      new Promise(done => setTimeout(done, WAIT)),
    ]);
  const voice = voiceOf(document.documentElement.lang);
  return voice ? t(voice.localService ? "voice.here" : "voice.away", { name: voice.name }) : "";
}

// One that speaks a language, of this computer if there is any.
function voiceOf(lang) {
  const fits = (globalThis.speechSynthesis?.getVoices() ?? []).filter(voice => voice.lang.startsWith(lang.slice(0, 2)));
  return fits.find(voice => voice.localService) ?? fits[0] ?? null;
}

const failed = error => t(WHY[error] ? `voice.${WHY[error]}` : "voice.failed", { why: error });

// What tells that somebody speaks or listens, with the ways to end that in words.
const barOf = (label, ...parts) => h("div.line.voice-bar", { role: "group", "aria-label": label }, parts);
const press = (words, onclick, kind = "quiet") => h("button.small", { class: kind, onclick }, words);

/** Reads an answer, paragraph by paragraph and without its code; pressed once more, it ends. */
export function readAloud(turn, button, complain) {
  const again = reading?.turn === turn.id;
  reading?.end();
  if (again) return;
  const answer = button.closest(".turn").querySelector(".answer");
  const blocks = [...answer.children];
  const texts = turn.blocks.map((block, at) => [at, block.t === "pre" ? "" : textOf(block).trim()]);
  const spoken = texts.filter(([, text]) => text);
  const lang = /\p{Script=Han}/u.test(turn.text) ? "zh" : document.documentElement.lang;
  const voice = voiceOf(lang);
  const place = h("span.activity-clock");
  const pause = press(t("voice.pause"), () => {
    const paused = pause.textContent === t("voice.pause");
    speechSynthesis[paused ? "pause" : "resume"]();
    pause.textContent = t(paused ? "voice.goon" : "voice.pause");
  });
  const who = h("span.muted", t(voice?.localService === false ? "voice.elsewhere" : "voice.computer"));
  const bar = barOf(t("voice.reading"), pause, place, who, press(t("voice.stop"), end));
  const mine = { turn: turn.id, end };
  reading = mine;
  button.ariaPressed = "true";
  answer.after(bar);
  spoken.forEach(([at, text], n) => {
    const said = Object.assign(new SpeechSynthesisUtterance(text), { lang, voice });
    said.onstart = () => reading === mine && (blocks[0]?.isConnected ? show(at, n) : end());
    said.onend = () => reading === mine && n === spoken.length - 1 && end();
    said.onerror = ({ error }) => {
      if (reading !== mine || QUIET.includes(error)) return;
      end();
      complain(failed(error));
    };
    speechSynthesis.speak(said);
  });

  function show(at, n) {
    place.textContent = t("voice.part", { at: n + 1, of: spoken.length });
    for (const [i, block] of blocks.entries()) block.classList.toggle("spoken", i === at);
  }

  function end() {
    reading = null;
    speechSynthesis.resume(); // else what is read next stays silent
    speechSynthesis.cancel();
    show(-1, 0);
    if (bar.contains(document.activeElement)) button.focus();
    bar.remove();
    button.ariaPressed = "false";
  }
}

/** Writes what is said at the caret of `box`, until `button` is pressed once more, or what was there comes back. */
export function dictate(box, button, complain) {
  if (hearing) return hearing.stop();
  const old = box.value;
  const [before, after] = [old.slice(0, box.selectionStart), old.slice(box.selectionEnd)];
  const gap = /\S$/.test(before) ? " " : "";
  const clock = h("span.activity-clock");
  const began = performance.now();
  const tick = () => (clock.textContent = t("turn.elapsed", { s: Math.round((performance.now() - began) / 1000) }));
  const timer = setInterval(tick, 1000);
  const cancel = press(t("cancel"), () => {
    hearing.onresult = null;
    hearing.stop();
    write(old);
  });
  const done = press(t("voice.done"), () => hearing.stop(), "primary");
  const wave = h("span.wave", h("i"), h("i"), h("i"), h("i"), h("i"));
  const bar = barOf(t("voice.hearing"), wave, t("voice.hearing"), clock, h("span.gap"), cancel, done);
  hearing = Object.assign(new Recognition(), {
    lang: document.documentElement.lang,
    interimResults: true,
    continuous: true,
    onsoundstart: () => wave.classList.add("loud"),
    onsoundend: () => wave.classList.remove("loud"),
    onresult: ({ results }) =>
      write(`${before}${gap}${[...results].map(([best]) => best.transcript.trim()).join(" ")}${after}`),
    onerror: ({ error }) => QUIET.includes(error) || complain(failed(error)),
    onend() {
      hearing = null;
      clearInterval(timer);
      bar.remove();
      button.ariaPressed = "false";
      box.focus();
    },
  });
  button.ariaPressed = "true";
  box.before(bar);
  tick();
  hearing.start();

  function write(text) {
    box.value = text;
    box.dispatchEvent(new Event("input"));
  }
}
