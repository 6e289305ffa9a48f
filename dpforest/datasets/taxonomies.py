"""Taxonomies of the categories of data sets, for generalised tables: written from their documentation alone.

They are public, like a schema.  Which values stand together follows from what the categories mean; other taxonomies
make other tables, and as private ones.
"""

from __future__ import annotations

from typing import Any

__all__ = ["TAXONOMIES"]

#: adult.names lists the categories; regions of birth are those by continent.
ADULT: dict[str, Any] = {
    "workclass": {
        "paid": {
            "private": ["Private"],
            "self-employed": ["Self-emp-not-inc", "Self-emp-inc"],
            "government": ["Federal-gov", "Local-gov", "State-gov"],
        },
        "unpaid or unknown": ["Without-pay", "Never-worked", "?"],
    },
    "education": {
        "without a degree": {
            "school": {
                "primary": ["Preschool", "1st-4th", "5th-6th", "7th-8th"],
                "secondary": ["9th", "10th", "11th", "12th"],
                "graduate": ["HS-grad"],
            },
            "some college": ["Some-college", "Assoc-voc", "Assoc-acdm"],
        },
        "with a degree": {
            "bachelor": ["Bachelors"],
            "postgraduate": ["Masters", "Prof-school", "Doctorate"],
        },
    },
    "marital-status": {
        "married": ["Married-civ-spouse", "Married-AF-spouse"],
        "not married": {
            "never": ["Never-married"],
            "no longer, or apart": ["Divorced", "Separated", "Widowed", "Married-spouse-absent"],
        },
    },
    "occupation": {
        "white collar": {
            "professional": ["Exec-managerial", "Prof-specialty", "Tech-support"],
            "office": ["Adm-clerical", "Sales"],
        },
        "other": {
            "blue collar": [
                "Craft-repair", "Machine-op-inspct", "Handlers-cleaners", "Transport-moving", "Farming-fishing",
            ],
            "service": ["Other-service", "Priv-house-serv", "Protective-serv", "Armed-Forces"],
            "unknown": ["?"],
        },
    },
    "relationship": {
        "spouse": ["Husband", "Wife"],
        "not a spouse": ["Own-child", "Other-relative", "Not-in-family", "Unmarried"],
    },
    "native-country": {
        "North America": ["United-States", "Canada", "Outlying-US(Guam-USVI-etc)", "Puerto-Rico"],
        "elsewhere": {
            "Latin America": {
                "Mexico and Central America": ["Mexico", "Guatemala", "Honduras", "Nicaragua", "El-Salvador"],
                "Caribbean": ["Cuba", "Jamaica", "Dominican-Republic", "Haiti", "Trinadad&Tobago"],
                "South America": ["Columbia", "Ecuador", "Peru"],
            },
            "Europe": [
                "England", "Germany", "Greece", "Italy", "Poland", "Portugal", "Ireland", "France", "Hungary",
                "Scotland", "Yugoslavia", "Holand-Netherlands",
            ],
            "Asia": [
                "Cambodia", "India", "Japan", "China", "Iran", "Philippines", "Vietnam", "Laos", "Taiwan", "Thailand",
                "Hong",
            ],
            "not said": ["South", "?"],
        },
    },
}  # fmt: skip

#: nursery.names orders each attribute from what speaks least for an application to what speaks most.
NURSERY: dict[str, Any] = {
    "parents": {"usual": ["usual"], "not usual": ["pretentious", "great_pret"]},
    "has_nurs": {"good or fair": ["proper", "less_proper"], "poor": ["improper", "critical", "very_crit"]},
    "form": {"whole family": ["complete", "completed"], "other family": ["incomplete", "foster"]},
    "children": {"one or two": ["1", "2"], "three or more": ["3", "more"]},
    "housing": {"convenient": ["convenient"], "not convenient": ["less_conv", "critical"]},
    "social": {"little problem": ["nonprob", "slightly_prob"], "problematic": ["problematic"]},
    "health": {"fit": ["recommended", "priority"], "unfit": ["not_recom"]},
}

#: By the name of the data set: what ``DiffGenClassifier(taxonomies=...)`` takes.
TAXONOMIES = {"adult": ADULT, "nursery": NURSERY}
