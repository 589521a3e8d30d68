// Which turns of a chat are shown: the same rules as agent/branches.py, for the page.
//
// A tree is {parents, children, chosen, removed, last?}; turns are called by the number of their question,
// 0 stands before the first. `last` ends what is chosen, where that is known. A change gives another tree; the old one is not to be used any more.

const KINDS = new Set(["branch_chosen", "turn_removed", "turn_restored"]);

export const emptyTree = Object.freeze({ parents: {}, children: {}, chosen: {}, removed: [] });

/** The tree after `event`; the same tree when it changes nothing. */
export function grow(tree, event) {
  if (event.type === "user_message") return asked(tree, event.seq, event.replaces);
  if (!KINDS.has(event.type) || !(event.turn in tree.parents)) return tree;
  if (event.type === "turn_removed") return removed(tree, event.turn);
  const back = event.type === "turn_restored";
  const left = back ? tree.removed.filter(id => id !== event.turn) : tree.removed;
  return { ...tree, chosen: showing(tree, event.turn), removed: left, last: undefined };
}

/** The turns that are shown, in order. */
export function shown(tree) {
  return way(tree).filter(id => !tree.removed.includes(id));
}

/** The turns that stand beside this one, itself among them, in the order they were asked. */
export function beside(tree, id) {
  return tree.children[tree.parents[id]].filter(other => !tree.removed.includes(other));
}

function way({ chosen }) {
  const ids = [];
  for (let at = chosen[0]; at !== undefined; at = chosen[at]) ids.push(at);
  return ids;
}

// The next question grows in place: copies of all turns with each would cost the square of a long chat.
function asked(tree, id, replaces) {
  const parent = tree.parents[replaces] ?? tree.last ?? way(tree).at(-1) ?? 0;
  const next = { ...(tree === emptyTree ? structuredClone(tree) : tree), last: id };
  next.parents[id] = parent;
  next.children[parent] = [...(next.children[parent] ?? []), id];
  if (replaces) next.chosen = showing(next, id);
  else next.chosen[parent] = id;
  return next;
}

/** What is chosen once this turn and whatever it follows are. */
function showing({ parents, chosen }, id) {
  const shown = { ...chosen };
  for (let at = id; at; at = parents[at]) shown[parents[at]] = at;
  return shown;
}

function removed(tree, id) {
  const parent = tree.parents[id];
  const next = { ...tree, removed: [...tree.removed.filter(other => other !== id), id] };
  const left = beside(next, id);
  if (!left.length || tree.chosen[parent] !== id) return next;
  const nearest = left.reduce((a, b) => (Math.abs(b - id) < Math.abs(a - id) ? b : a));
  return { ...next, chosen: { ...tree.chosen, [parent]: nearest }, last: undefined };
}
