// The model picker: a list with a search field, groups, and what each model can do.

import { h, isComposing } from "../lib/dom.js";
import { openAt } from "../lib/menu.js";
import { known, lackOf, nameOf, t, titleOf } from "../locales/index.js";

await known(); // what a model lacks is told in a sentence of the server's

/**
 * Opens the list at `anchor`. `models` as the server lists them, `current` the id in force;
 * `pick(id)` is called with the one that is chosen.
 */
export function openPicker(anchor, models, current, pick) {
  const list = h("div", { role: "listbox", id: "models", "aria-label": t("model.label"), tabindex: "-1" });
  const find = h("input", {
    type: "search",
    role: "combobox",
    "aria-label": t("model.find"),
    "aria-expanded": "true",
    "aria-controls": "models",
    "aria-autocomplete": "list",
    placeholder: t("model.find"),
    autocomplete: "off",
    spellcheck: "false",
  });
  const popover = h("div.menu.picker", { popover: "auto" }, find, list);
  let options = [];
  let at = -1;

  function draw() {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = model => words.every(word => textOf(model).includes(word));
    const groups = byProvider(models.filter(fits));
    list.replaceChildren(...groups.map(([provider, found]) => group(provider, found)));
    if (!groups.length) list.append(h("p.muted", t("model.nomatch", { q: find.value })));
    options = [...list.querySelectorAll('[role="option"]:not([aria-disabled])')];
    const chosen = options.findIndex(option => option.dataset.id === current);
    mark(words.length ? 0 : Math.max(0, chosen));
  }

  function group(provider, found) {
    const id = `models-${provider}`;
    return h(
      "div",
      { role: "group", "aria-labelledby": id },
      h("p.group", { id, role: "presentation" }, nameOf(provider)),
      found.map(optionOf),
    );
  }

  function optionOf(model) {
    const away = model.available === false;
    return h(
      "div",
      {
        role: "option",
        id: `model-${CSS.escape(model.id)}`,
        "data-id": model.id,
        "aria-selected": String(model.id === current),
        "aria-disabled": away ? "true" : null,
        onclick: away ? null : () => choose(model.id),
      },
      h("span.option-title", titleOf(model)),
      h("span.hint", away ? lackOf(model) : badges(model).join(" · ")),
    );
  }

  function mark(to) {
    options[at]?.classList.remove("at");
    at = options.length ? (to + options.length) % options.length : -1;
    options[at]?.classList.add("at");
    options[at]?.scrollIntoView({ block: "nearest" });
    find.setAttribute("aria-activedescendant", options[at]?.id ?? "");
  }

  function choose(id) {
    popover.hidePopover();
    if (id !== current) pick(id);
  }

  find.addEventListener("input", draw);
  find.addEventListener("keydown", event => {
    if (isComposing(event)) return;
    if (event.key === "ArrowDown") mark(at + 1);
    else if (event.key === "ArrowUp") mark(at - 1);
    else if (event.key === "Enter" && options[at]) choose(options[at].dataset.id);
    else if (event.key === "Tab") popover.hidePopover();
    else return;
    if (event.key !== "Tab") event.preventDefault();
  });
  draw();
  openAt(anchor, popover);
  find.focus();
  mark(at);
}

function textOf(model) {
  return `${model.id} ${titleOf(model)} ${badges(model).join(" ")}`.toLowerCase();
}

function byProvider(models) {
  const groups = new Map();
  for (const model of models) {
    const provider = model.id.split(":")[0];
    groups.set(provider, [...(groups.get(provider) ?? []), model]);
  }
  const usable = ([, list]) => list.some(m => m.available !== false);
  return [...groups].sort((a, b) => usable(b) - usable(a)); // what can be chosen stands first
}

/** What a model can do, in a few words each. */
export function badges(model) {
  const caps = model.capabilities ?? {};
  const found = [];
  if (caps.native_search) found.push(t("badge.native"));
  else if (caps.tools !== false) found.push(t("badge.local"));
  if (caps.tools) found.push(t("badge.tools"));
  if (caps.vision) found.push(t("badge.vision"));
  if (caps.context) found.push(t("badge.context", { k: Math.round(caps.context / 1024) }));
  found.push(t(model.local ? "badge.here" : "badge.cloud"));
  return found;
}
