"""The parts of an experiment: its effort, simulations, outcomes, claims and verdicts.

An `Experiment` is a table or figure of a paper. Its plan lists the simulations it needs; `evaluate` computes rows from
their outcomes; claims are conditions that the rows must meet. `sparelane.papers.engine.declared` builds it from a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from sparelane.papers.engine.rows import NOT_EXPLAINED, Band, Evaluation, Key, explained

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Effort:
    """The amount of work for an experiment.

    Attributes:
        name: the name of the effort in the command line.
        seeds: the number of independent repetitions; their seeds are 1, 2, ...
        stop_s: the simulated seconds of each run, if the experiment lets the effort choose; else 0.
    """

    name: Literal["full", "quick"]
    seeds: int
    stop_s: float = 0.0

    def seed_numbers(self) -> range:
        """Returns the seeds, from 1."""
        return range(1, self.seeds + 1)


@dataclass(frozen=True, slots=True)
class Simulation:
    """One run of an experiment. Experiments share equal simulations, which run once.

    Attributes:
        scenario: the name of a ready-made scenario.
        settings: overrides, each `key=value`.
        seed: the seed of all random numbers.
        label: a name for people and for file names.
        cost: the expected work, relative to other simulations.
        keep_flows: the table of flows is saved next to the rows.
        on: the simulator, or a kernel that `sparelane linux build` builds.
    """

    scenario: str
    settings: tuple[str, ...]
    seed: int
    label: str = field(compare=False)
    cost: float = field(default=1.0, compare=False)
    keep_flows: bool = field(default=False, compare=False)
    on: Literal["simulator", "linux"] = "simulator"

    @property
    def what(self) -> str:
        """The arguments of `sparelane run` for this simulation, without settings and seed."""
        return self.scenario if self.on == "simulator" else f"{self.scenario} --on {self.on}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The part of a simulation's results that experiments read.

    Attributes:
        flows: one row per flow, as `Result.flows`.
        links: one row per direction of a cable, as `Result.links`.
        drops: one row per direction of a cable and class, as `Result.drops`.
        delays: delays of packets, as `Result.delays`; empty unless the scenario enables it.
        series: time series, as `Result.series`; empty unless the scenario enables any.
        packets: the packets of one flow, as `Result.packets`; empty unless the scenario names a flow.
        digest: the digest of the whole run.
        cpu_s: the processor time in seconds, 0 on a kernel; does not take part in comparisons.
        counters: the kernel's counters by host; empty for the simulator.
        is_reused: true if the outcome was read from the store.
        problem: a problem with the store, for the user; empty without a problem.
    """

    flows: pl.DataFrame
    links: pl.DataFrame
    drops: pl.DataFrame
    delays: pl.DataFrame
    series: pl.DataFrame
    packets: pl.DataFrame
    digest: str
    cpu_s: float = field(default=0.0, compare=False)
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    is_reused: bool = field(default=False, compare=False)
    problem: str = field(default="", compare=False)

    def without_tables(self) -> Outcome:
        """Returns the outcome with empty tables, which keep their columns."""
        return replace(
            self,
            flows=self.flows.clear(),
            links=self.links.clear(),
            drops=self.drops.clear(),
            delays=self.delays.clear(),
            series=self.series.clear(),
            packets=self.packets.clear(),
        )


