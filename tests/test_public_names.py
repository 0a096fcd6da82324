"""Tests that `import sparelane` is quick and provides the public names."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

import sparelane as sl
from hangs import HANG_S


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_S, check=True)
    return done.stdout


def test_dir_has_only_the_public_names_after_any_import() -> None:
    import sparelane.sweeps.plan  # noqa: F401

    assert dir(sl) == sorted(sl.__all__)
    modules = {name for name in dir(sl) if isinstance(getattr(sl, name), types.ModuleType)}
    assert modules == {"gym", "plugins", "wire"}


def test_every_public_name_exists_and_has_a_docstring() -> None:
    for name in sl.__all__:
        value = getattr(sl, name)
        assert name == "__version__" or (value.__doc__ or "").strip(), name


def test_a_star_import_imports_the_public_names() -> None:
    found = run_python("before = set(dir()); from sparelane import *; print(*sorted(set(dir()) - before))")
    assert set(found.split()) - {"before"} == set(sl.__all__)


def test_a_mistyped_name_is_an_attribute_error_with_a_suggestion() -> None:
    with pytest.raises(AttributeError, match="module 'sparelane' has no attribute 'rnu'") as caught:
        sl.rnu  # type: ignore[attr-defined]  # noqa: B018
    assert caught.value.name == "rnu"
    assert "run" in dir(caught.value.obj)


def test_importing_the_package_loads_none_of_its_libraries() -> None:
    heavy = ("numpy", "polars", "matplotlib", "rich", "click", "gymnasium", "sparelane._native")
    code = f"import sys, sparelane; dir(sparelane); print(*(name for name in {heavy!r} if name in sys.modules))"
    assert run_python(code).split() == []


def test_the_process_of_a_delay_line_loads_no_simulator() -> None:
    heavy = ("numpy", "polars", "sparelane._native")
    code = f"import sys, sparelane.emulation.delay_line; print(*(name for name in {heavy!r} if name in sys.modules))"
    assert run_python(code).split() == []


def test_modules_are_attributes_without_a_separate_import() -> None:
    assert run_python("import sparelane as sl; print(sl.plugins.load.__name__, sl.wire.__name__)").split() == [
        "load",
        "sparelane.wire",
    ]
