"""Checks that the digests of short runs equal those in goldens.json, since runs repeat bit for bit.

After a change that is meant to alter results, `make goldens` updates the file; its difference shows the affected runs.
"""

import json
from pathlib import Path

import pytest

import sparelane
from sparelane.scenario import library

GOLDENS = Path(__file__).parent / "goldens.json"


def key(run: dict[str, object]) -> str:
    """Returns the name of a run in the file: its scenario and its settings."""
    settings = " ".join(f"{name}={value}" for name, value in run["set"].items())  # type: ignore[attr-defined]
    return f"{run['scenario']} {settings}"


RUNS = json.loads(GOLDENS.read_text())


def digest(run: dict[str, object]) -> str:
    """Returns the digest of a run with this version."""
    return sparelane.run(str(run["scenario"]), set=run["set"]).digest  # type: ignore[arg-type]


def test_the_goldens_cover_every_ready_made_scenario() -> None:
    assert len(RUNS) >= 30
    assert {run["scenario"] for run in RUNS} >= set(library.names())


@pytest.mark.parametrize("run", RUNS, ids=key)
def test_a_run_has_its_golden_digest(run: dict[str, object]) -> None:
    assert digest(run) == run["digest"]


if __name__ == "__main__":
    changed = 0
    for run in RUNS:
        fresh = digest(run)
        if fresh != run["digest"]:
            changed += 1
            print(f"changed: {key(run)}")
        run["digest"] = fresh
    GOLDENS.write_text(json.dumps(RUNS, indent=1) + "\n")
    print(f"{changed} of {len(RUNS)} runs changed")
