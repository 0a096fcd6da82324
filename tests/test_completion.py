"""Tests of shell completion, which click requests with environment variables."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hangs import HANG_S

PROGRAM = Path(sys.executable).with_name("sparelane")


def ask(shell: str, *line: str, here: Path | None = None) -> list[str]:
    """Returns the completions of the last word, which may be empty: lines of types, values and help."""
    environment = {
        **os.environ,
        "_SPARELANE_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": " ".join(["sparelane", *line]) if shell != "bash" else "\n".join(["sparelane", *line]),
        "COMP_CWORD": line[-1] if shell == "fish" else str(len(line)),
    }
    done = subprocess.run(
        [PROGRAM], env=environment, cwd=here, capture_output=True, text=True, check=True, timeout=HANG_S
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def offered(*line: str, here: Path | None = None) -> list[str]:
    """Returns the values that zsh would offer."""
    lines = ask("zsh", *line, here=here)
    return [lines[place + 1] for place in range(0, len(lines) - 2, 3) if lines[place] == "plain"]


def test_commands_are_completed() -> None:
    assert offered("re") == ["report", "reproduce", "recv"]
    assert "schema" in offered("")


def test_scenarios_are_completed_by_name_and_by_file(tmp_path: Path) -> None:
    (tmp_path / "rc3-mine.toml").write_text("", encoding="utf-8")
    (tmp_path / "rc3.txt").write_text("", encoding="utf-8")
    assert offered("run", "rc3-i", here=tmp_path) == ["rc3-internet2"]
    assert offered("sweep", "rc3-m", here=tmp_path) == ["rc3-mine.toml"]
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "own.toml").write_text("", encoding="utf-8")
    assert offered("check", "inner/o", here=tmp_path) == ["inner/own.toml"]


def test_experiments_controllers_and_entries_are_completed() -> None:
    assert offered("reproduce", "rc3/fig8") == ["rc3/fig8-load"]
    assert offered("reproduce", "rap")[0] == "rapid"
    assert offered("send", "--cc", "bbr") == ["bbr", "bbr3"]
    assert {"codel", "cubic", "queue"} <= set(offered("list", ""))


@pytest.mark.parametrize(
    ("begun", "values"),
    [
        ("que", ["queue.", "queue_at.", "queue_at="]),
        ("queue.lim", ["queue.limit="]),
        # Only keys of the kinds in the scenario are offered.
        ("workload.l", ["workload.load=", "workload.load_on="]),
        ("scheme.", ["scheme.tcp.", "scheme.rc3."]),
        ("scheme.rc3.inner.initial_w", ["scheme.rc3.inner.initial_window="]),
        ("scheme.tcp.feed", []),
        ("scheme.rc3.feed=", ["scheme.rc3.feed=pull", "scheme.rc3.feed=push"]),
        ("workload.scheme=", ["workload.scheme=tcp", "workload.scheme=rc3"]),
        ("transport.sack=", ["transport.sack=true", "transport.sack=false"]),
        ("queue.kind=co", ["queue.kind=cobalt", "queue.kind=codel"]),
        ("nonsense.", []),
        ("seed=", []),
    ],
)
def test_keys_of_the_scenario_and_their_values_are_completed(begun: str, values: list[str]) -> None:
    assert sorted(offered("run", "rc3-internet2", "--seed", "1", "--set", begun)) == sorted(values)


def test_without_a_readable_scenario_all_keys_are_offered(tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text("= =", encoding="utf-8")
    for file in ("broken.toml", "nowhere.toml"):
        assert "workload.users=" in offered("run", file, "--set", "workload.u", here=tmp_path)


def test_fish_gets_the_meaning_of_keys() -> None:
    [line] = ask("fish", "run", "rc3-internet2", "--set", "queue.push")
    assert line.startswith("plain,queue.push_out=\twhether packets of lower classes make room")


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("line", "replies"),
    [
        (["run", "rc3-inter"], ["rc3-internet2"]),
        (["run", "rc3-internet2", "--set", "queue.k"], ["queue.kind="]),
        # Bash treats the equals sign as a separate word, so it replaces only the text after it.
        (["run", "rc3-internet2", "--set", "workload.scheme", "=", "r"], ["rc3"]),
        (["run", "rc3-internet2", "--seed", "1", "--set", "queue.kind", "=", "fq"], ["fq-codel", "fq-pie"]),
        (["run", "rc3-internet2", "--set", "seed", "=", "3", "--set", "queue.k"], ["queue.kind="]),
    ],
)
def test_bash_gets_the_text_after_the_cursor(line: list[str], replies: list[str]) -> None:
    quoted = " ".join(f"'{word}'" for word in ["sparelane", *line])
    script = (
        f'eval "$(_SPARELANE_COMPLETE=bash_source sparelane)"\nCOMP_WORDS=({quoted})\nCOMP_CWORD={len(line)}\n'
        'compopt() { :; }\n_sparelane_completion sparelane\nprintf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, check=True, timeout=HANG_S
    )
    assert done.stdout.split() == replies
    assert done.stderr == ""
