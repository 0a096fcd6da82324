"""RTCP's section II: the rule reaches the largest utility."""

import math

import pytest

from sparelane.experiments.rtcp.example import CASES, RULE_ALPHA, UNEQUAL
from sparelane.experiments.rtcp.rule import Case, average_rates


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
