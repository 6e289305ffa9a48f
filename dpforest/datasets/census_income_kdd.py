"""Census-Income (KDD): does a person's total income exceed 50,000 dollars?  (UCI 117, the surveys of 1994 and 1995.)

The schema follows ``census-income.names``.  It lists the categories of 33 nominal attributes and says how many
distinct values each has.  Eight attributes have one value more than they have names: that one is ``?``, a category of
its own.  The recodes of industry and occupation, "own business", "veterans benefits" and the year are integers in the
file and nominal in the documentation.

The instance weight, column 25, "should *not* be used in the classifiers": it is no feature here, but stands apart in
``weights``.
"""

from __future__ import annotations

from dpforest.schema import Schema

from .entry import Entry, ParsedRows, Read, answers, table
from .files import File

# the columns of the file; the class follows
COLUMNS = [
    "age", "class of worker", "detailed industry recode", "detailed occupation recode", "education",
    "wage per hour", "enroll in edu inst last wk", "marital stat", "major industry code", "major occupation code",
    "race", "hispanic origin", "sex", "member of a labor union", "reason for unemployment",
    "full or part time employment stat", "capital gains", "capital losses", "dividends from stocks",
    "tax filer stat", "region of previous residence", "state of previous residence",
    "detailed household and family stat", "detailed household summary in household", "instance weight",
    "migration code-change in msa", "migration code-change in reg", "migration code-move within reg",
    "live in this house 1 year ago", "migration prev res in sunbelt", "num persons worked for employer",
    "family members under 18", "country of birth father", "country of birth mother", "country of birth self",
    "citizenship", "own business or self employed", "fill inc questionnaire for veteran's admin",
    "veterans benefits", "weeks worked in year", "year",
]  # fmt: skip
WEIGHT = "instance weight"
LABEL = "income"

NUMERIC = {
    "age": (0, 90),  # 91 distinct values; the survey's age is top-coded at 90
    "wage per hour": (0, 9_999),  # cents, a field of four digits
    "capital gains": (0, 99_999),  # dollars, five digits
    "capital losses": (0, 5_000),  # dollars; tax law lets 3,000 be deducted in a year (26 USC 1211), rounded up
    "dividends from stocks": (0, 99_999),  # dollars, five digits
    "num persons worked for employer": (0, 6),  # 7 distinct values, the codes of seven sizes of employer
    "weeks worked in year": (0, 52),  # 53 distinct values
}

COUNTRIES = [
    "United-States", "Mexico", "Puerto-Rico", "Peru", "Canada", "South Korea", "India", "Japan", "Haiti",
    "El-Salvador", "Dominican-Republic", "Portugal", "Columbia", "England", "Thailand", "Cuba", "Laos", "Panama",
    "China", "Germany", "Vietnam", "Italy", "Honduras", "Outlying-U S (Guam USVI etc)", "Hungary", "Philippines",
    "Poland", "Ecuador", "Iran", "Guatemala", "Holand-Netherlands", "Taiwan", "Nicaragua", "France", "Jamaica",
    "Scotland", "Yugoslavia", "Hong Kong", "Trinadad&Tobago", "Greece", "Cambodia", "Ireland",
]  # fmt: skip

