// Templates: questions with {{fields}}, which are filled in the box one after the other.

const FIELD = /\{\{[^{}\n]{1,80}\}\}/g;

const nameOf = field => field.slice(2, -2).trim();

/** The names of the fields in a text, each once. */
export const fieldsOf = text => [...new Set((text.match(FIELD) ?? []).map(nameOf))];

/** The text with a sign in place of each field. */
export const sketchOf = text => text.replace(FIELD, "…").replace(/\s+/g, " ").slice(0, 80);

/** Leads through the fields in `box`. Returns key(event), true when it took the event, null when all is over. */
export function filling(box) {
  let now = null; // the field that is selected, and what stands around it

  // What was written holds for each field of that name.
  function settle() {
    const { before, field, after } = now ?? {};
    const { value } = box;
    now = null;
    if (before === undefined || !value.startsWith(before) || !value.slice(before.length).endsWith(after)) return;
    const written = value.slice(before.length, value.length - after.length);
    if (written.trim() && written !== field)
      box.setRangeText(
        after.replace(FIELD, each => (nameOf(each) === nameOf(field) ? written : each)),
        before.length + written.length,
        value.length,
      );
  }

  function select(from) {
    const fields = [...box.value.matchAll(FIELD)];
    const found = fields.find(({ index }) => index >= from) ?? fields[0];
    if (!found) return false;
    const [field] = found;
    const end = found.index + field.length;
    now = { field, before: box.value.slice(0, found.index), after: box.value.slice(end) };
    box.focus();
    box.setSelectionRange(found.index, end);
    return true;
  }

  function key(event) {
    if (event.key === "Escape") return null;
    if (event.key !== "Tab" && (event.key !== "Enter" || event.shiftKey)) return false;
    const from = box.selectionEnd;
    settle();
    if (!select(event.key === "Enter" ? 0 : from)) return null;
    return true;
  }

  select(0);
  return key;
}
