// A difference between two texts, as it is shown before and after a change.

import { h } from "./dom.js";
import { named } from "./signs.js";

const SIGNS = { "+": "added", "-": "gone", "@": "place" };

/**
 * A unified diff of one file, each line marked by its sign as well as by its colour.
 * `label` is read aloud.
 */
export function diff(text, label) {
  const said = text
    .replace(/^---.*\n\+\+\+.*\n/, "")
    .replace(/\n$/, "")
    .split("\n");
  const lines = said.map(line => h("span", { class: SIGNS[line[0]] }, named(`${line}\n`)));
  return h("pre.diff", { tabindex: "0", role: "region", "aria-label": label, dir: "ltr" }, lines);
}
