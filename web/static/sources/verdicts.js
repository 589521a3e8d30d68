// Verdicts: what the check found at a mark, as a shape, in words, and in the words of the source.

import { h, icon } from "../lib/dom.js";
import { t } from "../locales/index.js";

// In the order in which several are told; a chip that stands for several shows the first.
const WORDS = {
  contradicted: "verdict.contradicted",
  misquoted: "verdict.misquoted",
  unclear: "verdict.unclear",
  unread: "verdict.unread",
  supported: "verdict.supported",
  quoted: "verdict.quoted",
};
const NAMES = Object.keys(WORDS);
const NEAREST = ["misquoted", "unclear"]; // where a passage is but the nearest there is
const ENOUGH = 20; // letters of a sentence that says something by itself

/** Those of the marks that have a verdict, what is worst first; logs from before there were any have none. */
export function judged(marks = []) {
  return marks.filter((mark) => WORDS[mark?.verdict]).sort((a, b) => NAMES.indexOf(a.verdict) - NAMES.indexOf(b.verdict));
}

/** A verdict in words. */
export const wordsOf = ({ verdict }) => t(WORDS[verdict]);

/** A line for each verdict at these places: its shape, how many places it holds at, and its words. */
export function verdictLines(marks, only = NAMES) {
  const all = judged(marks);
  const places = Map.groupBy(all, (mark) => mark.verdict);
  return [...places].filter(([verdict]) => only.includes(verdict)).map(([verdict, { length: n }]) => {
    const words = wordsOf({ verdict });
    const key = all.length === 1 ? null : n === all.length ? "verdict.places" : "verdict.some";
    return line(verdict, key ? t(key, { n, of: all.length, words }) : words);
  });
}

function line(verdict, words) {
  return h("span", { class: `verdict ${verdict}` }, icon(verdict), h("span", {}, words));
}

/** What a mark rests on: its verdict and the passage, in which the words of the claim are marked. */
export function evidence(mark, claim) {
  const { verdict, quote, passage, second } = mark;
  const missing = verdict === "misquoted" && quote ? h("q", { dir: "auto" }, quote) : null;
  const said = passage || (missing ? "" : quote);
  const label = passage && NEAREST.includes(verdict) ? "cite.nearest" : !passage && WORDS[verdict] ? "cite.given" : null;
  return [
    WORDS[verdict] ? line(verdict, wordsOf(mark)) : null,
    missing,
    said && label ? h("span", { class: "muted" }, t(label)) : null,
    said ? h("blockquote", { dir: "auto" }, withShared(said, claim)) : null,
    second
      ? h("p", { class: "second" }, t("second.says", { model: second.model, words: wordsOf(second) }), " ", h("q", { dir: "auto" }, second.reason))
      : null,
  ];
}

const cutWords = new Intl.Segmenter(undefined, { granularity: "word" });
const cutSentences = new Intl.Segmenter(undefined, { granularity: "sentence" });
const keyOf = ({ segment, isWordLike }) => (isWordLike ? segment.normalize("NFKC").toLowerCase() : "");

/** The sentence that a chip stands behind. */
export function claimBefore(chip) {
  const before = document.createRange();
  before.selectNodeContents(chip.closest("p, li, td, th, h3, h4, h5, h6") ?? chip.parentElement);
  before.setEndBefore(chip);
  const part = before.cloneContents();
  for (const other of part.querySelectorAll(".chip")) other.remove();
  const said = [...cutSentences.segment(part.textContent.trim())].map(({ segment }) => segment);
  const last = said.pop() ?? "";
  return last.length < ENOUGH ? (said.pop() ?? "") + last : last;
}

// The passage; runs of words that stand in the claim too are marked, if one of them says something.
function withShared(passage, claim) {
  const known = new Set([...cutWords.segment(claim)].map(keyOf)).add("");
  const out = [];
  let run = [];
  const close = () => {
    const [, before, shared, after] = /^([^\p{L}\p{N}]*)(.*?)([^\p{L}\p{N}]*)$/su.exec(run.map(({ segment }) => segment).join(""));
    out.push(before, run.some(says) ? h("mark", {}, shared) : shared, after);
    run = [];
  };
  for (const piece of cutWords.segment(passage)) {
    if (known.has(keyOf(piece))) run.push(piece);
    else {
      close();
      out.push(piece.segment);
    }
  }
  close();
  return out;
}

// A number, a word of four letters, or one of two in a script whose letters say more.
function says({ segment, isWordLike }) {
  return isWordLike && /\p{N}|[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Thai}]{2}|\p{L}{4}/u.test(segment);
}
