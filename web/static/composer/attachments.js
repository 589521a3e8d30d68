// Files that go along with a question; fetched when somebody adds the first.
//
// A text becomes part of the question's text under its name (`attached` in chat/turn_actions.js): what the
// model is sent is what the bubble shows. Of a picture, a PDF or another document the bytes go along; the
// server says beforehand what it is, or in a sentence why it cannot go. A large picture is made smaller here.

import { aboutFile, attached, bytes } from "../chat/turn_actions.js";
import { base64, Failure, lookAt } from "../lib/api.js";
import { h, icon, iconButton, keepFocus } from "../lib/dom.js";
import { number, t } from "../locales/index.js";

const LONGEST = 200_000; // characters of one text
const MOST = 1_000_000; // bytes of all texts as they are sent; the server takes little more
const LONGEST_NAME = 200; // characters
const HEAD = 4096; // bytes that tell text from anything else
const LARGEST = 20_000_000; // bytes of a document, which the server takes
const LARGEST_PICTURE = 60_000_000; // bytes of a picture that is made smaller
const SIDE = 2000; // pixels: models see no more, and some take no more where there are many
const ENOUGH = 1_500_000; // bytes of a picture that goes as it is
const THUMB = 72; // pixels

/**
 * The files waiting beside the box: {add(given, home), put(texts, home), text(), count(), looking(), take() ->
 * {text, more, back(chat)}, looked() -> promise<boolean>, follow(chat, turned), forget(chat)}. `given` are files and
 * `texts`, {name, text}; `home()` is the chat that got them, undefined once it is gone, and `more` is what goes
 * along with the question beside its text. `on` holds chat, complain(...failures), told of all that cannot go along,
 * say(text), changed(), leave(), called when the last was left out, and aside(chat, text) for another chat's texts.
 */
export function fileShelf(shelf, on) {
  const trays = new Map(); // the files of each chat; those of others are pictures and documents
  let chat = on.chat;
  const waiting = () => trays.get(chat) ?? [];

  function draw() {
    shelf.hidden = waiting().length === 0;
    keepFocus(shelf, () => shelf.replaceChildren(...waiting().map(itemOf)));
    on.changed();
  }

  function itemOf(file) {
    return h(
      "li.file",
      { "aria-busy": file.looking ? "true" : null },
      file.thumb ? h("img.thumb", { src: file.thumb, alt: "" }) : icon(file.folder ? "folder" : "page"),
      h("span", { dir: "auto" }, file.name),
      h("span.hint", hintOf(file)),
      iconButton("close", t("file.remove", { name: file.name }), () => drop(file)),
    );
  }

  function drop(file) {
    const at = waiting().indexOf(file);
    remove(file);
    draw();
    const buttons = shelf.querySelectorAll("button");
    if (buttons.length) buttons[Math.min(at, buttons.length - 1)].focus();
    else on.leave();
  }

  function remove(file) {
    for (const [where, files] of trays)
      trays.set(
        where,
        files.filter(other => other !== file),
      );
  }

  let refusals = []; // of the files that came last

  // Reading takes a while: `home` says whose they are then.
  async function add(given, home) {
    const read = await Promise.allSettled(given.map(readText));
    put(
      read.map(({ value, reason }) => value ?? reason),
      home,
    );
  }

  function put(given, home) {
    const to = home();
    if (to === undefined) return;
    refusals = given.filter(each => each instanceof Error);
    for (const each of given) if (!refusals.includes(each)) (each instanceof File ? look : keep)(each, to);
    if (refusals.length) on.complain(...refusals);
    draw();
  }

  function keep(file, to) {
    if (file.folder) return trays.set(to, [...(trays.get(to) ?? []), file]);
    if (to !== chat) return on.aside(to, attached(file));
    const size = new TextEncoder().encode(JSON.stringify(file.text)).length;
    const taken = waiting().reduce((sum, other) => sum + (other.text ? other.size : 0), size);
    if (size > MOST) return refusals.push(refused("file.toolong", file.name, "file.next", LONGEST));
    if (taken > MOST) return refusals.push(refused("file.nofit", file.name, "file.nofit.next", MOST));
    trays.set(chat, [...waiting(), { ...file, size }]);
  }

  // It stands on the shelf at once; what the server says of it comes later, or takes it away again.
  function look(file, to) {
    const item = { name: plain(file.name), data: "", size: file.size };
    trays.set(to, [...(trays.get(to) ?? []), item]);
    item.looking = lookedAt(file, item).then(
      known => {
        Object.assign(item, known, { looking: null });
        on.say(t("file.added", { name: item.name, about: hintOf(item) }));
        return true;
      },
      failure => {
        remove(item);
        refusals.push(failure);
        on.complain(...refusals);
        return false;
      },
    );
    item.looking.then(draw);
  }

  const looking = () => waiting().some(file => file.looking);

  /** Once all files were looked at: whether every one of them can go. */
  const looked = async () => (await Promise.all(waiting().map(file => file.looking ?? true))).every(Boolean);

  const folders = () => waiting().filter(({ folder }) => folder);

  /** What the texts add to the question's text. */
  const text = () =>
    waiting()
      .filter(file => file.text !== undefined)
      .map(attached)
      .join("");

  /** The same, and the rest as the server takes it; the shelf is empty then, until they come `back`. */
  function take() {
    const [taken, added] = [waiting(), text()];
    const files = taken.filter(file => file.data).map(({ name, kind, data }) => ({ name, media_type: kind, data }));
    const more = files.length ? { attachments: files } : {};
    if (folders().length) more.folders = folders().map(({ folder }) => folder);
    trays.delete(chat);
    draw();
    const back = to => {
      trays.set(to, [...(to === chat ? taken : taken.filter(noText)), ...(trays.get(to) ?? [])]);
      draw();
    };
    return { text: added, more, back };
  }

  /** Another chat is on show, or the same one has got its name: texts are the composer's affair. */
  function follow(next, turned) {
    const files = turned ? waiting().filter(noText) : waiting();
    trays.delete(chat);
    if (!turned || chat !== null) trays.set(turned ? chat : next, files);
    chat = next;
    if (turned) draw();
  }

  return {
    add,
    put,
    text,
    take,
    looking,
    looked,
    follow,
    count: () => waiting().length,
    folders: () => folders().map(({ name }) => name),
    forget: gone => trays.delete(gone),
  };
}

