"""Write the book's pictures that no notebook draws (``make pictures``)."""

from __future__ import annotations

from pathlib import Path

from tests import knobs


def files() -> dict[Path, str]:
    """Every file and what stands in it."""
    return knobs.fragments()


if __name__ == "__main__":
    for path, text in files().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        print(path.name)
