// Of pages that hold the words alike, those for a task come first, then tutorials, reference, about;
// what has them as its heading, before what only holds them.
const PAGES = { start: 4, "guides/troubleshooting": 4 };
const FOLDERS = { guides: 3, tutorials: 1, reference: 0, about: -1 };
var Scorer = {
  score: ([page, , , , score, , kind]) =>
    score + (PAGES[page] ?? FOLDERS[page.split("/")[0]] ?? 0) + (kind === "title" ? 2 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
