// An equation inside a line that is wider than the line gets a scroll bar of its own (custom.css).
// Only those do: as a box, an equation could be torn from the comma behind it.
function markWideEquations() {
  for (const equation of document.querySelectorAll('article mjx-container:not([display="true"])')) {
    const line = equation.closest("p, li, dd, td, th, figcaption, h1, h2, h3, h4") || equation.parentElement;
    const drawing = equation.querySelector("svg");
    equation.classList.toggle("wide", drawing !== null && drawing.getBoundingClientRect().width > line.clientWidth);
  }
}
// A page that is opened at a place shows it when its equations are set, for they move what is below them; unless the
// reader has moved meanwhile, or comes back to where the page was left.
let moved = false;
for (const kind of ["wheel", "touchstart", "pointerdown", "keydown"]) {
  window.addEventListener(kind, () => { moved = true; }, { once: true, passive: true });
}
function showPlace() {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const [opened] = performance.getEntriesByType("navigation");
  if (place && !moved && opened && opened.type === "navigate") place.scrollIntoView({ behavior: "instant" });
}
window.addEventListener("load", () => {
  const ready = window.MathJax && window.MathJax.startup ? window.MathJax.startup.promise : Promise.resolve();
  ready.then(() => {
    markWideEquations();
    showPlace();
  });
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
