"""What is shipped: the wheel and the source distribution, what stands in them, and that they work by themselves."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

import dpforest
from tests import not_run
from tools import changelog

ROOT = Path(__file__).resolve().parent.parent
HTML = ROOT / "_build" / "html"
VERSION = dpforest.__version__
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
ADDRESSES = {"DPFOREST_REPOSITORY": "https://example.org/dpforest/", "DPFOREST_SITE": "https://example.org/book"}

pytestmark = pytest.mark.slow


def built(root: Path, folder: Path, builder: type) -> Path:
    """The file that hatchling makes of this folder."""
    [path] = builder(str(root)).build(directory=str(folder), versions=["standard"])
    return Path(path)


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """Both files, built without addresses."""
    folder = tmp_path_factory.mktemp("dist")
    with pytest.MonkeyPatch.context() as patch:
        for name in ADDRESSES:
            patch.delenv(name, raising=False)
        patch.setenv("SOURCE_DATE_EPOCH", "1600000000")
        sdist, wheel = (built(ROOT, folder, builder) for builder in (SdistBuilder, WheelBuilder))
    return SimpleNamespace(sdist=sdist, wheel=wheel)


def metadata(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        return email.message_from_bytes(archive.read(f"dpforest-{VERSION}.dist-info/METADATA"))


def test_the_wheel_is_the_library_with_its_types_and_licence(shipped):
    with zipfile.ZipFile(shipped.wheel) as archive:
        names = archive.namelist()
    info = f"dpforest-{VERSION}.dist-info"
    assert {name.split("/")[0] for name in names} == {"dpforest", info}
    assert {"dpforest/py.typed", f"{info}/licenses/LICENSE", f"{info}/entry_points.txt"} <= {*names}
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "dpforest").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == sources
    data = {path.relative_to(ROOT).as_posix() for path in (ROOT / "dpforest").rglob("*.toml")}
    assert {"dpforest/datasets/schemas/adult.toml", "dpforest/study/statements/edprf.toml"} <= data <= {*names}
    theorems = {path.relative_to(ROOT).as_posix() for path in (ROOT / "dpforest" / "formal").iterdir()}
    assert "dpforest/formal/Certificate.v" in theorems <= {*names}  # what `dpforest verify` hands to Coq
    assert shipped.wheel.stat().st_size < 2_000_000


def test_its_metadata_says_the_version_and_no_address_that_nobody_gave(shipped, tmp_path, monkeypatch):
    said = metadata(shipped.wheel)
    assert said["Version"] == VERSION
    assert said["Metadata-Version"] == "2.4"
    assert said.get_all("Project-URL") is None
    for name, address in ADDRESSES.items():
        monkeypatch.setenv(name, address)
    urls = dict(each.split(", ") for each in metadata(built(ROOT, tmp_path, WheelBuilder)).get_all("Project-URL", []))
    assert urls["Issues"] == "https://example.org/dpforest/issues"
    assert urls["Documentation"] == "https://example.org/book"
    monkeypatch.setenv("DPFOREST_SITE", "example.org")
    with pytest.raises(ValueError, match="DPFOREST_SITE must begin with https"):
        built(ROOT, tmp_path, WheelBuilder)
    monkeypatch.setenv("DPFOREST_SITE", "http://localhost:8000")  # as the pages allow
    assert "http://localhost:8000" in str(metadata(built(ROOT, tmp_path, WheelBuilder)).get_all("Project-URL", []))


def test_the_source_distribution_gives_the_same_wheel(shipped, tmp_path, monkeypatch):
    """It is the repository without its history: tests, book and notebooks are there, and no data set is."""
    with tarfile.open(shipped.sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    [root] = tmp_path.iterdir()
    for name in ("tests/oracle.py", "book/intro.md", "notebooks/edprf.ipynb", "_toc.yml", "CHANGELOG.md", "Makefile"):
        assert (root / name).read_bytes() == (ROOT / name).read_bytes()
    assert [path for path in root.rglob("*") if path.suffix in {".csv", ".data", ".arff", ".parquet", ".zip"}] == []
    for name in ADDRESSES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1600000000")
    again = built(root, tmp_path, WheelBuilder)
    with zipfile.ZipFile(shipped.wheel) as one, zipfile.ZipFile(again) as other:
        assert {name: one.read(name) for name in one.namelist()} == {
            name: other.read(name) for name in other.namelist()
        }


PROGRAM = """
import sys, warnings
from pathlib import Path
import dpforest
assert Path(dpforest.__file__).is_relative_to(sys.argv[1]), dpforest.__file__
data = dpforest.datasets.load("breast-cancer")  # of an installed package; its schema is a file of the wheel
model = dpforest.PrivateBoostingClassifier(epsilon=1.0, schema=data.schema, source="secure")
with warnings.catch_warnings():
    warnings.simplefilter("ignore", dpforest.OutOfSchemaWarning)
    model.fit(data.X, data.y)
    model.save("model.json")
    again = dpforest.load("model.json")
    assert (again.predict(data.X) == model.predict(data.X)).all()
