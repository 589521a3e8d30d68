// One line for each room of the settings: what is there now, as far as it could be read.

import * as api from "../lib/api.js";
import { known, lackOf, named, nameOf, t, titleOf } from "../locales/index.js";

await known(); // what a model lacks is told in a sentence of the server's

/** {room: promise of its words}; `facts` as for the composer. */
export function roomStates(facts) {
  return {
    models: Promise.resolve(modelsState(facts)),
    search: Promise.resolve(searchState(facts)),
    tools: api
      .mcp(facts.session.workspace ?? null)
      .then(({ servers }) =>
        t(servers.length ? "state.tools" : "tools.none", {
          n: servers.length,
          tools: servers.flatMap(({ tools }) => tools).length,
        }),
      ),
    library: api
      .library()
      .then(({ collections }) =>
        t("library.documents", { n: collections.reduce((sum, each) => sum + each.documents, 0) }),
      ),
    templates: api
      .templates()
      .all()
      .then(({ length: n }) => t("state.templates", { n })),
    agents: api.agents().then(({ length: n }) => t("state.agents", { n })),
    privacy: Promise.resolve(networkState(facts)),
    appearance: Promise.resolve(t(`theme.${localStorage.getItem("searchloop.theme") || "system"}`)),
  };
}

function modelsState({ session, models, servers }) {
  const model = models.find(m => m.id === session.model);
  const own =
    !model || model.available === false ? lackOf(model) || t("model.unlisted", { id: session.model }) : titleOf(model);
  return [own, ...servers.map(server => serverState(server, models))].join(" · ");
}

function serverState({ provider, name, version }, models) {
  const n = models.filter(m => m.id.startsWith(`${provider}:`) && m.available !== false).length;
  return `${name}: ${version === null ? t("welcome.away") : t("welcome.models", { n })}`;
}

function searchState({ engines: { ready, resting } }) {
  const told = name => (resting.includes(name) ? t("welcome.resting", { name: nameOf(name) }) : nameOf(name));
  return named(ready.map(told)) || t("welcome.noengine");
}

function networkState({ session, models, engines: { stays, offline } }) {
  if (offline) return t("welcome.offline");
  const model = models.find(m => m.id === session.model);
  if (model && !model.local) return t("welcome.cloud", { name: nameOf(model.id.split(":")[0]) });
  return t(stays ? "welcome.stays" : "welcome.online");
}
