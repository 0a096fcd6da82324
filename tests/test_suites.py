"""Checks that test sets, README's prerequisites and make targets agree."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import conftest

ROOT = Path(__file__).parents[1]


def test_skipped_tests_are_one_line_per_requirement() -> None:
    kernel = "there is no kernel: sparelane linux build"
    reasons = [kernel] * 3 + ["needs chromium", "network namespaces: needs root", "others use the machine"]
    assert conftest.summary_of(reasons) == [
        "3 tests need the kernel of `sparelane linux build`: `make test-linux`",
        "1 test needs chromium: `apt-get install chromium`",
        "1 test needs root: `sudo make test-all`",
        "1 test skipped: others use the machine",
    ]


def test_tests_that_passed_elsewhere_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(Path(conftest.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    tests = "import pytest\n\ndef test_a(): pass\n\ndef test_b(): pytest.skip('here')\n"
    (tmp_path / "test_some.py").write_text(tests, encoding="utf-8")

    def run(option: str) -> str:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", option]
        path = str(Path(__file__).parent)
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path}
        )
        return done.stdout

    assert "1 passed, 1 skipped" in run("--record-passed=passed.txt")
    assert (tmp_path / "passed.txt").read_text(encoding="utf-8") == "test_some.py::test_a\n"
    assert "1 skipped, 1 deselected" in run("--without-passed=passed.txt")


def test_the_readme_names_the_versions_that_the_packages_need() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    rust = re.search(r'^rust-version = "(.+)"$', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE)
    python = re.search(r'^requires-python = ">=(.+)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert rust is not None
    assert python is not None
    assert f"You need Rust {rust[1]} or later, a C compiler, Python {python[1]} or later" in readme
    assert {"make run", "make test"} <= set(
        re.findall(r"^ {4}(make \w+)", (ROOT / "README.md").read_text("utf-8"), re.M)
    )


def test_the_bare_machine_has_a_package_for_each_prerequisite_of_the_readme() -> None:
    script = (ROOT / ".ci" / "bare").read_text(encoding="utf-8")
    functions = re.findall(r"^(?:prerequisites|packages_of)\(\) \{\n.*?^\}\n", script, re.MULTILINE | re.DOTALL)
    line = '\nprerequisites | while IFS= read -r one; do packages_of "$one" || exit 1; done'
    done = subprocess.run(
        ["bash", "-c", "\n".join(functions) + line], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["gcc", "libc6-dev", "python3", "python3-venv", "make"]


def test_make_without_a_target_lists_existing_targets() -> None:
    listed = subprocess.run(
        ["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    names = re.findall(r"^make (\S+): ", listed, re.MULTILINE)
    targets = re.findall(r"^([\w-]+)(?: [\w-]+)*:(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"run", "test", "test-all", "test-linux", "check", "docs"} <= set(names)
    assert set(names) <= set(targets)