print(again.guarantee_)
"""


@pytest.mark.parametrize("place", ["made now", "offered by the book"])
def test_the_wheel_works_by_itself(place, shipped, tmp_path):
    """Installed into a folder of its own, used from another one: the library, a schema that it ships, the command."""
    site, wheel = tmp_path / "site", shipped.wheel
    if place != "made now":
        if not (HTML / "index.html").exists() and "CI" not in os.environ:
            pytest.skip(not_run.BOOK)
        wheel = HTML / "_downloads" / wheel.name
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-compile"]
    subprocess.run([*pip, "--disable-pip-version-check", "--target", site, wheel], check=True, capture_output=True)
    run = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(site)}, "capture_output": True, "text": True}
    done = subprocess.run([sys.executable, "-c", PROGRAM, site], **run)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1-differentially private")
    done = subprocess.run([sys.executable, site / "bin" / "dpforest", "--version"], **run)
    assert VERSION in done.stdout, done.stderr


# -- the changelog ----------------------------------------------------------------------------------------------------
def test_a_release_has_a_dated_section_of_the_usual_kinds():
    found = changelog.sections(CHANGELOG)
    assert VERSION in found
    for version, body in found.items():
        kinds = [head for head in re.findall(r"^### (.*)$", body, re.MULTILINE) if not head.startswith("Migrating")]
        assert kinds == [kind for kind in changelog.KINDS if kind in kinds], version


def test_a_tag_that_is_not_this_version_or_has_no_section_is_refused():
    text = f"## [Unreleased]\n\n## [{VERSION}] - 2026-11-26\n\n### Added\n\n- All.\n\n## [0.1.0] - 2026-01-01\n"
    assert changelog.notes(f"v{VERSION}", text) == "### Added\n\n- All.\n"
    for tag in (VERSION, "v0.1.0", "", "v1"):
        with pytest.raises(ValueError, match="is not v"):
            changelog.notes(tag, text)
    with pytest.raises(ValueError, match=r"no section for 2\.0\.0"):
        changelog.notes("v2.0.0", text, "2.0.0")
    with pytest.raises(ValueError, match=r"under \[Unreleased\]"):
        changelog.notes(f"v{VERSION}", text.replace("[Unreleased]\n", "[Unreleased]\n\n- More.\n"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("## [1.0.0] - 2026-11-26\n", "must be '## \\[Unreleased\\]'"),
        ("## [Unreleased]\n## 1.0.0\n", "a version and its date"),
        ("## [Unreleased]\n## [1.0.0] - 2026-13-01\n", "month"),
        ("## [Unreleased]\n## [1.0.0] - 2026-11-01\n## [1.1.0] - 2026-10-01\n", "from new to old"),
        ("## [Unreleased]\n## [1.1.0] - 2026-11-01\n## [1.0.0] - 2026-12-01\n", "from new to old"),
    ],
)
def test_a_changelog_that_cannot_be_read_says_where(text, why):
    with pytest.raises(ValueError, match=why):
        changelog.sections(text)
