// Other programs: their switch, those with a key of their own, and the lines that connect each.

import * as api from "../lib/api.js";
import { codeBlock, h } from "../lib/dom.js";
import { t } from "../locales/index.js";
import { attempt, card, choice, confirmed, field, problemLine, row, sends, settingField, textBox } from "./kit.js";

const SWITCH = "SEARCHLOOP_CLIENT_SEARCH";
const TOKEN = "TOKEN"; // in the place of the page's own, which it does not know
const BOUNDS = ["tokens", "cost_usd", "searches", "pages"];
const among = words => choice(words.map(word => [word, t(`programs.${word}`)]));
const positions = among(["auto", "offline", "off"]);

/** The page; `on` has store. */
export async function programsPage(body, { store }) {
  const lines = await fetch(new URL("../app/programs.json", import.meta.url)).then(answer => answer.json());
  const own = h("ul.cards");
  const made = h("div", { role: "status" });
  const ways = h("div.settings-page");
  const connect = key => ways.replaceChildren(way("mcp", "/mcp", lines, key), way("models", "/v1", lines, key));
  const list = async () => own.replaceChildren(...(await api.programs()).map(each => programRow(each, list)));
  const add = async program => {
    const { key } = await api.addProgram(program);
    made.replaceChildren(h("p", t("programs.once", program)), codeBlock("", key));
    connect(key);
    await list();
  };
  connect(TOKEN);
  body.append(
    settingField(store, SWITCH, { label: t(`set.${SWITCH}`), hint: t("programs.switch"), make: positions }),
    card(
      { id: "programs-own", title: t("programs.own") },
      h("p.muted", t("programs.own.lead")),
      own,
      made,
      h("details.more", h("summary", t("programs.add")), rightsForm({ search: "auto", models: [] }, add)),
    ),
    ways,
    h("p.muted", t("programs.token", { word: TOKEN })),
  );
  await list();
}

function programRow(program, list) {
  const { name, used } = program;
  const models = program.models.join(", ") || t("programs.none");
  const { searches, pages, tokens } = used;
  const spent = { n: used.answers, searches, pages, tokens, usd: used.cost_usd.toFixed(2) };
  const change = rights => api.changeProgram(name, rights).then(list);
  const back = () => api.removeProgram(name).then(list);
  const away = confirmed(t("programs.back"), t("programs.back.sure"), back, t("programs.back.named", { name }));
  const edit = h("details.more", h("summary", t("programs.rights")), rightsForm(program, change));
  const told = [`programs.${program.search}`, "programs.asks", `programs.used.${program.per}`];
  const about = told.map(key => t(key, { models, ...spent })).join(" · ");
  return row(`${name} …${program.ends}`, about, away, edit);
}

/** The form of what a program may do; `send` gets it. A new one has a name to fill in. */
function rightsForm(program, send) {
  const said = problemLine();
  const limit = value => textBox(value ?? "", { type: "number", min: "0", step: "any" });
  const controls = {
    ...(program.name ? {} : { name: textBox("", { required: true, maxlength: "40" }) }),
    search: positions(program.search),
    models: textBox(program.models.join(", ")),
    ...Object.fromEntries(BOUNDS.map(name => [name, limit(program[name])])),
    per: among(["day", "month"])(program.per ?? "day"),
  };
  const read = () => {
    const given = Object.fromEntries(Object.entries(controls).map(([name, { value }]) => [name, value || null]));
    const models = (given.models ?? "").split(/[\s,]+/).filter(Boolean);
    return { ...given, models, ...Object.fromEntries(BOUNDS.map(name => [name, given[name] && +given[name]])) };
  };
  const onsubmit = () => attempt(said, () => send(read()));
  const fields = Object.entries(controls).map(([name, control]) => {
    control.id = `program-${program.name ?? ""}-${name}`;
    return field(t(`programs.of.${name}`), control);
  });
  return h("form.settings-page", { onsubmit }, fields, said, h("div.line", sends(t("keys.save"))));
}

function way(name, path, programs, key) {
  const fill = text => codeBlock("", text.replaceAll("{at}", location.origin).replaceAll("{key}", key));
  return card(
    { id: `programs-${name}`, title: t(`programs.${name}`) },
    h("p.muted", t(`programs.${name}.lead`)),
    fill(`{at}${path}`),
    Object.entries(programs).map(
      ([program, { [name]: lines }]) => lines && h("details.more", h("summary", program), fill(lines)),
    ),
  );
}
