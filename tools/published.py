"""What the book says of a claim that a paper published: whether it is true, how tight it is, how its paper was read.

The marks of the tests are the one source (``@pytest.mark.claim("pub-...", true=..., tight=..., read=...)``).  From them
``make claims`` writes the page of claims, the front page's chart, the table of both relations in ``ancestors.md``, and
``dpforest/study/published.py``, where notebooks find the verdicts.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: The two relations, as the marks name them.
ADD_REMOVE, REPLACE_ONE = RELATIONS = ("add-remove", "replace-one")
#: As published; once a constant is changed or a premise added; with neither; or not settled.
TRUE = ("yes", "after a repair", "no", "open")
#: Beside the colour, so that nobody needs it.
SIGNS = {"yes": "✓", "after a repair": "↻", "no": "✗", "open": "?"}
TIGHT = ("sharp", "loose by", "empty")
READ = ("whole", "in part", "second hand")
#: What a claim comes to, in a word, and in the front page's sentence.
KINDS = {
    "true": "true as published",
    "half": "true under one relation and after a repair under the other",
    "mended": "true after a repair",
    "false": "false, each with a counterexample",
    "open": "open",
}
#: The learner of each claim about a whole algorithm: those of the table of both relations.
LEARNERS = {
    "pub-sulq-id3": "SulqID3Classifier",
    "pub-pinq-id3": "PinqID3Classifier",
    "pub-diffp-id3": "DiffPID3Classifier",
    "pub-diffp-c45": "DiffPC45Classifier",
    "pub-diffgen": "DiffGenClassifier",
    "pub-dt-diff": "DTDiffClassifier",
    "pub-functional-mechanism": "FunctionalMechanismRegressor",
    "pub-random-trees": "RandomTreesClassifier",
    "pub-smooth-forest": "SmoothForestClassifier",
    "pub-diffprf": "DiffPRFClassifier",
    "pub-diffprfs": "DiffPRFsClassifier",
    "pub-edprf": "EDPRFClassifier",
    "pub-diffpets": "DiffPETsClassifier",
    "pub-diffpets-regression": "DiffPETsRegressor",
    "pub-pearson-tree": "PearsonTreeClassifier",
    "pub-dp-adaboost": "DPAdaBoostClassifier",
    "pub-dps-adaboost": "DPsAdaBoostClassifier",
}


@dataclass(frozen=True)
class Published:
    """A verdict on a published claim.

    Attributes
    ----------
    true : mapping or str
        For each relation one of :data:`TRUE`; one word where the claim is about no relation.
    tight : str
        How good its number is, see :data:`TIGHT`; "" where there is no number, or no truth.
    read : str
        How the passages were read on which the verdict rests, see :data:`READ`, and what or by whom in brackets.
    here : mapping or str, optional
        Where the claim is open: what is true of the algorithm as this book has put it together.
    """

    true: Mapping[str, str] | str
    tight: str
    read: str
    here: Mapping[str, str] | str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """One word for each relation, or one for all."""
        return _words(self.true)

    @property
    def how(self) -> str:
        """Of :data:`READ`."""
        return next((how for how in READ if re.match(rf"{how}\b", self.read)), "")

    @property
    def kind(self) -> str:
        """Of :data:`KINDS`."""
        words = set(self.words)
        return (
            "open"
            if "open" in words
            else "false"
            if "no" in words
            else "true"
            if words == {"yes"}
            else "half"
            if "yes" in words
            else "mended"
        )

    @property
    def truth(self) -> str:
        """In words, with the relations."""
        if len(set(self.words)) > 1:
            text = ", ".join(f"{word} under {name}" for word, name in zip(self.words, RELATIONS, strict=True))
        else:
            text = self.words[0] + (" under both relations" if len(self.words) > 1 else "")
        if self.here:
            text += f" (as read here: {Published(self.here, '', '').truth})"
        return text

    @property
    def reading(self) -> str:
        """How it was read, so that a verdict on a description says so."""
        return re.sub(r"^second hand \(by (.*)\)$", r"second hand: as described by \1", self.read)

    def cell(self, relation: str) -> str:
        """Under one relation, for a table."""
        word, here = (words if isinstance(words, str) else words[relation] for words in (self.true, self.here))
        return f"open (as read here: {here})" if word == "open" else word


def of(options: Mapping[str, Any]) -> Published:
    """The verdict that a mark's words state; what is missing is found by :func:`problems`."""
    return Published(
        options.get("true", ""), options.get("tight", ""), options.get("read", ""), options.get("here", "")
    )


