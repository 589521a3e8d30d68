// Other programs: the addresses at which they search and ask here, what connects each, and their switch.

import { codeBlock, copyText, h } from "../lib/dom.js";
import { t } from "../locales/index.js";
import { MODELS, TOKEN, TOOLS } from "../locales/programs.js";
import { card, choice, settingField } from "./kit.js";

const SWITCH = "SEARCHLOOP_CLIENT_SEARCH";

/** The page; `on` has store. */
export function programsPage(body, { store }) {
  const at = location.origin;
  body.append(
    settingField(store, SWITCH, {
      label: t(`set.${SWITCH}`),
      hint: t("programs.switch"),
      make: choice(["auto", "offline", "off"].map(value => [value, t(`programs.${value}`)])),
    }),
    way("mcp", `${at}/mcp`, TOOLS(`${at}/mcp`)),
    way("models", `${at}/v1`, MODELS(at)),
    h("p.muted", t("programs.token", { word: TOKEN })),
  );
}

function way(name, address, programs) {
  const copy = h("button.quiet.small", { "aria-label": t("programs.copy", { address }) }, t("copy"));
  copy.addEventListener("click", () => copyText(address, copy));
  const lines = Object.entries(programs).map(([program, text]) =>
    h("details.more", h("summary", program), codeBlock("", text)),
  );
  return card(
    { id: `programs-${name}`, title: t(`programs.${name}`) },
    h("p.muted", t(`programs.${name}.lead`)),
    h("div.line", h("code", { dir: "ltr" }, address), copy),
    lines,
  );
}
