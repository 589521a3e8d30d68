// What is told of a chat while its tab is hidden: in the title always, and where the person wants it by a
// notice of the browser and a sound. Nothing of an answer is in a notice.

import { t } from "../locales/index.js";

const RECENT = 60; // seconds; what is older is read again, and no news
const LONG = 20; // seconds of an answer that is worth a notice

/** Whether a switch of this browser, `notices` or `sound`, is on. */
export const wants = name => localStorage.getItem(`searchloop.${name}`) === "on";

/** Keeps a switch; gives whether it is on, which for notices the browser decides. */
export async function want(name, on) {
  const may = name !== "notices" || !on || (await globalThis.Notification?.requestPermission()) === "granted";
  localStorage.setItem(`searchloop.${name}`, on && may ? "on" : "off");
  return on && may;
}

/** Tells of an event; gives the words for the title, or none where it is no news. */
export function newsOf(event, turn, { id, title, settings }) {
  if (Math.abs(Date.now() / 1000 - event.at) > RECENT) return "";
  const done = event.type === "run_finished";
  const words = t(done ? "notice.done" : "notice.waits");
  if (done && event.at - turn.startedAt < LONG) return words;
  if (wants("sound")) sound();
  if (wants("notices") && globalThis.Notification?.permission === "granted") {
    const notice = new Notification(words, { body: settings?.temporary ? "" : title, tag: id });
    notice.addEventListener("click", () => focus());
  }
  return words;
}

function sound() {
  const audio = new AudioContext();
  const tone = new OscillatorNode(audio, { frequency: 660 });
  tone.connect(new GainNode(audio, { gain: 0.1 })).connect(audio.destination);
  tone.addEventListener("ended", () => audio.close());
  tone.start();
  tone.stop(audio.currentTime + 0.25);
}
