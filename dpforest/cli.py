"""The command line: ``dpforest audit edprf --epsilon 1 --relation add-remove``, ``dpforest verify model.json``.

Exit codes of an audit: 0, no violation found; 1, the claim is violated (with ``--all``: something unexpected); 2, bad
input.  Of a verification: 0, proved; 1, not proved; 2, bad input.
"""

from __future__ import annotations

import argparse
import difflib
import json
import math
import os
import sys
from ast import literal_eval
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dpforest
from dpforest import storage
from dpforest.audit.exact.enumeration import ExactAudit
from dpforest.audit.grey.greybox import GreyBoxAudit
from dpforest.audit.report.catalogue import MECHANISMS, NAMES, SCORES, mechanism, subjects
from dpforest.audit.report.procedures import PROCEDURES
from dpforest.audit.report.report import Audit, Report, look, plain, run, spell, versions
from dpforest.audit.report.settings import LEARNERS
from dpforest.audit.report.subjects import EXACT, LAYERS, SCALES, Scale, Subject
from dpforest.audit.report.universes import default_universe, learner
from dpforest.chance import NotEnumerableError
from dpforest.inspect.verification import Verified, verify_all
from dpforest.mechanisms import SELECTIONS
from dpforest.messages import plain as on_one_line
from dpforest.messages import shown
from dpforest.privacy import ADD_REMOVE, RELATIONS, check_epsilon

__all__ = ["main"]

_EXAMPLES = """examples:
  dpforest audit edprf --epsilon 1 --relation add-remove
  dpforest audit edprf --variant published
  dpforest audit edprf --option stop=never --option criterion=majority --layers exact greybox
  dpforest audit permute-and-flip --option score=gini --relation replace-one
  dpforest audit --all --scale small --json report.json

exit code: 0 no violation found, 1 the claim is violated (--all: something unexpected), 2 bad input"""

_VERIFY_EXAMPLES = """examples:
  dpforest verify model.json
  dpforest verify --seeded one.json another.json

A file has a certificate if it was written by model.save(path, certificate=True).  Coq must be installed (coqc).

exit code: 0 proved for every file, 1 not proved for some file, or no model, 2 bad input: a file that is not there"""

#: Data sets that an exact audit may enumerate when it is asked to, by engine; unasked, it takes those of the scale.
_MOST = {"tables": 20_000, "states": 2_000_000, "replays": 500}

_PIPE = 141  # the exit code of a program that SIGPIPE ends
_MANY = 1000  # records of a data set: none that is enumerated has as many
_WIDEST = 6  # features and splits on a path: beyond, a universe is not small

#: What has a flag of its own, and is no ``--option``.
_FLAGS = {
    "epsilon": "--epsilon",
    "relation": "--relation",
    "variant": "--variant",
    "max_depth": "--depth",
    "schema": "--features",
    "random_state": "--random-state",
}


