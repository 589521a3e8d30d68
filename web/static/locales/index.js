// The words of the page in the language of its reader. A language is one JSON file in this folder.
//
// A text with a count is {one, other} and is chosen by the language's plural rule from `n`.

const { languages: all, language: chosen } = document.documentElement.dataset; // by the page's first script
const KEPT = "searchloop.language";

/** The languages there are, each in its own words. */
export const languages = Object.entries(JSON.parse(all)); // {file name: what it calls itself}

/** The language that was chosen; empty for the browser's. */
export const chosenLanguage = () => localStorage.getItem(KEPT) ?? "";

/** Chooses a language for this browser; the page has to be loaded anew. */
export const chooseLanguage = name => localStorage.setItem(KEPT, name);

let en = null;
const texts = (await load(chosen)) ?? (await known());
const tag = texts["language.tag"];
const language = tag.split("-")[0];
if (language === "en") en = texts;
const plural = new Intl.PluralRules(tag);

/**
 * The words in English, by which the server's sentences are told apart: fetched before the first of them is
 * shown. Without them an error is told by its code, and in the server's own words.
 */
export async function known() {
  return (en ??= await load("en"));
}

// A language that cannot be had is null: the page speaks English then.
async function load(name) {
  const answer = await fetch(new URL(`${name}.json`, import.meta.url)).catch(() => null);
  return answer?.ok ? answer.json() : null;
}

/** The text `key` with its {places} filled from `values`; throws on a key that does not exist. */
export function t(key, values = {}) {
  const entry = texts[key];
  if (entry === undefined) throw new Error(`no text called ${key}`);
  const form = typeof entry === "string" ? entry : (entry[plural.select(values.n)] ?? entry.other);
  return form.replace(/( ?)\{(\w+)\}( ?)/g, (_whole, before, name, after) => {
    const value = isolated(values[name] ?? `{${name}}`);
    return `${isHan(value.at(0)) ? "" : before}${value}${isHan(value.at(-1)) ? "" : after}`;
  });
}

// Chinese stands apart from other letters in a sentence, but not from Chinese.
function isHan(character) {
  return language === "zh" && /\p{Script=Han}/u.test(character ?? "");
}

const RTL = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

// Arabic or Hebrew inside a sentence must not turn the words around it.
function isolated(value) {
  return RTL.test(value) ? `\u2068${value}\u2069` : String(value);
}

/** The same text in English. */
export const english = async key => (await known())?.[key] ?? t(key);

/** What the server says in English, `original`; in the words that a catalogue has for `key`, if it has any. */
export const worded = (key, original) => texts[key] ?? original;

/** A number as people write it who read this page, with exactly `places` behind the point if given. */
export const number = (n, places) =>
  n.toLocaleString(tag, places === undefined ? {} : { minimumFractionDigits: places, maximumFractionDigits: places });

/** Names, one after the other. */
export const named = names => names.join(t("list.names"));

/** Parts of a sentence, those that are there, one after the other. */
export const clauses = parts => parts.filter(Boolean).join(t("list.clauses"));

/** Two sentences, of which each may be missing, and the first may lack its full stop. */
export function sentences(first, second) {
  if (!first || !second) return first || second || "";
  return t("list.sentences", { first: first.replace(/[.。]$/, ""), second });
}

/** What a setting is for. */
export const helpOf = ({ name, help }) => worded(`help.${name}`, help);

/** Where a value of a setting comes from, as the server calls it. */
export const originOf = name => (has(`origin.${name}`) ? t(`origin.${name}`) : name);

/** Whether there is a text called `key`. */
export function has(key) {
  return key in texts;
}

/**
 * An error or a notice of the server, {code, message, remedy}, in the language of the page.
 *
 * Its text is English. A catalogue has a sentence for each code, and for some codes the texts that the
 * server has, with {places}: one that fits is said whole. Else `original` holds the server's own words.
 * What is `own`, worded by the page, and what no catalogue knows, stays as it is.
 */
export function translated({ code = "", message = "", remedy = "", own = false }) {
  const key = `error.${String(code)
    .replace(/^reader_/, "")
    .replace(/^http_\d+$/, "http")}`;
  if (own || language === "en" || !has(key)) return { code, message, remedy };
  for (let n = 1; en && has(`${key}.${n}`); n++) {
    const values = filled(en[`${key}.${n}`], message);
    if (!values) continue;
    const reason = `attempt.${values.reason}`; // an engine's failure, by its code
    if (has(reason)) values.reason = t(reason);
    values.asked &&= values.asked.replace(/([^ ,]+) \(([^)]+)\)/g, (_all, engine, why) =>
      t("attempt.asked", { engine: nameOf(engine), why: worded(`why.${why}`, why) }),
    );
    return { code, message: t(`${key}.${n}`, values), remedy: "", original: remedy };
  }
  const said = en?.[key] === message ? remedy : [message, remedy].filter(Boolean).join(" ");
  return { code, message: t(key), remedy: "", original: said };
}

/** What keeps a model from being chosen, as the server says of it: a key, or why and what to do. */
export function lackOf({ missing, remedy } = {}) {
  if (/^[A-Z0-9_]+$/.test(missing ?? "")) return t("model.needs");
  return formed("error.", missing) ?? [missing, remedy].filter(Boolean).join(". ");
}

/** A text of the server's that reads like the English one of a key that begins so; null where none does. */
export function formed(head, text) {
  const forms = language === "en" || !text ? [] : Object.keys(en ?? {}).filter(key => key.startsWith(head));
  for (const key of forms) {
    const values = filled(en[key], text);
    if (values) return t(key, values);
  }
  return null;
}

// The values with which `form` reads like `text`, or null.
function filled(form, text) {
  const pattern = form.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{(\w+)\}/g, "(?<$1>.+)");
  const fits = new RegExp(`^${pattern}$`, "s").exec(text);
  return fits && { ...fits.groups };
}

/** How a provider or engine is called in front of people. */
export function nameOf(id) {
  return has(`name.${id}`) ? t(`name.${id}`) : id;
}

/** What a model is called. */
export function titleOf(model) {
  if (model.id === "builtin:extractive") return t("model.extractive");
  return model.title || model.id.slice(model.id.indexOf(":") + 1);
}

/** Fills the words of a static part of the page: data-t, data-label, data-placeholder. */
export function translate(root) {
  document.documentElement.lang = tag;
  document.documentElement.dir = t("language.direction");
  for (const node of root.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
  for (const node of root.querySelectorAll("[data-label]")) {
    const label = t(node.dataset.label);
    node.setAttribute("aria-label", label);
    if (node.tagName === "BUTTON") node.title = label;
  }
  for (const node of root.querySelectorAll("[data-placeholder]")) {
    node.placeholder = t(node.dataset.placeholder);
  }
}
