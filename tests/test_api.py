"""Tests of running scenarios from Python."""

import json
import threading
from pathlib import Path

import polars as pl
import pytest

import sparelane
from two_flows import WORKLOADS

TWO_FLOWS = f"""\
title = "two flows, one of which does not finish"
duration = "2s"

[topology]
kind = "dumbbell"
pairs = 2

[scheme.tcp]
controller = "newreno"

{WORKLOADS}
"""


@pytest.fixture(scope="module")
def result() -> sparelane.Result:
    return sparelane.run(TWO_FLOWS, seed=3)


def test_flows_are_typed_and_missing_values_are_null(result: sparelane.Result) -> None:
    flows = result.flows
    assert flows["id"].to_list() == [0, 1]
    assert flows["scheme"].cast(pl.String).to_list() == ["tcp", "tcp"]
    assert flows["size_bytes"].to_list() == [100_000, None]
    assert flows["completion_s"].is_null().to_list() == [False, True]
    assert flows["completion_s"][0] == pytest.approx(flows["finish_s"][0] - flows["start_s"][0])
    assert flows["completion_s"][0] >= flows["ideal_s"][0]


def test_tables_are_made_once(result: sparelane.Result) -> None:
    assert result.flows is result.flows


def test_totals_agree_with_the_tables(result: sparelane.Result) -> None:
    assert result.totals["flows"] == result.flows.height
    assert result.totals["finished_flows"] == result.flows["finish_s"].count()
    assert result.totals["end_s"] == 2.0


def test_arrived_packets_are_equal_in_links_and_drops(result: sparelane.Result) -> None:
    assert result.links["arrived_packets"].sum() == result.drops["arrived_packets"].sum()
    assert result.links["dropped_packets"].sum() == result.drops["dropped_packets"].sum()


def test_series_have_the_requested_probes(result: sparelane.Result) -> None:
    assert set(result.series["probe"].cast(pl.String)) == {"flow 0"}
    assert "cwnd_bytes" in result.series["quantity"].cast(pl.String).to_list()


def test_ssthresh_is_null_before_it_is_set() -> None:
    sampled = sparelane.run("dumbbell-cubic", set={"duration": "2s"}).series
    thresholds = sampled.filter(pl.col("quantity") == "ssthresh_bytes")["value"]
    assert thresholds[0] is None
    assert thresholds.is_between(1, 1e9).any()


def test_the_same_seed_gives_the_same_digest(result: sparelane.Result) -> None:
    assert sparelane.run(TWO_FLOWS, seed=3).digest == result.digest
    assert result.seed == 3


def test_the_digest_depends_on_events_and_not_on_the_scenarios_text() -> None:
    short = {"duration": "20ms"}
    plain = sparelane.run("two-flows-priority", set=short)
    titled = sparelane.run("two-flows-priority", set={**short, "title": "another title"})
    longer = sparelane.run("two-flows-priority", set={"duration": "30ms"})
    assert titled.digest == plain.digest != longer.digest


def test_a_run_can_be_repeated_from_its_own_scenario(result: sparelane.Result) -> None:
    assert sparelane.run(result.scenario).digest == result.digest


def test_settings_change_the_run(result: sparelane.Result) -> None:
    changed = sparelane.run(TWO_FLOWS, seed=3, set={"topology.bottleneck_rate": "10Mbps"})
    assert changed.flows["completion_s"][0] > result.flows["completion_s"][0]


def test_the_summary_has_goodput_repair_and_delay_of_each_scheme(result: sparelane.Result) -> None:
    [row] = result.summary().service.to_dicts()
    flows = result.flows
    span_s = result.totals["end_s"] - min(flows["start_s"])
    assert row["goodput_bps"] == pytest.approx(8 * flows["delivered_bytes"].sum() / span_s)
    assert row["timeouts"] == flows["timeouts"].sum()
    assert flows["min_rtt_s"][0] <= flows["srtt_s"][0]
    assert row["rtt_s"] == pytest.approx(flows["srtt_s"].mean())
    assert 0 <= row["queueing_s"] < row["rtt_s"]
    assert result.summary().schemes["slowdown"][0] >= 1


def test_the_summary_counts_finished_flows(result: sparelane.Result) -> None:
    summary = result.summary()
    assert summary.schemes.select("scheme", "flows", "finished").row(0) == ("tcp", 2, 1)
    assert summary.links["utilisation"].is_between(0, 1).all()
    assert summary.links["utilisation"].is_sorted(descending=True)
    assert summary.drops["class"].to_list() == [0]


def test_saved_tables_read_back_equal(result: sparelane.Result, tmp_path: Path) -> None:
    result.save(tmp_path, formats=("parquet",))
    assert pl.read_parquet(tmp_path / "flows.parquet").equals(result.flows)
    assert json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["totals"] == dict(result.totals)


def test_a_single_format_may_be_a_string(result: sparelane.Result, tmp_path: Path) -> None:
    result.save(tmp_path, "csv")
    assert (tmp_path / "flows.csv").exists()
    assert not (tmp_path / "flows.parquet").exists()


