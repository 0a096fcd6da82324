"""Checks the papers' claims with quick runs of cheap experiments; `sparelane reproduce --quick --check` checks all."""

from collections.abc import Mapping

import pytest

from sparelane.papers import registry
from sparelane.papers.engine import runner
from sparelane.papers.engine.runner import Finished, Task

# The checked experiments with the processor time of their quick effort, seconds. Experiments share simulations, so all
# of them take less than the sum.
CHECKED: Mapping[str, float] = {
    "rapid/fig6-gaps": 0.2,
    "rapid/fig7-bass": 0.1,
    "rapid/fig8-timescales": 5.3,
    "rapid/table2-mechanisms": 6.1,
    "rapid/table3-loss10g": 4.7,
    "rapid/table4-loss40g": 6.3,
    "rapid/table5-burstiness": 2.6,
    "rapid/table6-tau-eta": 6.4,
    "rapid/table7-web5ms": 1.9,
    "rapid/table8-web30ms": 1.4,
    "rc3/app-pacing": 6.7,
    "rc3/cubic": 1.9,
    "rc3/downlink": 7.6,
    "rc3/droptail": 3.0,
    "rc3/example-66": 0.1,
    "rc3/example-7": 0.1,
    "rc3/fattree": 5.2,
    "rc3/fig10-cdf": 5.4,
    "rc3/fig12-levels": 2.4,
    "rc3/fig13-fairness": 5.4,
    "rc3/fig14-initcwnd": 11.5,
    "rc3/fig14-qos": 4.1,
    "rc3/fig14-rcp": 6.9,
    "rc3/fig7-sizes": 5.4,
    "rc3/fig8-load": 17.0,
    "rc3/linux-fct": 0.3,
    "rc3/mixed": 3.1,
    "rc3/model": 0.0,
    "rc3/no-sack": 1.9,
    "rc3/partial": 4.5,
    "rc3/small-buffers": 4.6,
    "rtcp/coexistence": 2.5,
    "rtcp/example": 1.0,
    "rtcp/incast-95": 0.3,
    "rtcp/incast-testbed": 0.9,
    "rtcp/one-to-four": 3.3,
    "rtcp/one-to-one": 0.5,
    "rtcp/over-subscription": 1.6,
    "rtcp/parameters": 1.2,
    "rtcp/preemption": 7.2,
    "rtcp/random-sending": 4.5,
}

BUDGET_S = 240.0
# Experiments that take longer are only part of `make test-all`, seconds.
SLOW_FROM_S = 1.5

CLAIMS = [
    pytest.param(id, index, id=f"{id}: {claim.text}", marks=[pytest.mark.slow] if cost_s > SLOW_FROM_S else [])
    for id, cost_s in CHECKED.items()
    for index, claim in enumerate(registry()[id].claims)
    if claim.quick is not None or not registry()[id].is_quick(registry()[id].quick)
]


@pytest.fixture(scope="module")
def quick(request: pytest.FixtureRequest) -> dict[str, Finished]:
    """Runs the experiments of the selected tests at quick effort."""
    selected = {
        item.callspec.params["id"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == request.path and hasattr(item, "callspec")
    }
    tasks = [Task(registry()[id], registry()[id].quick) for id in CHECKED if id in selected]
    return {done.task.experiment.id: done for done in runner.reproduce(tasks, 2, lambda share: None)}


def test_the_checked_experiments_fit_the_time_for_tests() -> None:
    assert set(CHECKED) <= set(registry())
    assert sum(CHECKED.values()) <= BUDGET_S


@pytest.mark.parametrize(("id", "index"), CLAIMS)
def test_a_papers_claim_holds_in_a_quick_run(quick: dict[str, Finished], id: str, index: int) -> None:
    verdict = quick[id].verdicts[index]
    assert verdict.holds, f"{verdict.value} is not in {verdict.band} {verdict.problem}"
