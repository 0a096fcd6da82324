"""Tests of schemes that share a run: they have shares, fairness and harm, and no ranking."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

import sparelane as sl
from command_line import invoke
from small_sweeps import do
from sparelane.sweeps import coexistence, folder

SHARED = """
duration = "3s"
[topology]
kind = "dumbbell"
pairs = 4
access_rate = "1Gbps"
bottleneck_rate = "20Mbps"
bottleneck_delay = "10ms"
[queue]
kind = ["fifo", "codel"]
limit = "200packets"
[scheme.cubic]
controller = "cubic"
[scheme.vegas]
controller = "vegas"
"""
APART = f"""{SHARED}
[[workload]]
kind = "bulk"
scheme = "vegas"
size = "unlimited"
spread = "100ms"
[[workload]]
kind = "bulk"
scheme = "cubic"
size = "unlimited"
spread = "100ms"
"""
MIXED = f"""{SHARED}
[workload]
kind = "bulk"
size = "unlimited"
spread = "100ms"
mix = {{ cubic = 0.5, vegas = 0.5 }}
mix_by = "flow"
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("shared") / "out"
    do(APART, place, seeds=3)
    return place


def test_schemes_that_share_runs_are_neither_ranked_nor_called_better(shared: Path) -> None:
    result = invoke("compare", shared)
    assert result.exit_code == 0, result.output
    assert "cubic and vegas share each run: they compete for the same queues" in result.output
    for text in ("Ranking", "better", "worse", " than under ", "compared with cubic"):
        assert text not in result.output, text
    assert invoke("report", shared).exit_code == 0
    page = (shared / "report.html").read_text()
    assert "share each run" in page
    assert "Ranking" not in page


def test_shares_and_fairness_match_the_runs(shared: Path) -> None:
    saved = folder.read(shared)
    [group] = coexistence.groups(saved.runs)
    found = {(one.setting, one.scheme): one for one in coexistence.portions(saved.runs, group)}
    shares, indices = [], []
    for seed in saved.manifest.seeds:
        flows = sl.run(APART.replace('["fifo", "codel"]', '"codel"'), seed=seed).flows
        by_scheme = flows.group_by(pl.col("scheme").cast(pl.String)).agg(pl.col("delivered_bytes").sum())
        delivered = {str(scheme): float(count) for scheme, count in by_scheme.iter_rows()}
        shares.append(100 * delivered["vegas"] / sum(delivered.values()))
        rates = flows["delivered_bytes"] / (3.0 - flows["start_s"])
        indices.append(float(rates.sum()) ** 2 / (len(rates) * float((rates * rates).sum())))
    vegas = found["queue.kind = codel", "vegas"]
    assert vegas.goodput_percent == pytest.approx(sum(shares) / 3)
    assert vegas.flows_percent == 50.0
    assert vegas.jain == pytest.approx(sum(indices) / 3)
    for setting in ("queue.kind = fifo", "queue.kind = codel"):
        both = [found[setting, scheme].goodput_percent for scheme in ("cubic", "vegas")]
        assert sum(both) == pytest.approx(100.0)


@pytest.mark.parametrize("mix", [MIXED, MIXED.replace("mix = {", "mix = [{").replace("0.5 }", "0.5 }, { cubic = 1 }]")])
def test_a_mix_shares_its_runs_too(mix: str, tmp_path: Path) -> None:
    do(mix, tmp_path, seeds=3)
    result = invoke("compare", tmp_path)
    assert result.exit_code == 0, result.output
    assert "cubic and vegas share each run" in result.output
    assert "better" not in result.output


