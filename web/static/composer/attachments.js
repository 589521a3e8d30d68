// Files that go along with a question, as text; fetched when somebody adds the first.
//
// They become part of the question's text, each under its name (`attached` in chat/turn_actions.js): what the
// model is sent is what the bubble shows.

import { attached } from "../chat/turn_actions.js";
import { Failure } from "../lib/api.js";
import { h, icon, iconButton } from "../lib/dom.js";
import { number, t } from "../locales/index.js";

const LONGEST = 200_000; // characters of one file
const MOST = 1_000_000; // bytes of all of them as they are sent; the server takes little more
const LONGEST_NAME = 200; // characters

/**
 * The files waiting beside the box: {add(files), put(texts), text(), take() -> {text, back()}}; `texts`
 * are {name, text}. `on` holds complain(...failures), told of all that cannot go along, changed(), and
 * leave(), called when the last of them was left out.
 */
export function fileShelf(shelf, on) {
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
    on.changed();
  }

  function drop(file) {
    const at = waiting.indexOf(file);
    waiting = waiting.filter((other) => other !== file);
    draw();
    const buttons = shelf.querySelectorAll("button");
    if (buttons.length) buttons[Math.min(at, buttons.length - 1)].focus();
    else on.leave();
  }

  async function add(files) {
    const failures = [];
    for (const file of files) {
      try {
        keep({ name: plain(file.name), text: await textOf(file) });
      } catch (failure) {
        failures.push(failure);
      }
    }
    ended(failures);
  }

  function put(texts) {
    const failures = [];
    for (const text of texts) {
      try {
        keep(text);
      } catch (failure) {
        failures.push(failure);
      }
    }
    ended(failures);
  }

  function ended(failures) {
    if (failures.length) on.complain(...failures);
    draw();
  }

  function keep(file) {
    const size = new TextEncoder().encode(JSON.stringify(file.text)).length;
    const taken = waiting.reduce((sum, other) => sum + other.size, size);
    if (taken > MOST) throw refused("file.nofit", file.name, "file.nofit.next", MOST);
    waiting.push({ ...file, size });
  }

  /** What the files add to the question's text. */
  const text = () => waiting.map(attached).join("");

  /** The same; the shelf is empty then. */
  function take() {
    const [taken, added] = [waiting, text()];
    waiting = [];
    draw();
    return { text: added, back: () => ((waiting = [...taken, ...waiting]), draw()) };
  }

  return { add, put, text, take };
}

function refused(key, name, next, most) {
  const [message, remedy] = [t(key, { name }), t(next, { most: number(most) })];
  return new Failure(0, { code: "bad_file", message, remedy });
}

// A name on one line, in the order in which it is written.
function plain(name) {
  return name.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, " ").slice(0, LONGEST_NAME) || " ";
}

async function textOf(file) {
  const no = (key) => refused(key, plain(file.name), "file.next", LONGEST);
  if (file.size > LONGEST * 4) throw no("file.toolong");
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw no("file.notext");
  }
  if (text.includes("\0")) throw no("file.notext");
  if (text.length > LONGEST) throw no("file.toolong");
  return text;
}
