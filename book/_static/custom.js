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
