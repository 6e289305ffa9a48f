"""Three sets that ship inside scikit-learn: there is always something real to run, with neither files nor network.

scikit-learn's documentation prints the extremes of each column of the breast-cancer set.  They come from the rows, so
they are not used: the bounds are round numbers from geometry and from medicine, with the reason beside them.
"""

from __future__ import annotations

import pandas as pd

from dpforest.schema import Schema

from .entry import Entry, ParsedRows, Read

# A nucleus of radius at most 40 (in units of the image) has a perimeter of at most 2 pi 40 and an area of at most
# pi 40 squared, rounded; the others are ratios without unit.
NUCLEUS = {
    "radius": 40,
    "texture": 50,  # standard deviation of grey values
    "perimeter": 250,
    "area": 5_000,
    "smoothness": 0.25,
    "compactness": 1,
    "concavity": 1,
    "concave points": 0.5,
    "symmetry": 0.5,
    "fractal dimension": 0.2,
}
CLINICAL = {
    "age": (18, 90),
    "bmi": (15, 45),  # kg/m2, from underweight to obesity of the third degree
    "bp": (50, 150),  # mean arterial pressure, mm Hg
    "s1": (50, 350),  # total cholesterol, mg/dl
    "s2": (0, 250),  # LDL, mg/dl
    "s3": (20, 100),  # HDL, mg/dl
    "s4": (1, 10),  # total cholesterol / HDL
    "s5": (3, 6.5),  # logarithm of triglycerides: 20 to 665 mg/dl
    "s6": (50, 150),  # glucose, mg/dl
}


def breast_cancer_schema() -> Schema:
    """Public schema of the breast-cancer set: means and worst values share bounds, standard errors have a tenth."""
    numeric: dict[str, tuple[float, float]] = {}
    numeric |= {f"mean {name}": (0, high) for name, high in NUCLEUS.items()}
    numeric |= {f"{name} error": (0, high / 10) for name, high in NUCLEUS.items()}
    numeric |= {f"worst {name}": (0, high) for name, high in NUCLEUS.items()}
    return Schema(numeric=numeric, classes=["malignant", "benign"])


def breast_cancer(read: Read, schema: Schema) -> ParsedRows:
    """Rows of the breast-cancer set."""
    from sklearn.datasets import load_breast_cancer  # slow to import, so only when needed

    bunch = load_breast_cancer()
    y = pd.Series(bunch.target_names[bunch.target].astype(object), name="diagnosis")
    return ParsedRows(pd.DataFrame(bunch.data, columns=[str(name) for name in bunch.feature_names]), y)


def diabetes_schema() -> Schema:
    """Public schema of the diabetes set; scikit-learn documents the target as an integer from 25 to 346."""
    columns = ["age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"]
    return Schema(numeric=CLINICAL, categorical={"sex": ["1", "2"]}, target=(0, 350), columns=columns)


def diabetes(read: Read, schema: Schema) -> ParsedRows:
    """Rows of the diabetes set in their own units: the usual scaled columns carry the rows' mean and variance."""
    from sklearn.datasets import load_diabetes  # slow to import, so only when needed

    bunch = load_diabetes(scaled=False)
    X = pd.DataFrame(bunch.data, columns=list(bunch.feature_names))
    X["sex"] = pd.Categorical([str(int(code)) for code in X["sex"]], categories=schema.categorical["sex"])
    return ParsedRows(X, pd.Series(bunch.target, name="progression"))


def digits_schema() -> Schema:
    """Public schema of the digits set: each of the 64 features counts the ink in a block of 4 x 4 pixels, 0 to 16."""
    numeric = {f"pixel_{row}_{column}": (0, 16) for row in range(8) for column in range(8)}
    return Schema(numeric=numeric, classes=list(range(10)))


def digits(read: Read, schema: Schema) -> ParsedRows:
    """Rows of the digits set."""
    from sklearn.datasets import load_digits  # slow to import, so only when needed

    bunch = load_digits()
    return ParsedRows(pd.DataFrame(bunch.data, columns=schema.columns), pd.Series(bunch.target, name="digit"))


ENTRIES = (
    Entry(
        name="breast-cancer",
        title="Breast Cancer Wisconsin (Diagnostic)",
        description="Cell nuclei in images of breast masses: malignant or benign, from 30 measurements.",
        citation="William Wolberg, Olvi Mangasarian, Nick Street and W. Street. Breast Cancer Wisconsin (Diagnostic). "
        "UCI Machine Learning Repository, 1993. https://doi.org/10.24432/C5DW2B",
        key="uci-breast-cancer",
        schema=breast_cancer_schema,
        parse=breast_cancer,
    ),
    Entry(
        name="diabetes",
        title="Diabetes",
        description="442 patients: how far the disease has progressed a year after ten measurements.",
        citation="Bradley Efron, Trevor Hastie, Iain Johnstone and Robert Tibshirani. Least angle regression. "
        "The Annals of Statistics 32(2), 407-499, 2004. https://doi.org/10.1214/009053604000000067",
        key="efron2004lars",
        schema=diabetes_schema,
        parse=diabetes,
    ),
    Entry(
        name="digits",
        title="Optical Recognition of Handwritten Digits",
        description="Handwritten digits as images of 8 x 8 pixels; the 1,797 images of UCI's test part.",
        citation="E. Alpaydin and C. Kaynak. Optical Recognition of Handwritten Digits. "
        "UCI Machine Learning Repository, 1998. https://doi.org/10.24432/C50P49",
        key="uci-digits",
        schema=digits_schema,
        parse=digits,
    ),
)
