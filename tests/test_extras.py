"""Tests without the libraries of extras: other commands work, and errors name the extra to install."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from scipy.special import stdtrit

import sparelane
from hangs import HANG_S
from sparelane.sweeps import student_t

SWEEP = """\
duration = "200ms"
[topology]
kind = "dumbbell"
pairs = 2
bottleneck_rate = "20Mbps"
[scheme.tcp]
controller = "newreno"
[scheme.rc3]
controller = "rc3"
[workload]
kind = "bulk"
size = ["20kB", "40kB"]
"""

# An import finder that hides the libraries of extras.
HIDING_FINDER = """\
import sys
from importlib.abc import MetaPathFinder


class Without(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"matplotlib", "scipy"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


sys.meta_path.insert(0, Without())
import importlib.util

find_spec = importlib.util.find_spec
HIDDEN = {"matplotlib", "scipy"}
importlib.util.find_spec = lambda name, package=None: None if name in HIDDEN else find_spec(name, package)
"""


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder in which Python finds neither Matplotlib nor SciPy."""
    (tmp_path / "sitecustomize.py").write_text(HIDING_FINDER, encoding="utf-8")
    (tmp_path / "sweep.toml").write_text(SWEEP, encoding="utf-8")
    return tmp_path


def python(here: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here), str(Path(sparelane.__file__).parents[1])])}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=here, env=environment, capture_output=True, text=True, check=False, timeout=HANG_S
    )


@pytest.mark.slow
def test_runs_sweeps_comparisons_and_reports_need_no_extra(bare: Path) -> None:
    for arguments in (
        ["run", "dctcp-two-flows", "--set", "duration=100ms", "-o", "one"],
        ["sweep", "sweep.toml", "--seeds", "3", "-o", "many", "--jobs", "2"],
        ["compare", "many"],
        ["report", "many"],
        ["report", "one"],
        ["list"],
        ["check", "sweep.toml"],
        ["schema"],
    ):
        done = python(bare, "-m", "sparelane", *arguments)
        assert done.returncode == 0, (arguments, done.stderr)


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["plot", "one"], "figures"),
        (["reproduce", "rc3/model"], "papers"),
        (["list", "rc3/model"], "papers"),
    ],
)
def test_a_command_that_needs_an_extra_names_it_before_any_work(bare: Path, arguments: list[str], extra: str) -> None:
    sparelane.run("dctcp-two-flows", set={"duration": "100ms", "sample.interval": "10ms"}).save(bare / "one")
    before = sorted(bare.rglob("*"))
    done = python(bare, "-m", "sparelane", *arguments)
    assert done.returncode == 2
    assert f"pip install 'sparelane[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path for path in sorted(bare.rglob("*")) if "__pycache__" not in path.parts] == before


def test_a_figure_from_python_names_the_extra(bare: Path) -> None:
    code = "import sparelane; sparelane.run('dctcp-two-flows', set={'duration': '50ms'}).plot()"
    done = python(bare, "-c", code)
    assert done.stderr.splitlines()[-1] == (
        "sparelane.common.extras.MissingExtraError: figures are drawn with matplotlib, which is not installed: "
        "pip install 'sparelane[figures]'"
    )


@pytest.mark.parametrize("share", [0.6, 0.95, 0.975, 0.995])
def test_quantiles_of_students_distribution_match_scipy(share: float) -> None:
    for degrees_of_freedom in [*range(1, 200), 1001, 9999]:
        expected = float(stdtrit(degrees_of_freedom, share))
        assert student_t.quantile(share, degrees_of_freedom) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("share", "degrees_of_freedom"), [(0.5, 3), (1.0, 3), (0.975, 0), (0.2, 3)])
def test_invalid_arguments_of_quantiles_are_refused(share: float, degrees_of_freedom: int) -> None:
    with pytest.raises(ValueError, match="no quantile"):
        student_t.quantile(share, degrees_of_freedom)
