"""The only code that draws randomness.

Three sources stand behind one set of verbs: :class:`Seeded` for reproducible research, :class:`Secure` for a real
release, and :class:`Replay`, which visits every branch with its exact probability, so that an audit gets the output law
of the code that ships.  The first two are one implementation over two sources of bits.  A draw never happens
elsewhere; a test enforces it.
"""

from dpforest.chance.replay import NotEnumerableError, Replay, outcomes
from dpforest.chance.sources import Secure, Seeded
from dpforest.chance.verbs import Chance, Law

__all__ = ["Chance", "Law", "NotEnumerableError", "Replay", "Secure", "Seeded", "outcomes"]
