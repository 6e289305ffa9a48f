"""Which test files a change reaches: those that name what changed, those that read the repository, and no others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import reached

FILES = {
    "lib/__init__.py": "",
    "lib/one.py": "RATE = 1\ndef one():\n    return RATE\nclass Kind:\n    def size(self):\n        return 1\n",
    "lib/two.py": "from lib.one import Kind\nclass Child(Kind):\n    def size(self):\n        return 2\n",
    "tests/__init__.py": "",
    "tests/helper.py": "from lib.two import Child\ndef made(): return Child()\n",
    "tests/conftest.py": "",
    "tests/test_one.py": "from lib import one\ndef test_one(): assert one.one() == 1\n",
    "tests/test_two.py": "from tests.helper import made\ndef test_two(): assert made().size() == 2\n",
    "tests/test_reads.py": "TEXT = open(__file__).read()\ndef test_text(): assert TEXT\n",
    "lib/rates/__init__.py": "from pathlib import Path\ndef rates(): return Path('rates.toml').read_text()\n",
    "lib/rates/rates.toml": "one = 1\n",
    "tests/test_rates.py": "from lib.rates import rates\ndef test_rates(): assert rates()\n",
    "book/a.md": "Words.\n",
    "notebooks/a.py": "",
    "benchmarks/a.py": "",
    "dpforest/__init__.py": "",
}
ALL = {"tests/test_one.py", "tests/test_two.py", "tests/test_rates.py", "tests/test_reads.py"}
READS = {"tests/test_reads.py"}


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("reached")
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "init", "--quiet")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "All")
    return root


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        ("lib/one.py", "RATE = 1", "RATE = 2", {"tests/test_one.py"} | READS),
        ("lib/one.py", "return RATE", "return RATE  # why", READS),
        ("lib/one.py", "def one():", "def one():\n    'Words.'", READS),
        ("lib/two.py", "return 2", "return 3", {"tests/test_two.py"} | READS),
        ("lib/two.py", "    def size(self):\n        return 2", "    pass", {"tests/test_two.py"} | READS),
        ("lib/one.py", "        return 1", "        return 2", {"tests/test_two.py"} | READS),
        ("tests/helper.py", "return Child()", "return Child", {"tests/test_two.py"} | READS),
        ("tests/test_one.py", "== 1", "== 2", {"tests/test_one.py"} | READS),
        ("lib/rates/rates.toml", "one = 1", "one = 2", {"tests/test_rates.py"} | READS),
        ("lib/rates/rates.toml", "one = 1", "one = 1  # why", READS),
        ("book/a.md", "Words", "Other words", READS),
        ("book/new.md", "", "Words", READS),
        ("tests/conftest.py", "", "ONE = 1\n", ALL),
        ("book/a.md", "Words", "Words", ALL),  # nothing has changed
    ],
)
def test_no_more_and_no_less(
    committed: Path, tmp_path: Path, file: str, old: str, new: str, expected: set[str]
) -> None:
    git(tmp_path, "clone", "--quiet", str(committed), str(tmp_path / "clone"))
    path = tmp_path / "clone" / file
    text = path.read_text() if path.exists() else ""
    path.write_text(text.replace(old, new) if old else new)
    assert set(reached.reached(tmp_path / "clone")) == expected


def test_since_a_commit(committed: Path, tmp_path: Path) -> None:
    root = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(committed), str(root))
    (root / "lib" / "one.py").write_text(FILES["lib/one.py"].replace("RATE = 1", "RATE = 2"))
    git(root, "commit", "--quiet", "-a", "-m", "More")
    assert set(reached.reached(root)) == ALL
    assert set(reached.reached(root, "HEAD~1")) == {"tests/test_one.py"} | READS


def test_a_commit_that_is_not_there(committed: Path) -> None:
    with pytest.raises(SystemExit, match=r"git diff: .*nowhere"):
        reached.reached(committed, "nowhere")
