// What is asked of the server for the open chat: settings, questions, and changes of its turns.

import * as api from "../lib/api.js";
import { copyFrom } from "../lib/dom.js";
import { toast } from "../lib/messages.js";
import { number, t } from "../locales/index.js";
import { adopt } from "./server_state.js";

const WHOLE = 2; // turns at the end that a summary leaves as they are

/**
 * `facts` are the page's; `page` holds draw(), complain(failure), calm(), told(), follow(id),
 * toasts. Every function tells the person when the server refuses.
 */
export function asking(facts, page) {
  let changing = Promise.resolve();

  /** Changes the chat's settings at the server; what it answers is what is shown, or `complain` told. */
  function changeSettings(changes, complain = page.complain) {
    const { place } = facts;
    changing = changing.then(async () => {
      facts.changes += 1;
      await done(async () => {
        const { id } = place.session;
        if (id) adopt(facts, await api.changeSession(id, changes), place);
        else if (place === facts.place) await begin(place, changes);
      }, complain);
      facts.changes += 1;
      page.draw();
    });
    return changing;
  }

  // An agent says its settings itself; so does the server, as long as the usual ones are not known here.
  async function begin(place, changes = {}) {
    const { model, mode, search, settings, pending } = place.session;
    const temporary = settings.temporary || undefined;
    const { project, options } = settings; // a project has its own usual settings
    const own = changes.agent || pending || project ? {} : { model, mode, search };
    adopt(facts, await api.createSession({ ...own, options, ...changes, temporary, project }), place);
    if (place !== facts.place) return;
    history.replaceState(null, "", `#/s/${place.session.id}`);
    page.follow(place.session.id);
  }

  /** Asks with exactly the settings on show, in the chat on show; true once the server has the question. */
  async function send(text, more = {}, place = facts.place) {
    place.asked = true;
    place.aside = Boolean(more.aside || more.folders); // the chat does not keep what this question is asked with
    await changing;
    const sent = await done(async () => {
      if (!place.session.id) await begin(place);
      const { id, model, mode, search } = place.session;
      await api.ask(id, { text, model, mode, search, ...more });
      place.session.messages += 1;
      if (facts.defaultWhy !== "setting" && !more.aside)
        Object.assign(facts, { defaultModel: more.model ?? model, defaultWhy: "last" });
    });
    page.draw();
    return sent;
  }

  /** Asks the question of a turn once more, in its place; `changes` of model or search stay. */
  function again(turn, changes = {}) {
    return edit(turn, turn.question, changes);
  }

  const edit = (turn, text, changes = {}) => {
    const folders = changes.search || !turn.folders.length ? {} : { folders: turn.folders };
    return send(text, { ...folders, ...changes, replaces: turn.id });
  };

  /** Whether the server did it; what it says against it is shown, or `complain` told. */
  async function done(work, complain = page.complain) {
    try {
      await work(facts.session.id);
      page.calm();
      page.told();
      return true;
    } catch (failure) {
      complain(failure);
      return false;
    }
  }

  const changeTurn = (turn, change) => done(id => api.changeTurn(id, turn, change));
  const runPlan = plan => done(id => api.runPlan(id, plan));
  const undoFiles = () => done(api.undoFiles);

  /** Runs the newest plan of `turns`. */
  function runNewest(turns) {
    const plan = turns.findLast(turn => turn.plans.length)?.plans.at(-1);
    if (plan) return runPlan(plan.id);
    refuse("no_plan", t("plan.none"), t("plan.none.next"));
  }

  const undoNewest = () => (facts.session.id ? undoFiles() : refuse("nothing_to_undo", t("changes.none")));

  /** Starts to summarise all but the last two turns; true once the server does. */
  function compact(turns) {
    const since = turns.length - 1 - turns.findLastIndex(turn => turn.summary);
    return since > WHOLE ? done(api.compact) : refuse("nothing_to_summarise", t("compact.none"));
  }

  const editSummary = (text, complain) => done(id => api.editSummary(id, text), complain);

  const refuse = (code, message, remedy) => page.complain(new api.Failure(0, { code, message, remedy }));

  /** Answers a tool that asked for leave; true once the server has the answer. */
  function decide(callId, decision, edited) {
    return done(id => api.approve(id, callId, { decision, arguments: edited }));
  }

  const rate = (turn, rating) => changeTurn(turn.id, { rating });

  const show = id => changeTurn(id, { shown: true });

  const restore = id => changeTurn(id, { removed: false });

  async function removeTurn(turn) {
    if (!(await changeTurn(turn.id, { removed: true }))) return;
    const { id } = facts.session;
    toast(page.toasts, t("turn.removed"), t("undo"), undone => {
      if (undone && facts.session.id === id) restore(turn.id);
    });
  }

  function tooLong(length, most) {
    const [n, limit] = [number(length), number(most)];
    refuse("question_too_long", t("composer.toolong", { n }), t("composer.toolong.next", { limit }));
  }

  async function stop() {
    if (facts.session.id && facts.running) await done(api.cancel);
  }

  const check = (turn, model) => done(id => api.check(id, turn.id, model));

  /** Whether a check is offered: never, ask or always. */
  const checks = () => facts.session.check;

  /** The answer as Markdown with its sources as footnotes. */
  const copyAnswer = (turn, button) =>
    copyFrom(() => api.exported(facts.session.id, "md", turn.id), button, page.complain);

  function exportAs(format) {
    if (!facts.session.id) return refuse("nothing_to_export", t("export.none"));
    const link = document.createElement("a");
    link.href = api.exportUrl(facts.session.id, format);
    link.download = "";
    link.click();
  }

  const turns = { again, edit, show, rate, removeTurn, restore, check, checks, copyAnswer };
  const plans = { runPlan, undoFiles, runNewest, undoNewest };
  return { changeSettings, send, decide, tooLong, stop, exportAs, compact, editSummary, ...turns, ...plans };
}
