"""The repository that holds a notebook: some notebooks read its records or programs, from any working folder."""

from __future__ import annotations

from pathlib import Path

from dpforest.messages import shown

__all__ = ["checkout"]


def checkout() -> Path:
    """The repository's folder: the one that holds the working folder, or else the one that holds this library.

    Raises
    ------
    FileNotFoundError
        There is neither; the message says what to do.
    """
    for place in (Path.cwd(), *Path.cwd().parents, Path(__file__).resolve().parents[2]):
        if (place / "notebooks" / "full.yaml").is_file():
            return place
    raise FileNotFoundError(
        f"this reads files of dpforest's repository, and {shown(Path.cwd())} is in no clone of it: clone it, and run "
        "this from one of its folders (papermill: --cwd)"
    )
