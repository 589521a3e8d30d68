// Of pages that hold the words alike, those for a task come first, then tutorials, reference, about;
// what has them as its heading, before what only holds them.
const PAGES = { start: 1.6, "guides/troubleshooting": 1.6 };
const FOLDERS = { guides: 1.5, tutorials: 1.2, about: 0.8 };
var Scorer = {
  score: ([page, , , , score, , kind]) =>
    score * (PAGES[page] ?? FOLDERS[page.split("/")[0]] ?? 1) + (kind === "title" ? 2 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

// A page needs not hold all words, but each counts, and more so the fewer pages have it.
const ofAllWords = Search.performTermsSearch;
Search.performTermsSearch = (words, excluded) => {
  const found = new Map();
  for (const word of words) {
    const pages = ofAllWords(new Set([word]), excluded);
    const rare = Math.log(1 + Search._index.docnames.length / pages.length);
    for (const page of pages) {
      const before = found.get(page[0]) ?? page.with(4, 0);
      found.set(page[0], before.with(4, before[4] + page[4] * rare));
    }
  }
  return [...found.values()];
};
