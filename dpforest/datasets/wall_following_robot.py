"""Wall-Following Robot Navigation: which way a robot turns, from its 24 ultrasound sensors.  (UCI 194.)

The file of UCI has CRLF line endings and no header; copies with LF, or with a header line, are in circulation.  The
digest checked is therefore that of the data lines: see :func:`dpforest.datasets.files.data_lines`.  With CRLF put
back they give ``6e9728dedef8b35e31ba0be11aea85aa53bd248ab33652777df81b95a4cc8c00``, the digest that has been
published for the file in UCI's archive.
"""

from __future__ import annotations

from dpforest.schema import Schema

from .entry import Entry, ParsedRows, Read, answers, table
from .files import File

SENSORS = [f"US{k}" for k in range(1, 25)]  # US1 looks ahead, US13 back; 15 degrees between neighbours
CLASSES = ["Move-Forward", "Slight-Right-Turn", "Sharp-Right-Turn", "Slight-Left-Turn"]


def schema() -> Schema:
    """Public schema of the robot's readings.

    UCI's page gives the names and the classes, and no range: 0 to 5 metres is the usual reach of sonar indoors.
    """
    return Schema(numeric=dict.fromkeys(SENSORS, (0, 5)), classes=CLASSES)


def parse(read: Read, schema: Schema) -> ParsedRows:
    """Rows of ``sensor_readings_24.data``, in the order of time, nine a second."""
    rows = table(read("sensor_readings_24.data"), [*SENSORS, "move"], schema, "move")
    return ParsedRows(rows[SENSORS], answers(rows, "move"))


ENTRIES = (
    Entry(
        name="wall-following-robot",
        title="Wall-Following Robot Navigation Data",
        description="A SCITOS G5 robot following the wall of a room for four rounds: the move it makes, from 24 "
        "ultrasound readings. Neighbouring rows are a ninth of a second apart, so a random split is optimistic.",
        citation="Ananda Freire, Marcus Veloso and Guilherme Barreto. Wall-Following Robot Navigation Data. "
        "UCI Machine Learning Repository, 2009. https://doi.org/10.24432/C57C8W",
        key="uci-wall-following-robot",
        schema=schema,
        parse=parse,
        folder="wall-following-robot",
        archive="194/wall+following+robot+navigation+data.zip",
        files=(
            File(
                "sensor_readings_24.data",
                "6e9728dedef8b35e31ba0be11aea85aa53bd248ab33652777df81b95a4cc8c00",
                lines="1108cbbcac9c119519a3c493358d3084bc619b5aaa688212aa75a777aa7bd5fd",
            ),
        ),
    ),
)
