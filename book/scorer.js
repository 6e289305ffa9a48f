// How the search ranks what it finds. What bears the very name that was asked for comes first: the id of a claim, a
// name of the code that is written as code is. Then what book/keywords.yml says, a heading, a title; lists come last.
var Scorer = {
  score: ([page, title, anchor, description, score]) => {
    const asked = (new URLSearchParams(window.location.search).get("q") || "").trim();
    const same = (text) => text.trim().toLowerCase() === asked.toLowerCase();
    if (same(title)) return score + 1000;
    if (description) {
      const code = /^\w*[a-z_](?:[A-Z]|_)\w*$|^[A-Z]+[a-z]+[A-Z]\w*$|\./.test(asked);
      return code && title.endsWith(asked) ? score + 200 : score - 10;
    }
    const lists = /^book\/(?:claims|experimental_claims|bibliography|changelog|also_named|symbols|glossary|api|zh\/)|^genindex/;
    if (lists.test(page)) return score - 8;
    if (page.startsWith("book/rooms/") || page.startsWith("book/estimators/") || title.endsWith(", run")) score -= 6;
    const [head, section] = title.replace(/<[^>]*>/g, " ").split(" > ");
    const run = page.startsWith("notebooks/");
    if (!run && same((section || head).replace(/^\s*[\d.]+/, ""))) return score + 30;
    const stemmer = new Stemmer();
    const words = (text) => splitQuery(text.toLowerCase()).filter((word) => !stopwords.includes(word));
    const stems = (text) => words(text).map((word) => stemmer.stemWord(word));
    const said = new Set(stems(head));
    return !anchor && stems(asked).every((stem) => said.has(stem)) ? score + 10 : score;
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
