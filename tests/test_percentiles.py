"""Tests of percentiles: they are nearest ranks, and samples that are too small have none."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import sparelane as sl
from small_sweeps import LOADS, do
from sparelane.cli.main import main
from sparelane.common import percentiles
from sparelane.wire import harm
from sparelane.wire import path as wire_path
from sparelane.wire.controller import Gaps

THREE = """
duration = "5s"
[topology]
kind = "dumbbell"
pairs = 3
bottleneck_rate = "100Mbps"
[scheme.c]
controller = "newreno"
[workload]
kind = "bulk"
size = "100kB"
"""


@pytest.mark.parametrize(("share", "minimum"), [(0.95, 20), (0.99, 100), (0.999, 1000), (0.5, 2)])
def test_a_percentile_needs_enough_values(share: float, minimum: int) -> None:
    assert percentiles.fewest(share) == minimum
    assert percentiles.percentile(np.arange(minimum - 1.0), share) is None
    assert percentiles.percentile(np.arange(float(minimum)), share) is not None


def test_a_percentile_is_a_value_of_the_sample_that_the_share_does_not_exceed() -> None:
    values = np.random.default_rng(3).lognormal(size=357)
    for share in percentiles.TAILS[:2]:
        found = percentiles.percentile(values, share)
        assert found is not None
        assert found in values
        assert np.mean(values <= found) >= share > np.mean(values < found)


def test_the_summary_of_three_flows_has_no_p99_and_states_the_reason(tmp_path: Path) -> None:
    result = sl.run(THREE)
    [row] = result.summary().schemes.to_dicts()
    assert row["finished"] == 3
    assert [row[name] for name in ("p95_s", "p99_s", "p999_s", "p99_slowdown")] == [None] * 4
    file = tmp_path / "three.toml"
    file.write_text(THREE)
    printed = CliRunner().invoke(main, ["run", str(file), "-o", str(tmp_path / "out")])
    assert "note: p99 needs at least 100 finished flows: c has 3" in printed.output
    assert CliRunner().invoke(main, ["report", str(tmp_path / "out")]).exit_code == 0
    assert "p99 needs at least 100 finished flows: c has 3" in (tmp_path / "out" / "report.html").read_text()


def test_the_summary_of_many_flows_has_the_percentiles_for_their_number() -> None:
    result = sl.run(LOADS.replace("[0.3, 0.6]", "0.6"), set={"workload.scheme": "tcp", "duration": "3s"})
    [row] = result.summary().schemes.to_dicts()
    assert 100 <= row["finished"] < 1000
    times = result.flows["completion_s"].drop_nulls().sort()
    assert row["p99_s"] == times[int(np.ceil(0.99 * len(times))) - 1]
    assert row["p999_s"] is None
    assert result.summary().remarks == ()


def test_sweeps_have_percentiles_by_flow_size_if_there_are_enough_flows(tmp_path: Path) -> None:
    mixed = LOADS.replace('{ kind = "fixed", size = "10kB" }', '{ kind = "rc3" }').replace('"100ms"', '"5s"')
    do(mixed, tmp_path, seeds=3)
    runs = pl.read_parquet(tmp_path / "runs.parquet")
    counts = runs.filter(metric="finished flows of this size")
    assert counts["traffic"].n_unique() > 2
    for name, share in ((percentiles.long(share), share) for share in percentiles.TAILS):
        there = runs.filter((pl.col("average") == name) & (pl.col("metric") == "completion time"))
        for one in there.filter(pl.col("traffic") != "all flows").to_dicts():
            same = counts.filter(
                setting=one["setting"], scheme=one["scheme"], traffic=one["traffic"], seeds=one["seeds"]
            )
            assert same["value"][0] >= percentiles.fewest(share)
    result = CliRunner().invoke(main, ["compare", str(tmp_path), "--metric", "p95-completion", "--by", "size"])
    assert result.exit_code == 0, result.output
    assert "p95 completion time" in result.output
    assert "flows of 1 kB to 10 kB" in result.output


def test_a_percentile_that_no_run_has_is_refused_with_the_reason(tmp_path: Path) -> None:
    do(LOADS, tmp_path, seeds=3)
    result = CliRunner().invoke(main, ["compare", str(tmp_path), "--metric", "p99.9-completion"])
    assert result.exit_code == 2
    assert "p99.9 needs at least 1,000 values in a run, and no run has as many" in result.stderr


def test_gaps_and_round_trips_of_transfers_have_percentiles_only_of_enough_values() -> None:
    result = {"count": 99, "median_gap_s": 1e-3, "median_error_s": 1e-6, "p99_error_s": 5e-6}
    few, many = Gaps.of(result), Gaps.of({**result, "count": 100})
    assert few is not None
    assert many is not None
    assert (few.p99_error_s, many.p99_error_s) == (None, 5e-6)
    assert "99th" not in str(few)
    assert "5.0 us at the 99th percentile" in str(many)
    turns = harm._Turns(seconds=1.0, acked=10, rtts_us=[*range(1, 100)])
    assert turns.total().rtt_p99_s is None
    assert turns.total().rtt_median_s == pytest.approx(50e-6)
    turns.rtts_us = [*range(1, 201)]
    assert turns.total().rtt_p99_s == pytest.approx(198e-6)
    told_delays = {"sent": 50, "loss": 0.1, "min_s": 1e-3, "median_s": 2e-3, "p90_s": 3e-3, "p99_s": 4e-3}
    delays = wire_path._delays(told_delays)
    assert delays is not None
    assert (delays.p90_s, delays.p99_s) == (3e-3, None)
