"""The comparison of the kernel's controllers with ours: its scenarios, its differences, and its page."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from sparelane import api
from sparelane.experiments.linux import measured, page
from sparelane.experiments.linux.paths import PATHS, RANDOM, scenario
from sparelane.experiments.linux.paths import Path as DumbbellPath
from sparelane.linux import mapping
from sparelane.linux.parameters import CONTROLLERS


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_both_sides_of_a_path_send_the_same_flows(path: DumbbellPath) -> None:
    texts = {on_linux: scenario(path, on_linux=on_linux) for on_linux in (False, True)}
    for text in texts.values():
        api.prepare(text)
    network = mapping.network(mapping.with_settings(texts[True], []), "path.toml")
    assert len(network.flows) == len(CONTROLLERS) * len(path.sizes)
    assert network.timestamps
    assert texts[False].split("[sample]")[1] == texts[True].split("[sample]")[1]


def runs(*rows: tuple[str, int, str, float]) -> pl.DataFrame:
    """Runs of CUBIC over the first path: controller, seed, side, completion time."""
    return pl.DataFrame(
        [(PATHS[0].name, seed, side, name, "15kB", lasted, 0, None, None, None) for name, seed, side, lasted in rows],
        schema=measured.SCHEMA,
        orient="row",
    )


def test_differences_are_of_means_over_seeds() -> None:
    found = page.differences(
        runs(
            ("cubic", 1, "ours", 1.0), ("cubic", 2, "ours", 1.2), ("cubic", 1, "linux", 0.9), ("cubic", 2, "linux", 1.1)
        )
    )
    assert found["completion_s_difference"].to_list() == [pytest.approx(0.1)]


def test_the_page_lists_what_is_large_with_its_reason(tmp_path: Path) -> None:
    rows = [(name, 1, side, 1.0 + 0.2 * (name == "cubic" and side == "ours")) for name in CONTROLLERS for side in SIDES]
    page.write(tmp_path, runs(*rows))
    text = (tmp_path / "README.md").read_text()
    assert "Above 5 %: 1; above 10 % and not explained: 1." in text
    assert "| cubic | 10 Mb/s, 10 ms, deep | 15kB | 1.2000 s | 1.0000 s | +20.0 % |  | not explained |" in text
    assert (tmp_path / "figure.png").stat().st_size > 0


def test_a_difference_within_the_interval_of_the_seeds_is_said_to_be_so() -> None:
    def interval(*times: float) -> float | None:
        rows = [("lp", seed, side, lasted) for seed, lasted in enumerate(times) for side in SIDES]
        found: float | None = page.differences(runs(*rows))["completion_s_interval"][0]
        return found

    assert interval(1.0) is None, "one run a side tells nothing of chance"
    assert interval(1.0, 1.0, 1.000001) is None, "nothing is random"
    # Means of 1.5 with a variance of 1/3 over four runs: t with 6 degrees of freedom is 2.447.
    assert interval(1.0, 2.0, 1.0, 2.0) == pytest.approx(2.447 * (2 / 3 / 4) ** 0.5 / 1.5, rel=1e-3)


def test_only_what_is_random_runs_under_a_second_seed_where_nothing_is_lost() -> None:
    assert [path.controllers(2) == RANDOM for path in PATHS] == [not path.loss for path in PATHS]
    assert scenario(PATHS[0], 2, on_linux=True).count("[[workload]]") == len(RANDOM) * len(PATHS[0].sizes)


SIDES = ("ours", "linux")


def test_averages_are_of_the_time_that_a_flow_lasts() -> None:
    path = PATHS[1]
    result = api.run(scenario(path, on_linux=False))
    [own] = measured.rows(path, 1, "ours", result).filter(controller="newreno", size=path.sizes[-1]).to_dicts()
    # The link is full from the end of slow start on.
    assert 0.3 < own["link_use"] <= 1.01
    assert own["mean_window_bytes"] > own["mean_queue_bytes"] > 0
