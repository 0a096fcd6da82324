"""RTCP, section V-A, Figs. 4 to 7: the testbed's flows on the TCP of Linux, beside the simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from sparelane.papers.engine.base import Effort, Experiment, Outcome, Outcomes, Simulation
from sparelane.papers.engine.rows import Evaluation, Key, Row
from sparelane.papers.engine.statistics import estimate
from sparelane.papers.rtcp import testbed_claims, testbed_reasons
from sparelane.papers.rtcp.clients import CLASSES, Sample, sample
from sparelane.papers.rtcp.testbed_figure import draw
from sparelane.papers.rtcp.testbed_runs import EACH, EACH_ON_BOTH, LARGEST, LEAST, SIDES, Run, Side, is_varied, runs

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


EXPERIMENT = Experiment(
    id="rtcp/testbed",
    title="The testbed's flows on Linux",
    source="RTCP, section V-A, Figs. 4 to 7",
    method="A client fetches flows from one server or four, over 1 Gb/s and 200 us: on the TCP of Linux 6.12 in "
    "virtual time (`sparelane run rtcp-linux --on linux`) and in the simulator. RTCP there is the source of the BPF "
    "program, built into the kernel; Cubic, DCTCP and BBR are the kernel's own. Where other pages have the paper's "
    "number, this one has Linux's.",
    assumptions=(
        "Both sides send the same flows, which the simulator draws with the seed. Each has its own connection. Linux "
        "has no PCC.",
        "Flows below 30 kB are urgent, and weigh 24,000 bytes, others 12,000; delta = 125; alpha is the paper's for "
        "each figure; the least window is two segments.",
        "The switch's queue holds 4.5 MB, half of its memory, and marks for DCTCP what is behind 20 packets (on Linux "
        "what has waited for as long as 20 packets take).",
        "Hosts have no bound on the receive window. Those of the simulator acknowledge each segment, those of Linux as "
        f'they see fit; in rows with "{EACH_ON_BOTH}", these do, too (routes with `quickack`).',
        "Requests come during the simulated time that an effort names; flows that start in the first tenth of it do "
        "not count. Percentiles are over the flows of all seeds together; requests of Fig. 7 take as long as the last "
        "of their flows.",
        "What stands behind ± is the interval of the difference, not of our number: the jackknife's, by leaving out "
        "one seed at a time on both sides. So it is in the figure.",
        f'Rows with "{LEAST}" and "{LARGEST}" show how much hangs on which packet is first where two come at once: the '
        "servers are alike, and their order in the scenario decides it in the simulator.",
    ),
    full=Effort("full", seeds=5, stop_s=2.0),
    quick=Effort("quick", seeds=1, stop_s=1.0),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    reasons=testbed_reasons.REASONS,
    claims=(*testbed_claims.OF_THE_SIMULATOR, *testbed_claims.of_the_paper(testbed_reasons.WORDS)),
    needs_kernel="linux",
    witness="Linux",
)
