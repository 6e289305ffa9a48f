"""What an audit found as JSON has it: numbers, text, lists."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["plain"]


def plain(thing: Any) -> Any:
    """The same thing with infinities as text, ``"inf"`` and ``"-inf"``, which JSON has no numbers for."""
    if isinstance(thing, dict):
        return {word: plain(value) for word, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [plain(value) for value in thing]
    if isinstance(thing, float) and math.isinf(thing):
        return "inf" if thing > 0 else "-inf"
    return thing
