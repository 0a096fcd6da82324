"""What the reader of a run is told besides its numbers."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import sparelane
from sparelane.cli import main

BULK = """\
title = "equal flows"
duration = "{duration}"

[topology]
kind = "dumbbell"
pairs = 4
access_rate = "{access}"
bottleneck_rate = "100Mbps"
bottleneck_delay = "5ms"

[queue]
limit = "100packets"

[scheme.cubic]
controller = "cubic"

[workload]
kind = "bulk"
size = "{size}"
start = "{start}"
"""


def said(*, duration: str = "1s", access: str = "1Gbps", size: str = "10kB", start: str = "0s", more: str = "") -> str:
    text = BULK.format(duration=duration, access=access, size=size, start=start)
    return "; ".join(sparelane.run(text + more).notices)


def test_a_run_without_surprises_has_no_notice() -> None:
    assert said() == ""


def test_means_are_said_to_leave_out_what_did_not_finish() -> None:
    assert "4 of 4 flows had not finished" in said(size="1GB")


def test_a_workload_that_starts_after_the_end_is_told() -> None:
    assert said(start="2s") == "no flow started by the end of the run, 1 s: the workload is empty, or starts later"


def test_a_sampled_flow_that_never_starts_is_told() -> None:
    assert "[sample] asks for flows 4, 9; only 4 started" in said(more="[sample]\nflows = [0, 4, 9]\n")


@pytest.mark.parametrize(("access", "is_told"), [("100Mbps", True), ("1Gbps", False)])
def test_phase_effects_are_told_where_hosts_send_at_the_bottlenecks_rate(access: str, is_told: bool) -> None:
    assert ("phase effect" in said(duration="20s", access=access, size="unlimited")) is is_told


def test_jitter_of_hosts_breaks_the_step() -> None:
    jitter = '[host]\nack_cost = "100us"\n'
    assert "phase effect" not in said(duration="20s", access="100Mbps", size="unlimited", more=jitter)


def test_a_workload_that_starts_after_the_end_is_told_where_others_run() -> None:
    late = '[[workload]]\nkind = "bulk"\nsize = "10kB"\nstart = "2s"\n'
    text = BULK.replace("[workload]", "[[workload]]").format(duration="1s", access="1Gbps", size="10kB", start="0s")
    assert sparelane.run(text + late).notices == [
        "workload 2 starts at 2s, which is not before the end of the run: none of its flows run"
    ]


STEP = BULK.format(duration="20s", access="100Mbps", size="unlimited", start="0s") + "[sample]\nflows = [9]\n"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each way to simulate a scenario, or to look at its results, prints or writes."""
    here = tmp_path_factory.mktemp("told")
    (here / "s.toml").write_text(STEP)
    schemes = STEP.replace("[workload]", '[scheme.reno]\ncontroller = "newreno"\n\n[workload]')
    (here / "w.toml").write_text(schemes)

    def output(*words: object) -> str:
        done = CliRunner().invoke(main, [str(word) for word in words])
        assert done.exit_code == 0, done.output
        return " ".join(done.output.split())

    found = {
        "run": output("run", here / "s.toml", "-o", here / "run"),
        "run --seeds": output("run", here / "s.toml", "--seeds", 2, "-o", here / "seeds"),
        "sweep": output("sweep", here / "w.toml", "--seeds", 2, "-o", here / "sweep"),
        "compare": output("compare", here / "sweep"),
        "check": output("check", here / "s.toml"),
        "notebook": sparelane.run(here / "s.toml")._repr_html_(),
    }
    for name in ("run", "sweep"):
        output("report", here / name)
        found[f"report of a {name}"] = (here / name / "report.html").read_text()
    return found


WAYS = ("run", "run --seeds", "sweep", "compare", "check", "notebook", "report of a run", "report of a sweep")


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_see_a_run_says_what_may_be_an_artefact_and_what_was_not_sampled(
    told: dict[str, str], way: str
) -> None:
    assert "a phase effect, no property of the controller" in told[way]
    assert "[sample] asks for flow 9" in told[way]


@pytest.mark.parametrize(
    ("way", "runs"), [("run --seeds", "in all 2 runs"), ("sweep", "in all 4 runs"), ("compare", "in all 4 runs")]
)
def test_of_many_runs_each_thing_is_noted_once_with_the_number_of_runs(
    told: dict[str, str], way: str, runs: str
) -> None:
    assert told[way].count(f"{runs}: [sample] asks for flow 9") == 1
    assert told[way].count("[sample] asks for flow 9") == 1


def test_a_saved_run_keeps_what_was_noted(tmp_path: Path) -> None:
    result = sparelane.run(STEP, set={"duration": "1s"})
    result.save(tmp_path)
    assert result.notices
    assert sparelane.api.saved_run(tmp_path / "run.json")["notices"] == result.notices
