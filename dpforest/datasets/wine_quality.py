"""Wine Quality: the score of a vinho verde from its chemistry.  (UCI 186; Cortez et al., 2009.)

``winequality.names`` gives the score, "between 0 and 10", and no bounds for the features.  The bounds below are round
numbers from the law and the chemistry of wine: OIV means annex C of the International Organisation of Vine and Wine's
compendium of methods (maximum acceptable limits), EC means Regulation (EC) 606/2009.
"""

from __future__ import annotations

from functools import partial

import pandas as pd

from dpforest.schema import Schema

from .entry import Entry, ParsedRows, Read, table
from .files import File

NUMERIC = {
    "fixed acidity": (3, 15),  # g/l tartaric acid; a still wine must have 3.5 of total acidity, 15 is very sour
    "volatile acidity": (0, 1.2),  # g/l acetic acid; OIV 20 meq/l
    "citric acid": (0, 1),  # g/l; OIV 1
    "residual sugar": (0, 45),  # g/l; beyond 45 a wine is labelled sweet
    "chlorides": (0, 0.2),  # g/l sodium chloride; OIV 80 mg/l of excess sodium
    "free sulfur dioxide": (0, 100),  # mg/l; a part of the next
    "total sulfur dioxide": (0, 300),  # mg/l; EC 250 for a white wine with sugar, 50 more in a bad year
    "density": (0.98, 1.02),  # g/cm3; alcohol makes it lighter than water, sugar heavier
    "pH": (2.5, 4.5),
    "sulphates": (0, 1.5),  # g/l potassium sulphate; OIV 1, raised to 1.5 for some wines
    "alcohol": (8, 15),  # % vol; a still wine of the EU has about 8.5 to 15
}
COLOURS = ["red", "white"]


def schema(colour: str | None = None) -> Schema:
    """Public schema of one colour, or of both colours with the colour as a categorical feature."""
    categorical = None if colour else {"colour": COLOURS}
    return Schema(numeric=NUMERIC, categorical=categorical, target=(0, 10))


def parse(read: Read, schema: Schema, colours: tuple[str, ...] = tuple(COLOURS)) -> ParsedRows:
    """Rows of the files of the given colours, red first."""
    frames = []
    for colour in colours:
        content = read(f"winequality-{colour}.csv")
        only_numbers = Schema(numeric=NUMERIC, target=schema.target)
        frame = table(content, [*NUMERIC, "quality"], only_numbers, "quality", sep=";", skip_rows=1)
        frame["colour"] = pd.Categorical([colour] * len(frame), categories=COLOURS)
        frames.append(frame)
    rows = pd.concat(frames, ignore_index=True)
    return ParsedRows(rows[schema.columns], rows["quality"].astype(float))


FILES = {
    "red": File("winequality-red.csv", "4a402cf041b025d4566d954c3b9ba8635a3a8a01e039005d97d6a710278cf05e"),
    "white": File("winequality-white.csv", "76c3f809815c17c07212622f776311faeb31e87610d52c26d87d6e361b169836"),
}


def _entry(suffix: str, what: str, colours: tuple[str, ...]) -> Entry:
    return Entry(
        name=f"wine-quality{suffix}",
        title="Wine Quality",
        description=f"Portuguese vinho verde, {what}: the score from 0 to 10 that tasters gave, from 11 measurements.",
        citation="Paulo Cortez, A. Cerdeira, F. Almeida, T. Matos and J. Reis. Wine Quality. "
        "UCI Machine Learning Repository, 2009. https://doi.org/10.24432/C56S3T",
        key="uci-wine-quality",
        schema=partial(schema, colours[0] if len(colours) == 1 else None),
        parse=partial(parse, colours=colours),
        folder="wine-quality",
        archive="186/wine+quality.zip",
        files=tuple(FILES[colour] for colour in colours),
    )


ENTRIES = (
    _entry("", "red and white together, the colour being a feature", ("red", "white")),
    _entry("-red", "red", ("red",)),
    _entry("-white", "white", ("white",)),
)
