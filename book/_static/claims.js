// The page of claims can be narrowed: by words, by verdict, by evidence, by kind, by paper, by how the paper was read and by
// chapter.
//
// Without JavaScript, or on any other page, nothing happens: the whole list stands there.  What is chosen stands in the
// address too, so claims.html?verdict=refuted is a link, and so is claims.html?paper=eDPRF.  Which papers a claim is about,
// and the verdict on it under each relation, two scripts of data on the page say (published_claims.py).
(() => {
  "use strict";
  const kinds = {
    "published by papers": /^pub-/,
    "counterexamples": /^cex-/,
    "theorems and lemmas": /^(thm|lem)-/,
    "algorithms and definitions": /^(alg|def)-/,
  };

  /** A claim of the list: its two elements, and what it is found by. */
  function read(term, papers, verdicts) {
    const entry = term.nextElementSibling;
    const [verdict, evidence] = entry.textContent.trim().split(" · ");
    const section = term.closest("section");
    const id = entry.querySelector("code").textContent;
    const said = verdicts[id];
    return {
      term, entry, section, verdict: said ? said.true : [verdict.split(" ")[0].replace(/[^a-z]/g, "")],
      evidence: evidence.split(", "), id, paper: papers[id] || [], read: said ? said.read : "", chapter: section.querySelector("h2").firstChild.textContent,
      words: `${term.textContent} ${entry.textContent}`.toLowerCase(),
    };
  }

  function choice(name, label, options) {
    const all = ["", ...options].map((option) => `<option value="${option}">${option || "all"}</option>`).join("");
    return `<label>${label} <select name="${name}">${all}</select></label>`;
  }

  function build(article) {
    const data = (name) => JSON.parse(article.querySelector(`script.${name}`)?.textContent || "{}");
    const papers = data("papers");
    const verdicts = data("verdicts");
    const claims = [...article.querySelectorAll("dl > dt")].map((term) => read(term, papers, verdicts));
    const values = (key) => [...new Set(claims.flatMap((claim) => claim[key]))].filter(Boolean);
    const form = document.createElement("form");
    form.className = "narrow";
    form.setAttribute("role", "search");
    form.innerHTML =
      '<label>words <input type="search" name="words" placeholder="gini, bootstrap, thm-forest" /></label>' +
      choice("verdict", "verdict", values("verdict")) + choice("evidence", "evidence", values("evidence").sort()) +
      choice("kind", "kind", Object.keys(kinds)) +
      choice("paper", "paper", values("paper").sort((one, other) => one.localeCompare(other))) +
      choice("read", "its paper was read", values("read").sort()) +
      choice("chapter", "chapter", values("chapter")) +
      '<button type="reset">show all</button><output aria-live="polite"></output>';
    article.querySelector("section section").before(form);

    function narrow() {
      const asked = Object.fromEntries(new FormData(form));
      const words = asked.words.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = (claim) =>
        words.every((word) => claim.words.includes(word)) && (!asked.verdict || claim.verdict.includes(asked.verdict)) &&
        (!asked.evidence || claim.evidence.includes(asked.evidence)) && (!asked.kind || kinds[asked.kind].test(claim.id)) &&
        (!asked.paper || claim.paper.includes(asked.paper)) && (!asked.read || claim.read === asked.read) &&
        (!asked.chapter || claim.chapter === asked.chapter);
      const left = new Set();
      for (const claim of claims) {
        const fit = fits(claim);
        claim.term.hidden = claim.entry.hidden = !fit;
        if (fit) left.add(claim.section);
      }
      for (const { section } of claims) section.hidden = !left.has(section);
      const shown = claims.filter((claim) => !claim.term.hidden).length;
      form.querySelector("output").textContent = `${shown} of ${claims.length} claims`;
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

  document.addEventListener("DOMContentLoaded", () => {
    const title = document.querySelector("article h1");
    if (title && title.firstChild.textContent.trim() === "Claims" && document.querySelector("article dl > dt")) {
      build(title.closest("article"));
    }
  });
})();
