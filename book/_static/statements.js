// The page of experimental claims can be narrowed: by words, by verdict and by paper.
//
// Without JavaScript, or on any other page, nothing happens: all tables stand there.  What is chosen stands in the
// address too, so experimental_claims.html?verdict=reproduced is a link.
(() => {
  "use strict";

  function choice(name, options) {
    const all = ["", ...options].map((option) => `<option value="${option}">${option || "all"}</option>`).join("");
    return `<label>${name} <select name="${name}">${all}</select></label>`;
  }

  function build(article) {
    const rows = [...article.querySelectorAll("table.statements tbody tr")].map((row) => {
      const section = row.closest("section");
      return {
        row, section, verdict: row.dataset.verdict, paper: section.querySelector("h2").firstChild.textContent.trim(),
        words: row.textContent.toLowerCase(),
      };
    });
    const values = (key) => [...new Set(rows.map((each) => each[key]))];
    const form = document.createElement("form");
    form.className = "narrow";
    form.setAttribute("role", "search");
    form.innerHTML =
      '<label>words <input type="search" name="words" placeholder="table 2, accuracy" /></label>' +
      choice("verdict", values("verdict")) + choice("paper", values("paper")) +
      '<button type="reset">show all</button><output aria-live="polite"></output>';
    article.querySelector("section section").before(form);

    function narrow() {
      const asked = Object.fromEntries(new FormData(form));
      const words = asked.words.toLowerCase().split(/\s+/).filter(Boolean);
      const left = new Set();
      for (const each of rows) {
        const fit =
          words.every((word) => each.words.includes(word)) && (!asked.verdict || each.verdict === asked.verdict) &&
          (!asked.paper || each.paper === asked.paper);
        each.row.hidden = !fit;
        if (fit) left.add(each.section);
      }
      for (const { section } of rows) section.hidden = !left.has(section);
      const shown = rows.filter((each) => !each.row.hidden).length;
      form.querySelector("output").textContent = `${shown} of ${rows.length} statements`;
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
    if (title && title.firstChild.textContent.trim() === "Experimental claims") build(title.closest("article"));
  });
})();
