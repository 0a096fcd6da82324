"""Tests of the optimum in section II of the RTCP paper, and of statements about the fitted setting."""

import math
from pathlib import Path

import pytest

from sparelane.papers import registry
from sparelane.papers.engine import saved
from sparelane.papers.engine.rows import Evaluation
from sparelane.papers.rtcp import clients, datacentre, setting, statements
from sparelane.papers.rtcp.example import CASES, RULE_ALPHA, UNEQUAL
from sparelane.papers.rtcp.rule import Case, average_rates


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
    assert Case("known", weights, capacities).optimum() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("case", [*CASES, UNEQUAL], ids=lambda case: case.name)
def test_the_rule_converges_to_the_optimum(case: Case) -> None:
    rates = average_rates(case, RULE_ALPHA)
    assert rates == pytest.approx(case.optimum(), abs=0.02)
    assert case.utility(rates) == pytest.approx(case.utility(case.optimum()), rel=0.01)


def test_a_higher_price_of_backlogs_is_further_from_the_optimum() -> None:
    case = CASES[2]
    far, near = (math.dist(average_rates(case, alpha), case.optimum()) for alpha in (3.0, 0.03))
    assert near < 0.01 < far


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
    chosen, closest = (one.name for one in setting.SETTINGS[:2])
    assert len(statements.STATEMENTS) == datacentre.STATEMENTS
    assert (held(settings, chosen), held(settings, closest)) == (datacentre.HELD, datacentre.HELD_BY_CLOSEST)
    assert (held(settings, chosen, "Table II"), held(settings, closest, "Table II")) == (10, 9)


def test_a_tie_is_not_below() -> None:
    [claim] = clients.as_claims([clients.Claim("Fig. 4", "FCT: Cubic's, of DCTCP's", lambda ask: 1.0)], {})
    low, high = claim.full
    assert low < 99.0 < high < 100.0
