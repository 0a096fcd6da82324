"""Tests of the optimum in section II of the RTCP paper, and of statements about the fitted setting."""

import math
from pathlib import Path

import pytest

from sparelane.papers import registry
from sparelane.papers.engine import saved
from sparelane.papers.engine.rows import Evaluation
from sparelane.papers.rtcp import setting, statements
from sparelane.papers.rtcp.clients import Side
from sparelane.papers.rtcp.example import EXAMPLES, RULE_ALPHA, UNEQUAL
from sparelane.papers.rtcp.rule import Example, average_rates, optimum


@pytest.mark.parametrize(
    ("weights", "capacities", "expected"),
    [
        # With x1 = x2 = 1 - x0, either x0 or the derivative w0 / (1 + x0) - (w1 + w2) / (2 - x0) is zero.
        ((1.0, 1.0, 1.0), (1.0, 1.0), (0.0, 1.0, 1.0)),
        ((2.0, 1.0, 1.0), (1.0, 1.0), (0.5, 0.5, 0.5)),
        ((4.0, 2.0, 1.0), (1.0, 1.0), (5 / 7, 2 / 7, 2 / 7)),
    ],
)
def test_the_solver_finds_the_known_optimum(
    weights: tuple[float, float, float], capacities: tuple[float, float], expected: tuple[float, ...]
) -> None:
    assert Example("known", weights, capacities).optimum() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("example", [*EXAMPLES, UNEQUAL], ids=lambda example: example.name)
def test_the_rule_converges_to_the_optimum(example: Example) -> None:
    rates = average_rates(example, RULE_ALPHA)
    assert rates == pytest.approx(example.optimum(), abs=0.02)
    assert example.utility(rates) == pytest.approx(example.utility(example.optimum()), rel=0.01)


def test_a_higher_price_of_backlogs_is_further_from_the_optimum() -> None:
    example = EXAMPLES[2]
    far, near = (math.dist(average_rates(example, alpha), example.optimum()) for alpha in (3.0, 0.03))
    assert near < 0.01 < far


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        # The derivative of w log(1 + x) is w at 0 and w / 2 at 1, so half the weight gets nothing.
        ((2.0, 1.0), (1.0, 0.0)),
        # With 4 / (1 + x) = 3 / (2 - x), x is 5 / 7.
        ((4.0, 3.0), (5 / 7, 2 / 7)),
        ((1.0, 1.0, 1.0, 1.0), (0.25, 0.25, 0.25, 0.25)),
    ],
)
def test_the_optimum_of_one_link_is_not_proportional_to_weights(
    weights: tuple[float, ...], expected: tuple[float, ...]
) -> None:
    assert optimum(weights, [(0,)] * len(weights), (1.0,)) == pytest.approx(expected, abs=1e-4)


def test_feedback_that_is_a_round_trip_late_moves_shares_towards_equal() -> None:
    example = EXAMPLES[2]
    at_once, late, later = (
        average_rates(example, RULE_ALPHA, round_trips=(factor * 12.5, factor * 8.33, factor * 8.33))
        for factor in (0.0, 1.0, 2.0)
    )
    assert at_once == average_rates(example, RULE_ALPHA)
    assert at_once[0] - at_once[1] > late[0] - late[1] + 0.1 > later[0] - later[1] + 0.2


@pytest.fixture(scope="module")
def settings() -> Evaluation:
    """The saved results of the compared settings."""
    kept, _ = saved.read_all(Path(__file__).parents[1] / "results", {"rtcp/setting": registry()["rtcp/setting"]})
    if not kept:
        pytest.skip("its results are not saved")
    return kept[0].evaluation


def held(settings: Evaluation, name: str, group: str | None = None) -> float:
    """Returns the number of statements that hold under a setting, of one group or of all."""
    return settings.ours(setting.held_key(name, group))


def test_statements_about_the_fit_match_the_saved_results(settings: Evaluation) -> None:
    chosen, closest = list(dict.fromkeys(row.key.setting for row in settings.rows))[:2]
    [fit, _] = registry()["rtcp/setting"].fitted
    assert f"Of {len(statements.STATEMENTS)} statements of the paper, {held(settings, chosen):.0f} hold" in fit
    assert f"and {held(settings, closest):.0f} under the one that is closest" in fit
    assert (held(settings, chosen, "Table II"), held(settings, closest, "Table II")) == (10, 9)


def test_a_tie_is_not_below() -> None:
    orders = [claim for claim in registry()["rtcp/one-to-four"].claims if claim.text.endswith("in percent")]
    assert len(orders) == 25
    assert all(99.0 < claim.full[1] < 100.0 for claim in orders)


def test_a_side_of_a_ratio_is_one_scheme_or_the_extreme_of_several() -> None:
    times = {"Cubic": 3.0, "DCTCP": 1.0, "PCC": 2.0}
    texts = ("Cubic", "least of Cubic, DCTCP", "largest of DCTCP, PCC", "mean of Cubic, PCC")
    assert [Side.read(text).number(times.__getitem__) for text in texts] == [3.0, 1.0, 2.0, 2.5]