const noText = file => file.text === undefined;

function hintOf({ kind, pages, size, before, length, looking, text, folder }) {
  if (looking) return t("file.looking");
  if (folder) return t("menu.searched");
  if (text !== undefined) return t("file.length", { n: number(text.length) });
  if (before > size) return t("file.resized", { before: bytes(before), after: bytes(size) });
  const about = aboutFile({ kind, pages, size });
  return pages && !length ? t("file.scanned", { about }) : about;
}

// What is known of the bytes of a file, from the server; a picture is made smaller if it is large.
async function lookedAt(file, { name }) {
  const picture = file.type.startsWith("image/") ? await smaller(file, name) : null;
  const blob = picture?.blob ?? file;
  if (blob.size > LARGEST) throw tooLarge(name, LARGEST);
  const data = await base64(blob);
  const found = await lookAt({ name: name.trim() || "file", media_type: blob.type, data });
  const { media_type: kind, pages, length, size } = found;
  return { data, kind, pages, length, size, before: file.size, thumb: picture?.thumb };
}

// A picture that the browser cannot draw goes as it is: the server says what is wrong with it.
async function smaller(file, name) {
  if (file.size > LARGEST_PICTURE) throw tooLarge(name, LARGEST_PICTURE);
  let picture;
  try {
    picture = await createImageBitmap(file);
  } catch {
    return null;
  }
  const largest = Math.max(picture.width, picture.height);
  const thumb = drawn(picture, THUMB / largest).toDataURL("image/png");
  if (largest <= SIDE && file.size <= ENOUGH) return { blob: file, thumb };
  const canvas = drawn(picture, Math.min(1, SIDE / largest));
  const blob = await new Promise(made => canvas.toBlob(made, "image/jpeg", 0.9));
  return { blob: blob && blob.size < file.size ? blob : file, thumb };
}

function drawn(picture, scale) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(picture.width * Math.min(1, scale)));
  canvas.height = Math.max(1, Math.round(picture.height * Math.min(1, scale)));
  const pen = canvas.getContext("2d");
  pen.fillStyle = "white"; // behind what is transparent
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
  return canvas;
}

function tooLarge(name, most) {
  const message = t("error.attachment_too_large.1", { name, size: bytes(most) });
  return new Failure(0, { code: "attachment_too_large", message });
}

function refused(key, name, next, most) {
  const [message, remedy] = [t(key, { name }), t(next, { most: number(most) })];
  return new Failure(0, { code: "bad_file", message, remedy });
}

// A name on one line, in the order in which it is written.
function plain(name) {
  return name.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, " ").slice(0, LONGEST_NAME) || " ";
}

// Whether a file begins like a text; a PDF may begin so as well.
async function isText(file) {
  if (/^image\/(?!svg)|\/pdf$/.test(file.type)) return false;
  const head = await file.slice(0, HEAD).arrayBuffer();
  try {
    const begin = new TextDecoder("utf-8", { fatal: true }).decode(head, { stream: true });
    return !begin.includes("\0") && !begin.includes("%PDF-");
  } catch {
    return false;
  }
}

// A text with its name; of other files the file itself.
async function readText(file) {
  if (!(file instanceof File && (await isText(file)))) return file;
  const no = key => refused(key, plain(file.name), "file.next", LONGEST);
  if (file.size > LONGEST * 4) throw no("file.toolong");
  const text = new TextDecoder("utf-8").decode(await file.arrayBuffer());
  if (text.length > LONGEST) throw no("file.toolong");
  return { name: plain(file.name), text };
}
