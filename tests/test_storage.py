"""Files appear whole or not at all, and what is read is checked."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
import time

import pytest

from dpforest import storage


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("content", [b"bytes\x00", "text, \u00e9"])
def test_what_is_written_is_there(tmp_path, content):
    path = tmp_path / "file"
    for _ in range(2):
        storage.write(path, content)
        assert path.read_bytes() == (content if isinstance(content, bytes) else content.encode())
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_what_fails_leaves_the_old_file(tmp_path, monkeypatch, step, error):
    path = tmp_path / "file"
    storage.write(path, "old")

    def fail(*_):
        raise error

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(error)):
        storage.write(path, "new")
    assert (path.read_text(), names(tmp_path)) == ("old", ["file"])


def test_what_is_killed_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    storage.write(path, "old")
    code = (
        "import os, runpy, signal, sys\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "runpy.run_path(sys.argv[1])['write'](sys.argv[2], 'new')"  # alone: the package takes seconds to import
    )
    command = [sys.executable, "-c", code, storage.__file__, str(path)]
    done = subprocess.run(command, check=False, capture_output=True)
    assert done.returncode == -9, done.stderr
    assert path.read_text() == "old"
    [part] = set(names(tmp_path)) - {"file"}
    storage.write(path, "newer")
    assert part in names(tmp_path)  # somebody may still be writing it
    os.utime(tmp_path / part, (time.time() - 7200,) * 2)
    storage.write(path, "newest")
    assert (path.read_text(), names(tmp_path)) == ("newest", ["file"])


def test_a_reader_meets_the_old_file_or_the_new_one(tmp_path):
    path, contents = tmp_path / "file", [letter * 200_000 for letter in "ab"]
    storage.write(path, contents[0])
    writers = [
        threading.Thread(target=lambda content=content: [storage.write(path, content) for _ in range(20)])
        for content in contents
    ]
    for writer in writers:
        writer.start()
    seen = set()
    while any(writer.is_alive() for writer in writers):
        seen.add(path.read_text())
    assert seen <= set(contents)
    assert seen
    assert names(tmp_path) == ["file"]


def test_modes_links_and_devices_stay_what_they_are(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    storage.write(path, "old")
    plain = tmp_path / "plain"
    plain.write_text("")
    assert path.stat().st_mode == plain.stat().st_mode
    path.chmod(0o640)
    link.symlink_to(path)
    storage.write(link, "new")
    assert (path.read_text(), link.is_symlink(), stat.S_IMODE(path.stat().st_mode)) == ("new", True, 0o640)
    storage.write("/dev/null", "gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(OSError, match="directory"):
        storage.write(tmp_path, "nothing")
    with pytest.raises(FileNotFoundError, match=r"no folder of this name: make it before: '.*none'$"):
        storage.write(tmp_path / "none" / "file", "nothing")
    with pytest.raises(FileNotFoundError, match=r"no folder of this name.*file'$"):
        storage.write(path / "below a file", "nothing")
    storage.write(tmp_path / ("n" * 200 + "[*]"), "a long name, which is no pattern")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "it is not JSON: Expecting"),
        ("", "it is not JSON: Expecting"),
        ("[NaN]", "NaN is no number"),
        ("[-Infinity]", "Infinity is no number"),
        ('{"a": 1, "a": 2}', "says a name twice"),
        ("[" * 100_000, "nests too deep"),
        ('{"a":' * 100_000, "nests too deep"),
        ("\x80", "decode"),
    ],
)
def test_what_is_no_json_is_refused_by_name(tmp_path, text, said):
    path = tmp_path / "some.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=rf"some\.json cannot be read: .*{said}"):
        storage.read_json(path)


def test_json_in_place_of_its_path_is_not_shown_as_a_name(tmp_path, monkeypatch):
    """It may be as long as a model, and Python would repeat all of it as the name of a file that is not there."""
    for text in ('{"format": 2}', " {" + "1" * 10_000):
        with pytest.raises(ValueError, match=r"^this is JSON itself: pass the path of the file that holds it$"):
            storage.read_json(text)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "{a}.json").write_text("[1]")
    assert storage.read_json("{a}.json") == [1]
    with pytest.raises(FileNotFoundError):
        storage.read_json(tmp_path / "{b}.json")


def test_json_is_read_as_it_was_written(tmp_path):
    what = {"a": [1, 1.5, "x", True, None], "b": {"c": 2**70}}
    storage.write(tmp_path / "some.json", json.dumps(what))
    assert storage.read_json(tmp_path / "some.json") == what


ODD = [True, 1.0, "1", None, [], {}]


@pytest.mark.parametrize("odd", ODD)
def test_lists_are_not_converted(odd):
    assert storage.listed([1, 2], "it", int) == [1, 2]
    assert storage.listed([1, 2.5], "it", int, float) == [1, 2.5]
    assert storage.table([[1], [2]], "it", int) == [[1], [2]]
    for values in ([1, odd], odd, (1, 2)):
        if values not in ([],):
            with pytest.raises(ValueError, match="it must be a list of int"):
                storage.listed(values, "it", int)
    for rows in ([[1], [odd]], [[1], [2, 3]], [[1], 2]):
        with pytest.raises(ValueError, match="it must be a list of"):
            storage.table(rows, "it", int)


@pytest.mark.parametrize("name", ["x" * 255, "\U0001f332" * 63, "\u00e9" * 127, "a" * 99 + "\U0001f332" * 39])
def test_every_name_that_the_file_system_takes_can_be_written(tmp_path, name):
    """It counts bytes, of which one character has up to four."""
    (tmp_path / name).write_text("old")
    storage.write(tmp_path / name, "new")
    assert names(tmp_path) == [name]
    assert (tmp_path / name).read_text() == "new"


@pytest.fixture
def pipe(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(storage, "_PATIENCE", 0.05)
    return tmp_path / "pipe"


def test_a_pipe_with_nobody_at_its_other_end_is_refused(pipe):
    with pytest.raises(OSError, match="no process writes to the pipe"):
        storage.read_json(pipe)
    with pytest.raises(OSError, match="no process reads the pipe"):
        storage.write(pipe, "{}")


def test_a_pipe_with_somebody_at_its_other_end_is_one(pipe, monkeypatch):
    monkeypatch.setattr(storage, "_PATIENCE", 30.0)
    text = json.dumps({"a": "b" * 200_000})  # more than a pipe holds
    writer = threading.Thread(target=storage.write, args=(pipe, text))
    writer.start()
    assert storage.read_json(pipe) == json.loads(text)
    writer.join()
