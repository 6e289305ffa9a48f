// How the search ranks what it finds: what bears the very name that was asked for, such as the id of a claim, comes
// first. The other numbers are those of Sphinx.
var Scorer = {
  score: ([page, title, anchor, description, score]) => {
    const asked = new URLSearchParams(window.location.search).get("q") || "";
    return title.toLowerCase() === asked.trim().toLowerCase() ? score + 1000 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
