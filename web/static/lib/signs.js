// Characters that nobody sees, or that turn the direction of a line: shown by their number wherever
// somebody decides, so that a card shows what a file will hold.

import { h } from "./dom.js";

// Controls but tab and line end, formats (zero width, directions, tags), separators, fillers.
const SIGN = /(?!\t|\r?\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0]|\u034f/gu;

const nameOf = sign => `U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

/** Text as nodes in which each such sign is a mark with its number. */
export function named(text) {
  const nodes = text.split(SIGN).map(part => [part]);
  [...text.matchAll(SIGN)].forEach(([sign], at) => {
    nodes[at].push(h("mark.sign", nameOf(sign)));
  });
  return nodes.flat();
}

/** The numbers of these signs in a text, each once, as words; empty without any. */
export const signsIn = text => [...new Set(text.match(SIGN))].map(nameOf).join(", ");
