"""RTCP's section II: the rule reaches the largest utility; and what is said of the setting of its simulations."""

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
        # By hand: with x1 = x2 = 1 - x0 the derivative w0 / (1 + x0) - (w1 + w2) / (2 - x0) is zero, or x0 is.
        ((1.0, 1.0, 1.0), (1.0, 1.0), (0.0, 1.0, 1.0)),
        ((2.0, 1.0, 1.0), (1.0, 1.0), (0.5, 0.5, 0.5)),
        ((4.0, 2.0, 1.0), (1.0, 1.0), (5 / 7, 2 / 7, 2 / 7)),
    ],
)
def test_the_solver_finds_the_optimum_that_is_known(
    weights: tuple[float, float, float], capacities: tuple[float, float], expected: tuple[float, ...]
) -> None:
    assert Case("known", weights, capacities).optimum() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("case", [*CASES, UNEQUAL], ids=lambda case: case.name)
def test_the_rule_converges_to_the_optimum(case: Case) -> None:
    rates = average_rates(case, RULE_ALPHA)
    assert rates == pytest.approx(case.optimum(), abs=0.02)
    assert case.utility(rates) == pytest.approx(case.utility(case.optimum()), rel=0.01)


def test_a_heavier_price_of_backlogs_is_further_from_the_optimum() -> None:
    case = CASES[2]
    far, near = (math.dist(average_rates(case, alpha), case.optimum()) for alpha in (3.0, 0.03))
    assert near < 0.01 < far


@pytest.fixture(scope="module")
def settings() -> Evaluation:
    """What is kept of the settings that were compared."""
    kept, _ = saved.read_all(Path(__file__).parents[1] / "results", {"rtcp/setting": registry()["rtcp/setting"]})
    if not kept:
        pytest.skip("no results of it are kept")
    return kept[0].evaluation


def held(settings: Evaluation, name: str, group: str | None = None) -> float:
    """How many statements of a group, or of all, hold under a setting."""
    return settings.ours(setting.held_key(name, group))


def test_what_is_said_of_the_fit_is_what_the_kept_results_have(settings: Evaluation) -> None:
    chosen, closest = (one.name for one in setting.SETTINGS[:2])
    assert len(statements.STATEMENTS) == datacentre.STATEMENTS
    assert (held(settings, chosen), held(settings, closest)) == (datacentre.HELD, datacentre.HELD_BY_CLOSEST)
    assert (held(settings, chosen, "Table II"), held(settings, closest, "Table II")) == (10, 9)


def test_a_tie_is_not_below() -> None:
    [claim] = clients.as_claims([clients.Claim("Fig. 4", "FCT: Cubic's, of DCTCP's", lambda ask: 1.0)], {})
    low, high = claim.full
    assert low < 99.0 < high < 100.0
