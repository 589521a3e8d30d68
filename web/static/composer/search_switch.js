// What the web-search switch may truthfully say. Pure: facts of the server in, a description out.
//
// `session.search` is what was asked for and is remembered even when it cannot be done now;
// `session.search_path` is what the last turn really used.

import { named, nameOf, t, titleOf, translated } from "../locales/index.js";

/** The model of a session: of one that is in no list it is known whether it has a search of its own. */
export function modelOf(session, models) {
  const unlisted = { id: session.model, capabilities: { native_search: Boolean(session.native_search) } };
  return models.find(model => model.id === session.model) ?? unlisted;
}

/** Why the model may not search by itself in the chat on show: review, private, or nothing. */
export const heldIn = ({ place, held }) => (place.private ? held.private : held.now);

/**
 * {on, kind, text, brief}: `brief` is for a narrow page; kind is off, native, local or unavailable.
 * `session` {search, search_path?}, `model` as from `modelOf`, `engines` as from
 * `engineFacts`, `held` as from `heldIn`.
 */
export function describeSwitch(session, model, engines, held) {
  if (session.search === "off") {
    const who = model.id?.startsWith("builtin:") || model.local === undefined ? "" : model.local ? ".local" : ".cloud";
    return { on: false, kind: "off", text: t(`switch.off${who}`, { name: providerOf(model.id ?? "") }) };
  }
  if (session.search === "offline") return searched("library", model);
  if (isNative(session, model, engines, held)) {
    const [name, engine] = [providerOf(model.id), giveWay(session, model) && engineOf(session, engines)];
    return on("native", t(engine ? "switch.native.either" : "switch.native", { name, engine: nameOf(engine || "") }));
  }
  const wanted = isNative(session, model, engines);
  if (session.search === "native" && !wanted) {
    return unavailable("switch.nonative", {});
  }
  const engine = engineOf(session, engines);
  if (!engine) return unavailable("switch.noengine", { why: engines.why[0] ?? "" });
  if (wanted) {
    return on("local", t(`switch.held.${held}`, { name: nameOf(engine), provider: providerOf(model.id) }));
  }
  if (engines.resting.includes(engine)) return on("local", t("switch.local.resting", { name: nameOf(engine) }));
  return searched(engine, model);
}

/**
 * What /api/engines says: names that are ready in their order, why others are not, whether the
 * machine is set to offline, whether no search can leave it, which engines are elsewhere, which are asked
 * with a key, and which did not answer lately.
 */
export function engineFacts(data) {
  const chain = (data?.engines ?? [])
    .filter(e => e.position !== null)
    .sort((a, b) => (a.position ?? 0) - (b.position ?? 0));
  const ready = chain.filter(e => e.available);
  return {
    ready: ready.map(e => e.name),
    why: chain.filter(e => !e.available && e.reason).map(reasonOf),
    offline: Boolean(data?.offline),
    stays: ready.every(e => e.remote === false),
    remote: ready.filter(e => e.remote !== false).map(e => e.name),
    keyed: ready.filter(e => (e.needs ?? []).some(name => name.endsWith("_KEY"))).map(e => e.name),
    resting: ready.filter(e => e.resting).map(e => e.name),
  };
}

/** Why an engine cannot be asked. */
export function reasonOf({ reason, problem }) {
  return problem ? translated(problem).message : reason;
}

/** What a search would send away from this machine, whether the switch is on or not. */
export function leavingText(session, model, engines, held) {
  if (isNative(session, model, engines, held)) return t("switch.tip.native", { name: providerOf(model.id) });
  if (!engines.ready.length) return t("switch.noengine", { why: engines.why[0] ?? "" });
  if (engines.stays) return t("switch.tip.stays");
  return t("switch.tip.local", { names: named(engines.remote.map(nameOf)) });
}

/** What a search would cost. */
export function costText(session, model, engines, held) {
  if (isNative(session, model, engines, held)) {
    const name = providerOf(model.id);
    const price = model.search_usd;
    return price ? t("switch.tip.price", { name, price }) : t("switch.tip.noprice", { name });
  }
  const { keyed } = engines;
  return keyed.length ? t("switch.tip.quota", { names: named(keyed.map(nameOf)) }) : t("switch.tip.free");
}

function isNative({ search }, model, { offline }, held) {
  return Boolean(model?.capabilities?.native_search) && search !== "local" && !offline && !held;
}

// Whether the model's own search makes room for ours as soon as a turn has other tools.
function giveWay({ search }, { capabilities }) {
  return search === "auto" && capabilities.tools === true && capabilities.tools_with_native_search === false;
}

const providerOf = model => nameOf(model.split(":")[0]);

// The engine that the next search asks first: the last one used, unless it rests after failures.
function engineOf(session, { ready, resting }) {
  const used = /^local:(.+)$/.exec(session.search_path ?? "")?.[1];
  const order = used ? [used, ...ready] : ready;
  return order.find(name => !resting.includes(name)) ?? order[0];
}

function on(kind, text, brief = text) {
  return { on: true, kind, text, brief };
}

// Who searches, and who reads what was found.
function searched(engine, model) {
  const brief = t("switch.local", { name: nameOf(engine) });
  if (model.local === undefined || model.id.startsWith("builtin:")) return on("local", brief);
  const who = { name: nameOf(engine), model: titleOf(model), provider: providerOf(model.id) };
  return on("local", t(model.local ? "switch.local.here" : "switch.local.away", who), brief);
}

function unavailable(key, values) {
  const reason = `${t(key, values).trim()} ${t(`${key}.next`)}`;
  return { on: true, kind: "unavailable", text: t("switch.unavailable", { reason }) };
}

/** A turn's search path in words: "local: Library", "OpenAI: own search", "no search". */
export function pathText(path) {
  if (!path || path === "off") return t("foot.off");
  const [where, ...rest] = path.split(":");
  const who = nameOf(rest.join(":"));
  if (where === "native") return t("foot.native", { name: who });
  if (where === "offline") return t("foot.local", { engine: nameOf("library") });
  return who ? t("foot.local", { engine: who }) : t("foot.local.unknown");
}
