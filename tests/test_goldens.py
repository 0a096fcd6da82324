"""Runs repeat to the bit: the digest of each of these runs is the one on record.

Where a change is meant to change results, `make goldens` writes the record anew; the difference then shows which runs
it touched.
"""

import json
from pathlib import Path

import pytest

import sparelane
from sparelane.scenario import library

RECORD = Path(__file__).parent / "goldens.json"


def key(run: dict[str, object]) -> str:
    """The name of a run, as in the record: its scenario and what is set in it."""
    settings = " ".join(f"{name}={value}" for name, value in run["set"].items())  # type: ignore[attr-defined]
    return f"{run['scenario']} {settings}"


RUNS = json.loads(RECORD.read_text())


def digest(run: dict[str, object]) -> str:
    """The digest of one run, as this version gives it."""
    return sparelane.run(str(run["scenario"]), set=run["set"]).digest  # type: ignore[arg-type]


def test_the_record_covers_every_ready_made_scenario() -> None:
    assert len(RUNS) >= 30
    assert {run["scenario"] for run in RUNS} >= set(library.names())


@pytest.mark.parametrize("run", RUNS, ids=key)
def test_the_run_gives_the_digest_on_record(run: dict[str, object]) -> None:
    assert digest(run) == run["digest"]


if __name__ == "__main__":
    changed = 0
    for run in RUNS:
        fresh = digest(run)
        if fresh != run["digest"]:
            changed += 1
            print(f"changed: {key(run)}")
        run["digest"] = fresh
    RECORD.write_text(json.dumps(RUNS, indent=1) + "\n")
    print(f"{changed} of {len(RUNS)} runs changed")
