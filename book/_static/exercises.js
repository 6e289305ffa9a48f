// Exercises in the page: an editor in place of the stub, and a Python that is asked for after the first click.
//
// book/_extensions/exercises.py marks the exercises.  Python is a file with a text, which becomes a worker: so it runs
// from a folder, too, and what takes too long (data-seconds) is ended.
(() => {
  "use strict";
  const { src, dataset } = document.currentScript;
  const PYTHON = new URL("../_python/python.js", src);
  const SECONDS = dataset.seconds || 10;
  const words = document.documentElement.lang.startsWith("zh")
    ? {
        run: "在此运行", check: "检查", reset: "还原", stop: "停止",
        label: (n) => `习题 ${n}：你的程序`,
        hint: "Tab 缩进；先 Esc 再 Tab 离开。Ctrl+Enter 检查。内容保存在此浏览器中。",
        loading: "正在载入 Python（2 MB，仅一次）……", running: "正在运行……", ready: "Python 已就绪。",
        right: "✓ 检查通过。", ran: "程序已运行。", wrong: "✗ 还不对：",
        ended: `超过 ${SECONDS} 秒，已停止。是否有循环不会结束？`, stopped: "已停止。", missing: "此页的 Python 无法载入。",
        line: (n) => `你的程序第 ${n} 行：`, ofCheck: (n) => `检查第 ${n} 行：`,
        module: (name) => `此页的 Python 没有模块 ${name}；notebook 中有。`,
      }
    : {
        run: "Run here", check: "Check", reset: "Reset", stop: "Stop",
        label: (n) => `Your program for exercise ${n}`,
        hint: "Tab indents; Escape, then Tab leaves the field. Ctrl+Enter checks. What you write is kept in this browser.",
        loading: "Loading Python (2 MB, once) …", running: "Running …", ready: "Python is ready.",
        right: "✓ The check passes.", ran: "The program ran.", wrong: "✗ Not yet. ",
        ended: `Stopped after ${SECONDS} seconds. Does a loop end?`, stopped: "Stopped.",
        missing: "The Python of this page cannot be loaded.",
        line: (n) => `Line ${n} of your program: `, ofCheck: (n) => `Line ${n} of the check: `,
        module: (name) => `The Python of this page has no module ${name}; the notebook has.`,
      };

  // --- Python ---
  let source; // the promise of the address of the worker's program
  let worker; // the promise of a worker that is ready
  let interrupt = () => {};
  let turn = Promise.resolve();

  function load() {
    source ||= new Promise((resolve, reject) => {
      window.dpforestPython = (text) =>
        resolve(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
      const script = document.createElement("script");
      script.src = PYTHON;
      script.onerror = () => ((source = undefined), reject());
      document.head.append(script);
    });
    worker ||= source
      .then(
        (address) =>
          new Promise((resolve, reject) => {
            const made = new Worker(address);
            made.onmessage = () => resolve(made);
            made.onerror = reject;
          }),
      )
      .catch((error) => ((worker = undefined), Promise.reject(error)));
    return worker;
  }

  /** What a program printed, and the trace of what ended it; or why it was stopped.  One runs after the other. */
  function python(program, begun) {
    interrupt(words.stopped);
    turn = turn.catch(() => {}).then(load).then((here) => {
      begun();
      return new Promise((resolve) => {
        const end = (said) => {
          clearTimeout(timer);
          interrupt = () => {};
          resolve(said);
        };
        interrupt = (stopped) => {
          here.terminate();
          worker = undefined;
          end({ stopped });
        };
        const timer = setTimeout(() => interrupt(words.ended), 1000 * SECONDS);
        here.onmessage = ({ data }) => end(data);
        here.postMessage(program);
      });
    });
    return turn;
  }

  /** The last line of a trace, after the line where it ended. */
  function complaint(trace, lines, test) {
    const last = trace.trimEnd().split("\n").pop();
    const at = Number([...trace.matchAll(/#program\d+", line (\d+)/g)].pop()?.[1] || 0);
    const place = !at ? "" : at <= lines ? words.line(at) : words.ofCheck(at - lines);
    const module = last.match(/^ModuleNotFoundError: No module named '([^']*)'/);
    if (module) return place + words.module(module[1]);
    if (last === "AssertionError" && at > lines) return place + test.split("\n")[at - lines - 1].trim();
    return place + last.replace(/^AssertionError: /, "").replace("'NoneType'", "$& (no return?)");
  }

  // --- the page ---
  /** Ask what the browser keeps; it may keep nothing. */
  function kept(action, ...given) {
    try {
      return localStorage[action](...given);
    } catch {
      return null;
    }
  }

  function element(tag, properties, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  /** Put a text in place of what is selected, as typing does, so that it can be undone. */
  function type(field, text) {
    if (!document.execCommand("insertText", false, text)) field.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
    field.dispatchEvent(new Event("input"));
  }

  /** Tab indents, Shift+Tab takes that back, Enter keeps it. */
  function keys(field, check) {
    let leaving = false;
    field.addEventListener("keydown", (event) => {
      if (event.isComposing) return;
      const { value, selectionStart: from, selectionEnd: to } = field;
      const start = value.lastIndexOf("\n", from - 1) + 1;
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) check();
      else if (event.key === "Enter") {
        const before = value.slice(start, from);
        type(field, "\n" + before.match(/^ */)[0] + (/:\s*$/.test(before) ? "    " : ""));
      } else if (event.key === "Tab" && !leaving) {
        if (!event.shiftKey && from === to) type(field, " ".repeat(4 - ((from - start) % 4)));
        else {
          const chosen = value.slice(start, to);
          field.setSelectionRange(start, to);
          const moved = event.shiftKey ? chosen.replace(/^ {1,4}/gm, "") : chosen.replace(/^(?=.)/gm, "    ");
          type(field, moved);
          field.setSelectionRange(from === to ? start + moved.length : start, start + moved.length);
        }
      } else {
        leaving = event.key === "Escape" || (leaving && event.key === "Shift");
        return;
      }
      event.preventDefault();
    });
  }

  function enhance(block) {
    const name = block.id;
    const stub = block.querySelector("pre").textContent.trimEnd() + "\n";
    const test = document.querySelector(`#${name.replace("exercise-", "check-")} pre`).textContent;
    const number = name.split("-").pop();
    const place = element("div", { className: "try-it" });
    const first = element("button", { type: "button", textContent: words.run });
    first.setAttribute("aria-label", `${words.run}: ${number}`);
    place.append(first);
    block.after(place);

    function open() {
      const field = element("textarea", {
        id: `${name}-program`, value: kept("getItem", name) ?? stub, spellcheck: false, wrap: "off", autocomplete: "off",
      });
      field.setAttribute("autocapitalize", "off");
      field.setAttribute("aria-describedby", `${name}-hint`);
      const verdict = element("p", { className: "said" });
      const printed = element("pre", { hidden: true });
      const status = element("div", { className: "status" }, verdict, printed);
      status.setAttribute("role", "status");
      const grow = () => (field.rows = Math.max(4, field.value.split("\n").length));
      const say = (text, kind = "") => {
        verdict.textContent = text;
        status.className = `status ${kind}`;
      };

      async function go(checks) {
        const program = field.value.trimEnd();
        printed.hidden = true;
        say(words.loading);
        stop.hidden = false;
        try {
          const said = await python(checks ? `${program}\n${test}` : program, () => say(words.running));
          const wrong = said.trace && complaint(said.trace, program.split("\n").length, test);
          if (said.stopped) say(said.stopped, "wrong");
          else if (wrong) say((checks ? words.wrong : "✗ ") + wrong, "wrong");
          else say(checks ? words.right : words.ran, checks ? "right" : "");
          printed.textContent = said.printed || "";
          printed.hidden = !said.printed;
        } catch {
          say(words.missing, "wrong");
        }
        stop.hidden = true;
      }

      const button = (textContent, onclick) => element("button", { type: "button", textContent, onclick });
      const stop = button(words.stop, () => interrupt(words.stopped));
      stop.hidden = true;
      const check = () => go(true);
      const reset = () => {
        field.focus();
        field.select();
        type(field, stub);
        kept("removeItem", name);
        say("");
        printed.hidden = true;
      };
      field.addEventListener("input", () => {
        grow();
        kept("setItem", name, field.value);
      });
      keys(field, check);
      grow();
      place.replaceChildren(
        element("label", { htmlFor: field.id, textContent: words.label(number) }),
        field,
        element("div", { className: "buttons" }, button(words.run, () => go(false)), button(words.check, check),
          button(words.reset, reset), stop),
        element("p", { className: "hint", id: `${name}-hint`, textContent: words.hint }),
        status,
      );
      block.classList.add("opened");
      return { field, say };
    }

    first.addEventListener("click", () => {
      const { field, say } = open();
      field.focus();
      say(words.loading);
      load().then(() => say(words.ready), () => say(words.missing, "wrong"));
    });
    if (kept("getItem", name) !== null) open();
  }

  document.querySelectorAll(".runs-here").forEach(enhance);
})();
