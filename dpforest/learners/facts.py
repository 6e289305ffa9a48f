"""Facts about a learner: what is true of it under every setting, declared on its class and held to it by tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from dpforest.messages import shown

__all__ = ["Facts"]

LEAKS = Literal["nothing", "size", "records"]


@dataclass(frozen=True)
class Facts:
    """Facts about a learner, which ``tests/test_facts.py`` compares with runs.

    Attributes
    ----------
    leaks : {"nothing", "size", "records"}
        What the published variant reads and does not charge: the number of records alone, which is public where records
        are replaced; or more of them.
    two_classes : bool
        Whether the published variant tells two classes apart, and refuses three.
    in_memory : bool
        Whether the published variant looks at all records at once, and refuses a table that is read in blocks.
    splits_from_counts : bool
        Whether splits are computed from noisy counts; else each is itself a draw, which pruning may take back.
    """

    leaks: LEAKS = "nothing"
    two_classes: bool = False
    in_memory: bool = False
    splits_from_counts: bool = False

    def __post_init__(self) -> None:
        if self.leaks not in get_args(LEAKS):
            raise ValueError(f"FACTS: leaks must be one of {', '.join(get_args(LEAKS))}, not {shown(self.leaks)}")
        for name in ("two_classes", "in_memory", "splits_from_counts"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"FACTS: {name} must be true or false, not {shown(getattr(self, name))}")
