"""The vocabulary of privacy: neighbour relations, guarantees, composition, and the ledger.

Definitions and proofs are in the chapter *Differential privacy and its neighbours*.
"""

from dpforest.privacy.account import (
    PERSON,
    ROW,
    Budget,
    BudgetError,
    BudgetWarning,
)
from dpforest.privacy.composition import bootstrap, equal_split, parallel, poisson_bootstrap, sequential
from dpforest.privacy.concentrated import check_delta, epsilon_of, in_charges, rho_of
from dpforest.privacy.dp_events import privacy_event, promised_event, to_dp_event
from dpforest.privacy.ledger import KINDS, Ledger
from dpforest.privacy.vocabulary import (
    ADD_REMOVE,
    ASSUMPTIONS,
    HISTOGRAM_SENSITIVITY,
    NON_PRIVATE,
    NOT_COVERED,
    RELATIONS,
    REPLACE_ONE,
    SECURE,
    SEEDED,
    SOURCES,
    UNIT,
    UNKNOWN,
    Guarantee,
    Leak,
    OutOfSchemaWarning,
    UnprovenPrivacyWarning,
    capped,
    check_epsilon,
    check_relation,
    check_rests_on,
    claim,
    unit_of,
)

__all__ = [
    "ADD_REMOVE",
    "ASSUMPTIONS",
    "HISTOGRAM_SENSITIVITY",
    "KINDS",
    "NON_PRIVATE",
    "NOT_COVERED",
    "PERSON",
    "RELATIONS",
    "REPLACE_ONE",
    "ROW",
    "SECURE",
    "SEEDED",
    "SOURCES",
    "UNIT",
    "UNKNOWN",
    "Budget",
    "BudgetError",
    "BudgetWarning",
    "Guarantee",
    "Leak",
    "Ledger",
    "OutOfSchemaWarning",
    "UnprovenPrivacyWarning",
    "bootstrap",
    "capped",
    "check_delta",
    "check_epsilon",
    "check_relation",
    "check_rests_on",
    "claim",
    "epsilon_of",
    "equal_split",
    "in_charges",
    "parallel",
    "poisson_bootstrap",
    "privacy_event",
    "promised_event",
    "rho_of",
    "sequential",
    "to_dp_event",
    "unit_of",
]
