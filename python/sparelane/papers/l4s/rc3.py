"""RC3 on an L4S bottleneck: its gain for short flows, the delay in the L queue, and the harm to long flows.

The same short flows run twice, once under a controller and once under RC3 around it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from sparelane.papers.engine.base import Effort, Outcome
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.l4s.sharing import DELAY, P99, SCENARIO, p99_ms
from sparelane.papers.rc3.internet2 import (
    AVERAGES,
    GROUPS,
    REDUCTION,
    WARM_UP_SHARE,
    all_mean_times,
    matched,
    of_sizes,
    reductions,
)

FCT = Metric("FCT", "ms")
RATE = Metric("throughput of a long flow", "Mb/s")
LOSS = Metric("throughput lost to RC3", "%")
METRICS = named(FCT, REDUCTION, DELAY, RATE, LOSS)

# The bottleneck, and the sources of short flows.
RATE_MBPS, ONE_WAY_MS, SOURCES = 100, 20, 10
NETWORK = (
    f'topology={{ kind="dumbbell", pairs={SOURCES + 2}, access_rate="1Gbps", access_delay="0s", '
    f'bottleneck_rate="{RATE_MBPS}Mbps", bottleneck_delay="{ONE_WAY_MS}ms" }}',
)
LIMIT = "1000packets"
# The settings of ECN with each controller inside RC3.
ECN: Mapping[str, str] = {"prague": "accurate", "cubic": "off"}
NAMES: Mapping[str, str] = {"prague": "Prague", "cubic": "CUBIC"}
# The long flows, and their places behind the sources.
LONG: Mapping[str, tuple[str, int]] = {
    "long Prague flow": ("prague", SOURCES),
    "long CUBIC flow": ("cubic", SOURCES + 1),
}


@dataclass(frozen=True, slots=True)
class Queue:
    """A kind of queue at the bottleneck.

    Attributes:
        variant: the variant in keys of rows.
        plain: the keys of the queue if all flows have one class.
        banded: the keys of the queue if RC3 sends in lower classes.
        inner: the controllers that run with it.
    """

    variant: str
    plain: str
    banded: str
    inner: tuple[str, ...]


DUALPI2 = 'kind="dualpi2"'
QUEUES = (
    Queue("", DUALPI2, f"{DUALPI2}, lower_bands=true", ("prague", "cubic")),
    Queue("without lower bands", DUALPI2, DUALPI2, ("prague",)),
    Queue("priority queue without L4S", 'kind="fifo"', 'kind="priority"', ("cubic",)),
)


@dataclass(frozen=True, slots=True)
class Setting:
    """A load of short flows.

    Attributes:
        name: the setting in keys of rows.
        load: the load of the bottleneck by short flows.
        has_long: whether a long flow of Prague and one of CUBIC fill the rest of the link.
    """

    name: str
    load: float
    has_long: bool = False


SETTINGS = (
    Setting("10 %", 0.1),
    Setting("30 %", 0.3),
    Setting("50 %", 0.5),
    Setting("30 % beside long flows", 0.3, has_long=True),
)


def _scheme(name: str, inner: str, *, is_rc3: bool = False) -> str:
    controller = f'controller="rc3", inner="{inner}"' if is_rc3 else f'controller="{inner}"'
    return f'{name}={{ {controller}, transport={{ ecn="{ECN[inner]}" }} }}'


def _cell(setting: Setting, queue: Queue, inner: str, effort: Effort, *, is_rc3: bool) -> Cell:
    """Returns short flows under a controller, or under RC3 around it."""
    sources = ", ".join(f'"left{place}"' for place in range(SOURCES))
    schemes = [_scheme("short", inner, is_rc3=is_rc3)]
    workloads = [
        f'{{ kind="poisson", scheme="short", load={setting.load}, load_on="busiest-core", sources=[{sources}], '
        'sizes={ kind="rc3" } }'
    ]
    for other, place in LONG.values():
        schemes.append(_scheme(other, other))
        # Alone, short flows share the link with a packet every 10 ms, which measures the delay of each queue.
        writes = "" if setting.has_long else ', writes={ first="1packets", then="1packets", every="10ms" }'
        workloads.append(
            f'{{ kind="bulk", scheme="{other}", pairs=[["left{place}", "right{place}"]], size="unlimited"{writes} }}'
        )
    from_s = WARM_UP_SHARE * effort.stop_s
    return Cell(
        SCENARIO,
        (
            *NETWORK,
            f'queue={{ {queue.banded if is_rc3 else queue.plain}, limit="{LIMIT}" }}',
            f"scheme={{ {', '.join(schemes)} }}",
            f"workload=[{', '.join(workloads)}]",
            f'measure={{ from="{from_s * 1e3:g}ms", delays=true }}',
            f'duration="{effort.stop_s * 1e3:g}ms"',
        ),
        setting=setting.name,
        scheme=f"RC3 around {NAMES[inner]}" if is_rc3 else NAMES[inner],
        variant=queue.variant if is_rc3 or queue.plain != DUALPI2 else "",
        from_s=from_s,
        stop_s=effort.stop_s,
    )


def _pairs(effort: Effort) -> Iterator[tuple[Setting, Cell, Cell]]:
    """Yields the cells of each controller and of RC3 around it."""
    for setting in SETTINGS:
        for queue in QUEUES:
            for inner in queue.inner:
                plain, rc3 = (_cell(setting, queue, inner, effort, is_rc3=is_rc3) for is_rc3 in (False, True))
                yield setting, plain, rc3


def cells(effort: Effort) -> Iterable[Cell]:
    """Yields all runs, each once."""
    return dict.fromkeys(cell for _, *pair in _pairs(effort) for cell in pair)


def evaluate(runs: Runs) -> Evaluation:
    """Returns completion times, delays in the L queue, and what long flows lose."""
    rows: dict[Key, Row] = {}
    for setting, plain, rc3 in _pairs(runs.effort):
        # Two queues have the same runs without RC3.
        for row in (*_times(plain, rc3, runs), *_delays(plain, rc3, runs)):
            rows.setdefault(row.key, row)
        if setting.has_long:
            for row in _losses(plain, rc3, runs):
                rows.setdefault(row.key, row)
    return Evaluation(tuple(rows.values()))


def _times(plain: Cell, rc3: Cell, runs: Runs) -> Iterator[Row]:
    frames = [
        matched(_of_scheme(before.flows, "short"), _of_scheme(beside.flows, "short"), runs.effort.stop_s)
        for before, beside in runs.together(plain, rc3)
    ]
    for average in AVERAGES:
        times = all_mean_times(frames, average)
        for place, cell in enumerate((plain, rc3)):
            yield measured(cell.key(FCT, average), None, [1e3 * pair[place] for pair in times])
        yield measured(rc3.key(REDUCTION, average), None, reductions(frames, average))
    for group, sizes in GROUPS.items():
        yield measured(rc3.key(REDUCTION, traffic=group), None, reductions(of_sizes(frames, sizes)))


def _delays(plain: Cell, rc3: Cell, runs: Runs) -> Iterator[Row]:
    """Yields the delays in L and C, as the probes or the long flows see them."""
    for cell in (plain, rc3):
        for name, (scheme, _) in LONG.items():
            values = [p99_ms(outcome, scheme, RATE_MBPS, ONE_WAY_MS) for outcome in runs.of(cell)]
            known = [value for value in values if not math.isnan(value)]
            yield measured(cell.key(DELAY, P99, f"packets of {name.split()[1]}"), None, known)


def _losses(plain: Cell, rc3: Cell, runs: Runs) -> Iterator[Row]:
    for name, (scheme, _) in LONG.items():
        pairs = [[mbps(outcome, scheme, plain) for outcome in pair] for pair in runs.together(plain, rc3)]
        for place, cell in enumerate((plain, rc3)):
            yield measured(cell.key(RATE, traffic=name), None, [pair[place] for pair in pairs])
        # Very short runs deliver nothing after the warm-up.
        lost = [100 * (1 - beside / before) for before, beside in pairs if before]
        yield measured(rc3.key(LOSS, traffic=name), None, lost)


def _of_scheme(flows: pl.DataFrame, scheme: str) -> pl.DataFrame:
    return flows.filter(pl.col("scheme").cast(pl.String) == scheme)


def mbps(outcome: Outcome, scheme: str, cell: Cell) -> float:
    """Returns the payload that a scheme's flows delivered after the warm-up, in Mb/s."""
    delivered = float(_of_scheme(outcome.flows, scheme)["measured_bytes"].sum())
    return 8e-6 * delivered / (cell.stop_s - cell.from_s)
