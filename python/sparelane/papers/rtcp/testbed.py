"""RTCP, section V-A, Figs. 4 to 7: the testbed's flows on the TCP of Linux, beside the simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from sparelane.papers.engine.base import Effort, Experiment, Outcome, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Row
from sparelane.papers.engine.statistics import estimate
from sparelane.papers.rtcp import testbed_reasons
from sparelane.papers.rtcp.clients import CLASSES, Sample, sample
from sparelane.papers.rtcp.testbed_claims import median, on_linux, unexplained
from sparelane.papers.rtcp.testbed_figure import draw
from sparelane.papers.rtcp.testbed_runs import (
    EACH,
    EACH_ON_BOTH,
    LARGEST,
    LEAST,
    SETTINGS,
    SIDES,
    Run,
    Side,
    is_varied,
    runs,
)

SHARES = (50, 99)
Samples = Mapping[Side, Sequence[Sample]]


def plan(effort: Effort) -> Sequence[Simulation]:
    """Both sides of each run, and what is varied, under each seed."""
    return [one for run in runs(effort) for seed in effort.seed_numbers() for one in _simulations(run, seed, effort)]


def _simulations(run: Run, seed: int, effort: Effort) -> list[Simulation]:
    found = [run.simulation(seed, side, effort) for side in SIDES]
    if is_varied(run, effort):
        found.append(run.simulation(seed, "linux", effort, *EACH))
        found += run.in_other_orders(seed, effort) if _hangs_on_order(run) else []
    return found


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Ours beside Linux's: percentiles over the flows of all seeds together."""

    def samples(simulations: Iterable[Simulation]) -> list[Sample]:
        return [sample(outcomes[one], effort) for one in simulations]

    rows: list[Row] = []
    left = dict.fromkeys(SIDES, 0)
    for run in runs(effort):
        seeds = effort.seed_numbers()
        plain: Samples = {side: samples(run.simulation(seed, side, effort) for seed in seeds) for side in SIDES}
        rows += _rows(run, plain)
        for side in SIDES:
            left[side] += sum(one.unfinished for one in plain[side])
        if is_varied(run, effort):
            each = samples(run.simulation(seed, "linux", effort, *EACH) for seed in seeds)
            rows += _rows(run, {**plain, "linux": each}, EACH_ON_BOTH)
            if _hangs_on_order(run):
                by_seed = [samples(run.in_other_orders(seed, effort)) for seed in seeds]
                rows += _spread(run, [plain["simulator"], *map(list, zip(*by_seed, strict=True))], rows)
    return Evaluation(
        tuple(rows),
        (
            f"Flows that did not finish: on Linux {left['linux']}, in the simulator {left['simulator']}.",
            _acknowledged(effort, outcomes),
        ),
    )


def _rows(run: Run, samples: Samples, variant: str = "") -> list[Row]:
    return [_row(replace(key, variant=variant), samples, of, reduce) for key, of, reduce in _quantities(run)]


def _quantities(run: Run) -> list[tuple[Key, str, Callable[[np.ndarray], float]]]:
    """What is measured of a run: its row, of which values of a `Sample` it is, and how it follows from them."""
    times = [
        (run.percentile(name, share), f"{name} {run.setting.times.name}", partial(_percentile, share))
        for name in CLASSES
        for share in SHARES
    ]
    return [*times, (run.goodput, "goodput", _mean)]


def _spread(run: Run, orders: Sequence[Sequence[Sample]], rows: Sequence[Row]) -> list[Row]:
    """The least and the largest of ours over all orders of the servers, where Linux's number differs for their sake."""
    found = {row.key: row for row in rows}
    spread = []
    for key, of, reduce in _quantities(run):
        if key in testbed_reasons.OF_ORDER:
            values = [_together(samples, of, reduce) for samples in orders]
            ends = {LEAST: min, LARGEST: max}
            known = [value for value in values if value is not None]
            for variant, end in ends.items():
                spread.append(Row(replace(key, variant=variant), found[key].paper, end(known) if known else None))
    return spread


def _hangs_on_order(run: Run) -> bool:
    """Whether a number of the run differs for the sake of the servers' order: rows of the others are beside it."""
    return any(key in testbed_reasons.OF_ORDER for key, _, _ in _quantities(run))


def _together(samples: Sequence[Sample], of: str, reduce: Callable[[np.ndarray], float]) -> float | None:
    """A number of the flows of all seeds; `None` where there are none."""
    together = np.concatenate([one.values[of] for one in samples])
    return reduce(together) if together.size else None


def _percentile(share: int, values: np.ndarray) -> float:
    return float(np.percentile(values, share))


def _mean(values: np.ndarray) -> float:
    return float(values.mean())


def _row(key: Key, samples: Samples, of: str, reduce: Callable[[np.ndarray], float]) -> Row:
    """Ours beside Linux's, with the interval of their difference: both sides have the same flows under a seed."""

    def over(side: Side, seeds: Sequence[int]) -> float | None:
        return _together([samples[side][at] for at in seeds], of, reduce)

    every = list(range(len(samples["linux"])))
    ours, linux = (over(side, every) for side in SIDES)
    if ours is None or linux is None:
        return Row(key, None, None)
    parts = []
    for out in every[: len(every) if len(every) > 1 else 0]:
        less = [over(side, [at for at in every if at != out]) for side in SIDES]
        if less[0] is not None and less[1] is not None:
            parts.append(len(every) * (ours - linux) - (len(every) - 1) * (less[0] - less[1]))
    # Where all seeds have the same difference, it is what rounding leaves.
    return Row(key, linux, ours, round(estimate(parts).ci95 or 0.0, 12) if len(parts) > 1 else None)


def _acknowledged(effort: Effort, outcomes: Outcomes) -> str:
    """How many segments the client of Linux acknowledges."""
    shares: dict[str, list[float]] = {}
    for run in runs(effort):
        for seed in effort.seed_numbers():
            share = _acknowledgments(outcomes[run.simulation(seed, "linux", effort)])
            shares.setdefault(run.scheme, []).extend([] if share is None else [share])
    listed = "; ".join(f"{scheme} {100 * np.mean(found):.0f} %" for scheme, found in shares.items() if found)
    return (
        f"What Linux's client sends of acknowledgments, in shares of the segments that it receives: {listed or 'none'}."
    )


def _acknowledgments(outcome: Outcome) -> float | None:
    counted = outcome.counters.get("right0", {})
    came = counted.get("Tcp.InSegs", 0)
    return counted["Tcp.OutSegs"] / came if came else None


BY_NAME = {setting.name: setting for setting in SETTINGS}
METRICS = named()
VALUES = {
    "median difference": lambda: median,
    "unexplained": lambda: unexplained,
    "on Linux": lambda setting, traffic, others: on_linux(BY_NAME[setting], traffic, others),
}


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