class _RefusedError(Exception):
    """Bad input; the message says what to do."""


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line asks; return the exit code."""
    try:
        code = _do(argv)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # who read what is printed has read enough, as in `dpforest audit --list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is flushed at the exit
        return _PIPE


def _do(argv: Sequence[str] | None) -> int:
    try:
        asked = _parser().parse_args(argv)
    except SystemExit as done:  # argparse: 0 after --help, 2 after a message
        return int(done.code or 0)
    try:
        return asked.do(asked)
    except _RefusedError as refused:
        print(f"dpforest audit: {refused}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dpforest", description="Differentially private decision forests.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {dpforest.__version__}")
    commands = parser.add_subparsers(title="commands", required=True)
    audit = commands.add_parser(
        "audit",
        help="audit what a mechanism or an estimator claims",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Audit the claim of a mechanism or an estimator: exactly on a small universe, by its own\n"
        "accounts (grey box), and by sampling.  For a published variant the claim is the paper's.",
    )
    audit.set_defaults(do=_audit)
    what = audit.add_argument_group("what")
    what.add_argument("name", nargs="?", help="what to audit; --list lists the names")
    what.add_argument("--list", action="store_true", help="list what can be audited")
    what.add_argument("--all", action="store_true", help="audit everything, and compare with what is expected")
    what.add_argument("--show", metavar="FILE", help="sum up a finished report of --all, as JSON")
    what.add_argument("--epsilon", default="1", help="the privacy budget that is claimed (default: 1)")
    what.add_argument("--relation", choices=RELATIONS, help=f"which data sets are neighbours (default: {ADD_REMOVE})")
    what.add_argument("--variant", choices=("proved", "published"), help="of an estimator (default: proved)")
    what.add_argument(
        "--option", action="append", default=[], metavar="KEY=VALUE", help="a parameter of it; may be given again"
    )
    how = audit.add_argument_group("how")
    how.add_argument("--layers", nargs="+", choices=LAYERS, help="of the auditor (default: all)")
    how.add_argument("--scale", choices=sorted(SCALES), default="full", help="how much is looked at (default: full)")
    how.add_argument("--features", type=int, help="binary features of an estimator's universe (default: 2)")
    how.add_argument("--depth", type=int, help="splits on a path of a tree (default: as in --all)")
    how.add_argument("--records", type=int, help="most records of the data sets enumerated (default: by scale)")
    how.add_argument("-n", type=int, metavar="DRAWS", help="draws per side of the statistical test (default: by scale)")
    how.add_argument("--confidence", type=float, default=0.95, help="of the statistical bound (default: 0.95)")
    how.add_argument("--random-state", type=int, default=0, help="seed; the same seed, the same answer (default: 0)")
    how.add_argument("--json", metavar="FILE", help="write what was found as JSON; --all goes on where it stopped")
    how.add_argument("--quiet", action="store_true", help="print the verdict alone, and no progress bar")
    verify = commands.add_parser(
        "verify",
        help="have Coq prove what a released model's file says of its privacy loss",
        epilog=_VERIFY_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Have the proof assistant Coq add up the ledger in a released model's file, and prove by theorem\n"
        "thm-certificate that it is at most what the file's guarantee says, or with a delta by thm-certificate-delta.\n"
        "Printed are the sum, the theorem, its hypotheses and its assumptions.  That the code drew as the ledger says\n"
        "is not shown by a file.",
    )
    verify.set_defaults(do=_verify)
    verify.add_argument("file", nargs="+", help="a released model, saved with certificate=True")
    verify.add_argument("--seeded", action="store_true", help="also look at models for research, whose noise is seeded")
    return parser


def _verify(asked: argparse.Namespace) -> int:
    code = 0
    for path, found in zip(asked.file, verify_all(asked.file, seeded=asked.seeded), strict=True):
        if isinstance(found, Verified):
            print(f"{path}: verified\n{found}")
        else:
            said = f"{path} cannot be read: {found.strerror}" if isinstance(found, OSError) else found
            print(f"dpforest verify: {on_one_line(said)}", file=sys.stderr)
            code = max(code, 2 if isinstance(found, OSError) else 1)
    return code


def _audit(asked: argparse.Namespace) -> int:
    wanted = {"--list": asked.list, "--all": asked.all, "--show": asked.show is not None}
    given = [shown(asked.name)] * (asked.name is not None) + [option for option, there in wanted.items() if there]
    if len(given) != 1:
        several = f", and only one of these, not {' and '.join(given)}" if given else ""
        raise _RefusedError(f"say what to audit: one name, --all, --list or --show FILE{several}; --help has examples")
    if asked.list:
        return _list()
    if asked.show is not None:
        return _verdict(_load(asked.show))
    try:
        epsilon = check_epsilon(float(asked.epsilon), "--epsilon")
    except ValueError as error:
        text = str(error) if "must be positive" in str(error) or "between" in str(error) else ""
        raise _RefusedError(text or f"--epsilon must be a finite positive number, not {shown(asked.epsilon)}") from None
    if not 0 < asked.confidence < 1:
        raise _RefusedError(f"--confidence must lie strictly between 0 and 1, such as 0.95; got {asked.confidence}")
    for flag, value, least, most in (
        ("-n", asked.n, 20, None),
        ("--records", asked.records, 1, _MANY),
        ("--features", asked.features, 1, _WIDEST),
        ("--depth", asked.depth, 1, _WIDEST),
        ("--random-state", asked.random_state, 0, None),
    ):
        if value is not None and not least <= value <= (most or math.inf):
            upper = "" if most is None else f" and at most {most}, for small universes"
            raise _RefusedError(f"{flag} must be at least {least}{upper}, not {value}")
    if asked.json is not None:
        file = Path(asked.json).absolute()
        if file.is_dir():
            raise _RefusedError(f"--json {asked.json}: that is a folder; name a file in it")
        if not file.parent.is_dir():
            raise _RefusedError(f"--json {asked.json}: there is no such folder; make it first")
        if not os.access(file.parent, os.W_OK):
            raise _RefusedError(f"--json {asked.json}: that folder cannot be written")
    return _everything(asked, epsilon) if asked.all else _one(asked, epsilon)


def _list() -> int:
    wide = max(map(len, NAMES))
    for name in LEARNERS:
        print(f"{name:<{wide}} estimator; --option takes its parameters")
    for name in MECHANISMS:
        if name in PROCEDURES:
            print(f"{name:<{wide}} procedure; --option slip=True: {PROCEDURES[name].slip}, which must be found")
        else:
            print(f"{name:<{wide}} mechanism" + ("; --option score=NAME" if name in SELECTIONS else ""))
    print(f"scores: {', '.join(SCORES)}")
    return 0


# -- one -----------------------------------------------------------------------------------------------------------


def _one(asked: argparse.Namespace, epsilon: float) -> int:
    subject = _subject(asked, epsilon)
    layers = [layer for layer in LAYERS if layer in (asked.layers or subject.layers)]
    if lacking := [layer for layer in layers if layer not in subject.layers]:
        raise _RefusedError(f"{subject.refusal(lacking[0])}: leave out --layers {lacking[0]}")
    scale = _scale(asked, subject, layers)
    bars = not asked.quiet and sys.stderr.isatty()
    if not asked.quiet:
        print(f"{subject.key}, epsilon = {epsilon:g}")
    found: dict[str, Any] = {}
    for layer in layers:
        try:
            found[layer] = look(subject, layer, scale, asked.confidence, asked.random_state, bars)
        except (ValueError, NotEnumerableError) as error:
            raise _RefusedError(f"{layer}: {error}") from None
        if not asked.quiet:
            print(f"{layer:<12} ", end="")
            print(*str(found[layer]).splitlines(), *_details(found[layer]), sep=f"\n{'':<13}")
    if not asked.quiet and not asked.layers:
        for layer, why in subject.lacking.items():
            print(f"{layer:<12} not looked at: {why}")
    broken = [layer for layer in layers if found[layer].violated]
    said = f"VIOLATED, by {', '.join(broken)}" if broken else f"no violation found, by {', '.join(layers)}"
    print(f"{'verdict':<12} {said}" + (f"\n{'':<13}to be expected: {subject.why}" if subject.why else ""))
    if asked.json:
        stated = {"key": subject.key, "claim": subject.claim, "promise": subject.promise, "why": subject.why}
        made = {"versions": versions(), "random_state": asked.random_state, "confidence": asked.confidence}
        audits = {layer: audit.to_dict() for layer, audit in found.items()}
        text = json.dumps(plain({**stated, "violated": bool(broken), **audits, **made}), indent=1, allow_nan=False)
        storage.write(asked.json, text + "\n")
    return int(bool(broken))


def _details(audit: Audit) -> list[str]:
    """More lines on a violation: a witness."""
    if not audit.violated:
        return []
    if isinstance(audit, ExactAudit):
        one, other = map(spell, audit.pair)
        p, q = audit.probabilities
        output = (audit.shown or str(audit.output)).replace("\n", "; ")
        return [f"on {one}", f"against {other}", f"probability {p:.4g} against {q:.4g} of: {output}"]
    return [str(finding) for finding in audit.findings] if isinstance(audit, GreyBoxAudit) else []


def _subject(asked: argparse.Namespace, epsilon: float) -> Subject:
    name, relation = asked.name, asked.relation or ADD_REMOVE
    if name not in NAMES:
        near = difflib.get_close_matches(name.lower().replace("_", "-"), NAMES, 1, 0.5)
        meant = f"did you mean {near[0]}? " if near else ""
        raise _RefusedError(f"there is nothing called {shown(name)} to audit; {meant}there are: {', '.join(NAMES)}")
    options = dict(map(_option, asked.option))
    try:
        if name in MECHANISMS:
            for flag in ("variant", "features", "depth"):
                if getattr(asked, flag) is not None:
                    raise _RefusedError(f"--{flag} is for estimators ({', '.join(LEARNERS)}); {name} is none")
            return mechanism(name, epsilon=epsilon, relation=relation, **options)
        for word in options:
            if word in _FLAGS:
                raise _RefusedError(f"{word} is no --option: use {_FLAGS[word]}")
        features, depth = default_universe(name, asked.variant or "proved")
        variant = {} if asked.variant is None else {"variant": asked.variant}
        return learner(
            name,
            epsilon=epsilon,
            relation=relation,
            features=asked.features or features,
            depth=asked.depth or depth,
            **variant,
            **options,
        )
    except (ValueError, TypeError) as error:
        raise _RefusedError(str(error)) from None


def _option(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise _RefusedError(f"--option takes KEY=VALUE, such as stop=never; got {shown(text)}")
    try:
        return key.replace("-", "_"), literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):  # no literal, or one that nests too deep
        return key.replace("-", "_"), value


def _scale(asked: argparse.Namespace, subject: Subject, layers: Sequence[str]) -> Scale:
    """The scale with what was asked for; a universe that is too large is refused."""
    scale = SCALES[asked.scale].but(n=asked.n)
    if asked.records is None:
        return scale
    engine, kinds, limit = subject.target.engine, subject.target.record_kinds, _MOST[subject.target.engine]
    scale = scale.but(records=asked.records, **{engine: limit})
    fits = scale.most(engine, kinds)
    if EXACT in layers and fits < asked.records:
        size = math.comb(kinds + asked.records, asked.records)
        fewer = " or use fewer --features," if subject.estimator is not None else ""
        raise _RefusedError(
            f"{kinds} kinds of records and --records {asked.records} make {size:,} data sets, more than the {limit:,} "
            f"that can be enumerated: --records {fits} would fit;{fewer} or leave the exact layer out by --layers"
        )
    return scale


# -- everything ----------------------------------------------------------------------------------------------------


def _everything(asked: argparse.Namespace, epsilon: float) -> int:
    for flag in ("features", "depth", "records", "option"):
        if getattr(asked, flag):
            raise _RefusedError(f"--{flag} is for one audit by name: leave it out, or --all")
    chosen = [
        subject
        for subject in subjects(epsilon)
        if asked.relation in (None, subject.relation) and asked.variant in (None, subject.variant)
    ]
    try:
        report = run(
            chosen,
            scale=SCALES[asked.scale].but(n=asked.n),
            layers=asked.layers or LAYERS,
            path=asked.json,
            confidence=asked.confidence,
            random_state=asked.random_state,
            progress=not asked.quiet and sys.stderr.isatty(),
        )
    except ValueError as error:
        raise _RefusedError(str(error)) from None
    if not asked.quiet:
        for row in report.records():
            print(_line(row))
    return _verdict(report)


def _line(row: dict[str, Any]) -> str:
    parts = [f"{row['verdict']:<20} {row['key']}: claim {row['claim']:g}"]
    if row["exact"] is not None:
        parts.append(f"exact {row['exact']:.4g}")
    if row["greybox"] is not None:
        parts.append(row["greybox"])
    if row["empirical"] is not None:
        parts.append(f"eps >= {row['empirical']:.4g}")
    return "; ".join(parts)


def _load(path: str) -> Report:
    try:
        return Report.load(path)
    except (OSError, ValueError) as error:
        raise _RefusedError(f"--show {path}: {error}") from None


def _verdict(report: Report) -> int:
    print(report)
    return int(bool(report.unexpected))


if __name__ == "__main__":
    sys.exit(main())
