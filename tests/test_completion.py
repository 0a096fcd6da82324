"""What shells complete: they ask by environment variables, as click has it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).with_name("sparelane")


def ask(shell: str, *words: str, here: Path | None = None) -> list[str]:
    """What a shell would offer for the last of these words, which may be empty: types, values and help by line."""
    environment = {
        **os.environ,
        "_SPARELANE_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": " ".join(["sparelane", *words]) if shell != "bash" else "\n".join(["sparelane", *words]),
        "COMP_CWORD": words[-1] if shell == "fish" else str(len(words)),
    }
    done = subprocess.run([PROGRAM], env=environment, cwd=here, capture_output=True, text=True, check=True, timeout=30)
    assert done.stderr == ""
    return done.stdout.splitlines()


def offered(*words: str, here: Path | None = None) -> list[str]:
    """The values that zsh would offer."""
    lines = ask("zsh", *words, here=here)
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
        # Keys of the kinds that the scenario has, and no others.
        ("workload.l", ["workload.load=", "workload.load_on="]),
        ("scheme.", ["scheme.tcp.", "scheme.rc3."]),
        ("scheme.rc3.inner.initial_w", ["scheme.rc3.inner.initial_window="]),
        ("scheme.tcp.feed", []),
        ("scheme.rc3.feed=", ["scheme.rc3.feed=pull", "scheme.rc3.feed=push"]),
        ("workload.scheme=", ["workload.scheme=tcp", "workload.scheme=rc3"]),
        ("transport.sack=", ["transport.sack=true", "transport.sack=false"]),
        ("queue.kind=co", ["queue.kind=codel"]),
        ("nonsense.", []),
        ("seed=", []),
    ],
)
def test_keys_of_the_scenario_and_their_words_are_completed(begun: str, values: list[str]) -> None:
    assert sorted(offered("run", "rc3-internet2", "--seed", "1", "--set", begun)) == sorted(values)


def test_without_a_scenario_that_can_be_read_all_keys_are_offered(tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text("= =", encoding="utf-8")
    for file in ("broken.toml", "nowhere.toml"):
        assert "workload.users=" in offered("run", file, "--set", "workload.u", here=tmp_path)


def test_fish_is_told_what_keys_mean() -> None:
    [line] = ask("fish", "run", "rc3-internet2", "--set", "queue.push")
    assert line.startswith("plain,queue.push_out=\twhether packets of lower classes make room")


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "replies"),
    [
        (["run", "rc3-inter"], ["rc3-internet2"]),
        (["run", "rc3-internet2", "--set", "queue.k"], ["queue.kind="]),
        # Bash takes the equals sign for a word of its own, and so replaces what stands behind it alone.
        (["run", "rc3-internet2", "--set", "workload.scheme", "=", "r"], ["rc3"]),
        (["run", "rc3-internet2", "--seed", "1", "--set", "queue.kind", "=", "fq"], ["fq-codel"]),
        (["run", "rc3-internet2", "--set", "seed", "=", "3", "--set", "queue.k"], ["queue.kind="]),
    ],
)
def test_bash_gets_what_belongs_behind_the_cursor(words: list[str], replies: list[str]) -> None:
    quoted = " ".join(f"'{word}'" for word in ["sparelane", *words])
    script = (
        f'eval "$(_SPARELANE_COMPLETE=bash_source sparelane)"\nCOMP_WORDS=({quoted})\nCOMP_CWORD={len(words)}\n'
        'compopt() { :; }\n_sparelane_completion sparelane\nprintf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout.split() == replies
    assert done.stderr == ""
