"""Whatever is wrong with an input: one answer that says what, and what is allowed; soon, and without much memory."""

from __future__ import annotations

import copy
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

import bad_inputs
from bad_inputs import Line
from sparelane import _native
from sparelane.cli.main import main
from sparelane.plugins import loading
from sparelane.plugins.registry import REGISTRY

MISTAKE, INCOMPLETE = 2, 3
MOST_S = 2.0
# Where the machine cannot say how long others kept a process waiting, so much longer may an answer take.
OTHERS_S = 8.0
MOST_BYTES = 1 << 30
PRESSURE = Path("/proc/pressure/cpu")
FEWEST = 400

# Words of an answer that say what would be right; where the machine refuses something, its own words do.
RIGHT = re.compile(
    r"allowed|this is |is empty|"
    r"as in|such as|did you mean|there (is|are) no|there are:|needs|is needed|missing|requires|is one\b|are\b"
    r"|Usage|already|not in the range|whole number|larger than|well-formed|is not closed|takes the largest|line \d"
    r"|not found|no such file|not a file|file exists|not a directory|cannot (assign|contain)|not JSON|holds no|leaves",
    re.IGNORECASE,
)
PLAIN = bad_inputs.SWEEP.replace('["10packets", "20packets"]', '"10packets"')
NETWORK = 'kind = "dumbbell"\npairs = 2'
WORKLOAD = 'kind = "bulk"\nsize = "20kB"'


def replaced(text: str, old: str, new: str) -> str:
    assert old in text, old
    return text.replace(old, new, 1)


def cases() -> Iterator[Line]:
    """Every case as a command line with the files that it finds."""
    for key, values in bad_inputs.VALUES.items():
        for value in values:
            words = ["check", "s.toml", "--set", f"{key}={value}"]
            yield Line(words, key.rpartition(".")[2], {"s.toml": bad_inputs.SCENARIO})
    for old, new, says in bad_inputs.TEXTS:
        yield Line(["check", "s.toml"], says, {"s.toml": replaced(bad_inputs.SCENARIO, old, new)})
    for table, says in bad_inputs.NETWORKS:
        yield Line(["check", "s.toml"], says, {"s.toml": replaced(PLAIN, NETWORK, table)})
    for name, content, says in bad_inputs.GRAPHS:
        text = replaced(PLAIN, NETWORK, f'kind = "file"\npath = "{name}"')
        yield Line(["check", "s.toml"], says, {"s.toml": text, name: content})
    for table, name, content, says in bad_inputs.WORKLOADS:
        yield Line(["check", "s.toml"], says, {"s.toml": replaced(PLAIN, WORKLOAD, table), name: content})
    for old, new, says in bad_inputs.SWEEPS:
        words = ["sweep", "w.toml", "-o", "out", "--jobs", "1"]
        yield Line(words, says, {"w.toml": replaced(bad_inputs.SWEEP, old, new)})
    yield from bad_inputs.LINES
    yield from bad_inputs.WIRE
    for content, change, says in bad_inputs.PLUGINS:
        words = ["run", "s.toml", "--plugin", "bad.py", "--set", "duration=1s", "--set", change]
        yield Line(words, says, {"s.toml": PLAIN, "bad.py": content})


CASES = list(cases())


@pytest.fixture
def only_own_plugins() -> Iterator[None]:
    """What a plugin registers is forgotten again."""
    kinds, made, loaded = copy.copy(REGISTRY.kinds), REGISTRY.made, dict(loading.LOADED)
    yield
    REGISTRY.kinds, REGISTRY.made = kinds, made
    loading.LOADED.clear()
    loading.LOADED.update(loaded)


def forget_peak() -> None:
    """The peak of this process's memory is what it has now, where the system lets one say so."""
    place = Path("/proc/self/clear_refs")
    if place.exists():
        place.write_text("5", encoding="ascii")


def memory_bytes(name: str) -> int:
    """A size that the system tells of this process; 0 where it tells none."""
    place = Path("/proc/self/status")
    found = re.search(rf"{name}:\s+(\d+) kB", place.read_text(encoding="ascii")) if place.exists() else None
    return 1024 * int(found[1]) if found else 0


def held_up_s() -> float:
    """How long something on this machine has waited for a processor, seconds, since it began."""
    if not PRESSURE.exists():
        return 0.0
    found = re.search(r"some .*total=(\d+)", PRESSURE.read_text(encoding="ascii"))
    return int(found[1]) / 1e6 if found else 0.0


@dataclass(frozen=True)
class Spent:
    """What has been spent so far, by this process and by those that it started and that have ended.

    Attributes:
        clock_s: by the clock, without what others may have taken.
        processor_s: of the processor.
        started_bytes: the largest memory of a process that this one started.
    """

    clock_s: float
    processor_s: float
    started_bytes: int

    @classmethod
    def now(cls) -> Spent:
        of_others = resource.getrusage(resource.RUSAGE_CHILDREN)
        worked_s = time.process_time() + of_others.ru_utime + of_others.ru_stime
        return cls(time.monotonic() - held_up_s(), worked_s, 1024 * of_others.ru_maxrss)


def answers_in_time(before: Spent, after: Spent) -> None:
    """Asserts that an answer was soon, and that it was not waited for: a hang costs no processor time."""
    assert after.processor_s - before.processor_s < MOST_S
    assert after.clock_s - before.clock_s < (MOST_S if PRESSURE.exists() else MOST_S + OTHERS_S)


def test_an_answer_that_is_waited_for_is_late_although_it_costs_nothing() -> None:
    before = Spent.now()
    time.sleep(MOST_S + 1.0)
    after = Spent.now()
    if held_up_s() == 0.0 or after.clock_s - before.clock_s < MOST_S:
        pytest.skip("others use the machine")
    with pytest.raises(AssertionError):
        answers_in_time(before, after)


def test_the_memory_of_processes_that_were_started_counts() -> None:
    before = Spent.now()
    subprocess.run([sys.executable, "-c", f"bytearray({before.started_bytes + (64 << 20)})"], check=True)
    assert Spent.now().started_bytes > before.started_bytes


def test_there_are_as_many_cases_as_are_promised_and_none_comes_twice() -> None:
    told = [repr((case.words, case.files)) for case in CASES]
    assert len(told) >= FEWEST
    assert len(set(told)) == len(told)


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(case.words)[:60])
@pytest.mark.usefixtures("only_own_plugins")
def test_a_bad_input_has_one_clear_answer(case: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in case.files.items():
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            place.mkdir()
        else:
            place.write_text(content, encoding="utf-8")
    if "keys" in case.words[1:]:
        _native.new_key("keys")
    forget_peak()
    before = memory_bytes("VmRSS")
    spent = Spent.now()
    result = CliRunner().invoke(main, case.words)
    answers_in_time(spent, Spent.now())
    assert memory_bytes("VmHWM") - before < MOST_BYTES
    # The largest so far, of workers too; what other tests have started is larger, or is known before.
    assert Spent.now().started_bytes < max(MOST_BYTES, spent.started_bytes + 1)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == MISTAKE or (result.exit_code == INCOMPLETE and case.words[0] == "sweep"), result.output
    assert "Traceback" not in result.output
    assert case.says in result.stderr
    assert RIGHT.search(result.stderr), result.stderr


def test_the_scenarios_that_the_cases_change_are_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number, text in enumerate((bad_inputs.SCENARIO, PLAIN, bad_inputs.SWEEP)):
        Path(f"{number}.toml").write_text(text, encoding="utf-8")
        done = CliRunner().invoke(main, ["check", f"{number}.toml"])
        assert done.exit_code == 0, done.output
