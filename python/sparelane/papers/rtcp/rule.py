"""RTCP's section II without packets: the utility and the rule that maximizes it.

Three connections share two links (Fig. 1): connection 0 crosses both, connection 1 the first, connection 2 the second.
The utility of rate x is w log(1 + x), as in section III. Rates are shares of the larger link's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# The connections that cross each of the two links.
LINKS = ((0, 1), (0, 2))
# The links of each path.
PATHS = {"both links": (0, 1), "first link": (0,), "second link": (1,)}


@dataclass(frozen=True, slots=True)
class Example:
    """Weights and capacities of the example.

    Attributes:
        name: the name in rows and figures.
        weights: the weights w of the three connections.
        capacities: the capacities of the two links, as shares of the larger one.
    """

    name: str
    weights: tuple[float, float, float]
    capacities: tuple[float, float] = (1.0, 1.0)

    def utility(self, rates: Sequence[float]) -> float:
        """Returns the sum of w log(1 + x)."""
        return math.fsum(weight * math.log1p(rate) for weight, rate in zip(self.weights, rates, strict=True))

    def optimum(self) -> tuple[float, ...]:
        """Returns the rates with the largest utility that the links can carry, from a convex solver.

        Raises:
            RuntimeError: the solver found no optimum.
        """
        return optimum(self.weights, tuple(PATHS.values()), self.capacities)


def optimum(weights: Sequence[float], paths: Sequence[Sequence[int]], capacities: Sequence[float]) -> tuple[float, ...]:
    """Returns the rates with the largest sum of w log(1 + x) that the links can carry, from a convex solver.

    Args:
        weights: the weight of each connection; only their ratios matter.
        paths: the numbers of the links that each connection crosses.
        capacities: the capacity of each link.

    Raises:
        RuntimeError: the solver found no optimum.
    """
    from scipy.optimize import LinearConstraint, minimize

    shares = [weight / max(weights) for weight in weights]
    crosses = [[float(link in path) for path in paths] for link in range(len(capacities))]
    found = minimize(
        lambda rates: -math.fsum(share * math.log1p(rate) for share, rate in zip(shares, rates, strict=True)),
        x0=[0.5 * min(capacities) / len(weights)] * len(weights),
        jac=lambda rates: [-share / (1 + rate) for share, rate in zip(shares, rates, strict=True)],
        bounds=[(0.0, None)] * len(weights),
        constraints=[LinearConstraint(crosses, -math.inf, capacities)],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    if not found.success:
        raise RuntimeError(f"no optimum for weights of {weights}: {found.message}")
    return tuple(float(rate) for rate in found.x)


def average_rates(
    example: Example,
    alpha: float,
    *,
    round_trips: tuple[float, float, float] = (0.0, 0.0, 0.0),
    rate_max: float = 2.0,
    rounds: int = 100_000,
    step: float = 0.02,
) -> tuple[float, ...]:
    """Returns the average rates of the paper's rule: eqs. (1), (3) and (4), in small steps of time.

    Each target is the optimum for its counter, gamma = w / (alpha H) - 1, between 0 and `rate_max`. A connection sends
    at `rate_max` while its counter is above the backlogs on its path, and otherwise not at all.

    Args:
        example: the weights and capacities.
        alpha: the weight of the backlogs. A smaller one brings the rates closer to the optimum, but more slowly.
        round_trips: the time after which each connection sees the backlogs. The paper's rule sees them at once.
        rate_max: the largest rate, as a share of the larger link's.
        rounds: the number of steps, of which the second half counts.
        step: the step of time; the larger link carries 1 in a unit of time.

    Returns:
        The average rate of each connection.
    """
    counters, backlogs = [0.0, 0.0, 0.0], [0.0, 0.0]
    sent = [0.0, 0.0, 0.0]
    lags = [round(time / step) for time in round_trips]
    # The backlogs on the path of each connection, one entry per step.
    prices: list[tuple[float, float, float]] = []
    for at in range(rounds):
        prices.append((backlogs[0] + backlogs[1], backlogs[0], backlogs[1]))
        for flow, weight in enumerate(example.weights):
            counter = counters[flow]
            target = rate_max if counter <= 0.0 else min(max(weight / (alpha * counter) - 1.0, 0.0), rate_max)
            seen = prices[at - lags[flow]][flow] if at >= lags[flow] else 0.0
            rate = rate_max if counter > seen else 0.0
            counters[flow] = max(counter + (target - rate) * step, 0.0)
            if at >= rounds // 2:
                sent[flow] += rate
            for number, link in enumerate(LINKS):
                if flow in link:
                    backlogs[number] += rate * step
        for number, capacity in enumerate(example.capacities):
            backlogs[number] = max(backlogs[number] - capacity * step, 0.0)
    return tuple(total / (rounds - rounds // 2) for total in sent)
