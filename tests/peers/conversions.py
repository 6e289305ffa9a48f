"""What Google's dp-accounting says of rhos and of discrete Gaussian noise, kept for the suite to compare with.

Usage, with any Python that has dp-accounting, which is all that this needs::

    python tests/peers/conversions.py    # writes tests/peers/conversions.json

It asks for attrs below 24, and the lock has a newer one, so it has no place in the environment of the tests.  Nothing
here is drawn: another run gives the same numbers.
"""

from __future__ import annotations

import importlib.metadata
import json
import math
from pathlib import Path

RECORD = Path(__file__).with_name("conversions.json")
RHOS, DELTAS = (1e-4, 0.02, 0.5, 3.0), (1e-3, 1e-6)
RATES, TIMES = (0.02, 0.5), (1, 8)  # of noise on counts, and of how many
#: Rényi orders, fine enough for seven digits.
ORDERS = [1 + 10 ** (step / 1000) for step in range(-3000, 5000)]
GRID = 1e-4  # of privacy losses


def conversions() -> list[dict]:
    """The epsilon of a rho beside a delta, by Gaussian noise that has this rho at every order."""
    from dp_accounting import dp_event, rdp

    found = []
    for rho in RHOS:
        for delta in DELTAS:
            accountant = rdp.RdpAccountant(ORDERS)
            accountant.compose(dp_event.GaussianDpEvent(math.sqrt(1 / (2 * rho))))
            found.append({"rho": rho, "delta": delta, "epsilon": float(accountant.get_epsilon(delta))})
    return found


def compositions() -> list[dict]:
    """The least epsilon of so many counts with discrete Gaussian noise, from below and from above."""
    from dp_accounting.pld.privacy_loss_distribution import from_discrete_gaussian_mechanism

    found = []
    for rate in RATES:
        for times in TIMES:
            ends = [
                from_discrete_gaussian_mechanism(
                    math.sqrt(1 / (2 * rate)), value_discretization_interval=GRID, pessimistic_estimate=above
                ).self_compose(times)
                for above in (False, True)
            ]
            for delta in DELTAS:
                low, high = (float(end.get_epsilon_for_delta(delta)) for end in ends)
                found.append({"rate": rate, "times": times, "delta": delta, "from": low, "to": high})
    return found


def main() -> None:
    kept = {
        "dp-accounting": importlib.metadata.version("dp-accounting"),
        "grid": GRID,
        "orders": len(ORDERS),
        "conversions": conversions(),
        "compositions": compositions(),
    }
    RECORD.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
