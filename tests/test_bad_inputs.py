"""Every bad input gets one message that names the mistake and the allowed values, without a run or much memory."""

from __future__ import annotations

import copy
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import bad_inputs
from bad_inputs import Line
from sparelane import _native
from sparelane.cli.main import main
from sparelane.plugins import loading
from sparelane.plugins.registry import REGISTRY

MISTAKE, INCOMPLETE = 2, 3
LIMIT_BYTES = 1 << 30
MIN_CASES = 400

# A message must contain one of these: they state what is allowed, or are messages of the system.
HELPFUL = re.compile(
    r"allowed|this is |is empty|"
    r"as in|such as|did you mean|there (is|are) no|there are:|needs|is needed|missing|requires|is one\b|are\b"
    r"|Usage|already|not in the range|whole number|larger than|well-formed|is not closed|takes the largest|line \d"
    r"|not found|no such file|not a file|file exists|not a directory|cannot (assign|contain)|not JSON|holds no|leaves"
    r"|which has|:\d+: not valid TOML",
    re.IGNORECASE,
)
PLAIN = bad_inputs.SWEEP.replace('["10packets", "20packets"]', '"10packets"')
NETWORK = 'kind = "dumbbell"\npairs = 2'
WORKLOAD = 'kind = "bulk"\nsize = "20kB"'


def replaced(text: str, old: str, new: str) -> str:
    assert old in text, old
    return text.replace(old, new, 1)


def cases() -> Iterator[Line]:
    """Yields each case as a command line with its files."""
    for key, values in bad_inputs.VALUES.items():
        for value in values:
            words = ["check", "s.toml", "--set", f"{key}={value}"]
            yield Line(words, key.rpartition(".")[2], {"s.toml": bad_inputs.SCENARIO})
    for old, new, message in bad_inputs.TEXTS:
        yield Line(["check", "s.toml"], message, {"s.toml": replaced(bad_inputs.SCENARIO, old, new)})
    for table, message in bad_inputs.NETWORKS:
        yield Line(["check", "s.toml"], message, {"s.toml": replaced(PLAIN, NETWORK, table)})
    for name, content, message in bad_inputs.GRAPHS:
        text = replaced(PLAIN, NETWORK, f'kind = "file"\npath = "{name}"')
        yield Line(["check", "s.toml"], message, {"s.toml": text, name: content})
    for table, name, content, message in bad_inputs.WORKLOADS:
        yield Line(["check", "s.toml"], message, {"s.toml": replaced(PLAIN, WORKLOAD, table), name: content})
    for old, new, message in bad_inputs.SWEEPS:
        words = ["sweep", "w.toml", "-o", "out", "--jobs", "1"]
        yield Line(words, message, {"w.toml": replaced(bad_inputs.SWEEP, old, new)})
    yield from bad_inputs.LINES
    yield from bad_inputs.WIRE
    for content, change, message in bad_inputs.PLUGINS:
        words = ["run", "s.toml", "--plugin", "bad.py", "--set", "duration=1s", "--set", change]
        yield Line(words, message, {"s.toml": PLAIN, "bad.py": content})


CASES = list(cases())


@pytest.fixture
def only_own_plugins() -> Iterator[None]:
    """Removes plugins that a test registers."""
    kinds, made, loaded = copy.copy(REGISTRY.kinds), REGISTRY.made, dict(loading.LOADED)
    yield
    REGISTRY.kinds, REGISTRY.made = kinds, made
    loading.LOADED.clear()
    loading.LOADED.update(loaded)


def reset_peak() -> None:
    """Resets the peak of this process's memory to the current size, if the system supports it."""
    place = Path("/proc/self/clear_refs")
    if place.exists():
        place.write_text("5", encoding="ascii")


def memory_bytes(name: str) -> int:
    """Returns a size from the status of this process, or 0 if the system does not report it."""
    place = Path("/proc/self/status")
    found = re.search(rf"{name}:\s+(\d+) kB", place.read_text(encoding="ascii")) if place.exists() else None
    return 1024 * int(found[1]) if found else 0


def largest_started_bytes() -> int:
    """Returns the largest memory of a child process so far."""
    return 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


def test_the_memory_of_child_processes_counts() -> None:
    before = largest_started_bytes()
    subprocess.run([sys.executable, "-c", f"bytearray({before + (64 << 20)})"], check=True)
    assert largest_started_bytes() > before


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the scenarios that this process begins to simulate, in order."""
    begun: list[str] = []
    real = _native.prepare

    class Counted:
        def __init__(self, *arguments: Any) -> None:
            self.name = arguments[1]
            self.prepared = real(*arguments)

        def division(self) -> tuple[int, int, int, str | None]:
            return self.prepared.division()

        def run(self, *arguments: Any, **options: Any) -> _native.Results:
            begun.append(self.name)
            return self.prepared.run(*arguments, **options)

    monkeypatch.setattr(_native, "prepare", Counted)
    return begun


def test_there_are_enough_cases_and_all_differ() -> None:
    found = [repr((case.words, case.files)) for case in CASES]
    assert len(found) >= MIN_CASES
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(case.words)[:60])
@pytest.mark.usefixtures("only_own_plugins")
def test_a_bad_input_has_one_clear_answer(
    case: Line, tmp_path: Path, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if "sparelane/hosts.toml" in case.files:
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name, content in case.files.items():
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            place.mkdir()
        else:
            place.write_text(content, encoding="utf-8")
    if "keys" in case.words[1:]:
        _native.new_key("keys")
    reset_peak()
    before = memory_bytes("VmRSS")
    largest_before = largest_started_bytes()
    result = CliRunner().invoke(main, case.words)
    # The code of a plugin fails in the run. All other mistakes are found before it.
    assert not runs or "--plugin" in case.words, runs
    assert memory_bytes("VmHWM") - before < LIMIT_BYTES
    # The system reports only the maximum over all child processes so far, including those of earlier tests.
    assert largest_started_bytes() < max(LIMIT_BYTES, largest_before + 1)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == MISTAKE or (result.exit_code == INCOMPLETE and case.words[0] == "sweep"), result.output
    assert "Traceback" not in result.output
    assert case.message in result.stderr
    assert HELPFUL.search(result.stderr), result.stderr


def test_the_base_scenarios_of_the_cases_are_valid(
    tmp_path: Path, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, text in enumerate((bad_inputs.SCENARIO, PLAIN, bad_inputs.SWEEP)):
        Path(f"{number}.toml").write_text(text, encoding="utf-8")
        done = CliRunner().invoke(main, ["check", f"{number}.toml"])
        assert done.exit_code == 0, done.output
        assert runs, "a scenario without mistakes is tried"
        runs.clear()
