// The pages of claims can be narrowed: privacy claims by words, verdict, evidence, kind, paper, how the paper was read and
// chapter, experimental ones by words, verdict and paper.
//
// Without JavaScript, or on any other page, nothing happens: the whole list stands there.  What is chosen stands in the
// address too, so claims.html?verdict=refuted is a link, and so is claims.html?paper=eDPRF.  Which papers a privacy claim is
// about, and the verdict on it under each relation, two scripts of data on the page say (published_claims.py).
(() => {
  "use strict";
  const kinds = {
    "published by papers": /^pub-/,
    "counterexamples": /^cex-/,
    "theorems and lemmas": /^(thm|lem)-/,
    "algorithms and definitions": /^(alg|def)-/,
  };
  const heading = (element) => element.closest("section").querySelector("h2").firstChild.textContent.trim();

  /** A privacy claim: its two elements, its words, and what it is chosen by. */
  function claim(term, papers, verdicts) {
    const entry = term.nextElementSibling;
    const [verdict, evidence] = entry.textContent.trim().split(" · ");
    const id = entry.querySelector("code").textContent;
    const said = verdicts[id];
    return {
      elements: [term, entry],
      facts: {
        verdict: said ? said.true : [verdict.split(" ")[0].replace(/[^a-z]/g, "")], evidence: evidence.split(", "),
        kind: Object.keys(kinds).filter((kind) => kinds[kind].test(id)), paper: papers[id] || [], read: said ? [said.read] : [],
        chapter: [heading(term)],
      },
    };
  }

  /** An experimental claim: a row of its paper's table. */
  function statement(row) {
    return { elements: [row], facts: { verdict: [row.dataset.verdict], paper: [heading(row)] } };
  }

  function choice(name, label, options) {
    const all = ["", ...options].map((option) => `<option value="${option}">${option || "all"}</option>`).join("");
    return `<label>${label} <select name="${name}">${all}</select></label>`;
  }

  /** A form above the list; each choice has its name, its label and its options. */
  function build(article, entries, noun, placeholder, choices) {
    for (const entry of entries) {
      entry.section = entry.elements[0].closest("section");
      entry.words = entry.elements.map((element) => element.textContent).join(" ").toLowerCase();
    }
    const form = document.createElement("form");
    form.className = "narrow";
    form.setAttribute("role", "search");
    form.innerHTML =
      `<label>words <input type="search" name="words" placeholder="${placeholder}" /></label>` +
      choices.map((each) => choice(...each)).join("") +
      '<button type="reset">show all</button><output aria-live="polite"></output>';
    article.querySelector("section section").before(form);

    function narrow() {
      const asked = Object.fromEntries(new FormData(form));
      const words = asked.words.toLowerCase().split(/\s+/).filter(Boolean);
      const left = new Set();
      let shown = 0;
      for (const { elements, section, facts, words: own } of entries) {
        const fit =
          words.every((word) => own.includes(word)) &&
          choices.every(([name]) => !asked[name] || facts[name].includes(asked[name]));
        for (const element of elements) element.hidden = !fit;
        if (fit) left.add(section);
        shown += fit;
      }
      for (const { section } of entries) section.hidden = !left.has(section);
      form.querySelector("output").textContent = `${shown} of ${entries.length} ${noun}`;
      const kept = new URLSearchParams(Object.entries(asked).filter(([, value]) => value));
      try {
        history.replaceState(null, "", `${location.pathname}${kept.size ? `?${kept}` : ""}${location.hash}`);
      } catch {
        // a page that was opened from a disk may not change its address
      }
    }

    for (const [name, value] of new URLSearchParams(location.search)) if (form.elements[name]) form.elements[name].value = value;
    form.addEventListener("input", narrow);
    form.addEventListener("reset", () => setTimeout(narrow));
    form.addEventListener("submit", (event) => event.preventDefault());
    narrow();
  }

  const values = (entries, name) => [...new Set(entries.flatMap(({ facts }) => facts[name]))].filter(Boolean);

  function claims(article) {
    const data = (name) => JSON.parse(article.querySelector(`script.${name}`)?.textContent || "{}");
    const [papers, verdicts] = [data("papers"), data("verdicts")];
    const entries = [...article.querySelectorAll("dl > dt")].map((term) => claim(term, papers, verdicts));
    if (!entries.length) return;
    build(article, entries, "claims", "gini, bootstrap, thm-forest", [
      ["verdict", "verdict", values(entries, "verdict")], ["evidence", "evidence", values(entries, "evidence").sort()],
      ["kind", "kind", Object.keys(kinds)],
      ["paper", "paper", values(entries, "paper").sort((one, other) => one.localeCompare(other))],
      ["read", "its paper was read", values(entries, "read").sort()], ["chapter", "chapter", values(entries, "chapter")],
    ]);
  }

  function statements(article) {
    const entries = [...article.querySelectorAll("table.statements tbody tr")].map(statement);
    if (!entries.length) return;
    build(article, entries, "statements", "table 2, accuracy", [
      ["verdict", "verdict", values(entries, "verdict")], ["paper", "paper", values(entries, "paper")],
    ]);
  }

  document.addEventListener("DOMContentLoaded", () => {
    const title = document.querySelector("article h1");
    const page = { "Claims": claims, "Experimental claims": statements }[title?.firstChild.textContent.trim()];
    if (page) page(title.closest("article"));
  });
})();
