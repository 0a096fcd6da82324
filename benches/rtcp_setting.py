"""Search for the setting with which most statements of the RTCP paper about its simulations hold.

Usage: python benches/rtcp_setting.py [--jobs N] [--seeds N] [--milliseconds N] [--only KEY=VALUE ...] [--markdown FILE]

The axes are parameters that the paper leaves open. The objective is the number of statements of
`sparelane.papers.rtcp.statements` that hold. Runs are cached in `benches/work/rtcp_setting.json`, so an interrupted
search continues; delete the file after a change of the simulator. --only restricts an axis to one value, or to several
if the key is repeated, for example to run the best region with more seeds. The tables of the project's own search are
in `rtcp_setting.md`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sparelane.papers.engine.base import Effort
from sparelane.papers.engine.runner import to_outcome
from sparelane.papers.rtcp.datacentre import SCENARIO
from sparelane.papers.rtcp.statements import GROUPS, STATEMENTS, Numbers, distance, holding, numbers_of, runs_of
from sparelane.scenario import library
from sparelane.simulation.simulate import run

WORK = Path(__file__).parent / "work" / "rtcp_setting.json"

# Axes of all schemes.
NETWORK: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "routing": {"single-path": ("routing=single-path",), "ecmp": ("routing=ecmp",)},
    "queue": {f"{packets}": (f"queue.limit={packets}packets", f"nic.limit={packets}packets") for packets in (100, 250)},
}
# Axes of the baselines only: RTCP measures delays exactly, and its windows never exceed the smaller receive window.
HOSTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "receive_window": {
        "131072B": ("transport.receive_window=131072B",),
        "unlimited": ("transport.receive_window=unlimited",),
    },
    "clock": {"1ms": ("transport.rtt_granularity=1ms",), "exact": ("transport.rtt_granularity=exact",)},
}
# Axes of RTCP only.
OWN: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "counter": {name: (f"scheme.rtcp.counter={name}",) for name in ("coupled", "printed")},
    "actual_rate": {name: (f"scheme.rtcp.actual_rate={name}",) for name in ("delivered", "window")},
    "adjust_per": {name: (f"scheme.rtcp.adjust_per={name}",) for name in ("acknowledgment", "round-trip")},
    "x_max": {
        f"{lines:g}": (f"scheme.rtcp.x_max={lines:g}", f"scheme.constant.window={10 * lines:g}")
        for lines in (1, 1.5, 2, 3, 4, 6, 8)
    },
    "alpha_unit": {f"{unit:g}": (f"scheme.rtcp.alpha_unit={unit:g}",) for unit in (0.5, 1, 1.5, 2, 3, 5)},
    "delta_unit": {f"{unit:g}": (f"scheme.rtcp.delta_unit={unit:g}",) for unit in (0.03, 0.1, 0.175, 0.2, 0.3, 0.6, 1)},
}
AXES = NETWORK | HOSTS | OWN
# The axes on which the runs of each scheme depend.
DEPENDS: Mapping[str, Collection[str]] = {
    **dict.fromkeys(("NewReno", "DCTCP", "BBR", "TIMELY", "LEDBAT", "Vegas"), (*NETWORK, *HOSTS)),
    "constant": (*NETWORK, "x_max"),
    "RTCP": (*NETWORK, *OWN),
}
# A short minimum RTO, as in data centres, so that a timeout does not stop a flow for the rest of a run.
ALWAYS = ("transport.min_rto=10ms",)

Choice = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Length:
    """The duration of a run and the number of seeds."""

    milliseconds: float
    seeds: int


def main() -> int:
    """Parse the command line, run the search and print it."""
    parser = argparse.ArgumentParser(description="Search for the setting of RTCP's simulations.")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--milliseconds", type=float, default=20)
    parser.add_argument("--only", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the table to this file")
    arguments = parser.parse_args()
    try:
        axes = chosen_axes(arguments.only)
    except ValueError as error:
        print(f"rtcp_setting: {error}", file=sys.stderr)
        return 2
    text = search(axes, Length(arguments.milliseconds, arguments.seeds), arguments.jobs)
    print(text)
    if arguments.markdown:
        arguments.markdown.write_text(text + "\n")
    return 0


def chosen_axes(only: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of each axis to be searched."""
    wanted: dict[str, list[str]] = {}
    for text in only:
        key, _, value = text.partition("=")
        if value not in AXES.get(key, {}):
            raise ValueError(
                f"--only {text}: no such axis or value; axes: "
                + "; ".join(f"{axis} = {', '.join(values)}" for axis, values in AXES.items())
            )
        wanted.setdefault(key, []).append(value)
    return {axis: wanted.get(axis, list(values)) for axis, values in AXES.items()}


def choices(axes: Mapping[str, Sequence[str]], of: Collection[str]) -> Iterator[dict[str, str]]:
    """Yield all combinations of the values of the axes `of`."""
    names = [axis for axis in axes if axis in of]
    for values in itertools.product(*(axes[name] for name in names)):
        yield dict(zip(names, values, strict=True))


def overrides(choice: Choice) -> tuple[str, ...]:
    """Return the overrides of the scenario for a choice."""
    return (*ALWAYS, *(text for axis, value in choice.items() for text in AXES[axis][value]))


