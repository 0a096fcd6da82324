"""Tests of the choice of files that are sent: patterns, mirrors, limits of the rate, and the list without sending."""

import json
from pathlib import Path

import pytest

from command_line import invoke
from wire_processes import Keys, call, running

UNREACHABLE = "127.0.0.1:9"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with files of two kinds."""
    folder = tmp_path / "tree"
    for name in ("a.txt", "b.log", "build/c.txt", "sub/d.txt"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name * 1000)
    return folder


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_mirror_sends_only_what_has_changed(keys: Keys, tree: Path, tmp_path: Path) -> None:
    inbox = tmp_path / "to"
    recv = ("recv", *keys.of("receiver"), "--listen", "127.0.0.1:0", "--force", "-o", str(inbox))
    with running(*recv) as receiver:
        address = receiver.until("listening")["address"]
        send = ("send", *keys.of("sender"), "--compare", "time", str(tree), address)
        assert call(*send).startswith("4 new, 0 unchanged, ")
        (inbox / "tree" / "only-here").write_text("x")
        (tree / "a.txt").write_text("changed")
        assert call(*send).startswith("1 new, 3 unchanged, ")
        report = json.loads(call(*send, "--json"))
    assert report["sent_bytes"] == 0
    assert [item["unchanged"] for item in report["items"] if not item["folder"]] == [True] * 4
    assert (inbox / "tree" / "a.txt").read_text() == "changed"
    assert names(inbox / "tree") == sorted([*names(tree), "only-here"])


def test_patterns_select_what_is_sent(keys: Keys, tree: Path, tmp_path: Path) -> None:
    recv = ("recv", *keys.of("receiver"), "--listen", "127.0.0.1:0", "-o", str(tmp_path / "to"))
    with running(*recv) as receiver:
        address = receiver.until("listening")["address"]
        patterns = ("--include", "*.txt", "--exclude", "build")
        call("send", *keys.of("sender"), *patterns, "--rate", "100Mbps", str(tree), address)
    assert names(tmp_path / "to" / "tree") == ["a.txt", "sub/d.txt"]


def test_a_dry_run_lists_files_and_needs_no_receiver(keys: Keys, tree: Path) -> None:
    line = ("send", *keys.of("sender"), "--dry-run", "--exclude", "*.txt", str(tree), UNREACHABLE)
    assert call(*line).splitlines() == [
        "tree/",
        "tree/b.log: 5,000 bytes",
        "tree/build/",
        "tree/sub/",
        "1 file, 5,000 bytes; nothing was sent",
    ]
    assert json.loads(call(*line, "--json"))["total_bytes"] == 5000
    (tree / "link").symlink_to("/nowhere")
    assert "neither a file nor a folder" in call(*line, code=3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--include", "*.pdf"), "no file is left to send: --include and --exclude leave all of them out"),
        (("--exclude", "[a"), 'the pattern "[a" has a set of characters without end'),
        (("--exclude", "../x"), "the part . or .., which no name has"),
        (("--include", ""), "has an empty part"),
        (("--rate", "0Mbps"), 'rate = "0Mbps"; allowed: a rate such as "100Mbps", from 1 Mb/s'),
        (("--rate", "fast"), "allowed: a rate"),
        (("--compare", "date"), "'date' is not one of 'hash', 'time'"),
        (("--dry-run", "--name", "x", "-"), "--dry-run cannot list standard input"),
    ],
)
def test_each_mistake_is_one_clear_error(keys: Keys, tree: Path, arguments: tuple[str, ...], message: str) -> None:
    done = invoke("send", *keys.of("sender"), *arguments, tree, UNREACHABLE)
    assert (done.exit_code, message in done.stderr) == (2, True), done.output
