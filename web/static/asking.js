// What is asked of the server for the open chat: settings, questions, and changes of its turns.

import * as api from "./api.js";
import { copyFrom } from "./dom.js";
import { adopt } from "./facts.js";
import { toast } from "./notes.js";
import { t } from "./strings.js";

/**
 * `facts` are the page's; `page` holds draw(), complain(failure), calm(), told(), follow(id),
 * toasts. Every function tells the person when the server refuses.
 */
export function asking(facts, page) {
  let changing = Promise.resolve();

  /** Changes the chat's settings at the server; what it answers is what is shown. */
  function changeSettings(changes) {
    changing = changing.then(async () => {
      try {
        const { id } = facts.session;
        if (id) adopt(facts, await api.changeSession(id, changes));
        else await begin(changes);
        page.calm();
        page.told();
      } catch (failure) {
        page.complain(failure);
      }
      page.draw();
    });
    return changing;
  }

  async function begin(changes = {}) {
    const { model, mode, search, settings } = { ...facts.session, ...changes };
    const temporary = settings.temporary || undefined;
    adopt(facts, await api.createSession({ model, mode, search, temporary }));
    history.replaceState(null, "", `#/s/${facts.session.id}`);
    page.follow(facts.session.id);
  }

  /** Asks with exactly the settings on show; true once the server has the question. */
  async function send(text, more = {}) {
    await changing;
    try {
      if (!facts.session.id) await begin();
      const { id, model, mode, search } = facts.session;
      await api.ask(id, { text, model, mode, search, ...more });
      facts.session.messages += 1;
      page.calm();
      page.told();
      return true;
    } catch (failure) {
      page.complain(failure);
      return false;
    } finally {
      page.draw();
    }
  }

  /** Asks the question of a turn once more, in its place; `changes` of model or search stay. */
  function again(turn, changes = {}) {
    return send(turn.question, { ...changes, replaces: turn.id });
  }

  const edit = (turn, text) => send(text, { replaces: turn.id });

  async function changeTurn(id, change) {
    try {
      await api.changeTurn(facts.session.id, id, change);
      page.told();
      return true;
    } catch (failure) {
      page.complain(failure);
      return false;
    }
  }

  /** Answers a tool that asked for leave; true once the server has the answer. */
  async function decide(callId, decision, edited) {
    try {
      await api.approve(facts.session.id, callId, { decision, arguments: edited });
      return true;
    } catch (failure) {
      page.complain(failure);
      return false;
    }
  }

  const show = (id) => changeTurn(id, { shown: true });

  async function removeTurn(turn) {
    if (!(await changeTurn(turn.id, { removed: true }))) return;
    const { id } = facts.session;
    toast(page.toasts, t("turn.removed"), t("undo"), (undone) => {
      if (undone && facts.session.id === id) changeTurn(turn.id, { removed: false });
    });
  }

  function tooLong(length, most) {
    const [n, limit] = [length.toLocaleString(), most.toLocaleString()];
    page.complain(
      new api.Failure(0, {
        code: "question_too_long",
        message: t("composer.toolong", { n }),
        remedy: t("composer.toolong.next", { limit }),
      }),
    );
  }

  async function stop() {
    if (!facts.session.id || !facts.running) return;
    try {
      await api.cancel(facts.session.id);
    } catch (failure) {
      page.complain(failure);
    }
  }

  /** The answer as Markdown with its sources as footnotes. */
  const copyAnswer = (turn, button) =>
    copyFrom(() => api.exported(facts.session.id, "md", turn.id), button, page.complain);

  async function exportAs(format) {
    const link = document.createElement("a");
    link.href = api.exportUrl(facts.session.id, format);
    link.download = "";
    link.click();
  }

  return { changeSettings, send, again, edit, show, removeTurn, decide, tooLong, stop, copyAnswer, exportAs };
}
