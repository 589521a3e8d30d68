// The settings of templates: questions with {{fields}}, listed, made, changed, brought in and taken along.

import * as api from "../lib/api.js";
import { h, saveFile } from "../lib/dom.js";
import { named, t } from "../locales/index.js";
import {
  attempt,
  button,
  choice,
  confirmed,
  field,
  fileButton,
  problemLine,
  sends,
  textArea,
  textBox,
} from "../settings/kit.js";
import { fieldsOf } from "./template_fields.js";

let proposed = null; // {text, project?}: a message, and the project of its chat

/** The room opens with a new template of this text, for the project {id, name} of its chat if it has one. */
export const propose = (text, project) => (proposed = { text, project });

/** The room of those for all chats. */
export const templatesPage = body => drawTemplates(body);

/** The list of templates, of all chats or of one project, and the form of one. */
export async function drawTemplates(body, id) {
  const store = api.templates(id);
  const part = h("div.settings-page");
  const problem = problemLine();
  body.append(part, problem);

  function list(templates) {
    const shown = templates.map(({ command, title, content }) => ({ command: `/${command}`, title, content }));
    const save = () => saveFile("templates.json", JSON.stringify(shown, null, 1), "application/json");
    part.replaceChildren(
      h("ul.cards", templates.map(row)),
      h(
        "div.line",
        button(t("template.new"), () => edit({ command: "", content: "" }), { class: "primary" }),
        fileButton(t("template.import"), ([file]) => bring(file), { accept: ".json,application/json" }),
        templates.length > 0 && button(t("template.export"), save),
      ),
    );
  }

  const row = template =>
    h(
      "li.card",
      h(
        "div.head",
        h("h4", { dir: "auto" }, `/${template.command}`),
        h(
          "span.acts",
          button(t("template.edit"), () => edit(template), {
            "aria-label": `${t("template.edit")} /${template.command}`,
          }),
          confirmed(
            t("template.remove"),
            t("template.remove"),
            () => remove(template),
            `${t("template.remove")} /${template.command}`,
          ),
        ),
      ),
      h("p", { dir: "auto" }, template.content.slice(0, 300)),
    );

  const remove = ({ command }) => attempt(problem, async () => list(await store.remove(command)));

  // Ours or Open WebUI's: a list of objects with command, title and content.
  const bring = file =>
    attempt(problem, async () => {
      const given = JSON.parse(await file.text());
      list(await store.keep(Array.isArray(given) ? given : (given.templates ?? [given])));
    }).then(() => problem.textContent && (problem.textContent = t("template.refused", { why: problem.textContent })));

  function edit(template, project) {
    const places =
      project &&
      choice([
        ["", t("template.all")],
        [project.id, project.name],
      ])(project.id);
    const where = places && Object.assign(places, { id: "template-where" });
    const name = textBox(template.command, { id: "template-name", required: true });
    const text = textArea(template.content, { id: "template-text", rows: "6", required: true });
    const found = h("p.muted", { role: "status" });
    const tell = () => {
      const fields = fieldsOf(text.value);
      found.textContent = fields.length
        ? t("template.found", { names: named(fields) })
        : t("template.hint", { field: `{{${t("template.field")}}}` });
    };
    const save = async () => {
      const to = where?.value ? api.templates(where.value) : store;
      const all = await to.keep([{ ...template, command: name.value, content: text.value }]);
      const old = template.command && template.command !== name.value.replace(/^\//, "").toLowerCase();
      list(old ? await store.remove(template.command) : to === store ? all : await store.all());
    };
    text.addEventListener("input", tell);
    tell();
    part.replaceChildren(
      h(
        "form.settings-page",
        { onsubmit: () => attempt(problem, save) },
        field(t("agents.name"), name),
        field(t("template.text"), text, found),
        where && field(t("template.where"), where),
        h(
          "div.line",
          sends(t("keys.save")),
          button(t("cancel"), async () => list(await store.all())),
        ),
      ),
    );
    name.focus();
  }

  list(await store.all());
  if (!id && proposed) edit({ command: "", content: proposed.text }, proposed.project);
  if (!id) proposed = null;
}
