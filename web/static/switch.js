// What the web-search switch may truthfully say. Pure: facts of the server in, a description out.
//
// `session.search` is what was asked for and is remembered even when it cannot be done now;
// `session.search_path` is what the last turn really used.

import { nameOf, t } from "./strings.js";

/**
 * {on, kind, text}: kind is off, native, local or unavailable.
 * `session` {search, search_path?}, `model` an entry of /api/models or null, `engines` as from
 * `engineFacts`.
 */
export function describeSwitch(session, model, engines) {
  if (session.search === "off") return { on: false, kind: "off", text: t("switch.off") };
  const caps = model?.capabilities ?? {};
  const id = model?.id ?? session.model ?? "";
  if (caps.native_search && session.search !== "local" && !engines.offline) {
    return on("native", t("switch.native", { name: nameOf(id.split(":")[0]) }));
  }
  if (session.search === "native") {
    return unavailable("switch.nonative", { model: model?.title || id });
  }
  const engine = engineOf(session, engines);
  if (!engine) return unavailable("switch.noengine");
  return on("local", t("switch.local", { name: nameOf(engine) }));
}

/** The engines as the server lists them: {ready: [name], missing: [{name, missing}], offline}. */
export function engineFacts(data) {
  const list = Array.isArray(data) ? data : (data?.engines ?? []);
  const chain = data?.chain ?? list.filter((e) => e.in_chain !== false).map((e) => e.name);
  const byName = new Map(list.map((e) => [e.name, e]));
  const inOrder = chain.map((name) => byName.get(name) ?? { name });
  return {
    ready: inOrder.filter((e) => e.available !== false).map((e) => e.name),
    missing: inOrder
      .filter((e) => e.available === false)
      .map((e) => ({ name: e.name, missing: [e.missing ?? []].flat().join(", ") })),
    offline: Boolean(data?.offline),
  };
}

function engineOf(session, engines) {
  const used = /^local:(.+)$/.exec(session.search_path ?? "")?.[1];
  return used ?? engines.ready[0];
}

function on(kind, text) {
  return { on: true, kind, text };
}

function unavailable(key, values) {
  const reason = `${t(key, values)} ${t(`${key}.next`)}`;
  return { on: true, kind: "unavailable", text: t("switch.unavailable", { reason }) };
}

/** A turn's search path in words: "local: Library", "OpenAI: own search", "no search". */
export function pathText(path) {
  if (!path || path === "off") return t("foot.off");
  const [where, ...rest] = path.split(":");
  const who = nameOf(rest.join(":"));
  if (where === "native") return t("foot.native", { name: who });
  return who ? t("foot.local", { engine: who }) : t("foot.local.unknown");
}
