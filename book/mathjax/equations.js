// MathJax as far as the book needs it: TeX as authors write it, drawings as SVG, and MathML for screen readers. No menu,
// no other input or output, nothing that is loaded later. `make mathjax` turns this into book/_static/mathjax/equations.js.
import {mathjax} from 'mathjax-full/ts/mathjax.ts';
import {TeX} from 'mathjax-full/ts/input/tex.ts';
import 'mathjax-full/ts/input/tex/ams/AmsConfiguration.ts';
import 'mathjax-full/ts/input/tex/base/BaseConfiguration.ts';
import 'mathjax-full/ts/input/tex/configmacros/ConfigMacrosConfiguration.ts';
import {SVG} from 'mathjax-full/ts/output/svg.ts';
import {browserAdaptor} from 'mathjax-full/ts/adaptors/browserAdaptor.ts';
import {RegisterHTMLHandler} from 'mathjax-full/ts/handlers/html.ts';
import {AssistiveMmlHandler} from 'mathjax-full/ts/a11y/assistive-mml.ts';

const {tex, svg, options: {enableMenu, ...options}} = {tex: {}, svg: {}, options: {}, ...window.MathJax};
AssistiveMmlHandler(RegisterHTMLHandler(browserAdaptor()));
const startup = {};
startup.promise = new Promise((ready) => {
  const start = () => {
    startup.document = mathjax.document(document, {
      ...options,
      InputJax: new TeX({packages: ['base', 'ams', 'configmacros'], ...tex}),
      OutputJax: new SVG(svg),
    });
    startup.document.render();
    ready();
  };
  if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', start);
  else start();
});
window.MathJax = {version: mathjax.version, startup};
