// Privacy: what leaves this computer, who is signed in, chats that leave nothing, and deleting all.

import * as api from "../lib/api.js";
import { h } from "../lib/dom.js";
import { number, t } from "../locales/index.js";
import { chatFiles } from "./imports.js";
import { attempt, button, card, confirmed, settingField } from "./kit.js";

const LEAVES = ["local", "cloud", "web"];

/** The page; `on` has store, and newChat(temporary) and changed() of the whole page. */
export async function privacyPage(body, { store, newChat, changed }) {
  const offline = Boolean(store.get("SEARCHLOOP_OFFLINE")?.value);
  const me = await api.me();
  body.append(
    card(
      { id: "leaves", title: t("privacy.leaves") },
      leaving(),
      h("p", t(offline ? "privacy.offline" : "privacy.online")),
      settingField(store, "SEARCHLOOP_OFFLINE"),
    ),
    card(
      { id: "chats", title: t("privacy.chats") },
      h("p.muted", t("privacy.temporary")),
      h(
        "div.line",
        button(t("privacy.temporary.new"), () => newChat(true)),
      ),
    ),
    chatFiles(changed),
    signedIn(me),
    deletion(),
  );
  if (me.people && me.admin) body.append(await used());
}

function leaving() {
  const head = ["when", "what", "whom"].map(name => h("th", { scope: "col" }, t(`privacy.${name}`)));
  const rows = LEAVES.map(name =>
    h("tr", ...["when", "what", "whom"].map(part => h("td", t(`privacy.${name}.${part}`)))),
  );
  return table(t("settings.privacy.lead"), head, rows);
}

function table(label, head, rows) {
  return h(
    "div.scrolled.scroll-x",
    { tabindex: "0", role: "region", "aria-label": label },
    h("table", h("thead", h("tr", head)), h("tbody", rows)),
  );
}

// Who asks; a proxy signs its own people out.
function signedIn({ name, people, token }) {
  const said = h("p.muted", { role: "status" });
  const out = button(t("privacy.out"), () =>
    attempt(said, async () => {
      await api.signOut();
      location.assign("/");
    }),
  );
  const renew = confirmed(t("privacy.token.new"), t("privacy.token.sure"), () =>
    attempt(said, async () => {
      await api.newToken();
      said.textContent = t("privacy.token.done");
    }),
  );
  return card(
    { id: "who", title: t("privacy.who") },
    h("p", name ? t("privacy.who.name", { name }) : t("privacy.who.token")),
    h("p.muted", t(name ? "privacy.who.own" : people ? "privacy.who.operator" : "privacy.who.all")),
    name ? null : h("div.line", out, token === "kept" ? renew : h("span.muted", t("privacy.token.set"))),
    said,
  );
}

function deletion() {
  const said = h("p.muted", { role: "status" });
  const all = confirmed(t("privacy.delete"), t("privacy.delete.sure"), () =>
    attempt(said, async () => {
      const { deleted } = await api.deleteEverything();
      said.textContent = t("privacy.deleted", { n: deleted });
      // The page behind still shows a chat that is gone: it begins anew once the number has been read.
      said.closest("dialog").addEventListener("close", () => location.assign("/"), { once: true });
    }),
  );
  return card({ id: "delete", title: t("privacy.all") }, h("p.muted", t("privacy.delete.lead")), all, said);
}

// For an administrator: how much, never what.
async function used() {
  const uses = await api.usage();
  const columns = ["person", "day", "answers", "tokens", "cost"];
  const head = columns.map(name => h("th", { scope: "col" }, t(`privacy.used.${name}`)));
  const rows = uses.map(use => {
    const cost = use.unpriced
      ? t("privacy.used.unpriced", { cost: number(use.cost_usd, 2), n: use.unpriced })
      : number(use.cost_usd, 2);
    const cells = [use.person, use.day, number(use.answers), number(use.input_tokens + use.output_tokens), cost];
    return h("tr", ...cells.map(cell => h("td", { dir: "auto" }, cell)));
  });
  return card(
    { id: "used", title: t("privacy.used") },
    h("p.muted", t("privacy.used.lead")),
    table(t("privacy.used.lead"), head, rows),
  );
}
