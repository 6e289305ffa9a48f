"""Adult: does a person's yearly income exceed 50,000 dollars?  (UCI 2, the 1994 Current Population Survey.)

The schema follows ``adult.names``.  The file lists every category; "Convert Unknown to '?'" makes ``?`` a category
of its own, and UCI's table of variables says which three columns have unknown values.
"""

from __future__ import annotations

from dpforest.schema import Schema

from .entry import Entry, ParsedRows, Read, answers, table
from .files import File

COLUMNS = [
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship",
    "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country",
]  # fmt: skip


def schema() -> Schema:
    """Public schema of Adult."""
    return Schema(
        numeric={
            # adult.names: records with AAGE > 16; the survey's age is top-coded at 90
            "age": (17, 90),
            # A weight says how many people a record stands for, with two implied decimals.  About 197 million
            # people of 16 and over, some 120,000 of them in the survey: 165,000 on average.  Six times that.
            "fnlwgt": (0, 1_000_000),
            # the 16 levels of education, numbered
            "education-num": (1, 16),
            # dollars, in a field of five digits
            "capital-gain": (0, 99_999),
            # dollars; US tax law lets 3,000 of net loss be deducted in a year (26 USC 1211), rounded up
            "capital-loss": (0, 5_000),
            # adult.names: HRSWK > 0; two digits
            "hours-per-week": (1, 99),
        },
        categorical={
            "workclass": [
                "Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov",
                "Without-pay", "Never-worked", "?",
            ],
            "education": [
                "Bachelors", "Some-college", "11th", "HS-grad", "Prof-school", "Assoc-acdm", "Assoc-voc", "9th",
                "7th-8th", "12th", "Masters", "1st-4th", "10th", "Doctorate", "5th-6th", "Preschool",
            ],
            "marital-status": [
                "Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed",
                "Married-spouse-absent", "Married-AF-spouse",
            ],
            "occupation": [
                "Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial", "Prof-specialty",
                "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical", "Farming-fishing", "Transport-moving",
                "Priv-house-serv", "Protective-serv", "Armed-Forces", "?",
            ],
            "relationship": ["Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"],
            "race": ["White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"],
            "sex": ["Female", "Male"],
            "native-country": [
                "United-States", "Cambodia", "England", "Puerto-Rico", "Canada", "Germany",
                "Outlying-US(Guam-USVI-etc)", "India", "Japan", "Greece", "South", "China", "Cuba", "Iran",
                "Honduras", "Philippines", "Italy", "Poland", "Jamaica", "Vietnam", "Mexico", "Portugal", "Ireland",
                "France", "Dominican-Republic", "Laos", "Ecuador", "Taiwan", "Haiti", "Columbia", "Hungary",
                "Guatemala", "Nicaragua", "Scotland", "Thailand", "Yugoslavia", "El-Salvador", "Trinadad&Tobago",
                "Peru", "Hong", "Holand-Netherlands", "?",
            ],
        },
        classes=["<=50K", ">50K"],
        columns=COLUMNS,
    )  # fmt: skip


def parse(read: Read, schema: Schema) -> ParsedRows:
    """Rows of ``adult.data`` and of ``adult.test``."""
    train = table(read("adult.data"), [*COLUMNS, "income"], schema, "income")
    # The test file opens with a comment, and its labels end with a full stop.
    rows = read("adult.test").partition(b"\n")[2].replace(b"50K.", b"50K")
    test = table(rows, [*COLUMNS, "income"], schema, "income")
    return ParsedRows(train[COLUMNS], answers(train, "income"), test[COLUMNS], answers(test, "income"))


ENTRIES = (
    Entry(
        name="adult",
        title="Adult",
        description="People in the 1994 US Current Population Survey: does the yearly income exceed 50,000 dollars? "
        "14 features, UCI's own test set.",
        citation="Barry Becker and Ronny Kohavi. Adult. UCI Machine Learning Repository, 1996. "
        "https://doi.org/10.24432/C5XW20",
        key="uci-adult",
        schema=schema,
        parse=parse,
        folder="adult",
        archive="2/adult.zip",
        files=(
            File("adult.data", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
            File("adult.test", "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
        ),
    ),
)
