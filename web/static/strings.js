// Every word the page says, in one catalogue. A second language is a second object beside `en`.
//
// A text with a count is {one, other} and is chosen by the language's plural rule from `n`.

const en = {
  skip: "Skip to the question box",
  untitled: "New chat",
  "sidebar.label": "Chats",
  "sidebar.chats": "Chats by date",
  "sidebar.open": "Show chats",
  "sidebar.close": "Hide chats",
  "sidebar.new": "New chat",
  "sidebar.find": "Search chats",
  "sidebar.none": "No chats yet. They appear here once you ask something.",
  "sidebar.nomatch": "No chat matches “{q}”.",
  "sidebar.today": "Today",
  "sidebar.yesterday": "Yesterday",
  "sidebar.earlier": "Earlier",
  "sidebar.running": "answering now",
  "sidebar.rename": "Rename “{title}”",
  "sidebar.delete": "Delete “{title}”",
  "sidebar.newname": "New name of the chat",
  "sidebar.deleted": "Deleted “{title}”.",
  undo: "Undo",
  close: "Close",

  "composer.label": "Your question",
  "composer.placeholder": "Ask anything",
  "composer.send": "Send",
  "composer.stop": "Stop answering",
  "composer.toolong": "The pasted text has {n} characters and was left out.",
  "composer.toolong.next": "A question may have {limit}; paste the part that matters.",
  "composer.keys": "Enter sends · Shift+Enter new line",

  "switch.label": "Web search",
  "switch.off": "Web search is off: nothing is searched.",
  "switch.native": "On, via {name}’s own search",
  "switch.local": "On, via {name}",
  "switch.unavailable": "On, but not available: {reason}",
  "switch.tip":
    "When on, search queries and the addresses of pages that are read leave this machine, " +
    "and parts of this chat may be in them. The library stays here. " +
    "A model’s own search may cost extra.",
  "switch.tip.stays": "Only the library is ready: no search leaves this machine.",
  "switch.nonative": "this model has no web search of its own.",
  "switch.nonative.next": "Choose Auto or Local.",
  "switch.noengine": "no search engine is ready. {why}",
  "switch.noengine.next": "Set one up in .env; .env.example shows how.",
  "switch.asking": "Asking the server…",
  "via.label": "Where the search happens",
  "via.auto": "Auto",
  "via.native": "Model’s own",
  "via.local": "Local",
  "mode.label": "Mode",
  "mode.ask": "Ask",
  "mode.plan": "Plan",
  "mode.agent": "Agent",
  "mode.ask.effect": "Ask: answers, changes nothing.",
  "mode.plan.effect": "Plan: looks around, proposes steps, changes nothing.",
  "mode.agent.effect": "Agent: may use every tool you allow.",
  "model.label": "Model",
  "model.unlisted": "{id} (not offered now)",
  "model.needs": "{title} · needs {missing}",
  "model.lacks": "{title} · {missing}",
  "model.extractive": "Quotes only (no language model)",

  "welcome.title": "Ask, and check every source.",
  "welcome.lead":
    "Answers come with numbered sources you can open. Nothing is searched unless the switch is on.",
  "welcome.model": "Model",
  "welcome.search": "Search",
  "welcome.network": "Network",
  "welcome.noengine": "no engine is ready",
  "welcome.stays": "searches stay on this machine",
  "welcome.cloud": "your questions go to {name}",
  "welcome.online": "used only when the switch is on",
  "welcome.try": "Try one of these, with web search on",
  "welcome.q1": "How does the search switch decide between native and local search?",
  "welcome.q2": "What leaves this machine when web search is on?",
  "welcome.q3": "How do I add a folder of my own documents to the library?",
  "welcome.q4": "What is the difference between ask, plan and agent mode?",

  "turns.label": "Questions and answers",
  "turns.latest": "Go to the newest text",
  "turn.you": "Question",
  "turn.answer": "Answer",
  "turn.thought": "Thoughts",
  "doing.search": "Searching",
  "doing.page": "Reading",
  "doing.tool": "Using a tool",
  "doing.thinking": "Thinking",
  "doing.writing": "Writing",
  "doing.waiting": "Waiting for {model}",
  "turn.elapsed": "{s}\u00a0s",

  "step.searching": "Searching the web: “{query}”",
  "step.searching.unknown": "Searching the web",
  "step.searched": "Searched “{query}”",
  "step.searched.unknown": "Searched the web",
  "step.results": { one: "1 result", other: "{n} results" },
  "step.noresults": "no results",
  "step.noncounted": "done",
  "step.searchfailed": "Search failed",
  "step.used": "used {engine}",
  "step.reading": "Reading {host}",
  "step.read": "Read {host}",
  "step.notread": "Could not read {host}",
  "step.tool": "Using {name}",
  "step.tooldone": "Used {name}",
  "step.toolfailed": "{name} failed",
  "step.arguments": "Arguments",
  "step.result": "Result",
  "step.stopped": "stopped",
  attempt: "{engine}: {why}",
  "attempt.ok": "answered",
  "attempt.empty": "nothing found",
  "attempt.blocked": "refused the query",
  "attempt.error": "failed",
  "attempt.skipped": "resting after failures",
  "attempt.network": "not reachable",
  "attempt.rate": "too many requests",
  "attempt.quota": "quota used up",
  "attempt.auth": "key refused",
  "attempt.parse": "answer not understood",
  "attempt.config": "not set up",
  "done.searches": { one: "Searched 1 query", other: "Searched {n} queries" },
  "done.pages": { one: "read 1 page", other: "read {n} pages" },
  "done.tools": { one: "used 1 tool", other: "used {n} tools" },
  "done.nothing": "Worked {s}",
  seconds: "{s}\u00a0s",
  "seconds.few": "under 0.1\u00a0s",

  "end.cancelled": "Stopped. What was written so far is kept.",
  "end.cancelled.empty": "Stopped before anything was written.",
  "end.limit": "A limit was reached before the answer was complete.",
  "end.incomplete": "The answer was cut off before it was complete.",
  "end.error": "The answer failed",
  "end.empty": "The model answered without a word.",
  retry: "Retry",
  "retry.title": "Sends the same question again",
  "copy.details": "Copy details",
  "copy.code": "Copy code",
  copied: "Copied",
  "copy.failed": "Copying was refused by the browser",

  "cite.label": "Source {n}: {host}",
  "cite.unknown": "Source {n}, not in the list",
  "cite.verified": "Quote found in the page",
  "cite.unverified": "Quote not found in the page",
  "cite.unchecked": "Quote not checked",
  "sources.title": "Sources",
  "sources.counts": "{cited} cited, {found} found",
  "sources.more": { one: "1 more, found but not cited", other: "{n} more, found but not cited" },
  "source.cited": "cited",
  "source.opened": "read",
  "source.found": "found, not read",
  "source.library": "Library",
  "source.newtab": "opens in a new tab",
  "code.label": "Code",
  "table.label": "Table",

  "foot.off": "no search",
  "foot.native": "{name}: own search",
  "foot.local": "local: {engine}",
  "foot.local.unknown": "local search",
  "foot.extractive": "no language model: quotes only",
  "foot.tokens": "{in} tokens in, {out} out",
  "foot.tokens.unknown": "tokens unknown",
  "foot.searches": { one: "1 search", other: "{n} searches" },
  "foot.pages": { one: "1 page", other: "{n} pages" },
  "foot.cost": "about {cost} USD",
  "foot.cost.unknown": "cost unknown",

  "reader.loading": "Opening the page…",
  "reader.more": "Show more",
  "reader.empty": "This page has no text.",
  "reader.length": "{shown} of {all} characters",

  "net.lost": "Connection lost, trying again…",
  "net.unreachable": "The server does not answer.",
  "net.unreachable.next": "Check that it is still running; this page tries again by itself.",
  "net.denied": "This page is no longer signed in: the server was started anew.",
  "net.denied.next": "Open the start address that it printed.",
  "net.bad": "The server answered {status} without saying why.",
  "net.bad.next": "Look at its log, then try again.",
  "session.gone": "This chat was deleted elsewhere.",
  "session.gone.next": "Start a new one; your other chats are on the left.",
};