CATEGORICAL = {
    "class of worker": [
        "Not in universe", "Federal government", "Local government", "Never worked", "Private",
        "Self-employed-incorporated", "Self-employed-not incorporated", "State government", "Without pay",
    ],
    "detailed industry recode": [str(code) for code in range(52)],
    "detailed occupation recode": [str(code) for code in range(47)],
    "education": [
        "Children", "7th and 8th grade", "9th grade", "10th grade", "High school graduate", "11th grade",
        "12th grade no diploma", "5th or 6th grade", "Less than 1st grade", "Bachelors degree(BA AB BS)",
        "1st 2nd 3rd or 4th grade", "Some college but no degree", "Masters degree(MA MS MEng MEd MSW MBA)",
        "Associates degree-occup /vocational", "Associates degree-academic program", "Doctorate degree(PhD EdD)",
        "Prof school degree (MD DDS DVM LLB JD)",
    ],
    "enroll in edu inst last wk": ["Not in universe", "High school", "College or university"],
    "marital stat": [
        "Never married", "Married-civilian spouse present", "Married-spouse absent", "Separated", "Divorced",
        "Widowed", "Married-A F spouse present",
    ],
    "major industry code": [
        "Not in universe or children", "Entertainment", "Social services", "Agriculture", "Education",
        "Public administration", "Manufacturing-durable goods", "Manufacturing-nondurable goods",
        "Wholesale trade", "Retail trade", "Finance insurance and real estate", "Private household services",
        "Business and repair services", "Personal services except private HH", "Construction",
        "Medical except hospital", "Other professional services", "Transportation",
        "Utilities and sanitary services", "Mining", "Communications", "Hospital services",
        "Forestry and fisheries", "Armed Forces",
    ],
    "major occupation code": [
        "Not in universe", "Professional specialty", "Other service", "Farming forestry and fishing", "Sales",
        "Adm support including clerical", "Protective services", "Handlers equip cleaners etc",
        "Precision production craft & repair", "Technicians and related support",
        "Machine operators assmblrs & inspctrs", "Transportation and material moving",
        "Executive admin and managerial", "Private household services", "Armed Forces",
    ],
    "race": ["White", "Black", "Other", "Amer Indian Aleut or Eskimo", "Asian or Pacific Islander"],
    "hispanic origin": [
        "Mexican (Mexicano)", "Mexican-American", "Puerto Rican", "Central or South American", "All other",
        "Other Spanish", "Chicano", "Cuban", "Do not know", "NA",
    ],
    "sex": ["Female", "Male"],
    "member of a labor union": ["Not in universe", "No", "Yes"],
    "reason for unemployment": [
        "Not in universe", "Re-entrant", "Job loser - on layoff", "New entrant", "Job leaver", "Other job loser",
    ],
    "full or part time employment stat": [
        "Children or Armed Forces", "Full-time schedules", "Unemployed part- time", "Not in labor force",
        "Unemployed full-time", "PT for non-econ reasons usually FT", "PT for econ reasons usually PT",
        "PT for econ reasons usually FT",
    ],
    "tax filer stat": [
        "Nonfiler", "Joint one under 65 & one 65+", "Joint both under 65", "Single", "Head of household",
        "Joint both 65+",
    ],
    "region of previous residence": ["Not in universe", "South", "Northeast", "West", "Midwest", "Abroad"],
    "state of previous residence": [
        "Not in universe", "Utah", "Michigan", "North Carolina", "North Dakota", "Virginia", "Vermont", "Wyoming",
        "West Virginia", "Pennsylvania", "Abroad", "Oregon", "California", "Iowa", "Florida", "Arkansas", "Texas",
        "South Carolina", "Arizona", "Indiana", "Tennessee", "Maine", "Alaska", "Ohio", "Montana", "Nebraska",
        "Mississippi", "District of Columbia", "Minnesota", "Illinois", "Kentucky", "Delaware", "Colorado",
        "Maryland", "Wisconsin", "New Hampshire", "Nevada", "New York", "Georgia", "Oklahoma", "New Mexico",
        "South Dakota", "Missouri", "Kansas", "Connecticut", "Louisiana", "Alabama", "Massachusetts", "Idaho",
        "New Jersey", "?",
    ],
    "detailed household and family stat": [
        "Child <18 never marr not in subfamily", "Other Rel <18 never marr child of subfamily RP",
        "Other Rel <18 never marr not in subfamily", "Grandchild <18 never marr child of subfamily RP",
        "Grandchild <18 never marr not in subfamily", "Secondary individual", "In group quarters",
        "Child under 18 of RP of unrel subfamily", "RP of unrelated subfamily", "Spouse of householder",
        "Householder", "Other Rel <18 never married RP of subfamily", "Grandchild <18 never marr RP of subfamily",
        "Child <18 never marr RP of subfamily", "Child <18 ever marr not in subfamily",
        "Other Rel <18 ever marr RP of subfamily", "Child <18 ever marr RP of subfamily", "Nonfamily householder",
        "Child <18 spouse of subfamily RP", "Other Rel <18 spouse of subfamily RP",
        "Other Rel <18 ever marr not in subfamily", "Grandchild <18 ever marr not in subfamily",
        "Child 18+ never marr Not in a subfamily", "Grandchild 18+ never marr not in subfamily",
        "Child 18+ ever marr RP of subfamily", "Other Rel 18+ never marr not in subfamily",
        "Child 18+ never marr RP of subfamily", "Other Rel 18+ ever marr RP of subfamily",
        "Other Rel 18+ never marr RP of subfamily", "Other Rel 18+ spouse of subfamily RP",
        "Other Rel 18+ ever marr not in subfamily", "Child 18+ ever marr Not in a subfamily",
        "Grandchild 18+ ever marr not in subfamily", "Child 18+ spouse of subfamily RP",
        "Spouse of RP of unrelated subfamily", "Grandchild 18+ ever marr RP of subfamily",
        "Grandchild 18+ never marr RP of subfamily", "Grandchild 18+ spouse of subfamily RP",
    ],
    "detailed household summary in household": [
        "Child under 18 never married", "Other relative of householder", "Nonrelative of householder",
        "Spouse of householder", "Householder", "Child under 18 ever married",
        "Group Quarters- Secondary individual", "Child 18 or older",
    ],
    "migration code-change in msa": [
        "Not in universe", "Nonmover", "MSA to MSA", "NonMSA to nonMSA", "MSA to nonMSA", "NonMSA to MSA",
        "Abroad to MSA", "Not identifiable", "Abroad to nonMSA", "?",
    ],
    "migration code-change in reg": [
        "Not in universe", "Nonmover", "Same county", "Different county same state",
        "Different state same division", "Abroad", "Different region", "Different division same region", "?",
    ],
    "migration code-move within reg": [
        "Not in universe", "Nonmover", "Same county", "Different county same state", "Different state in West",
        "Abroad", "Different state in Midwest", "Different state in South", "Different state in Northeast", "?",
    ],
    "live in this house 1 year ago": ["Not in universe under 1 year old", "Yes", "No"],
    "migration prev res in sunbelt": ["Not in universe", "Yes", "No", "?"],
    "family members under 18": [
        "Both parents present", "Neither parent present", "Mother only present", "Father only present",
        "Not in universe",
    ],
    "country of birth father": [*COUNTRIES, "?"],
    "country of birth mother": [*COUNTRIES, "?"],
    "country of birth self": [*COUNTRIES, "?"],
    "citizenship": [
        "Native- Born in the United States", "Foreign born- Not a citizen of U S",
        "Native- Born in Puerto Rico or U S Outlying", "Native- Born abroad of American Parent(s)",
        "Foreign born- U S citizen by naturalization",
    ],
    "own business or self employed": ["0", "1", "2"],
    "fill inc questionnaire for veteran's admin": ["Not in universe", "Yes", "No"],
    "veterans benefits": ["0", "1", "2"],
    "year": ["94", "95"],
}  # fmt: skip


