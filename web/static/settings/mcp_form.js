// The form of a new MCP server: fields and their JSON side by side, each in step with the other.

import * as api from "../lib/api.js";
import { h } from "../lib/dom.js";
import { errorText } from "../lib/messages.js";
import { t } from "../locales/index.js";
import { field, problemLine, segments, sends, textArea, textBox } from "./kit.js";

const TYPED = { spellcheck: "false", dir: "ltr" };
const FIELDS = { program: ["name", "command", "env"], address: ["name", "url", "headers"] };
// Which field the server's refusal is about, by its code or by the name of the field in its words.
const BLAMED = {
  missing_command: "command",
  missing_url: "url",
  server_exists: "name",
  bad_json: "config",
  bad_servers: "config",
  no_servers: "config",
};

/**
 * The form; `add(config, names)` saves what has been looked at, and throws where it is refused. `given` is
 * the JSON of a server that is there, which is edited under its name.
 */
export function serverForm(add, given = "") {
  const boxes = {
    name: textBox("", { placeholder: "notes" }),
    command: textBox("", { dir: "ltr", placeholder: "npx -y @example/notes-mcp --dir ~/notes" }),
    url: textBox("", { dir: "ltr", placeholder: "https://example.com/mcp" }),
    env: textArea("", { ...TYPED, rows: "2", placeholder: "API_TOKEN=…" }),
    headers: textArea("", { ...TYPED, rows: "2", placeholder: "Authorization=Bearer …" }),
    config: textArea(given, {
      ...TYPED,
      rows: "8",
      placeholder: '{"mcpServers": {"notes": {"command": "npx", "args": []}}}',
    }),
  };
  const fields = Object.fromEntries(Object.entries(boxes).map(([name, box]) => [name, fieldOf(name, box)]));
  const problem = problemLine();
  const several = h("p.muted", { role: "status" });
  const plan = h("div.settings-page");
  const part = h("div.settings-page");
  let kind = "program";
  let rest = {}; // what the fields do not show
  pick("program");
  boxes.name.readOnly = Boolean(given);
  if (given) fromJson();

  function pick(wanted) {
    kind = wanted;
    const kinds = segments(
      given ? "mcp-kind-edited" : "mcp-kind",
      t("mcp.kind"),
      ["program", "address"].map(each => [each, t(`mcp.kind.${each}`)]),
      kind,
      each => {
        pick(each);
        toJson();
        part.querySelector("input:checked").focus();
      },
    );
    part.replaceChildren(kinds, ...FIELDS[kind].map(name => fields[name]), several);
  }

  function toJson() {
    settle();
    const pairs = text =>
      Object.fromEntries(
        text
          .split("\n")
          .filter(line => line.trim())
          .map(line => [line.split("=")[0].trim(), line.split("=").slice(1).join("=").trim()]),
      );
    const [command, ...args] = words(boxes.command.value);
    const env = pairs(boxes.env.value);
    const headers = pairs(boxes.headers.value);
    const own =
      kind === "program"
        ? { command: command ?? "", ...(args.length ? { args } : {}), ...(Object.keys(env).length ? { env } : {}) }
        : { url: boxes.url.value.trim(), ...(Object.keys(headers).length ? { headers } : {}) };
    boxes.config.value = JSON.stringify({ mcpServers: { [boxes.name.value.trim()]: { ...own, ...rest } } }, null, 2);
  }

  // JSON that is not whole yet leaves the fields as they are, and says so at its own place.
  function fromJson() {
    settle();
    let found;
    try {
      const value = JSON.parse(boxes.config.value || "{}");
      found = Object.entries(value.mcpServers ?? value.servers ?? value).filter(
        ([, each]) => each && typeof each === "object",
      );
    } catch {
      blame("config", t("mcp.json.broken"));
      return;
    }
    several.textContent = found.length > 1 ? t("mcp.several", { n: found.length }) : "";
    if (!found.length) return;
    const [[name, { command, args = [], env = {}, url, headers = {}, ...others }]] = found;
    rest = others;
    const lines = pairs =>
      Object.entries(pairs)
        .map(pair => pair.join("="))
        .join("\n");
    boxes.name.value = name;
    boxes.command.value = [command ?? "", ...(Array.isArray(args) ? args : [])].map(quoted).join(" ").trim();
    boxes.url.value = url ?? "";
    boxes.env.value = lines(env);
    boxes.headers.value = lines(headers);
    pick(url ? "address" : "program");
  }

  function settle() {
    problem.textContent = several.textContent = "";
    plan.replaceChildren();
    for (const [name, box] of Object.entries(boxes)) {
      box.removeAttribute("aria-invalid");
      fields[name].lastChild.textContent = "";
    }
  }

  function blame(name, text) {
    const shown = fields[name]?.isConnected ? name : "config";
    boxes[shown].setAttribute("aria-invalid", "true");
    fields[shown].lastChild.textContent = text;
    return boxes[shown];
  }

  // At the field that the server names; where it names none, under the form.
  function refused(failure) {
    const named = /(?:: |')(command|args|env|url|headers)\b/.exec(failure.message)?.[1];
    const name =
      BLAMED[failure.code] ??
      (named === "args" ? "command" : named) ??
      (/a name that/.test(failure.message) ? "name" : null);
    if (name) blame(name, errorText(failure)).focus();
    else problem.textContent = errorText(failure);
  }

  // Adding a server runs a program, so the exact commands are shown before.
  async function look() {
    settle();
    if (!boxes.config.value.trim()) toJson();
    const config = boxes.config.value;
    try {
      const { servers } = await api.addMcp(config, false);
      const keep = h("button.small.primary", t(given ? "tools.keep.edited" : "tools.keep"));
      keep.addEventListener("click", async () => {
        try {
          await add(
            config,
            servers.map(server => server.name),
          );
          if (given) return;
          rest = {};
          for (const box of Object.values(boxes)) box.value = "";
          settle();
        } catch (failure) {
          refused(failure);
        }
      });
      plan.replaceChildren(
        h("p", t("tools.willrun")),
        h(
          "ul",
          servers.map(s =>
            h("li", h("strong", { dir: "auto" }, s.name), " ", h("code", { dir: "ltr" }, s.command.join(" "))),
          ),
        ),
        keep,
      );
      keep.focus();
    } catch (failure) {
      refused(failure);
    }
  }

  for (const [name, box] of Object.entries(boxes)) box.addEventListener("input", name === "config" ? fromJson : toJson);
  return h(
    "form.settings-page",
    { onsubmit: look },
    h("div.two", part, fields.config),
    problem,
    h("div", sends(t("tools.look"), "")),
    plan,
  );
}

function fieldOf(name, box) {
  box.id = document.getElementById(`mcp-${name}`) ? `mcp-edited-${name}` : `mcp-${name}`;
  box.setAttribute("aria-describedby", `${box.id}-problem`);
  return field(t(`mcp.${name}`), box, problemLine({ id: `${box.id}-problem` }));
}

// A command as people type it: words, in quotes where they hold blanks.
const words = text =>
  [...text.matchAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+)/g)].map(([, double, single, plain]) =>
    double === undefined ? (single ?? plain) : double.replace(/\\(.)/g, "$1"),
  );
const quoted = word => (/[\s"']/.test(word) || word === "" ? `"${String(word).replace(/["\\]/g, "\\$&")}"` : word);
