"""The order of the packages: each imports only those before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "python" / "sparelane"

# From the lowest package to the highest. A name without a folder is a module.
ORDER = (
    "_native",
    "rapid",
    "common",
    "terminal",
    "plugins",
    "scenario",
    "results",
    "simulation",
    "sweeps",
    "gym",
    "wire",
    "emulation",
    "uml",
    "bpf",
    "reports",
    "sweep_api",
    "papers",
    "play",
    "cli",
    "__main__",
)


def imported(text: str) -> Iterator[tuple[int, str]]:
    """The line of every import from sparelane, inside functions and for type checkers too, and the package it names."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            top, _, rest = name.partition(".")
            if top == "sparelane":
                yield node.lineno, rest.partition(".")[0]


def backward(package: str, text: str) -> list[str]:
    """The imports of a module that name a package after its own."""
    above = ORDER[ORDER.index(package) + 1 :]
    return [f"line {line}: {package} imports {name}" for line, name in imported(text) if name in above or not name]


def packages() -> set[str]:
    files = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    return files | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def test_every_package_has_a_place_in_the_order() -> None:
    assert packages() | {"_native"} == set(ORDER)


@pytest.mark.parametrize("package", ORDER[1:])
def test_a_package_imports_only_packages_before_it(package: str) -> None:
    single = PACKAGE / f"{package}.py"
    paths = [single] if single.is_file() else sorted((PACKAGE / package).rglob("*.py"))
    assert paths
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    assert {path.name: found for path, text in texts.items() if (found := backward(package, text))} == {}


@pytest.mark.parametrize(
    "line",
    [
        "from sparelane import reports",
        "from sparelane.reports import plots",
        "import sparelane.reports.plots",
        "def f() -> None:\n    from sparelane.reports.charts.plot import of_result",
        "import sparelane",
    ],
)
def test_an_import_of_a_later_package_is_found(line: str) -> None:
    assert len(backward("simulation", line)) == 1


def test_imports_of_earlier_packages_and_other_libraries_are_allowed() -> None:
    lines = ("import re", "from sparelane import _native", "from sparelane.common import lazy")
    assert backward("simulation", "\n".join(lines)) == []
