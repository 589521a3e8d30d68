// The list of chats as a drawer on a narrow screen; on a wide one it simply stands there.

const NARROW = "(max-width: 760px)";

/** `el(id)` finds elements. Returns {close, isOpen}. */
export function makeDrawer(el) {
  const narrow = matchMedia(NARROW);

  function set(open) {
    document.body.classList.toggle("drawer-open", open);
    el("open-sidebar").setAttribute("aria-expanded", String(open));
    el("backdrop").hidden = !open;
    // What is covered or away must not be reached by Tab or by a screen reader.
    el("sidebar").inert = narrow.matches && !open;
    el("main").inert = narrow.matches && open;
  }

  function dismiss() {
    set(false);
    el("open-sidebar").focus();
  }

  set(false);
  narrow.addEventListener("change", () => set(false));
  el("open-sidebar").addEventListener("click", () => {
    set(true);
    el("new-chat").focus();
  });
  el("close-sidebar").addEventListener("click", dismiss);
  el("backdrop").addEventListener("click", dismiss);

  return {
    close: () => narrow.matches && set(false),
    isOpen: () => document.body.classList.contains("drawer-open"),
  };
}
