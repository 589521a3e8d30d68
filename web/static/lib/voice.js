// The browser's own speech: an answer read aloud, a question dictated. Both are off until somebody wants them,
// and the settings say before where text and sound go.

import { t } from "../locales/index.js";
import { textOf } from "./dom.js";

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

/** Reads an answer, paragraph by paragraph and without its code; pressed once more, it ends. */
export function readAloud(turn, button, complain) {
  const again = reading?.turn === turn.id;
  reading?.end();
  if (again) return;
  const blocks = [...button.closest(".turn").querySelector(".answer").children];
  const show = at => {
    for (const [i, block] of blocks.entries()) block.classList.toggle("spoken", i === at);
  };
  const texts = turn.blocks.map((block, at) => [at, block.t === "pre" ? "" : textOf(block).trim()]);
  const spoken = texts.filter(([, text]) => text);
  const lang = /\p{Script=Han}/u.test(turn.text) ? "zh" : document.documentElement.lang;
  const mine = { turn: turn.id, end };
  reading = mine;
  button.ariaPressed = "true";
  for (const part of spoken) {
    const said = Object.assign(new SpeechSynthesisUtterance(part[1]), { lang, voice: voiceOf(lang) });
    said.onstart = () => reading === mine && (blocks[0]?.isConnected ? show(part[0]) : end());
    said.onend = () => reading === mine && part === spoken.at(-1) && end();
    said.onerror = ({ error }) => {
      if (reading !== mine || QUIET.includes(error)) return;
      end();
      complain(failed(error));
    };
    speechSynthesis.speak(said);
  }

  function end() {
    reading = null;
    speechSynthesis.cancel();
    show(-1);
    button.ariaPressed = "false";
  }
}

/** Writes what is said at the caret of `box`, until `button` is pressed once more. */
export function dictate(box, button, complain) {
  if (hearing) return hearing.stop();
  const [before, after] = [box.value.slice(0, box.selectionStart), box.value.slice(box.selectionEnd)];
  const gap = /\S$/.test(before) ? " " : "";
  hearing = Object.assign(new Recognition(), {
    lang: document.documentElement.lang,
    interimResults: true,
    continuous: true,
    onresult({ results }) {
      box.value = `${before}${gap}${[...results].map(([best]) => best.transcript.trim()).join(" ")}${after}`;
      box.dispatchEvent(new Event("input"));
    },
    onerror: ({ error }) => QUIET.includes(error) || complain(failed(error)),
    onend() {
      hearing = null;
      button.ariaPressed = "false";
      box.focus();
    },
  });
  button.ariaPressed = "true";
  hearing.start();
}
