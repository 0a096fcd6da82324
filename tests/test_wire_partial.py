"""Tests that incomplete files are listed and removed after their age."""

import json
import os
import time
from pathlib import Path

from wire_processes import Keys, call, running

DAY_S = 86_400


def leave(folder: Path, name: str, days: float) -> Path:
    """Leaves an incomplete file that has not changed for some days."""
    file = folder / f".{name}.sparelane-part"
    file.write_bytes(bytes(range(256)) * 40)
    changed_s = time.time() - days * DAY_S
    os.utime(file, (changed_s, changed_s))
    return file


def test_incomplete_files_are_listed_and_cleaned(tmp_path: Path) -> None:
    old, new = leave(tmp_path, "old", 8), leave(tmp_path, "new", 6)
    listed = json.loads(call("partial", "list", str(tmp_path), "--json"))
    assert [(one["name"], one["in_use"]) for one in listed] == [("new", False), ("old", False)]
    assert [round(one["age_s"] / DAY_S) for one in listed] == [6, 8]
    assert "old" in call("partial", "list", str(tmp_path))
    cleaned = json.loads(call("partial", "clean", str(tmp_path), "--partial-age", "7", "--json"))
    assert [one["name"] for one in cleaned] == ["old"]
    assert (old.exists(), new.exists()) == (False, True)
    assert call("partial", "clean", str(tmp_path)) == "0 incomplete files removed, 0 bytes\n"
    assert call("partial", "clean", "--partial-age", "0", str(tmp_path)).startswith("1 incomplete files removed")
    assert call("partial", "list", str(tmp_path)) == f"{tmp_path} has no incomplete files\n"


def test_recv_removes_old_incomplete_files(keys: Keys, tmp_path: Path) -> None:
    inbox = tmp_path / "to"
    inbox.mkdir()
    old, new = leave(inbox, "old", 31), leave(inbox, "new", 29)
    with running("recv", *keys.of("receiver"), "--listen", "127.0.0.1:0", "-o", str(inbox)) as receiver:
        assert receiver.until("cleaned")["names"] == ["old"]
        assert (old.exists(), new.exists()) == (False, True)
