// What the person tells every chat: who they are, and how they want to be answered.

import * as api from "../lib/api.js";
import { h } from "../lib/dom.js";
import { t } from "../locales/index.js";
import { attempt, textArea } from "./kit.js";

/** A control whose change is sent at once; the line below says that it is saved, or why not. */
export function savedField(id, label, control, hint, send) {
  const state = h("p.muted", { id: `${id}-state`, role: "status" }, hint);
  control.id = id;
  control.setAttribute("aria-describedby", `${id}-state`);
  control.addEventListener("change", async () => {
    if (await attempt(state, () => send(control.value))) state.textContent = t("project.saved");
  });
  return h("div.field", h("label", { for: id }, label), control, state);
}

/** Both fields, as the server has them. */
export async function ownWordsFields() {
  const words = await api.ownWords();
  return ["about", "answer"].map(name => {
    const box = textArea(words[name], { rows: "3", maxlength: "20000" });
    return savedField(`words-${name}`, t(`words.${name}`), box, t(`words.${name}.hint`), text =>
      api.changeOwnWords({ [name]: text }),
    );
  });
}
