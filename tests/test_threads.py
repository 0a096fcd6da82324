"""Tests of runs on several threads: the same digests, the reasons for a single thread, and bad numbers."""

import os
from pathlib import Path

import pytest

import sparelane
from command_line import invoke
from sparelane.simulation import bench, simulate

# Three sites on a line: any cut is a long cable. Flows are small, and most of them cross it.
SITES = """\
duration = "200ms"

[topology]
kind = "chain"
routers = 3
hosts_per_router = 3
link_rate = "100Mbps"
link_delay = "2ms"
access_rate = "100Mbps"
access_delay = "1ms"

[scheme.tcp]
controller = "cubic"

[workload]
kind = "poisson"
load = 0.3
sizes = { kind = "fixed", size = "20kB" }
"""


def test_the_digest_does_not_depend_on_the_number_of_threads() -> None:
    alone = sparelane.run(SITES, threads=1)
    assert alone.totals["finished_flows"] > 10
    for threads in (2, 3, 7):
        division = simulate.prepare(SITES, threads=threads).division()
        assert (division.domains, division.unsuited) == (min(threads, 3), None)
        assert sparelane.run(SITES, threads=threads).digest == alone.digest


@pytest.mark.parametrize("scenario", ["rc3-internet2", "rc3-fat-tree"])
def test_ready_made_scenarios_have_the_same_digest_on_two_threads(scenario: str) -> None:
    settings = {"duration": "20ms" if scenario == "rc3-internet2" else "200us", "workload.scheme": "rc3"}
    assert simulate.prepare(scenario, set=settings, threads=2).division().domains == 2
    assert sparelane.run(scenario, set=settings, threads=2).digest == sparelane.run(scenario, set=settings).digest


def test_a_small_run_has_one_thread_without_a_remark() -> None:
    division = simulate.prepare("dumbbell-cubic").division()
    assert (division.domains, division.threads, division.unsuited) == (1, 1, None)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"sample.interval": "1ms", "sample.links": [["r0", "r1"]]}, "time series, packets or delays are recorded"),
        ({"link": [{"between": ["r0", "r1"], "delay": "0s"}, {"between": ["r1", "r2"], "delay": "0s"}]}, "far enough"),
        ({"transport.receive_batch": 8}, "received data waits in hosts"),
        ({"queue.kind": "fq-codel"}, "a queue serves flows in turn"),
        ({"scheme.tcp.controller": "rapid"}, "schedules the departure"),
        ({"link": [{"between": ["r0", "r1"], "jitter": "1ms"}]}, "delay packets at random"),
    ],
)
def test_the_reason_for_one_thread_is_given(settings: dict[str, object], reason: str) -> None:
    division = simulate.prepare(SITES, set=settings, threads=2).division()
    assert (division.domains, division.threads, division.asked) == (1, 1, 2)
    assert division.unsuited is not None
    assert reason in division.unsuited
    alone = sparelane.run(SITES, set={**settings, "duration": "20ms"})
    assert sparelane.run(SITES, set={**settings, "duration": "20ms"}, threads=2).digest == alone.digest


def test_the_command_line_warns_if_a_run_has_fewer_threads_than_asked(tmp_path: Path) -> None:
    file = tmp_path / "sites.toml"
    file.write_text(SITES)
    out = ("-o", str(tmp_path / "out"))
    fewer = invoke("run", str(file), "--threads", "5", *out)
    assert fewer.exit_code == 0
    assert "warning: the run has 3 threads instead of 5: its network has no more parts" in fewer.output
    sampled = invoke("run", "dumbbell-cubic", "--set", "duration=100ms", "--threads", "2", *out)
    assert "warning: the run has one thread: time series, packets or delays are recorded" in sampled.output
    by_key = invoke("run", str(file), "--set", "threads=2", "--set", "queue.kind=fq-codel", *out)
    assert "warning: the run has one thread: a queue serves flows in turn" in by_key.output
    plain = invoke("run", str(file), "--threads", "1", *out)
    assert "the run has" not in plain.output


def test_more_threads_than_cores_are_remarked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    file = tmp_path / "sites.toml"
    file.write_text(SITES)
    result = invoke("run", str(file), "--threads", "2", "-o", str(tmp_path / "out"))
    assert "warning: 2 threads share 1 cores and wait for each other; fewer are faster" in result.output


@pytest.mark.parametrize("threads", [0, -1, 1025, 1.5, True, "2"])
def test_a_bad_number_of_threads_is_refused(threads: object) -> None:
    with pytest.raises(sparelane.ScenarioError, match=r"threads = .*; allowed: a whole number from 1 to 1024"):
        sparelane.run(SITES, threads=threads)  # type: ignore[arg-type]


def test_a_bad_number_of_threads_is_refused_in_a_scenario_and_on_the_command_line() -> None:
    with pytest.raises(sparelane.ScenarioError, match="threads"):
        sparelane.run("threads = 0\n" + SITES)
    result = invoke("run", "dumbbell-cubic", "--threads", "0")
    assert result.exit_code == 2
    assert "0 is not in the range" in result.output


def test_threads_are_for_single_runs_in_the_simulator() -> None:
    several = invoke("run", "dumbbell-cubic", "--threads", "2", "--seeds", "3")
    assert "--threads is for a single run" in several.output
    linux = invoke("run", "dumbbell-cubic", "--threads", "2", "--on", "linux")
    assert "--threads is for runs in the simulator" in linux.output


def test_a_run_on_several_threads_can_be_cancelled_and_interrupted() -> None:
    with pytest.raises(sparelane.Cancelled):
        sparelane.run(SITES.replace("200ms", "1000s"), threads=2, progress=lambda share: False)
    kept = simulate.prepare(SITES.replace("200ms", "1000s"), threads=2).run(lambda share: False, keep=True)
    assert kept.is_interrupted
    assert 0 < kept.totals["end_s"] < 1000


def test_the_benchmark_compares_one_thread_with_several() -> None:
    one = bench.speedup("sites", SITES, {"duration": "50ms"}, threads=2, rounds=3)
    assert (one.domains, len(one.alone_s), len(one.together_s), one.have_equal_digests) == (2, 3, 3, True)
    assert one.ratio == sorted(alone / together for alone, together in zip(one.alone_s, one.together_s, strict=True))[1]
    assert (one.copies, len(one.copies_s)) == (min(2, os.cpu_count() or 1), 3)
    separate = sorted(one.copies * alone / copies for alone, copies in zip(one.alone_s, one.copies_s, strict=True))
    assert one.separate_ratio == one.to_json()["separate_ratio"] == separate[1]
    refused = invoke("bench", "--threads", "2", "--ladder")
    assert "--threads has its own workloads" in refused.output
