// An equation inside a line that is wider than the line gets a scroll bar of its own (custom.css).
// Only those do: as a box, an equation could be torn from the comma behind it.
function markWideEquations() {
  for (const equation of document.querySelectorAll('article mjx-container:not([display="true"])')) {
    const line = equation.closest("p, li, dd, td, th, figcaption, h1, h2, h3, h4") || equation.parentElement;
    const drawing = equation.querySelector("svg");
    equation.classList.toggle("wide", drawing !== null && drawing.getBoundingClientRect().width > line.clientWidth);
  }
}
window.addEventListener("load", () => {
  const ready = window.MathJax && window.MathJax.startup ? window.MathJax.startup.promise : Promise.resolve();
  ready.then(markWideEquations);
  window.addEventListener("resize", markWideEquations);
});

// The way to a page's other language leads to the same place of it, where that has one.
function keepPlace() {
  const way = document.querySelector("p.edition a");
  if (!way) return;
  const there = JSON.parse(way.dataset.places)[decodeURIComponent(location.hash.slice(1))];
  way.hash = there ? `#${there}` : "";
}
document.addEventListener("DOMContentLoaded", keepPlace);
window.addEventListener("hashchange", keepPlace);
