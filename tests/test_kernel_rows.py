"""Evaluates RC3's experiments on the kernel from made-up outcomes, without a kernel."""

import polars as pl
import pytest

from sparelane.papers import registry
from sparelane.papers.engine.base import Effort, Outcome, Outcomes, Simulation
from sparelane.papers.engine.rows import Evaluation, Key, Metric
from sparelane.reports import plots

IDS = ["rc3/fig15", "rc3/fig16", "rc3/fig17", "rc3/fig18"]
FCT, REDUCTION = Metric("FCT", "s"), Metric("reduction", "%")
THROUGHPUT = Metric("throughput", "Gb/s")
# Bytes per second of every flow with samples.
RATE = 1e9


def outcome(run: Simulation) -> Outcome:
    """Returns flows that take 0.5 s under TCP and 0.2 s under RC3, and deliver bytes at a constant rate."""
    count = next((setting.count("kind = 'bulk'") for setting in run.settings if setting.startswith("workload=[")), 1)
    completion_s = 0.2 if "workload.scheme=rc3" in run.settings else 0.5
    flows = pl.DataFrame({"completion_s": [completion_s] * count, "delivered_bytes": [int(2 * RATE)] * count})
    series = [
        (f"flow {number}", "delivered_bytes", step / 100, RATE * step / 100)
        for number in range(count)
        for step in range(1, 151)
    ]
    counters = {"left0": {"Tcp.OutSegs": 1000, "Ip.OutRequests": 50}, "right0": {"Ip.InReceives": 40}}
    empty = pl.DataFrame()
    table = pl.DataFrame(series, schema=["probe", "quantity", "time_s", "value"], orient="row")
    return Outcome(flows, empty, empty, empty, table, empty, digest="", counters=counters)


def evaluated(id: str, name: str = "full") -> tuple[Effort, Evaluation]:
    """Returns an effort of an experiment and its evaluation."""
    experiment = registry()[id]
    effort = experiment.full if name == "full" else experiment.quick
    outcomes: Outcomes = {run: outcome(run) for run in experiment.plan(effort)}
    return effort, experiment.judge(effort, outcomes)


@pytest.mark.parametrize("name", ["full", "quick"])
@pytest.mark.parametrize("id", IDS)
def test_every_claim_has_a_number_and_the_figure_labelled_axes(id: str, name: str) -> None:
    experiment, (effort, found) = registry()[id], evaluated(id, name)
    assert len({row.key for row in found.rows}) == len(found.rows)
    checked = [verdict for verdict in experiment.check(effort, found) if verdict.band is not None]
    assert checked
    assert [verdict.problem for verdict in checked if verdict.value is None] == []
    with plots.style():
        drawing = experiment.draw(found)
    assert all(axes.get_xlabel() and axes.get_ylabel() for axes in drawing.axes)


def test_single_flows_have_times_and_reductions_by_path_size_and_ends() -> None:
    _, found = evaluated("rc3/fig15")
    of_flow = {"traffic": "10 packets", "variant": "CUBIC, TSO"}
    assert found.ours(Key("1 Gb/s", FCT, "TCP", **of_flow)) == 0.5
    assert found.ours(Key("1 Gb/s", REDUCTION, "RC3", **of_flow)) == pytest.approx(60)
    _, quick = evaluated("rc3/fig15", "quick")
    assert {row.key.variant for row in quick.rows} == {
        "New Reno, no offload",
        "New Reno, TSO and GRO",
        "New Reno, simulated",
    }
    assert {row.key.traffic for row in quick.rows} == {"1 packet", "10 packets", "100 packets", "1000 packets"}


def test_offload_is_measured_in_packets_and_without_the_set_up() -> None:
    _, found = evaluated("rc3/fig18")
    assert found.ours(Key("TSO", FCT, "RC3")) == pytest.approx(0.18)
    assert found.ours(Key("TSO", Metric("packets sent as one, on average", "packets"), "RC3")) == 20
    assert found.ours(Key("GRO", Metric("packets handed to the receiver's TCP", "packets"), "TCP")) == 40


def test_throughput_and_harm_come_from_delivered_bytes() -> None:
    _, found = evaluated("rc3/fig17")
    case = "(a) low priority starts after high"
    assert found.ours(Key(case, THROUGHPUT, "low priority", traffic="150 to 160 ms")) == pytest.approx(8)
    harm = Key("beside another flow", Metric("harm to the flow beside it", "%"), "RC3", "", "1000 packets", "CUBIC")
    assert found.ours(harm) == pytest.approx(0)