def test_harm_compares_with_runs_alone_and_with_the_own_kind(shared: Path) -> None:
    result = invoke("compare", shared, "--harm")
    assert result.exit_code == 0, result.output
    assert (
        "The mean throughput of a flow of vegas is clearly worse in competition with cubic than with its own kind"
        in result.output
    )
    # Four flows of the other scheme take at least half of what four flows had alone, whichever scheme they use.
    alone = pl.read_parquet(shared / "harm" / "alone-vegas" / "runs.parquet")
    own = pl.read_parquet(shared / "harm" / "own-kind-vegas" / "runs.parquet")
    count = [frame.filter(metric="flows", traffic="all flows")["value"].unique().to_list() for frame in (alone, own)]
    assert count == [[4.0], [8.0]]
    assert "Harm is the relative degradation" in _report(shared)
    # The runs are saved, so a second call needs none.
    before = (shared / "harm" / "alone-vegas" / "results.jsonl").read_bytes()
    assert invoke("compare", shared, "--harm").output == result.output
    assert (shared / "harm" / "alone-vegas" / "results.jsonl").read_bytes() == before


def _report(place: Path) -> str:
    assert invoke("report", place).exit_code == 0
    return (place / "report.html").read_text()


def test_harm_in_a_mix_is_relative_to_flows_of_the_same_kind(tmp_path: Path) -> None:
    do(MIXED, tmp_path, seeds=3)
    result = invoke("compare", tmp_path, "--harm")
    assert result.exit_code == 0, result.output
    assert "Harm by mean throughput of a flow, relative to its own kind" in result.output
    assert "flow of vegas is clearly worse in competition with cubic than with its own kind" in result.output
    assert not (tmp_path / "harm" / "alone-vegas").exists()


def test_harm_without_competitors_is_refused_with_the_reason(tmp_path: Path) -> None:
    do(APART.replace('scheme = "vegas"', 'scheme = "cubic"'), tmp_path, seeds=2)
    result = invoke("compare", tmp_path, "--harm")
    assert result.exit_code == 2


def test_a_metric_of_schemes_that_share_runs_is_refused_with_a_note_and_in_the_report(
    shared: Path, tmp_path: Path
) -> None:
    result = invoke("compare", shared, "--metric", "queueing")
    assert result.exit_code == 0, result.output
    assert "The mean queueing delay is not compared, because these schemes share each run" in result.output
    assert "is not compared" not in invoke("compare", shared).output
    assert invoke("report", shared, "--metric", "queueing", "-o", tmp_path / "page.html").exit_code == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<th>mean queueing delay</th>" in re.sub(r"<th[^>]*>", "<th>", page)


def test_shares_that_are_equal_for_all_seeds_have_no_interval(tmp_path: Path) -> None:
    without_chance = APART.replace('spread = "100ms"\n', "")
    do(without_chance, tmp_path / "out", seeds=3)
    saved = folder.read(tmp_path / "out")
    [group] = coexistence.groups(saved.runs)
    found = coexistence.portions(saved.runs, group)
    assert {one.interval for one in found} == {(None, None)}
    assert "to" not in invoke("compare", tmp_path / "out").stdout.split("share each run")[0]


def test_shares_are_in_the_json_file(shared: Path, tmp_path: Path) -> None:
    assert invoke("compare", shared, "--json", tmp_path / "c.json").exit_code == 0
    content = json.loads((tmp_path / "c.json").read_text())
    assert {one["scheme"] for one in content} == {"cubic", "vegas"}
    assert all(0 <= one["goodput_percent"] <= 100 for one in content)


def test_alternatives_that_compete_with_a_fixed_scheme_are_compared(tmp_path: Path) -> None:
    text = APART.replace('scheme = "vegas"', 'scheme = ["vegas", "newreno"]').replace(
        "[scheme.vegas]", '[scheme.newreno]\ncontroller = "newreno"\n[scheme.vegas]'
    )
    do(text, tmp_path, seeds=3)
    result = invoke("compare", tmp_path)
    assert result.exit_code == 0, result.output
    assert "Ranking by mean throughput of a flow" in result.output
    assert "newreno compared with vegas: mean throughput of a flow" in result.output
    for one in ("vegas", "newreno"):
        assert f"{one} and cubic share each run" in result.output or f"cubic and {one} share each run" in result.output
