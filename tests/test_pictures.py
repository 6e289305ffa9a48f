"""The stored pictures are what the programs write, from what the library computes."""

import pytest

from tests import knobs, pictures

FILES = pictures.files()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_stored_picture_is_current(path):
    assert path.read_text() == FILES[path], "run make pictures"


def test_each_is_shown_once_and_none_is_left_over():
    book = knobs.FOLDER.parents[1]
    shown = [line for page in book.glob("*.md") for line in page.read_text().splitlines() if ":file: _static/" in line]
    names = [f":file: {path.relative_to(book)}" for path in FILES]
    assert sorted(names) == sorted(line for line in shown if not line.endswith("verdicts.html"))
    stored = {path for folder in {path.parent for path in FILES} for path in folder.iterdir()}
    assert stored == set(FILES)
