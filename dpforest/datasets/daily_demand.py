"""Daily Demand Forecasting Orders: how many orders a Brazilian logistics company gets in a day.  (UCI 409.)

Two things about the file.

* **Units.** Counts of orders are printed with a point after the thousands, as in Brazil: ``316.307`` is 316,307
  orders, and reading the point as a decimal point gives thousands of orders.  In the column of the fiscal sector, a
  day with fewer than a thousand orders is printed without a point: ``865`` is 865 orders, 0.865 thousand.  The repair
  divides a value of that column that has no point by 1000.  The file itself proves it right: with the repair, and
  not without, on all 60 days the total is the sum of non-urgent, urgent and fiscal orders, and the sum of the order
  types A, B and C.  The traffic controllers' and the banking orders are printed without a point throughout, in orders.
* **Layout.** The header's punctuation and the line endings differ between copies, so the digest checked is that of the
  data lines: see :func:`dpforest.datasets.files.data_lines`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpforest.schema import Schema

from .entry import Entry, ParsedRows, Read
from .files import File

COLUMNS = [
    "week", "day", "non-urgent", "urgent", "type A", "type B", "type C", "fiscal sector", "traffic controller",
    "banking 1", "banking 2", "banking 3",
]  # fmt: skip


def schema() -> Schema:
    """Public schema of the daily orders.

    The documentation names the weeks of the month (1 to 5) and the days (Monday to Friday, which Brazil counts as the
    second to the sixth day of the week) and bounds nothing else.  The bounds are an assumption in round numbers: at
    most a million orders in a day, half of that in one stream, a tenth in the small fiscal one.
    """
    stream = (0, 500)  # thousands of orders
    return Schema(
        numeric={
            "non-urgent": stream,
            "urgent": stream,
            "type A": stream,
            "type B": stream,
            "type C": stream,
            "fiscal sector": (0, 100),  # thousands of orders, after the repair
            "traffic controller": (0, 100_000),  # orders
            "banking 1": (0, 200_000),
            "banking 2": (0, 200_000),
            "banking 3": (0, 100_000),
        },
        categorical={"week": ["1", "2", "3", "4", "5"], "day": ["2", "3", "4", "5", "6"]},
        target=(0, 1_000),  # thousands of orders
        columns=COLUMNS,
    )


def parse(read: Read, schema: Schema) -> ParsedRows:
    """Rows of the file, in the order of time, with the fiscal sector's units repaired."""
    lines = read("Daily_Demand_Forecasting_Orders.csv").decode("ascii").splitlines()
    cells = np.array([line.split(";") for line in lines])
    rows = pd.DataFrame(index=range(len(cells)))
    for j, name in enumerate(COLUMNS):
        if name in schema.categorical:
            rows[name] = pd.Categorical(cells[:, j], categories=schema.categorical[name])
        elif name == "fiscal sector":
            rows[name] = [thousands(cell) for cell in cells[:, j]]
        else:
            rows[name] = cells[:, j].astype(float)
    return ParsedRows(rows, pd.Series(cells[:, len(COLUMNS)].astype(float), name="total"))


def thousands(cell: str) -> float:
    """Thousands of orders from a count printed with a point after the thousands, if it has thousands."""
    return float(cell) if "." in cell else float(cell) / 1000


ENTRIES = (
    Entry(
        name="daily-demand",
        title="Daily Demand Forecasting Orders",
        description="Sixty days of a Brazilian logistics company: the day's total orders, in thousands, from 12 "
        "features. The total is an exact sum of features, and 60 rows are very few under differential privacy.",
        citation="Ricardo Ferreira, Andrea Martiniano, Arthur Ferreira, Aleister Ferreira and Renato Sassi. "
        "Daily Demand Forecasting Orders. UCI Machine Learning Repository, 2017. https://doi.org/10.24432/C5BC8T",
        key="uci-daily-demand",
        schema=schema,
        parse=parse,
        folder="daily-demand",
        archive="409/daily+demand+forecasting+orders.zip",
        files=(
            File(
                "Daily_Demand_Forecasting_Orders.csv",
                "adf8dda021beae76b13b1cbb5b3c075d064f03b3353a711c1ddc357c6f89e924",
                lines="e4f03e06d29453e6ad214c17176c9651d5e040d788b4832219504b477b3c76a2",
            ),
        ),
    ),
)
