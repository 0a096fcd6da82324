"""The papers' claims, checked on quick runs: those that are cheap. `sparelane reproduce --quick --check` checks all."""

from collections.abc import Mapping

import pytest

from sparelane.experiments import registry, runner
from sparelane.experiments.runner import Finished, Task

# What is checked here, with the processor time of its quick effort in seconds, as measured where it was chosen.
# Experiments share simulations, so that all take less than the sum.
CHECKED: Mapping[str, float] = {}

BUDGET_S = 240.0

CLAIMS = [
    pytest.param(id, index, id=f"{id}: {claim.text}")
    for id in CHECKED
    for index, claim in enumerate(registry()[id].claims)
    if claim.quick is not None
]


@pytest.fixture(scope="module")
def quick() -> dict[str, Finished]:
    """The checked experiments that claim something of quick runs, at the quick effort."""
    wanted = [registry()[id] for id in CHECKED if any(claim.quick is not None for claim in registry()[id].claims)]
    tasks = [Task(experiment, experiment.quick) for experiment in wanted]
    return {done.task.experiment.id: done for done in runner.reproduce(tasks, 2, lambda share: None)}


def test_the_checked_experiments_fit_the_time_for_tests() -> None:
    assert set(CHECKED) <= set(registry())
    assert sum(CHECKED.values()) <= BUDGET_S


@pytest.mark.parametrize(("id", "index"), CLAIMS)
def test_a_papers_claim_holds_in_a_quick_run(quick: dict[str, Finished], id: str, index: int) -> None:
    done = quick[id]
    verdict = done.task.experiment.claims[index].check(done.task.effort, done.evaluation)
    assert verdict.holds, f"{verdict.value} is not in {verdict.band} {verdict.problem}"
