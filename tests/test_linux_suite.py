"""Tests of `make test-linux`: the choice of a set of tests, and the failure if too few passed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import linux_suite
from sparelane._native import LinuxError
from sparelane.uml import kernel, running

FOLDER = Path(__file__).parent


@pytest.mark.parametrize(("trials_s", "expected"), [([9.0, 1.2], "full"), ([7.0, 6.0], "short")])
def test_a_slow_host_runs_the_short_set_and_one_slow_trial_does_not_matter(
    trials_s: list[float], expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    left = iter(trials_s)
    calls = []

    def record(arguments: list[str], check: bool) -> SimpleNamespace:
        calls.append(arguments)
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(kernel, "find", lambda: "a kernel")
    monkeypatch.setattr(running, "trial", lambda found: running.Trial(1, next(left)))
    monkeypatch.setattr(subprocess, "run", record)
    assert linux_suite.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"one simulated second takes {min(trials_s)} s on this host (full set: up to 5.0 s): running the {expected} set"
    ]
    [arguments] = calls
    assert ("not long_on_linux" in arguments) == (expected == "short")


def test_only_the_two_sets_can_be_requested(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(linux_suite, "measured_s", lambda: 1.0)
    monkeypatch.setattr(subprocess, "run", lambda arguments, check: SimpleNamespace(returncode=0))
    assert linux_suite.main(["short"]) == 0
    assert "running the short set" in capsys.readouterr().out
    assert linux_suite.main(["quick"]) == 2
    assert "allowed: full, short" in capsys.readouterr().err


def test_without_a_kernel_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "find", lambda: None)
    with pytest.raises(LinuxError, match="sparelane linux build"):
        linux_suite.main([])


@pytest.mark.parametrize(("options", "least", "status"), [(["--numprocesses", "2"], 1, 0), ([], 2, 1)])
def test_a_set_of_which_too_few_tests_passed_fails(options: list[str], least: int, status: int, tmp_path: Path) -> None:
    test = tmp_path / "test_two.py"
    test.write_text("import pytest\ndef test_one(): pass\n@pytest.mark.skip\ndef test_other(): pass\n")
    arguments = [
        "-m",
        "pytest",
        "-q",
        "-p",
        "conftest",
        "-p",
        "no:cacheprovider",
        *options,
        "--least-passed",
        str(least),
    ]
    done = subprocess.run(
        [sys.executable, *arguments, str(test)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(FOLDER), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert ("only 1 tests passed, 2 required" in done.stdout) == (status == 1)
