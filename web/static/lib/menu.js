// A menu of actions at a button: opened by click or Enter, walked with the arrow keys.

import { h } from "./dom.js";

/**
 * Opens a menu below `anchor`. `items` are {label, run, checked?, hint?}, null for a line between, or
 * undefined for nothing; of the kind `tall` hints are sentences and stand below.
 * Escape and a click elsewhere close it, and the focus goes back to the button.
 */
export function openMenu(anchor, label, items, kind = "") {
  const menu = h(
    "div",
    { class: `menu ${kind}`, role: "menu", popover: "auto", "aria-label": label },
    items.filter(item => item !== undefined).map(entry),
  );

  function entry(item) {
    if (!item) return h("hr");
    const pick = () => {
      menu.hidePopover();
      item.run();
    };
    const choice = item.checked === undefined ? {} : { "aria-checked": String(item.checked) };
    const role = item.checked === undefined ? "menuitem" : "menuitemradio";
    return h(
      "button",
      { role, tabindex: "-1", onclick: pick, ...choice },
      h("span", { dir: "auto" }, item.label),
      item.hint && h("span.hint", item.hint),
    );
  }

  menu.addEventListener("keydown", event => {
    const buttons = [...menu.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (event.key === "Tab") menu.hidePopover();
    if (to === undefined) return;
    event.preventDefault();
    buttons.at(to % buttons.length).focus();
  });
  openAt(anchor, menu);
  menu.querySelector("button")?.focus();
}

/** Opens a popover at `anchor`, which gets the focus back when it closes. */
export function openAt(anchor, popover) {
  const again = () => requestAnimationFrame(() => place(popover, anchor)); // the anchor may be moved first
  addEventListener("resize", again);
  popover.addEventListener("toggle", event => {
    if (event.newState === "open") return;
    removeEventListener("resize", again);
    anchor.setAttribute("aria-expanded", "false");
    if (popover.contains(document.activeElement) || document.activeElement === document.body) anchor.focus();
    popover.remove();
  });
  anchor.setAttribute("aria-expanded", "true");
  (anchor.closest("aside") ?? document.querySelector("main")).append(popover); // one of them may be inert
  popover.showPopover();
  place(popover, anchor);
}

/** Puts a popover below `anchor`, or above where there is more room, inside the window. On a phone it is a sheet. */
function place(popover, anchor) {
  for (const name of ["left", "top", "max-height"]) popover.style.removeProperty(name);
  if (matchMedia("(max-width: 620px)").matches) return;
  const at = anchor.getBoundingClientRect();
  const box = popover.getBoundingClientRect();
  const below = innerHeight - at.bottom - 8 >= box.height || at.top < innerHeight / 2;
  const left = document.dir === "rtl" ? at.right - box.width : at.left;
  const most = (below ? innerHeight - at.bottom : at.top) - 16;
  popover.style.setProperty("left", `${Math.max(8, Math.min(left, innerWidth - box.width - 8))}px`);
  popover.style.setProperty("max-height", `${most}px`);
  popover.style.setProperty("top", `${below ? at.bottom + 4 : Math.max(8, at.top - Math.min(box.height, most) - 4)}px`);
}