Outcomes = Mapping[Simulation, Outcome]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of checking a claim.

    Attributes:
        text: the claim.
        value: the claim's number; `None` if it could not be computed or the claim was not checked.
        band: the bounds of the number, both included; `None` if this effort does not check the claim.
        problem: why the number could not be computed; otherwise empty.
        reason: why the claim fails at the full effort; empty if it holds, and in a quick run.
        unit: the unit of the number, or the number it is relative to, as in "points from printed"; may be empty.
    """

    text: str
    value: float | None
    band: Band | None
    problem: str = ""
    reason: str = ""
    unit: str = ""

    @property
    def holds(self) -> bool | None:
        """True if the number is within its band, `None` if this was not checked. A claim without a number fails."""
        if self.band is None:
            return None
        low, high = self.band
        return self.value is not None and low <= self.value <= high


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of the paper, expressed as one number of ours and the band that must contain it.

    A claim about an order is a ratio or a difference. `sparelane.papers.engine.claims` has the usual values.

    Attributes:
        text: the paper's claim with its section, in one sentence.
        value: computes the number from an evaluation's rows.
        full: the band at the full effort, bounds included.
        quick: the band at the quick effort; `None` if a quick run cannot check the claim.
        reason: why the claim fails at the full effort, if it does.
    """

    text: str
    value: Callable[[Evaluation], float]
    full: Band
    quick: Band | None = None
    reason: str = NOT_EXPLAINED

    @property
    def unit(self) -> str:
        """The unit of the number; empty if unknown."""
        return str(getattr(self.value, "unit", ""))

    def check(self, effort: Effort, evaluation: Evaluation) -> Verdict:
        """Returns the verdict. If the number cannot be computed, the claim fails and no error is raised."""
        band = self.full if effort.name == "full" else self.quick
        if band is None:
            return Verdict(self.text, None, None)
        try:
            value = self.value(evaluation)
        except (LookupError, ArithmeticError, TypeError, ValueError) as error:
            return Verdict(self.text, None, band, f"cannot compute the number: {error}")
        if math.isnan(value):
            return Verdict(self.text, None, band, "the value is not a number")
        low, high = band
        fails = not low <= value <= high
        return Verdict(self.text, value, band, reason=self.reason if fails and effort.name == "full" else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """The texts, efforts and conditions of an experiment, which its file states directly.

    Attributes:
        id: `paper/name`.
        title: the title, one line.
        source: the place in the paper.
        method: what the authors did.
        assumptions: what the paper leaves open, and what is assumed here.
        full: the effort of results that are published.
        quick: an effort that takes seconds.
        reasons: why rows deviate from the paper at the full effort, by row; runs that anyone can repeat show it.
        claims: conditions that the rows must meet.
        fitted: sentences that state which values were fitted, and to what.
        needs_kernel: the kernel that its simulations run on: `linux` for that of `sparelane linux build`, `rc3` for the
            one with RC3; empty for the simulator.
        witness: the source of the numbers that ours are compared with, in one word.
        answer: the row and the text of the first sentence of reports, if the experiment has its own. `{ours}` and
            `{paper}` in the text are the numbers of the row.
    """

    id: str
    title: str
    source: str
    method: str
    assumptions: tuple[str, ...]
    full: Effort
    quick: Effort
    reasons: Mapping[Key, str] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    fitted: tuple[str, ...] = ()
    needs_kernel: Literal["", "linux", "rc3"] = ""
    witness: str = "paper"
    answer: tuple[Key, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment(Description):
    """A table or figure of a paper, and how to reproduce it.

    Attributes:
        plan: lists the simulations, in order.
        evaluate: computes rows from the outcomes of the simulations.
        draw: draws the figure of an evaluation.
        restate: arranges measured rows, fresh or saved, for the comparison with the paper: chooses which of several
            readings counts, and orders the rows. Idempotent.
    """

    plan: Callable[[Effort], Sequence[Simulation]]
    evaluate: Callable[[Effort, Outcomes], Evaluation]
    draw: Callable[[Evaluation], Figure]
    restate: Callable[[Evaluation], Evaluation] = lambda found: found

    @property
    def lacks(self) -> str:
        """The kernel that this machine lacks, with the command that builds it; empty if nothing is missing."""
        if not self.needs_kernel:
            return ""
        from sparelane.uml import kernel

        if kernel.find("on" if self.needs_kernel == "rc3" else "none") is not None:
            return ""
        which, option = (" with RC3", " --rc3") if self.needs_kernel == "rc3" else ("", "")
        return f"{self.id} needs the Linux kernel{which}: sparelane linux build{option}"

    def is_full(self, effort: Effort) -> bool:
        """Returns true if an effort runs all simulations of the full one, or if the experiment has none."""
        return set(self.plan(effort)) == set(self.plan(self.full))

    def is_quick(self, effort: Effort) -> bool:
        """Returns true if an effort is a quick one that runs less than the full one."""
        return effort.name == "quick" and not self.is_full(effort)

    def judge(self, effort: Effort, outcomes: Outcomes) -> Evaluation:
        """Returns the evaluation of outcomes, with reasons."""
        return self.explain(effort, self.evaluate(effort, outcomes))

    def explain(self, effort: Effort, found: Evaluation) -> Evaluation:
        """Returns the evaluation with a reason in each row that deviates from the paper, or `NOT_EXPLAINED`.

        Reasons hold for the full effort, so deviating rows of a quick effort get the text `QUICK` instead.
        """
        is_quick, stated = self.is_quick(effort), self.restate(found)
        return replace(stated, rows=tuple(explained(row, self.reasons, is_quick=is_quick) for row in stated.rows))

    def check(self, effort: Effort, evaluation: Evaluation) -> tuple[Verdict, ...]:
        """Returns the verdict on each claim. The quick bands apply to a quick effort, the full ones to any other."""
        held_to = self.quick if self.is_quick(effort) else self.full
        return tuple(replace(claim.check(held_to, evaluation), unit=claim.unit) for claim in self.claims)

    def unneeded_reasons(self, evaluation: Evaluation) -> list[Key]:
        """Returns the keys of the reasons that no row needs. The evaluation must be one at the full effort."""
        needed = {row.key for row in evaluation.rows if row.deviates}
        return [key for key in self.reasons if key not in needed]
