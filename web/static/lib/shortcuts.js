// The list of keys, and the switch for those that are a single one.

import { t } from "../locales/index.js";
import { h, iconButton } from "./dom.js";

const OFF = "searchloop.keys";
const KEYS = [
  ["?", "Ctrl + /", "keys.list"],
  ["/", "", "keys.box"],
  ["Enter", "", "keys.send"],
  ["Shift + Enter", "", "keys.line"],
  ["↑", "", "keys.recall"],
  ["Esc", "", "keys.stop"],
  ["Ctrl + K", "", "keys.find"],
  ["Ctrl + Shift + O", "", "keys.new"],
];

/** Shows the list. */
export function showShortcuts() {
  const dialog = h("dialog", { id: "shortcuts", "aria-labelledby": "keys-title" });
  const mac = /Mac|iP(hone|ad)/.test(navigator.platform);
  const key = name => (name ? h("kbd", mac ? name.replace("Ctrl", "⌘") : name) : null);
  const single = h("input", { type: "checkbox", id: "single-keys", checked: localStorage.getItem(OFF) !== "off" });
  single.addEventListener("change", () => localStorage.setItem(OFF, single.checked ? "on" : "off"));
  const rows = KEYS.map(([first, second, words]) =>
    h("tr", h("th", { scope: "row" }, key(first), second && " ", key(second)), h("td", t(words))),
  );
  dialog.replaceChildren(
    h(
      "header.reader-head",
      h("h2", { id: "keys-title" }, t("keys.title")),
      iconButton("close", t("close"), () => dialog.close()),
    ),
    h("div.keys", h("table", h("tbody", rows)), h("label", single, " ", t("keys.single"))),
  );
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", event => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  dialog.querySelector("button").focus();
}