const catalogues = { en };
const language = Object.keys(catalogues).find((l) => navigator.language?.startsWith(l)) ?? "en";
const texts = catalogues[language];
const plural = new Intl.PluralRules(language);

/** The text `key` with its {places} filled from `values`; throws on a key that does not exist. */
export function t(key, values = {}) {
  const entry = texts[key] ?? en[key];
  if (entry === undefined) throw new Error(`no text called ${key}`);
  const form = typeof entry === "string" ? entry : (entry[plural.select(values.n)] ?? entry.other);
  return form.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

/** Whether there is a text called `key`. */
export function has(key) {
  return key in en;
}

const names = {
  openai: "OpenAI",
  "openai-chat": "OpenAI-compatible",
  gemini: "Gemini",
  anthropic: "Anthropic",
  ollama: "Ollama",
  builtin: "Built in",
  ddg: "DuckDuckGo",
  library: "Library",
  searxng: "SearXNG",
  brave: "Brave",
};

/** How a provider or engine is called in front of people. */
export function nameOf(id) {
  return names[id] ?? id;
}

/** Fills the words of a static part of the page: data-t, data-label, data-placeholder. */
export function translate(root) {
  document.documentElement.lang = language;
  for (const node of root.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
  for (const node of root.querySelectorAll("[data-label]")) {
    const label = t(node.dataset.label);
    node.setAttribute("aria-label", label);
    if (node.tagName === "BUTTON") node.title = label;
  }
  for (const node of root.querySelectorAll("[data-placeholder]")) {
    node.placeholder = t(node.dataset.placeholder);
  }
}