class Runs:
    """The numbers of each scheme and choice, cached in a file."""

    def __init__(self, length: Length) -> None:
        self._length = length
        self._known: dict[str, dict[str, float]] = json.loads(WORK.read_text()) if WORK.exists() else {}
        self._fresh = 0

    def measure(self, scheme: str, choice: Choice) -> dict[str, float]:
        """Return the numbers of one scheme, as means over seeds."""
        each = [self._of_seed(scheme, choice, seed) for seed in range(1, self._length.seeds + 1)]
        return {name: statistics.fmean(one[name] for one in each) for name in each[0]}

    def _of_seed(self, scheme: str, choice: Choice, seed: int) -> dict[str, float]:
        key = json.dumps([scheme, sorted(choice.items()), self._length.milliseconds, seed])
        if key not in self._known:
            effort = Effort("full", seeds=1, stop_s=self._length.milliseconds / 1e3)
            found: dict[str, float] = {}
            for case, one in runs_of(scheme).items():
                simulation = one.cell(effort).simulation(seed)
                settings = (*overrides(choice), *simulation.settings)
                outcome = to_outcome(run(library.find(SCENARIO), seed=seed, set=settings))
                found |= numbers_of(case, scheme, outcome, effort.stop_s)
            self._known[key] = found
            self._fresh += 1
            if self._fresh % 20 == 0:
                self.save()
        return self._known[key]

    def save(self) -> None:
        """Write the cache."""
        WORK.parent.mkdir(exist_ok=True)
        WORK.write_text(json.dumps(dict(self._known)))


def search(axes: Mapping[str, Sequence[str]], length: Length, jobs: int) -> str:
    """Run missing simulations, evaluate every combination and return the result as Markdown."""
    runs = Runs(length)
    wanted = [(scheme, choice) for scheme, of in DEPENDS.items() for choice in choices(axes, of)]
    with ThreadPoolExecutor(jobs) as pool:
        for number, _ in enumerate(pool.map(lambda one: runs.measure(*one), wanted), start=1):
            if number % 20 == 0:
                print(f"{number} of {len(wanted)}", file=sys.stderr, flush=True)
    runs.save()
    judged = []
    for choice in choices(axes, AXES):
        numbers: dict[str, float] = {}
        for scheme, of in DEPENDS.items():
            numbers |= runs.measure(scheme, {axis: value for axis, value in choice.items() if axis in of})
        judged.append((choice, numbers))
    judged.sort(key=lambda one: (-holding(one[1]), distance(one[1])))
    return show(judged, length)


def show(judged: Sequence[tuple[Choice, Numbers]], length: Length) -> str:
    """Return the best settings, the extent of the best region, the best per group, and the best one's statements."""
    lines = [
        f"{len(judged)} settings, runs of {length.milliseconds:g} ms, seeds 1 to {length.seeds}. Columns: the number "
        f"of the {len(STATEMENTS)} statements that hold, in total and by group; the "
        "distance of RTCP's numbers from Tables I and II.",
        "",
        table(judged[:15]),
        "",
        width(judged),
        "",
        "The best setting for each group of statements:",
        "",
        table([max(judged, key=lambda one: (holding(one[1], group), -distance(one[1]))) for group in GROUPS]),
        "",
        "The frontier: settings of which no other one has as many statements in every group and more in one. Of "
        "settings with equal counts, the closest one is shown.",
        "",
        table(frontier(judged)),
        "",
        "The statements with the best setting:",
        "",
        "| statement | value | band | holds |",
        "| --- | --- | --- | --- |",
    ]
    best = judged[0][1]
    for one in STATEMENTS:
        verdict = "yes" if one.holds(best) else "no"
        lines.append(f"| {one.text} | {one.value(best):.3f} | {one.low:g} to {one.high:g} | {verdict} |")
    return "\n".join(lines)


def table(judged: Sequence[tuple[Choice, Numbers]]) -> str:
    """Return a table with one row per setting."""
    sizes = {group: sum(one.group == group for one in STATEMENTS) for group in GROUPS}
    heads = (*AXES, f"all ({len(STATEMENTS)})", *(f"{group} ({size})" for group, size in sizes.items()), "distance")
    rows = [heads, tuple("---" for _ in heads)]
    for choice, numbers in judged:
        counts = (holding(numbers), *(holding(numbers, group) for group in GROUPS))
        rows.append((*(choice[axis] for axis in AXES), *map(str, counts), f"{distance(numbers):.3f}"))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def frontier(judged: Sequence[tuple[Choice, Numbers]]) -> list[tuple[Choice, Numbers]]:
    """Return the settings that no other setting dominates in the number of statements of each group."""
    counts = [tuple(holding(numbers, group) for group in GROUPS) for _, numbers in judged]
    best: dict[tuple[int, ...], tuple[Choice, Numbers]] = {}
    for own, one in zip(counts, judged, strict=True):
        is_dominated = any(other != own and all(a >= b for a, b in zip(other, own, strict=True)) for other in counts)
        if not is_dominated and (own not in best or distance(one[1]) < distance(best[own][1])):
            best[own] = one
    return list(best.values())


def width(judged: Sequence[tuple[Choice, Numbers]]) -> str:
    """Describe the settings that are close to the best, by the values of each axis."""
    most = holding(judged[0][1])
    near = [choice for choice, numbers in judged if holding(numbers) >= most - 2]
    values = "; ".join(
        f"{axis} "
        + ", ".join(f"{value} ({sum(c[axis] == value for c in near)})" for value in sorted({c[axis] for c in near}))
        for axis in AXES
    )
    return f"In {len(near)} settings, at least {most - 2} statements hold (best: {most}): {values}."


if __name__ == "__main__":
    sys.exit(main())