def schema() -> Schema:
    """Public schema of Census-Income: 40 features; the labels carry the full stop they have in the files."""
    features = [name for name in COLUMNS if name != WEIGHT]
    return Schema(numeric=NUMERIC, categorical=CATEGORICAL, classes=["- 50000.", "50000+."], columns=features)


def parse(read: Read, schema: Schema) -> ParsedRows:
    """Rows of ``census-income.data`` and of ``census-income.test``."""
    # one file after the other: the text of the larger one takes 100 MB
    train = table(read("census-income.data"), [*COLUMNS, LABEL], schema, LABEL)
    test = table(read("census-income.test"), [*COLUMNS, LABEL], schema, LABEL)
    return ParsedRows(
        train[schema.columns],
        answers(train, LABEL),
        test[schema.columns],
        answers(test, LABEL),
        train[WEIGHT],
        test[WEIGHT],
    )


ENTRIES = (
    Entry(
        name="census-income-kdd",
        title="Census-Income (KDD)",
        description="People in the US Current Population Surveys of 1994 and 1995: does the total income exceed 50,000 "
        "dollars? 40 features, UCI's own test set, instance weights apart.",
        citation="Census-Income (KDD). UCI Machine Learning Repository, 2000. https://doi.org/10.24432/C5N30T",
        key="uci-census-income-kdd",
        schema=schema,
        parse=parse,
        folder="census-income-kdd",
        archive="117/census+income+kdd.zip",
        files=(
            File("census-income.data", "3676a81db7d3528f3f8b9f3c699d0f0aa28db45e6e994fa0b8ed38327539ee86"),
            File("census-income.test", "98402b1ab879573d0a7f38a699a40258080e25e33d3401e7bf9c96d3fa0fab8c"),
        ),
    ),
)
