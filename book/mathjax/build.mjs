// Makes book/_static/mathjax/equations.js from MathJax's own sources, with the glyphs that the book may use: `make mathjax`.
import {build} from 'esbuild';
import {createRequire} from 'node:module';
import {basename} from 'node:path';

const require = createRequire(import.meta.url);
const {version} = require('mathjax-full/package.json');
const range = (first, last) => Array.from({length: last - first + 1}, (_, i) => first + i);
const KEPT = new Set([
  ...range(0x20, 0x7e), 0xa0, 0xac, 0xaf, 0xb1, 0xb4, 0xb7, 0xd7,
  ...range(0x2c6, 0x2dc), 0x300, 0x303, 0x304, 0x338, ...range(0x391, 0x3f5),
  0x2016, 0x2026, 0x2032, 0x2033, 0x2034, 0x2061, 0x2062, 0x2063, 0x2064,
  0x2102, 0x210e, 0x2113, 0x2115, 0x211a, 0x211d, 0x2124,
  0x2190, 0x2191, 0x2192, 0x2193, 0x2194, 0x21a6, 0x21d0, 0x21d2, 0x21d4,
  0x2200, 0x2202, 0x2203, 0x2205, 0x2207, 0x2208, 0x220b, 0x220f, 0x2211, 0x2212, 0x2213, 0x2216, 0x2217, 0x2218,
  0x221a, 0x221d, 0x221e, 0x2223, 0x2225, ...range(0x2227, 0x222b), 0x223c, 0x2243, 0x2248, 0x2260, 0x2261, 0x2264,
  0x2265, 0x226a, 0x226b, 0x2282, 0x2286, 0x2295, 0x2297, 0x22a4, 0x22a5, 0x22c5, 0x22ee, 0x22ef, 0x22f1,
  ...range(0x2308, 0x230b), ...range(0x239b, 0x23ad), 0x23d0, 0x25b3, 0x27e8, 0x27e9, 0x27f5, 0x27f6, 0x27f9, 0x27fa,
  ...range(0xe150, 0xe154), // parts of braces
  ...range(0x1d434, 0x1d467), ...range(0x1d6e2, 0x1d71b), // italic
  ...range(0x1d538, 0x1d550), ...range(0x1d5a0, 0x1d5d3), ...range(0x1d670, 0x1d6a3), // double-struck, sans, fixed width
]);
const LEFT_OUT = /bold|fraktur|oldstyle|script|mathit|sans-serif-italic/;

const glyphs = {
  name: 'glyphs',
  setup({onLoad}) {
    onLoad({filter: /output[\\/]svg[\\/]fonts[\\/]tex[\\/][\w-]+\.ts$/}, ({path}) => {
      const name = basename(path, '.ts');
      const [[exported, all]] = Object.entries(require(`mathjax-full/js/output/svg/fonts/tex/${name}.js`));
      const kept = LEFT_OUT.test(name) ? [] : Object.entries(all).filter(([code]) => KEPT.has(Number(code)));
      return {contents: `export const ${exported} = ${JSON.stringify(Object.fromEntries(kept))};`};
    });
  },
};
await build({
  entryPoints: [new URL('equations.js', import.meta.url).pathname],
  outfile: process.argv[2] || new URL('../_static/mathjax/equations.js', import.meta.url).pathname,
  bundle: true, minify: true, target: 'es2017', legalComments: 'none', plugins: [glyphs], logLevel: 'warning',
  tsconfigRaw: {compilerOptions: {useDefineForClassFields: false}},
  banner: {js: `/* MathJax ${version}, (c) The MathJax Consortium, Apache License 2.0 (LICENSE).\n` +
    '   Changed: TeX, SVG and MathML alone, and a part of the font; made by book/mathjax. */'},
});
