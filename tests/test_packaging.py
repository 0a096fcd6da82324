"""Tests of the workflows that run on a forge, and of the packages that they build."""

import random
import re
import shutil
import subprocess
import sys
import tomllib
from email import message_from_string
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def steps() -> list[tuple[str, dict[str, Any]]]:
    """Returns every step of every job, with the name of its workflow."""
    found = []
    for path in WORKFLOWS:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        found += [(path.name, step) for job in content["jobs"].values() for step in job["steps"]]
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_workflow_has_triggers_runners_and_timeouts(path: Path) -> None:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    # YAML 1.1 reads the key "on" as true.
    assert content.get("on", content.get(True)), "no event starts it"
    assert content["permissions"] == {"contents": "read"}
    for name, job in content["jobs"].items():
        assert job["runs-on"], name
        assert job["timeout-minutes"] <= 60, name


def test_each_step_has_a_command_or_an_action_with_a_version() -> None:
    assert len(steps()) > 10
    for name, step in steps():
        assert ("run" in step) != ("uses" in step), (name, step)
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@v\d+", step.get("uses", "a/b@v1")), (name, step)


def test_steps_call_existing_targets_and_executable_scripts() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = [line for _, step in steps() for line in step.get("run", "").splitlines()]
    called = [line.removeprefix("make ") for line in commands if line.startswith("make ")]
    assert {"check", "test", "docs"} <= set(called)
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in called)
    scripts = [line.split()[0] for line in commands if line.startswith(".ci/")]
    assert scripts
    assert all((ROOT / script).stat().st_mode & 0o100 for script in scripts)


def test_workflows_use_the_oldest_supported_rust_and_python() -> None:
    rust = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["rust-version"]
    commands = " ".join(step.get("run", "") for _, step in steps())
    assert f"rustup default {rust}" in commands
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert oldest in {step["with"]["python-version"] for _, step in steps() if "setup-python" in step.get("uses", "")}


def test_extras_are_not_dependencies_and_belong_to_the_development_tools() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    needed = " ".join(PROJECT["project"]["dependencies"])
    for extra in ("figures", "papers"):
        assert not any(one.split(">")[0] in needed for one in extras[extra])
        assert set(extras[extra]) <= set(extras["dev"])


ADDRESS = "https://forge.example/owner/sparelane"
COMMIT = "0123abc"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources from which a package can be built."""
    copy = tmp_path_factory.mktemp("checkout") / "sparelane"
    left_out = shutil.ignore_patterns("target", ".git", ".venv", "out", "_build", "generated", ".*_cache", "*.so")
    shutil.copytree(ROOT, copy, symlinks=True, ignore=left_out)
    return copy


def publish(checkout: Path, address: str = ADDRESS, commit: str = COMMIT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / ".ci" / "public-metadata"), address, commit, str(checkout)]
    return subprocess.run(command, capture_output=True, text=True)


def test_workflows_write_public_addresses_before_they_build_a_package() -> None:
    """The repository itself contains no address."""
    assert "urls" not in PROJECT["project"]
    found = steps()
    builds = [index for index, (_, step) in enumerate(found) if "maturin-action" in step.get("uses", "")]
    assert len(builds) == 3
    assert all(found[index - 1][1]["run"].startswith(".ci/public-metadata ") for index in builds)


def test_links_of_a_package_point_to_its_repository_and_commit(checkout: Path, tmp_path: Path) -> None:
    assert publish(checkout).stderr == ""
    command = [sys.executable, "-m", "maturin", "pep517", "write-dist-info", "--metadata-directory", str(tmp_path)]
    subprocess.run([*command, "--interpreter", sys.executable], cwd=checkout, check=True, capture_output=True)
    (written,) = tmp_path.glob("*.dist-info/METADATA")
    metadata = message_from_string(written.read_text(encoding="utf-8"))
    urls = dict(value.split(", ") for value in metadata.get_all("Project-URL", []))
    assert urls["Homepage"] == ADDRESS
    assert urls["Changelog"] == f"{ADDRESS}/blob/{COMMIT}/CHANGELOG.md"
    text = str(metadata.get_payload())
    assert f"]({ADDRESS}/raw/{COMMIT}/results/rc3/fig8-load/figure.png)" in text
    assert f"]({ADDRESS}/blob/{COMMIT}/results/README.md)" in text
    # `scenarios` is a symbolic link, which forges do not follow.
    assert f"]({ADDRESS}/tree/{COMMIT}/python/sparelane/scenario/shipped)" in text
    assert [target for target in re.findall(r"\]\(([^)]+)\)", text) if not target.startswith(ADDRESS)] == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"address": "forge.example"}, '"forge.example" is not the address of a repository'),
        ({"address": "https://forge.example/a b/c"}, "is not the address of a repository"),
        ({"commit": "main; rm"}, '"main; rm" is not a commit'),
        ({"readme": "[gone](docs/gone.md)"}, "README.md: docs/gone.md does not exist"),
        ({"project": "[project.urls]\n"}, "pyproject.toml: [project.urls] exists already"),
    ],
)
def test_invalid_addresses_leave_files_unchanged(change: dict[str, str], message: str, tmp_path: Path) -> None:
    files = {
        "README.md": change.pop("readme", "# Name"),
        "pyproject.toml": change.pop("project", "[project.scripts]\n"),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    result = publish(tmp_path, **change)
    assert result.returncode == 1
    assert message in result.stderr
    assert {name: (tmp_path / name).read_text(encoding="utf-8") for name in files} == files


def test_links_become_absolute_and_code_stays_unchanged(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").touch()
    (tmp_path / "pyproject.toml").write_text("[project.scripts]\n", encoding="utf-8")
    text = "[a](docs/a.md#part) [over\nlines](docs) [out](https://x.example/) [here](#top)\n```\n[a](docs/a.md)\n```\n"
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    assert publish(tmp_path).returncode == 0
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == (
        f"[a]({ADDRESS}/blob/{COMMIT}/docs/a.md#part) [over\nlines]({ADDRESS}/tree/{COMMIT}/docs) "
        "[out](https://x.example/) [here](#top)\n```\n[a](docs/a.md)\n```\n"
    )


@pytest.mark.parametrize(
    ("page", "verdict"),
    [(b"a page", None), (None, "run `make web`"), (random.Random(1).randbytes(2_000_001), "allowed: 2000000")],
    ids=["small", "missing", "too large"],
)
def test_wheels_are_checked_for_the_playground(page: bytes | None, verdict: str | None, tmp_path: Path) -> None:
    wheel = tmp_path / "sparelane-1.0-py3-none-any.whl"
    with ZipFile(wheel, "w", ZIP_DEFLATED) as archive:
        archive.writestr("sparelane/__init__.py", "")
        archive.writestr("sparelane/play/page/licences.txt", "licences")
        if page is not None:
            archive.writestr("sparelane/play/page/index.html", page)
    checked = subprocess.run([ROOT / ".ci" / "page-in-wheel", wheel], capture_output=True, text=True, check=False)
    if verdict is None:
        assert checked.returncode == 0, checked.stderr
        assert "the playground 0.00 MB" in checked.stdout
    else:
        assert checked.returncode == 1
        assert verdict in checked.stderr
