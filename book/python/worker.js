// What runs a program, put behind Brython and the modules (book/_extensions/exercises.py); exercises.js asks it.
(() => {
  "use strict";
  const brython = self.__BRYTHON__;
  brython.protocol = "file"; // a module that is not here is asked of no server
  brython.runPythonSource(
    `
import sys
from browser import self as worker


class Said:
    """What a program prints; of endless printing, the beginning."""

    def __init__(self):
        self.parts, self.room = [], 20000

    def write(self, text):
        if self.room > 0:
            self.parts.append(text[: self.room])
            self.room -= len(text)

    def flush(self):
        pass

    def take(self):
        said = "".join(self.parts)
        self.parts, self.room = [], 20000
        return said


sys.stdout, sys.stderr = Said(), Said()
worker.printed, worker.complained = sys.stdout.take, sys.stderr.take
`,
    "setup",
  );
  let runs = 0;
  self.onmessage = ({ data: program }) => {
    let trace = "";
    try {
      brython.runPythonSource(program, `program${(runs += 1)}`);
    } catch (error) {
      trace = self.complained() || String(error);
    }
    self.complained();
    self.postMessage({ printed: self.printed(), trace });
  };
  self.postMessage("ready");
})();
