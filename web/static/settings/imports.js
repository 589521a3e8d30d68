// Chats as a file: an export of another program is brought in, and all chats go out as one file.

import * as api from "../lib/api.js";
import { h } from "../lib/dom.js";
import { errorText } from "../lib/messages.js";
import { number, t } from "../locales/index.js";
import { button, card, fileButton } from "./kit.js";

const LOOK = 700; // milliseconds between looks at an import that goes on

/** The section; `changed()` is called when chats came. An import that is under way is shown at once. */
export function chatFiles(changed) {
  const said = h("p.muted", { role: "status" });
  const told = h("div");
  const accept = ".zip,.json,application/zip,application/json";
  const [choose, picker] = fileButton(t("import.choose"), ([file]) => file && send(file), { accept });
  const stop = h("button.small", { hidden: true }, t("import.stop"));
  let sending = null;

  stop.addEventListener("click", () => {
    if (sending) sending.abort();
    else api.stopImport().catch(fail);
  });

  async function send(file) {
    told.replaceChildren();
    busy(true);
    sending = new AbortController();
    said.textContent = t("import.sending", { name: file.name });
    try {
      await api.importChats(file, sending.signal);
    } catch (failure) {
      sending = null;
      busy(false);
      return failure.name === "AbortError" ? (said.textContent = t("import.stopped")) : fail(failure);
    }
    sending = null;
    await watch();
  }

  async function watch() {
    for (;;) {
      const now = await api.importState().catch(fail);
      if (now?.state !== "running") return end(now);
      busy(true);
      said.textContent = t("import.running", { n: now.brought + now.known });
      await new Promise(done => setTimeout(done, LOOK));
      if (!said.isConnected) return; // it goes on, and is shown when somebody looks again
    }
  }

  function end(now) {
    busy(false);
    if (!now || now.state === "none") return;
    if (now.error) return fail(now.error);
    const counts = [
      t("import.brought", { n: now.brought }),
      now.known ? t("import.known", { n: now.known }) : "",
      now.empty ? t("import.empty", { n: now.empty }) : "",
    ];
    said.textContent = [now.state === "cancelled" ? t("import.stopped") : "", ...counts].filter(Boolean).join(" ");
    const left = Object.entries(now.left_out).map(([name, n]) => `${name} (${number(n)})`);
    told.replaceChildren(
      ...(now.refused
        ? [
            h("p", t("import.refused", { n: now.refused })),
            h("ul", ...now.problems.map(problem => h("li", { lang: "en", dir: "auto" }, problem))),
          ]
        : []),
      ...(left.length ? [h("p.muted", t("import.left", { parts: left.join(", ") }))] : []),
    );
    if (now.brought) changed();
  }

  function busy(on) {
    choose.disabled = on;
    stop.hidden = !on;
  }

  function fail(failure) {
    busy(false);
    said.textContent = errorText(failure);
  }

  watch();
  return card(
    { id: "chat-files", title: t("import.title") },
    h("p.muted", t("import.lead")),
    h(
      "div.line",
      choose,
      picker,
      stop,
      button(t("import.export"), () => h("a", { href: api.allChatsUrl, download: "" }).click()),
    ),
    said,
    told,
  );
}
