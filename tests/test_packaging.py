"""What the forge does with the project, and what a package of it holds."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def steps() -> list[tuple[str, dict[str, Any]]]:
    """Every step of every job, with the name of its workflow."""
    found = []
    for path in WORKFLOWS:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        found += [(path.name, step) for job in content["jobs"].values() for step in job["steps"]]
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_have_jobs_that_run_somewhere_and_end(path: Path) -> None:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    # The word "on" is a truth of YAML 1.1.
    assert content.get("on", content.get(True)), "it starts on nothing"
    assert content["permissions"] == {"contents": "read"}
    for name, job in content["jobs"].items():
        assert job["runs-on"], name
        assert job["timeout-minutes"] <= 60, name


def test_each_step_runs_something_and_actions_have_versions() -> None:
    assert len(steps()) > 10
    for name, step in steps():
        assert ("run" in step) != ("uses" in step), (name, step)
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@v\d+", step.get("uses", "a/b@v1")), (name, step)


def test_steps_call_what_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = [line for _, step in steps() for line in step.get("run", "").splitlines()]
    called = [line.removeprefix("make ") for line in commands if line.startswith("make ")]
    assert {"check", "test", "docs"} <= set(called)
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in called)
    scripts = [line.split()[0] for line in commands if line.startswith(".ci/")]
    assert scripts
    assert all((ROOT / script).stat().st_mode & 0o100 for script in scripts)


def test_rust_and_python_are_tried_at_the_versions_that_are_promised() -> None:
    rust = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["rust-version"]
    commands = " ".join(step.get("run", "") for _, step in steps())
    assert f"rustup default {rust}" in commands
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert oldest in {step["with"]["python-version"] for _, step in steps() if "setup-python" in step.get("uses", "")}


def test_what_is_an_extra_is_no_dependency_and_is_there_for_developers() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    needed = " ".join(PROJECT["project"]["dependencies"])
    for extra in ("figures", "papers"):
        assert not any(one.split(">")[0] in needed for one in extras[extra])
        assert set(extras[extra]) <= set(extras["dev"])