def test_an_unknown_format_is_refused_before_anything_is_written(result: sparelane.Result, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no format 'xls'"):
        result.save(tmp_path / "new", formats=("xls",))
    assert not (tmp_path / "new").exists()


def test_a_scenario_error_knows_its_place() -> None:
    with pytest.raises(sparelane.ScenarioError) as caught:
        sparelane.check(TWO_FLOWS.replace('"100kB"', "100"))
    assert (caught.value.file, caught.value.line, caught.value.key) == ("<text>", 14, "workload.0.size")
    assert isinstance(caught.value, ValueError)


def test_progress_grows_and_may_cancel() -> None:
    shares: list[float] = []

    def until_half(share: float) -> bool:
        shares.append(share)
        return share < 0.5

    with pytest.raises(sparelane.Cancelled):
        sparelane.run("rc3-internet2", set={"duration": "2s"}, progress=until_half)
    assert shares == sorted(shares)
    assert shares[-1] >= 0.5
    assert shares[-2] < 0.5


def test_an_exception_in_a_progress_callback_is_raised_by_the_run() -> None:
    def fail(share: float) -> bool:
        raise LookupError(share)

    with pytest.raises(LookupError):
        sparelane.run("rc3-internet2", set={"duration": "2s"}, progress=fail)


def test_a_prepared_scenario_runs_once() -> None:
    prepared = sparelane.simulation.simulate.prepare(TWO_FLOWS)
    prepared.run()
    with pytest.raises(RuntimeError, match="has run already"):
        prepared.run()


def test_other_threads_run_during_a_simulation() -> None:
    ticks = 0
    done = threading.Event()

    def count() -> None:
        nonlocal ticks
        while not done.wait(0.005):
            ticks += 1

    counter = threading.Thread(target=count)
    counter.start()
    sparelane.run("rc3-internet2", set={"duration": "1s"})
    done.set()
    counter.join()
    assert ticks > 5


def test_files_in_a_scenario_are_found_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "list.flows").write_text("0 0 1 1460\n", encoding="utf-8")
    (tmp_path / "net.topo").write_text(
        "host 0\nhost 1\nrouter 2 R\nlink 0 2 1000000000 1000 100\nlink 1 2 1000000000 1000 100\n", encoding="utf-8"
    )
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        'duration = "1s"\n[topology]\nkind = "file"\npath = "net.topo"\n[scheme.tcp]\ncontroller = "newreno"\n'
        '[queue]\nlimit = "9packets"\n[workload]\nkind = "flows"\npath = "list.flows"\n',
        encoding="utf-8",
    )
    assert sparelane.run(scenario).totals["finished_flows"] == 1


STAR = """\
duration = "40ms"

[topology]
kind = "star"

[measure]
delays = true
from = "1ms"

[scheme.tcp]
controller = "newreno"

[[workload]]
kind = "bulk"
pairs = [["h1", "h2"]]
size = "1MB"
traffic_classes = [{ name = "urgent", below = "30KB" }, { name = "high-volume" }]

[[workload]]
kind = "bulk"
pairs = [["h3", "h2"]]
size = "20KB"
traffic_class = "urgent"
start = "2ms"

[[workload]]
kind = "bulk"
pairs = [["h4", "h5"]]
size = "1KB"
start = "3ms"
"""


def test_delays_are_a_histogram_by_class_that_agrees_with_the_flows() -> None:
    result = sparelane.run(STAR)
    flows, delays = result.flows, result.delays
    assert flows["traffic_class"].to_list() == ["high-volume", "urgent", None]
    assert delays.schema["packets"] == pl.UInt64
    means = delays.group_by("traffic_class", maintain_order=True).agg(
        mean_s=(pl.col("delay_s") * pl.col("packets")).sum() / pl.col("packets").sum(), packets=pl.sum("packets")
    )
    assert means["traffic_class"].cast(pl.String).to_list() == ["urgent", "high-volume", None]
    assert means["packets"].to_list()[::2] == [14, 1]
    for mean_s, flow in zip(means["mean_s"], [1, 0, 2], strict=True):
        assert mean_s == pytest.approx(flows["mean_delay_s"][flow], rel=0.01)
        assert 100e-6 < flows["mean_delay_s"][flow] <= flows["max_delay_s"][flow] < 10e-3
    assert flows["measured_bytes"].to_list()[1:] == [20_000, 1_000]
    assert flows["measured_bytes"][0] < flows["delivered_bytes"][0] == 1_000_000


def test_without_measure_delays_are_empty_and_their_columns_null(result: sparelane.Result, tmp_path: Path) -> None:
    assert result.delays.is_empty()
    for name in ("mean_delay_s", "max_delay_s", "measured_bytes", "traffic_class", "request"):
        assert result.flows[name].null_count() == 2, name
    sparelane.run(STAR).save(tmp_path, formats=("parquet", "csv", "json"))
    frame = pl.read_parquet(tmp_path / "delays.parquet")
    assert frame.columns == ["scheme", "traffic_class", "delay_s", "packets"]
    assert pl.read_csv(tmp_path / "delays.csv").height == pl.read_json(tmp_path / "delays.json").height == frame.height


def test_a_seed_has_64_bits() -> None:
    with pytest.raises(sparelane.ScenarioError, match=r"seed = -1: out of range; allowed: a whole number from 0 to"):
        sparelane.run(TWO_FLOWS, seed=-1)
    with pytest.raises(sparelane.ScenarioError, match="out of range"):
        sparelane.run(TWO_FLOWS, seed=2**64)


def test_a_run_continues_if_the_progress_callback_returns_none() -> None:
    shares: list[float] = []
    sparelane.run("rc3-internet2", set={"duration": "300ms"}, progress=shares.append)
    assert shares
    assert shares == sorted(shares)
    with pytest.raises(sparelane.Cancelled):
        sparelane.run("rc3-internet2", set={"duration": "300ms"}, progress=lambda _: False)
