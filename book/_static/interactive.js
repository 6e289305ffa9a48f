// Figures with knobs: each works offline, from the exact law, and is drawn again when a knob is turned.
//
// A <figure class="knobs" data-figure="..."> comes from tools/knobs.py with its controls, one sentence and a table of
// the numbers at the knobs' first places, which dpforest computed: that is what a page without JavaScript shows.  Here
// the formulas stand a second time; tests/test_interactive.py compares the two.
(() => {
  "use strict";
  const { abs, exp, max, min, tanh, round } = Math;
  const sum = (numbers) => numbers.reduce((total, x) => total + x, 0);
  const range = (first, last) => Array.from({ length: last - first + 1 }, (_, i) => first + i);
  const num = (x, digits = 3) => x.toFixed(digits);
  const percent = (x) => `${num(100 * x, 1)} %`;

  const laws = {
    /** Probability that two-sided geometric noise is k. */
    geometric: (k, rate) => tanh(rate / 2) * exp(-rate * abs(k)),

    /** Acceptance probabilities, and the laws of the exponential mechanism and of permute-and-flip. */
    selection(scores, rate) {
      const best = max(...scores);
      const accept = scores.map((q) => exp(rate * (q - best)));
      const exponential = accept.map((p) => p / sum(accept));
      const flip = scores.map(() => 0);
      for (const heads of range(1, 2 ** scores.length - 1)) {
        const joins = scores.map((_, r) => (heads >> r) & 1);
        const chance = accept.reduce((product, p, r) => product * (joins[r] ? p : 1 - p), 1);
        joins.forEach((joined, r) => (flip[r] += joined ? chance / sum(joins) : 0));
      }
      return { accept, exponential, flip };
    },

    /** The lowest and the highest probability after an output whose ratio is between exp(-eps) and exp(eps). */
    posterior: (prior, eps) => [-eps, eps].map((e) => (prior * exp(e)) / (1 - prior + prior * exp(e))),

    /** Shares by level, from 1: harmonic, what a leaf there gets if paths are aligned, uniform. */
    budget(eps, depth) {
      const left = range(1, depth).map((k) => 1 / (depth - k + 1));
      const harmonic = left.map((w) => (eps * w) / sum(left));
      const leaf = harmonic.map((_, k) => sum(harmonic.slice(k)));
      return { harmonic, leaf, uniform: harmonic.map(() => eps / depth) };
    },
  };

  // --- drawing -------------------------------------------------------------------------------------------------------
  const rect = (x, y, width, height, kind) =>
    `<rect x="${num(x)}" y="${num(y)}" width="${num(max(0, width))}" height="${num(max(0, height))}" class="${kind}"/>`;
  const line = (x1, y1, x2, y2, kind = "axis") =>
    `<line x1="${num(x1)}" y1="${num(y1)}" x2="${num(x2)}" y2="${num(y2)}" class="${kind}"/>`;
  const text = (x, y, words, kind = "") => `<text x="${num(x)}" y="${num(y)}" class="${kind}">${words}</text>`;
  const path = (points, kind) =>
    `<path d="M${points.map(([x, y]) => `${num(x)} ${num(y)}`).join("L")}" class="${kind}"/>`;
  const dot = (x, y, kind) => `<circle cx="${num(x)}" cy="${num(y)}" r="4" class="${kind}"/>`;

  // --- the figures: from the places of the knobs to rows, a sentence and a drawing -----------------------------------
  const figures = {
    neighbours({ eps, relation, noise }) {
      const moved = relation === "replace-one" ? 2 : 1;
      const rate = eps / noise;
      const outputs = range(-1, 7);
      const [before, after] = [2, 2 + moved].map((lead) => outputs.map((o) => laws.geometric(o - lead, rate)));
      const ratios = outputs.map((_, i) => after[i] / before[i]);
      const verdict = { 1: "The promise is kept, and reached.", 2: "The promise is broken: the loss is 2ε.",
        0.5: "The promise is kept, but half of ε is not used: the noise is larger than it need be." }[moved / noise];

      const x = (i) => 34 + 36 * i;
      const top = laws.geometric(0, rate);
      const height = (p) => (110 * p) / top;
      const y = (ratio) => 215 - (22 * Math.log(ratio)) / eps;
      const within = (ratio) => abs(Math.log(ratio)) <= eps * (1 + 1e-9);
      const drawing = [
        rect(30, 2, 10, 10, "blue"), text(44, 11, "of D, lead 2"), rect(140, 2, 10, 10, "orange"),
        text(154, 11, `of D′, lead ${2 + moved}`), line(32, 140, 356, 140),
        ...outputs.flatMap((o, i) => [
          rect(x(i), 140 - height(before[i]), 15, height(before[i]), "blue"),
          rect(x(i) + 16, 140 - height(after[i]), 15, height(after[i]), "orange"),
          text(x(i) + 15, 155, o < 0 ? `−${-o}` : o, "middle"),
          rect(x(i) + 4, min(y(ratios[i]), 215), 23, abs(y(ratios[i]) - 215),
            within(ratios[i]) ? "green" : "orange over"),
        ]),
        line(32, 215, 356, 215), line(32, y(exp(eps)), 356, y(exp(eps)), "limit"),
        line(32, y(exp(-eps)), 356, y(exp(-eps)), "limit"),
        text(28, y(exp(eps)) + 4, "e<tspan dy='-4' class='small'>ε</tspan>", "end"), text(28, 219, "1", "end"),
        text(28, y(exp(-eps)) + 4, "e<tspan dy='-4' class='small'>−ε</tspan>", "end"),
      ];
      return {
        rows: outputs.map((o, i) => [o < 0 ? `−${-o}` : `${o}`, num(before[i]), num(after[i]), num(ratios[i])]),
        said: `Largest ratio: ${num(max(...ratios), 2)}, where the promise allows ${num(exp(eps), 2)}. ${verdict}`,
        drawing,
      };
    },

    selection({ a, b, c, d, eps }) {
      const scores = [a, b, c, d];
      const best = max(...scores);
      const { accept, exponential, flip } = laws.selection(scores, eps);
      const top = [0, 1, 2, 3].filter((r) => scores[r] === best);
      const chosen = (law) => percent(sum(top.map((r) => law[r])));
      const lost = (law) => num(sum(law.map((p, r) => p * (best - scores[r]))), 2);

      const x = (score) => 20 + 11 * score;
      const floor = (r) => 62 + 56 * r;
      const drawing = [
        line(x(best), 22, x(best), floor(3) + 6, "limit"), text(max(x(best), 68), 14, "threshold: best score", "middle"),
        rect(222, 5, 10, 10, "blue"), text(235, 14, "exp."), rect(272, 5, 10, 10, "orange"), text(285, 14, "p.-and-f."),
        ...scores.flatMap((q, r) => [
          text(2, floor(r), "ABCD"[r]), line(x(0), floor(r), x(15), floor(r)),
          path([[x(q), floor(r)], ...range(0, 60).map((i) => [x(q) + (i * (x(15) - x(q))) / 60, i]).map(([at, i]) =>
            [at, floor(r) - 34 * exp((-eps * i * (15 - q)) / 60)])], "curve"),
          dot(x(best), floor(r) - 34 * accept[r], "orange"),
          text(x(best) + 7, floor(r) - 34 * accept[r] - 3, num(accept[r], 2)),
          rect(222, floor(r) - 32, 90 * exponential[r], 13, "blue"),
          text(226 + 90 * exponential[r], floor(r) - 21, num(exponential[r], 2)),
          rect(222, floor(r) - 15, 90 * flip[r], 13, "orange"),
          text(226 + 90 * flip[r], floor(r) - 4, num(flip[r], 2)),
        ]),
        ...[0, 5, 10].map((score) => text(x(score), floor(3) + 17, score, "middle small")),
        text(x(15), floor(3) + 17, "score", "end small"),
      ];
      return {
        rows: scores.map((q, r) => ["ABCD"[r], `${q}`, num(accept[r]), num(exponential[r]), num(flip[r])]),
        said: `A best candidate is chosen with probability ${chosen(exponential)} by the exponential mechanism and ` +
          `${chosen(flip)} by permute-and-flip. The score lost is ${lost(exponential)} and ${lost(flip)} on average.`,
        drawing,
      };
    },

    odds({ prior, eps }) {
      const p = prior / 100;
      const [low, high] = laws.posterior(p, eps);
      const x = (q) => 52 + 285 * q;
      const y = (q) => 226 - 210 * q;
      const grid = range(0, 60).map((i) => i / 60);
      const edge = (side) => grid.map((q) => [x(q), y(laws.posterior(q, eps)[side])]);
      const drawing = [
        path([...edge(0), ...edge(1).reverse()], "band"), line(x(0), y(0), x(1), y(1), "limit"),
        line(x(0), y(0), x(1), y(0)), line(x(0), y(0), x(0), y(1)),
        ...[0, 0.5, 1].flatMap((q) => [text(x(q), 242, percent(q).replace(".0", ""), "middle"),
          text(47, y(q) + 4, percent(q).replace(".0", ""), "end")]),
        text(x(0.5), 258, "before", "middle"), text(x(0) + 6, 14, "after"),
        line(x(p), y(low), x(p), y(high), "reach"), dot(x(p), y(p), "blue"),
        dot(x(p), y(low), "orange"), dot(x(p), y(high), "orange"),
      ];
      const odds = (q) => num(q / (1 - q), q < 0.9 ? 3 : 1);
      return {
        rows: [["at least", low], ["before", p], ["at most", high]].map(([word, q]) => [word, percent(q), odds(q)]),
        said: `An observer who thought it ${percent(p)} likely that your record was used will, after any output, ` +
          `think it between ${percent(low)} and ${percent(high)} likely.`,
        drawing,
      };
    },

    budget({ eps, depth }) {
      const { harmonic, leaf, uniform } = laws.budget(eps, depth);
      const floor = 190;
      const height = (share) => (150 * share) / eps;
      const width = 150 / depth;
      const column = (left, level, shares, last) => {
        const x = left + width * (level - 1);
        let y = floor;
        const blocks = shares.slice(0, level - 1).map((share, k) => {
          y -= height(share);
          return rect(x + 1, y, width - 2, height(share), `blue ${k % 2 ? "pale" : ""}`);
        });
        return [...blocks, rect(x + 1, y - height(last), width - 2, height(last), "orange"),
          text(x + width / 2, floor + 15, level, "middle")];
      };
      const drawing = [
        text(30, 14, "formulas (9) and (10)"), text(204, 14, "uniform"),
        rect(30, 222, 10, 10, "blue"), text(44, 231, "branches, by level"), rect(204, 222, 10, 10, "orange"),
        text(218, 231, "the leaf"), text(22, floor - 146, "ε", "end"), text(22, floor + 4, "0", "end"),
        ...range(1, depth).flatMap((k) =>
          [...column(28, k, harmonic, leaf[k - 1]), ...column(202, k, uniform, uniform[0])]),
        line(28, floor - 150, 178, floor - 150, "limit"), line(202, floor - 150, 352, floor - 150, "limit"),
        line(28, floor, 178, floor), line(202, floor, 352, floor),
        ...[103, 277].map((x) => text(x, floor + 29, "level of the leaf", "middle small")),
      ];
      return {
        rows: range(1, depth).map((k) => [`${k}`, num(harmonic[k - 1]), num(leaf[k - 1]), num(uniform[k - 1])]),
        said: `The last level gets ${num(harmonic[depth - 1])} of ${num(eps, 1)} where the uniform split gives ` +
          `${num(uniform[0])}, and the root ${num(harmonic[0])}. A path that ends at the root spends ` +
          `${num(leaf[0])} with formula (10), and ${num(uniform[0])} under the uniform split.`,
        drawing,
      };
    },
  };

  // --- knobs ---------------------------------------------------------------------------------------------------------
  // A page of another edition hands over its words: patterns, and what they become (book/_extensions/editions.py).
  const words = () => JSON.parse(document.querySelector("script.edition-words")?.textContent ?? "[]")
    .map(([pattern, said]) => [new RegExp(`^${pattern}$`), said]);

  function start(figure) {
    const forms = words();
    const worded = (text) => {
      const [form, said] = forms.find(([known]) => known.test(text)) ?? ["", ""];
      return `${text}`.replace(form, said);
    };
    const knobs = [...figure.querySelectorAll("input")];
    const update = () => {
      const places = {};
      for (const knob of knobs) {
        if (knob.type === "range") places[knob.dataset.knob] = Number(knob.value);
        else if (knob.checked) places[knob.dataset.knob] = isNaN(knob.value) ? knob.value : Number(knob.value);
      }
      for (const output of figure.querySelectorAll("output")) {
        const { step, value } = document.getElementById(output.htmlFor.value);
        output.value = Number(value).toFixed(Number(step) < 1 ? 1 : 0);
      }
      const { rows, said, drawing } = figures[figure.dataset.figure](places);
      figure.querySelector("svg").innerHTML = drawing.join("");
      for (const text of figure.querySelectorAll("svg text:not(:has(*))")) text.textContent = worded(text.textContent);
      figure.querySelector(".said").textContent = worded(said);
      figure.querySelector("tbody").innerHTML = rows.map(([head, ...cells]) =>
        `<tr><th scope="row">${worded(head)}</th>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`).join("");
    };
    for (const part of figure.querySelectorAll("[hidden]")) part.hidden = false;
    figure.querySelector("details").open = false;
    figure.addEventListener("input", update);
    update();
  }
  window.dpforestLaws = laws;
  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("figure.knobs").forEach(start));
})();
