// Where no model can answer yet: a field for a first key.

import * as api from "./lib/api.js";
import { h } from "./lib/dom.js";
import { nameOf, t } from "./locales/index.js";
import { aboutKey, keyIsMade, secretBox, trialForm } from "./settings/kit.js";

/** One field for the key of any provider that sells them: whose it is, is seen by how it begins. */
export async function firstKey(done) {
  const vendors = (await api.providers()).filter(
    ({ key, address }) => key && !address?.changeable && aboutKey(key).url,
  );
  const box = secretBox("first-key", { placeholder: t("keys.first"), "aria-label": t("keys.first") });
  const whose = h(
    "select",
    { id: "first-key-of", "aria-label": t("keys.whose") },
    vendors.map(({ name }) => h("option", { value: name }, nameOf(name))),
  );
  const where = h("div");
  const chosen = () => vendors.find(({ name }) => name === whose.value);
  const tell = () => where.replaceChildren(keyIsMade(aboutKey(chosen().key).url));
  const guess = () => {
    const fits = vendors.filter(({ key }) => aboutKey(key).begins && box.value.trim().startsWith(aboutKey(key).begins));
    fits.sort((a, b) => aboutKey(b.key).begins.length - aboutKey(a.key).begins.length);
    if (fits.length) whose.value = fits[0].name;
    tell();
  };
  box.addEventListener("input", guess);
  whose.addEventListener("change", tell);
  tell();
  return [trialForm(chosen, () => (box.value.trim() ? { key: box.value.trim() } : null), [box, whose], done), where];
}