def problems(claim: str, said: Published) -> list[str]:
    """What is missing in a verdict, or is not one of its words, one sentence each."""
    out = []
    for name, words in (("true", said.true), ("here", said.here)):
        if isinstance(words, Mapping) and tuple(words) != RELATIONS:
            out.append(f"{claim}: {name} names {list(words)}, not {list(RELATIONS)}")
    if out:
        return out
    out += [f"{claim}: {word!r} is not one of {TRUE}" for word in dict.fromkeys(said.words) if word not in TRUE]
    if bool(said.here) != ("open" in said.words):
        out.append(
            f"{claim}: what is true of the algorithm as read here is said where the claim is open, and only there"
        )
    if said.here:
        wrong = [word for word in _words(said.here) if word not in TRUE[:3]]
        out += [f"{claim}: here has {word!r}, not one of {TRUE[:3]}" for word in wrong]
    if not re.fullmatch(r"sharp|empty|loose by \S.*", said.tight) and (said.tight or "yes" in said.words):
        out.append(f"{claim}: tight is {said.tight!r}, not 'sharp', 'loose by ...' or 'empty'")
    if not re.fullmatch(r"whole|in part \(.+\)|second hand \(by .+\)", said.read):
        out.append(f"{claim}: read is {said.read!r}, not 'whole', 'in part (what)' or 'second hand (by whom)'")
    return out


def entry(said: Published) -> str:
    """The verdict in the page of claims: truth in bold, and below it how tight and how read."""
    truth = re.sub(rf"\b({'|'.join(TRUE)})\b(?= under|$|\))", r"**\1**", said.truth)
    return truth if "**" in truth else f"**{truth}**"


def beside(said: Published) -> str:
    """How tight and how read, in a line."""
    return " · ".join([*([said.tight] if said.tight else []), f"read {said.reading}"])


def square(said: Published, address: str, claim: str, title: str) -> str:
    """A claim in the chart: a half for each relation, hatched where it was read second hand, with a sign and words."""
    halves = "".join(f'<span class="half {_name(word)}" aria-hidden="true">{SIGNS[word]}</span>' for word in said.words)
    words = html.escape(f"{title}: {said.truth}; read {said.reading}")
    hatched = " second-hand" if said.how == "second hand" else ""
    return (
        f'<a class="published{hatched}" href="{address}" title="{words}">{halves}'
        f'<span class="hidden">{claim}, {words}</span></a>'
    )


def legend(found: Mapping[str, Published]) -> str:
    """What signs and hatching mean."""
    used = {word for said in found.values() for word in said.words}
    half = '<span class="published{}"><span class="half {}">{}</span></span>\u00a0{}'
    key = [half.format("", _name(word), SIGNS[word], word.replace(" ", "\u00a0")) for word in TRUE if word in used]
    key.append(half.format(" second-hand", "yes", "\u00a0", "read\u00a0second\u00a0hand"))
    return " ".join(key) + "<br>Left half: a record is added or removed; right half: one is replaced."


def headline(found: Mapping[str, Published]) -> str:
    """What the first page begins with, counted."""
    kinds = Counter(said.kind for said in found.values())
    mended = kinds["half"] + kinds["mended"]
    return (
        f'<p class="headline">Of {len(found)} published privacy claims checked here, <strong>{kinds["false"]} are '
        f"false</strong> and <strong>{mended} need a repair</strong>.</p>\n"
    )


def sentence(found: Mapping[str, Published]) -> str:
    """All claims in two sentences, counted."""
    kinds = Counter(said.kind for said in found.values())
    counts = [(kinds[kind], words) for kind, words in KINDS.items() if kinds[kind]]
    parts = [f"{count} {'is' if count == 1 else 'are'} {words}" for count, words in counts]
    told = sum(said.kind == "false" and said.how == "second hand" for said in found.values())
    read = Counter(said.how for said in found.values())
    return (
        f"Of {len(found)} claims that papers published {'; '.join(parts[:-1])}; and {parts[-1]}. "
        f"Of {read['whole']} we read the whole paper, of {read['in part']} some pages or the authors' own program. "
        f"{read['second hand']} we know only from other papers: these are hatched, and {told} of them "
        f"{'is' if told == 1 else 'are'} false as described there."
    )


def relations(found: Mapping[str, Published]) -> str:
    """The table of claims about whole algorithms under both relations, for the chapter on the family."""
    lines = ["| claim | a record is added or removed | a record is replaced | read |", "|---|---|---|---|"]
    for claim in LEARNERS:
        said = found[claim]
        cells = [f"{{prf:ref}}`{claim}`", *(said.cell(relation) for relation in RELATIONS), said.how]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def module(found: Mapping[str, Published]) -> str:
    """The module of the library where notebooks find the verdicts."""
    words = {claim: [*(said.cell(relation) for relation in RELATIONS), said.how] for claim, said in found.items()}
    quoted = {claim: ", ".join(f'"{word}"' for word in said) for claim, said in sorted(words.items())}
    rows = "\n".join(f'    "{claim}": ({said}),' for claim, said in quoted.items())
    return f'''"""The verdicts on published claims.  Written by ``make claims`` from the marks of the tests."""

from __future__ import annotations

#: Of each claim: is it true if a record is added or removed, if one is replaced, and how was its paper read?
PUBLISHED: dict[str, tuple[str, str, str]] = {{
{rows}
}}
'''


def _words(said: Mapping[str, str] | str) -> tuple[str, ...]:
    return (said,) if isinstance(said, str) else tuple(said[relation] for relation in RELATIONS)


def _name(word: str) -> str:
    return word.replace(" ", "-")
