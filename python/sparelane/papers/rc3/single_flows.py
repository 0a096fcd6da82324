"""Measures single flows on an idle path, under TCP and under RC3: NSDI 2014, Fig. 15.

A file of this kind lists the paths, and how the ends of a connection behave; flows of several sizes use each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sparelane.papers.engine import panels
from sparelane.papers.engine.base import Effort, Experiment
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.claims import Value
from sparelane.papers.engine.declared import Declaration, named, templates
from sparelane.papers.engine.rows import Evaluation, MissingNumberError, Row, joined
from sparelane.papers.rc3.analytic import reduction
from sparelane.papers.rc3.internet2 import FCT, REDUCTION, SCHEMES, Scheme

METRICS = named(FCT, REDUCTION)
KERNELS: dict[str, Literal["simulator", "linux"]] = {"simulator": "simulator", "linux": "linux"}
# The variant of flows in the simulator if others are on the kernel.
SIMULATED = "simulated"


@dataclass(frozen=True, slots=True)
class Flows:
    """Flows of several sizes, one at a time.

    Attributes:
        scenario: the name of the scenario.
        setting: the path in the keys of rows.
        variant: the behaviour of the ends in the keys of rows.
        overrides: the path and the behaviour, each `key=value`.
        packets: the sizes in packets.
        on: what runs the flows.
    """

    scenario: str
    setting: str
    variant: str
    overrides: tuple[str, ...]
    packets: tuple[int, ...]
    on: Literal["simulator", "linux"]

    def pair(self, packets: int) -> tuple[Cell, Cell]:
        """Returns a flow under TCP and under RC3."""
        return self._cell("tcp", packets), self._cell("rc3", packets)

    def _cell(self, scheme: Scheme, packets: int) -> Cell:
        return Cell(
            self.scenario,
            (*self.overrides, f"workload.scheme={scheme}", f"workload.size={packets}packets"),
            joined(self.setting, self.variant, scheme, f"{packets} packets"),
            cost=1.0 if self.on == "linux" else 0.001,
            on=self.on,
            most_seeds=1,
            setting=self.setting,
            scheme=SCHEMES[scheme],
            variant=self.variant,
        )


def size(packets: int) -> str:
    """Returns the size of a flow in the keys of rows."""
    return f"{packets} packet{'s' if packets > 1 else ''}"


def read(declared: Declaration) -> list[Flows]:
    """Returns the flows that a file lists.

    Raises:
        DeclarationError: a key is wrong.
    """
    rest = declared.rest
    scenario, packets, found = rest.text("scenario"), rest.numbers("packets"), []
    for part in templates(rest, "flows"):
        sizes = tuple(map(int, part.numbers("packets") or packets))
        on = part.one_of("on", KERNELS, "simulator")
        found.append(
            Flows(scenario, part.text("setting"), part.text("variant", ""), part.texts("overrides"), sizes, on)
        )
        part.finish()
    return found


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that a file of this kind declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    listed = read(declared)
    # A quick effort may have fewer sizes and variants.
    quick_packets = declared.rest.numbers("quick_packets")
    quick_variants = declared.rest.texts("quick_variants")

    def pairs(effort: Effort) -> Iterable[tuple[tuple[Cell, Cell], int]]:
        for flows in listed:
            if effort.name == "full" or not quick_variants or flows.variant in quick_variants:
                for packets in flows.packets:
                    if effort.name == "full" or not quick_packets or packets in quick_packets:
                        yield flows.pair(packets), packets

    def cells(effort: Effort) -> Iterable[Cell]:
        return (cell for pair, _ in pairs(effort) for cell in pair)

    def evaluate(runs: Runs) -> Evaluation:
        rows: list[Row] = []
        for (tcp, rc3), packets in pairs(runs.effort):
            tcp_s, rc3_s = (runs.of(cell)[0].flows["completion_s"].item() for cell in (tcp, rc3))
            cut = None if tcp_s is None or rc3_s is None else reduction(tcp_s, rc3_s)
            traffic = size(packets)
            rows += [
                Row(tcp.key(FCT, traffic=traffic), None, tcp_s),
                Row(rc3.key(FCT, traffic=traffic), None, rc3_s),
                Row(rc3.key(REDUCTION, traffic=traffic), None, cut),
            ]
        return Evaluation(tuple(rows))

    return panels.study(declared, cells, evaluate)


def _of_reductions(number: Callable[[list[float]], float]) -> Callable[[str, Sequence[int]], Value]:
    """Returns a value of claims: a number of RC3's reductions on the kernel, in percent, by path and sizes."""

    def value(setting: str, sizes: Sequence[int]) -> Value:
        def of(evaluation: Evaluation) -> float:
            traffic = {size(packets) for packets in sizes}
            cuts = [
                row.value
                for row in evaluation.rows
                if (row.key.setting, row.key.metric) == (setting, REDUCTION)
                and row.key.traffic in traffic
                and SIMULATED not in row.key.variant
            ]
            if not cuts or None in cuts:
                raise MissingNumberError(f"a reduction at {setting}")
            return number([cut for cut in cuts if cut is not None])

        return of

    return value


VALUES = {
    "largest change": _of_reductions(lambda cuts: max(map(abs, cuts))),
    "least reduction": _of_reductions(min),
}
