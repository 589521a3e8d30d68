// The settings of models: servers of one's own with what they hold, and the keys of others.

import * as api from "../lib/api.js";
import { copyText, h, iconButton } from "../lib/dom.js";
import { errorText } from "../lib/messages.js";
import { badges } from "../composer/model_picker.js";
import { helpOf, originOf, sentences, t, titleOf } from "../locales/index.js";

const LOOK = 700; // milliseconds between looks at models on their way

/** Servers of one's own: the models they hold, and getting more. Returns what to do on leaving. */
export async function modelsPage(body, { changed }) {
  const parts = h("div", {});
  let timer = 0;
  body.append(h("p", { class: "muted" }, t("settings.models.lead")), parts);
  await draw();
  return () => clearTimeout(timer);

  async function draw() {
    const { list, servers } = await api.models();
    parts.replaceChildren(...(servers ?? []).map((server) => serverPart(server, list)));
    if (!servers?.length) parts.append(h("p", {}, t("models.noserver")));
  }

  function serverPart(server, list) {
    const own = list.filter((model) => model.id.startsWith(`${server.provider}:`) && model.available);
    const up = server.version !== null;
    const state = up ? t("models.up", { version: server.version }) : t("models.down", { address: server.address });
    return h(
      "section",
      {},
      h("h4", {}, server.name, " ", h("span", { class: "muted" }, state)),
      up ? null : startHint(server),
      h("ul", { class: "rows" }, own.map(modelRow)),
      up ? pullForm(server) : null,
    );
  }

  function startHint() {
    const command = t("models.start");
    const copy = h("button", { type: "button", class: "small" }, t("copy"));
    copy.addEventListener("click", () => copyText(command, copy));
    return h("p", { class: "line" }, h("code", {}, command), copy);
  }

  function modelRow(model) {
    const said = h("p", { class: "muted", role: "status" }, badges(model).join(" · "));
    const remove = async () => {
      try {
        await api.removeModel(model.id);
        changed();
        await draw();
      } catch (failure) {
        said.textContent = errorText(failure);
      }
    };
    const label = t("models.remove", { model: titleOf(model) });
    const ask = iconButton("trash", label, () => ask.replaceWith(sure), { class: "quiet" });
    const sure = h("button", { type: "button", class: "small", onclick: remove }, t("models.sure"));
    return h("li", { class: "row" }, h("div", { class: "grow" }, h("strong", {}, titleOf(model)), said), ask);
  }

  function pullForm(server) {
    const box = h("input", { type: "text", id: `pull-${server.provider}`, placeholder: t("models.example"), autocomplete: "off", spellcheck: "false" });
    const button = h("button", { type: "submit", class: "small primary" }, t("models.pull"));
    const said = h("p", { class: "problem", role: "alert" });
    const under = h("ul", { class: "rows" });
    const form = h("form", { class: "field" }, h("label", { for: box.id }, t("models.pull.label")), h("div", { class: "line" }, box, button), said, under);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      said.textContent = "";
      try {
        if (box.value.trim()) await api.pullModel(`${server.provider}:${box.value.trim()}`);
        box.value = "";
        await look();
      } catch (failure) {
        said.textContent = errorText(failure);
      }
    });
    const look = async () => {
      clearTimeout(timer);
      const pulls = await api.pulls();
      under.replaceChildren(...pulls.map((pull) => pullRow(pull, look)));
      if (pulls.some((pull) => pull.state === "running")) timer = setTimeout(look, LOOK);
      else if (pulls.some((pull) => pull.state === "done")) changed();
    };
    look().catch(() => {});
    return form;
  }
}

function pullRow(pull, look) {
  const share = pull.total ? Math.floor((100 * pull.done) / pull.total) : null;
  const label = t("models.progress", { model: pull.model });
  const bar = h("progress", { max: "100", value: share, "aria-label": label });
  const cancel = iconButton("close", t("models.cancel", { model: pull.model }), () => api.cancelPull(pull.model).then(look, look), { class: "quiet" });
  const words = pull.error ? errorText(pull.error) : pull.state === "running" ? pull.status : t(`pull.${pull.state}`);
  return h(
    "li",
    { class: "row" },
    h("div", { class: "grow" }, h("strong", {}, pull.model), h("p", { class: "muted" }, words)),
    pull.state === "running" ? [bar, h("span", { class: "muted" }, share === null ? "" : `${share} %`), cancel] : null,
  );
}

/** Keys: which are set and by whom. A key goes in and never comes out. */
export async function keysPage(body, { changed }) {
  const list = h("ul", { class: "rows" });
  body.append(h("p", { class: "muted" }, t("settings.keys.lead")), list);
  draw(await api.keys());

  function draw(keys) {
    list.replaceChildren(...keys.map(keyRow));
  }

  function keyRow(key) {
    const id = `key-${key.name}`;
    const box = h("input", { type: "password", id, autocomplete: "off", placeholder: t("keys.paste") });
    const said = h("p", { class: "problem", role: "alert" });
    const act = (work) => async (event) => {
      event.preventDefault();
      said.textContent = "";
      try {
        draw(await work());
        changed();
      } catch (failure) {
        said.textContent = errorText(failure);
      }
    };
    const save = act(() => api.saveKey(key.name, box.value));
    const forget = act(() => api.forgetKey(key.name));
    const state = key.strayed
      ? t("keys.strayed", { name: key.strayed })
      : key.set
        ? t("keys.set", { origin: originOf(key.origin) })
        : t("keys.unset");
    return h(
      "li",
      { class: "row" },
      h("div", { class: "grow" }, h("label", { for: id }, h("code", {}, key.name)), h("p", { class: "muted" }, sentences(helpOf(key), state)), said),
      h("form", { class: "line", onsubmit: save }, box, h("button", { type: "submit", class: "small" }, t("keys.save"))),
      key.saved ? iconButton("trash", t("keys.forget", { name: key.name }), forget, { class: "quiet" }) : null,
    );
  }
}
