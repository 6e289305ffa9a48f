"""The theorems that Coq checks: compile the development, and print what the listed theorems say and rest on.

Usage::

    python -m tests.coq            # compile, and compare with tests/formal/statements.txt
    python -m tests.coq --store    # write that file again, after a look at what has changed
    python -m tests.coq --chk      # besides, have coqchk check all proofs again

The files are in ``tests/formal``, and those that ``dpforest verify`` needs in ``dpforest/formal``, which ships.
``theorems.txt`` says which theorem is which claim's.  A statement is compared as Coq prints it, so that a weaker one
shows as a difference, and so are the assumptions, of which only those of the standard library's reals are allowed.
They are asked once for all theorems together.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from dpforest.inspect.verification import AXIOMS, FOLDER, INSTALL, NAME, module, order

ROOT = Path(__file__).resolve().parents[1]
FORMAL = ROOT / "tests" / "formal"
#: Where there are files, those that ship first.
FOLDERS = [FOLDER, FORMAL]
STATEMENTS = FORMAL / "statements.txt"
CORE = "Core"
__all__ = ["INSTALL", "NAME", "module"]
#: What may not stand in a proof: each takes something for true.
FORBIDDEN = re.compile(
    r"\b(?:Admitted|[Aa]dmit|give_up|Axioms?|Parameters?|Conjectures?|bypass_check|Unset|Guarded|Positivity)\b"
    r"|\b(?:Declare|Primitive|Load)\b"
)
#: In a section these are a theorem's hypotheses; outside of one they are axioms.  Each begins a sentence: what is only
#: named Section opens nothing.
LOCAL = re.compile(
    r"(?:\A|\.(?=\s)|\.\.\.)\s*(?:#\[[^]]*\]\s*)*(?:(?:Local|Global|Polymorphic|Time)\s+)*"
    r"(Section|End|Hypothes[ie]s|Variables?|Context)\b"
)
#: Of the standard library: what its real numbers rest on.
ALLOWED = AXIOMS


@dataclass(frozen=True)
class Theorem:
    """A Coq theorem, and what of a claim it is."""

    claim: str
    name: str
    file: str
    clause: str

    @property
    def line(self) -> int:
        """Where it stands in its file, from 1; 0 if it does not."""
        lines = files()[self.file].read_text().splitlines()
        found = [at for at, line in enumerate(lines, 1) if re.match(rf"(?:Theorem|Corollary) {self.name}\b", line)]
        return found[0] if found else 0

    @property
    def path(self) -> str:
        """Its file, from the root of the repository."""
        return str(files()[self.file].relative_to(ROOT))


def files() -> dict[str, Path]:
    """Every file of the development, by its name."""
    return {path.stem: path for folder in FOLDERS for path in sorted(folder.glob("*.v"))}


def theorems() -> list[Theorem]:
    """What ``theorems.txt`` lists."""
    lines = (FORMAL / "theorems.txt").read_text().splitlines()
    return [Theorem(*(part.strip() for part in line.split("|"))) for line in lines if line and not line.startswith("#")]


def without_comments(text: str) -> str:
    """Coq's text without strings, and without what stands in ``(* ... *)``, which may nest."""
    kept, depth, at = [], 0, 0
    while at < len(text):
        if text[at] == '"':
            end = text.find('"', at + 1)
            at = end + 1 if end >= 0 else len(text)
        elif text.startswith("(*", at):
            depth, at = depth + 1, at + 2
        elif depth and text.startswith("*)", at):
            depth, at = depth - 1, at + 2
        else:
            if not depth:
                kept.append(text[at])
            at += 1
    return "".join(kept)


def forbidden(text: str) -> list[str]:
    """The words of a file by which something would be taken for true."""
    bare = without_comments(text)
    found, inside = FORBIDDEN.findall(bare), 0
    for word in LOCAL.findall(bare):
        if word in ("Section", "End"):
            inside += 1 if word == "Section" else -1
        elif inside <= 0:
            found.append(word)
    return found


def questions() -> str:
    """What each listed theorem says and what all rest on, asked of Coq."""
    listed = theorems()
    named = " ".join(dict.fromkeys(theorem.file for theorem in listed))
    asked = "".join(f"Check @{theorem.name}.\n" for theorem in listed)
    # of all together, for each question walks through the standard library's reals
    together = "".join(f"let _ := @{theorem.name} in " for theorem in listed)  # a pair would repeat what each says
    asked += f"Definition together := {together}tt.\nPrint Assumptions together.\n"
    return (
        "From Coq Require Import QArith Reals List.\nImport ListNotations.\nOpen Scope R_scope.\n"
        f"From {NAME} Require Import {named}.\nSet Printing Width 100.\n{asked}"
    )


def coqc(folder: Path, name: str, text: str) -> str:
    """Compile a text as this file of the folder; what Coq prints, and an error where it refuses."""
    (folder / f"{name}.v").write_text(text)
    made = subprocess.run(
        ["coqc", "-q", "-Q", ".", NAME, f"{name}.v"], cwd=folder, capture_output=True, text=True, check=False
    )
    if made.returncode:
        raise ValueError(f"{name}.v does not compile: {made.stderr.strip()[-1500:]}")
    return made.stdout


def compile_all(folder: Path) -> str:
    """Compile the development in an empty folder; what each listed theorem says and what all rest on, as Coq prints it.

    The files become modules of one, ``Core``: for each by itself Coq would load the standard library's reals again.
    """
    texts = {name: path.read_text() for name, path in files().items()}
    modules = [module(name, texts[name]) for name in order(texts)]
    return coqc(folder, CORE, "".join([*modules, module("Asked", questions())]))


def assumptions(said: str) -> set[str]:
    """The names under ``Axioms:`` in what Coq printed, to its end; each begins a line."""
    return set(re.findall(r"^\S+", said.partition("\nAxioms:\n")[2], flags=re.MULTILINE))


def main(arguments: list[str]) -> int:
    """Run the command line."""
    if shutil.which("coqc") is None:
        print(f"coqc is not installed: {INSTALL}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        said = compile_all(folder)
        if "--chk" in arguments:
            subprocess.run(["coqchk", "-silent", "-Q", ".", NAME, f"{NAME}.{CORE}"], cwd=folder, check=True)
    if "--store" in arguments:
        STATEMENTS.write_text(said)
    elif said != STATEMENTS.read_text():
        print("a statement is not as tests/formal/statements.txt has it: look, and then --store", file=sys.stderr)
        return 1
    print(f"{len(theorems())} theorems of {len({theorem.claim for theorem in theorems()})} claims, checked by Coq")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
