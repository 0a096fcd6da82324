"""Shares of a link by weight, number of flows and path: RTCP, and the optimum that section II proves for its rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import Declaration, named, templates
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.rtcp.example import LINK_BPS, PER_ROUND_TRIP, RATE
from sparelane.papers.rtcp.rule import PATHS, optimum
from sparelane.reports import plots

# The hosts at the ends of each path of the scenario `rtcp-two-links`.
ENDS = {"both links": '["h3", "h5"]', "first link": '["h6", "h4"]', "second link": '["h7", "h8"]'}
USE = Metric("use of the first link", "%")
# What the rows compare: the name of a scheme, and its overrides of the scenario.
SCHEMES = {"RTCP": (), "RTCP per round trip": PER_ROUND_TRIP}
WARM_UP_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Group:
    """Flows of one weight on one path.

    Attributes:
        name: the traffic class, and the traffic in rows.
        weight: the weight in bytes.
        flows: the number of flows.
        path: the path, a key of `ENDS`.
    """

    name: str
    weight: float
    flows: int
    path: str


@dataclass(frozen=True, slots=True)
class Case:
    """Flows that compete.

    Attributes:
        name: the setting in rows.
        groups: the groups of flows.
    """

    name: str
    groups: Sequence[Group]

    def cell(self, scheme: str, effort: Effort) -> Cell:
        """Returns what is simulated at an effort."""
        weights = ", ".join(f"{group.name} = {group.weight:g}" for group in self.groups)
        workloads = ", ".join(
            f'{{ kind = "bulk", scheme = "rtcp", traffic_class = "{group.name}", spread = "1ms", '
            f"pairs = [{', '.join([ENDS[group.path]] * group.flows)}] }}"
            for group in self.groups
        )
        return Cell(
            "rtcp-two-links",
            (
                f"workload=[{workloads}]",
                f"scheme.rtcp.weights={{ {weights} }}",
                "sample.flows=[0]",
                f"duration={effort.stop_s:g}s",
                f"measure.from={WARM_UP_SHARE * effort.stop_s:g}s",
                *SCHEMES[scheme],
            ),
            cost=0.1 * effort.stop_s,
            setting=self.name,
            scheme=scheme,
        )

    def key(self, scheme: str, group: Group) -> Key:
        """Returns the key of the rate of a flow of a group."""
        return Key(self.name, RATE, scheme, traffic=group.name)

    def optimum(self) -> dict[Group, float]:
        """Returns the rate of a flow of each group with the largest utility."""
        flows = [group for group in self.groups for _ in range(group.flows)]
        rates = optimum([group.weight for group in flows], [PATHS[group.path] for group in flows], (1.0, 1.0))
        return dict(zip(flows, rates, strict=True))


@dataclass(frozen=True, slots=True)
class Shares:
    """The experiment.

    Attributes:
        cases: what is simulated.
    """

    cases: Sequence[Case]

    def cells(self, effort: Effort) -> Iterable[Cell]:
        """Yields every case with every scheme."""
        return (case.cell(scheme, effort) for case in self.cases for scheme in SCHEMES)

    def evaluate(self, runs: Runs) -> Evaluation:
        """Returns the rate of a flow of each group, by the optimum and by RTCP, and the use of the first link."""
        rows: list[Row] = []
        counted_s = (1 - WARM_UP_SHARE) * runs.effort.stop_s
        for case in self.cases:
            rows += [Row(case.key("optimum", group), None, rate) for group, rate in case.optimum().items()]
            for scheme in SCHEMES:
                used = [0.0] * runs.effort.seeds
                for group in case.groups:
                    found = []
                    for outcome in runs.of(case.cell(scheme, runs.effort)):
                        flows = outcome.flows.filter(outcome.flows["traffic_class"] == group.name)
                        found.append(float(flows["measured_bytes"].sum()) * 8 / counted_s / LINK_BPS)
                    rows.append(measured(case.key(scheme, group), None, [rate / group.flows for rate in found]))
                    if group.path != "second link":
                        used = [one + rate for one, rate in zip(used, found, strict=True)]
                rows.append(measured(Key(case.name, USE, scheme), None, [100 * share for share in used]))
        return Evaluation(tuple(rows))

    def draw(self, evaluation: Evaluation) -> Figure:
        """Returns the rates of each case: optimum and RTCP."""
        columns = 3
        drawing, panels = plots.figure(columns, width_inches=plots.PAGE_INCHES, rows=-(-len(self.cases) // columns))
        for axes in panels[len(self.cases) :]:
            axes.remove()
        looks = (("optimum", plots.TCP), ("RTCP", plots.RC3), ("RTCP per round trip", plots.MODEL))
        for axes, case in zip(panels, self.cases, strict=False):
            bars = [
                plots.Bars.of_rows(scheme, look, [evaluation.find(case.key(scheme, group)) for group in case.groups])
                for scheme, look in looks
            ]
            plots.grouped_bars(axes, [group.name.replace("_", "\n") for group in case.groups], bars)
            axes.set_title(case.name)
            axes.set_xlabel("group of flows")
            axes.set_ylabel("rate of a flow,\nof a link")
        drawing.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
        return drawing


METRICS = named(RATE, USE)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    cases = []
    for part in templates(declared.rest, "cases"):
        groups = [Group(name, weight, flows, path) for name, weight, flows, path in part.lists("groups")]
        cases.append(Case(part.text("name"), groups))
        part.finish()
    declared.rest.finish()
    study = Shares(cases)
    return declared.study(study.cells, study.evaluate, study.draw)
