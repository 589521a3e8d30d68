// Files that go along with a question, as text; fetched when somebody adds the first.
//
// They become part of the question's text, each under its name and in a fence that its own text
// cannot close: what the model is sent is what the bubble shows (`questionParts` in actions.js).

import { h, icon, iconButton } from "./dom.js";
import { Failure } from "./api.js";
import { number, t } from "./strings.js";

export const LONGEST = 200_000; // characters of one file

/** The files waiting beside the box: {add(files), take() -> text, put(), clear()}. */
export function fileShelf(shelf, complain) {
  let waiting = [];

  function draw() {
    shelf.hidden = waiting.length === 0;
    shelf.replaceChildren(
      ...waiting.map((file) =>
        h(
          "li",
          { class: "file" },
          icon("page"),
          h("span", { dir: "auto" }, file.name),
          h("span", { class: "hint" }, t("file.length", { n: number(file.text.length) })),
          iconButton("close", t("file.remove", { name: file.name }), () => drop(file), { class: "quiet" }),
        ),
      ),
    );
  }

  function drop(file) {
    waiting = waiting.filter((other) => other !== file);
    draw();
  }

  async function add(files) {
    for (const file of files) {
      try {
        waiting.push({ name: file.name.replace(/[\n\r]/g, " ").slice(0, 200), text: await textOf(file) });
      } catch (failure) {
        complain(failure);
      }
    }
    draw();
  }

  /** What the files add to the question's text; the shelf is empty then. */
  function take() {
    const taken = waiting;
    waiting = [];
    draw();
    return { text: taken.map(attached).join(""), back: () => ((waiting = [...taken, ...waiting]), draw()) };
  }

  return { add, take };
}

async function textOf(file) {
  const refused = (key) =>
    new Failure(0, { code: "bad_file", message: t(key, { name: file.name }), remedy: t("file.next", { most: number(LONGEST) }) });
  if (file.size > LONGEST * 4) throw refused("file.toolong");
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw refused("file.notext");
  }
  if (text.includes("\0")) throw refused("file.notext");
  if (text.length > LONGEST) throw refused("file.toolong");
  return text;
}

function attached({ name, text }) {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `\n\nAttached file: ${name}\n${fence}\n${text}\n${fence}`;
}
