"""What an experiment is: the simulations it needs, the numbers it compares, and the figure it draws."""

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
    """How much work goes into an experiment.

    Attributes:
        name: the user's word for it.
        seeds: independent repetitions; their seeds are 1, 2, ...
        stop_s: simulated seconds of each run, where the experiment has a choice; else 0.
    """

    name: Literal["full", "quick"]
    seeds: int
    stop_s: float = 0.0

    def seed_numbers(self) -> range:
        """The seeds, from 1."""
        return range(1, self.seeds + 1)


@dataclass(frozen=True, slots=True)
class Simulation:
    """One run that an experiment asks for. Equal simulations are made once and shared between experiments.

    Attributes:
        scenario: name of a ready-made scenario.
        settings: overrides, each `key=value`.
        seed: of every random draw.
        label: for people and for file names.
        cost: expected work, relative to the other simulations.
        keep_flows: save the table of flows beside the rows.
        on: what runs it: the simulator, or a kernel that `sparelane linux build` builds.
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
        """What `sparelane run` takes to do it, but for settings and seed."""
        return self.scenario if self.on == "simulator" else f"{self.scenario} --on {self.on}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is kept of a simulation.

    Attributes:
        flows: one row per flow, as `Result.flows`.
        drops: one row per direction of a cable and class, as `Result.drops`.
        delays: how long packets were under way, as `Result.delays`; empty unless the scenario asks for it.
        series: time series, as `Result.series`; empty unless the scenario asks for any.
        packets: of one flow, as `Result.packets`; empty unless the scenario asks for any.
        digest: of the whole run.
        cpu_s: seconds of processor time that it took, 0 on a kernel: of no matter to any result.
        counters: what a kernel has counted for each host; empty where none ran.
    """

    flows: pl.DataFrame
    drops: pl.DataFrame
    delays: pl.DataFrame
    series: pl.DataFrame
    packets: pl.DataFrame
    digest: str
    cpu_s: float = field(default=0.0, compare=False)
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def without_tables(self) -> Outcome:
        """The same with empty tables, which keep their columns."""
        return replace(
            self,
            flows=self.flows.clear(),
            drops=self.drops.clear(),
            delays=self.delays.clear(),
            series=self.series.clear(),
            packets=self.packets.clear(),
        )


Outcomes = Mapping[Simulation, Outcome]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a claim.

    Attributes:
        text: the claim.
        value: the number that was found; `None` where there is none, or where the claim was not checked.
        band: where the number must lie, bounds included; `None` where the claim is not checked at this effort.
        problem: why there is no number, where one was wanted.
        reason: why it fails, where it does, at the full effort; empty in a quick run.
        unit: what the number is in, or from what it is told, as in "points from printed"; may be empty.
    """

    text: str
    value: float | None
    band: Band | None
    problem: str = ""
    reason: str = ""
    unit: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the number lies in its band; `None` where this was not checked. Without a number, it does not."""
        if self.band is None:
            return None
        low, high = self.band
        return self.value is not None and low <= self.value <= high


@dataclass(frozen=True, slots=True)
class Claim:
    """What the paper says of its numbers, as one number of ours and the band that it must lie in.

    An order is a claim about a ratio or a difference. `sparelane.papers.engine.claims` has the usual values and bands.

    Attributes:
        text: the paper's claim with its section, in one sentence.
        value: one number from an evaluation's rows.
        full: the band, bounds included, at the full effort.
        quick: the same at the quick effort; `None` where a quick run says nothing of the claim.
        reason: why it fails at the full effort, where it does.
    """

    text: str
    value: Callable[[Evaluation], float]
    full: Band
    quick: Band | None = None
    reason: str = NOT_EXPLAINED

    @property
    def unit(self) -> str:
        """What the number is in, where that is known."""
        return str(getattr(self.value, "unit", ""))

    def check(self, effort: Effort, evaluation: Evaluation) -> Verdict:
        """Whether the claim holds. A number that cannot be computed fails it, and is never an error."""
        band = self.full if effort.name == "full" else self.quick
        if band is None:
            return Verdict(self.text, None, None)
        try:
            value = self.value(evaluation)
        except (LookupError, ArithmeticError, TypeError, ValueError) as error:
            return Verdict(self.text, None, band, f"there is no number: {error}")
        if math.isnan(value):
            return Verdict(self.text, None, band, "the value is not a number")
        low, high = band
        fails = not low <= value <= high
        return Verdict(self.text, value, band, reason=self.reason if fails and effort.name == "full" else "")


@dataclass(frozen=True, slots=True)
class Experiment:
    """A table or figure of a paper, and how to redo it.

    Attributes:
        id: `paper/name`.
        title: one line.
        source: where the paper has it.
        method: what the authors did.
        assumptions: what the paper leaves open and how it is settled here.
        full: the effort that the printed comparison deserves.
        quick: seconds.
        plan: the simulations, in order.
        evaluate: rows from their outcomes.
        draw: the figure of an evaluation.
        restate: the rows as they are compared with the paper, made of those that were measured, whenever these were:
            which of several readings counts, and in which order they stand. Twice is as good as once.
        reasons: why a row deviates, where it does: checked at the full effort, by a run that anyone can repeat.
        claims: what must hold of the rows.
        fitted: sentences that say what was fitted, and on what.
        needs_kernel: the kernel that simulations of it run on, if any: that of `sparelane linux build`, or with RC3.
        witness: whose numbers stand beside ours, in a word.
    """

    id: str
    title: str
    source: str
    method: str
    assumptions: tuple[str, ...]
    full: Effort
    quick: Effort
    plan: Callable[[Effort], Sequence[Simulation]]
    evaluate: Callable[[Effort, Outcomes], Evaluation]
    draw: Callable[[Evaluation], Figure]
    restate: Callable[[Evaluation], Evaluation] = lambda found: found
    reasons: Mapping[Key, str] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    fitted: tuple[str, ...] = ()
    needs_kernel: Literal["", "linux", "rc3"] = ""
    witness: str = "paper"

    @property
    def lacks(self) -> str:
        """What this machine lacks to do it, with the command that mends it; empty where there is nothing."""
        if not self.needs_kernel:
            return ""
        from sparelane.uml import kernel

        if kernel.find("on" if self.needs_kernel == "rc3" else "none") is not None:
            return ""
        which, option = (" with RC3", " --rc3") if self.needs_kernel == "rc3" else ("", "")
        return f"{self.id} needs the Linux kernel{which}: sparelane linux build{option}"

    def is_full(self, effort: Effort) -> bool:
        """Whether an effort leaves out nothing of the full one; so it is, too, where nothing is simulated."""
        return set(self.plan(effort)) == set(self.plan(self.full))

    def is_quick(self, effort: Effort) -> bool:
        """Whether an effort is a quick one, and less than the full one."""
        return effort.name == "quick" and not self.is_full(effort)

    def judge(self, effort: Effort, outcomes: Outcomes) -> Evaluation:
        """The evaluation of outcomes, explained."""
        return self.explain(effort, self.evaluate(effort, outcomes))

    def explain(self, effort: Effort, found: Evaluation) -> Evaluation:
        """The evaluation with a reason beside each row that deviates from the paper, or the words `NOT_EXPLAINED`.

        Beside rows of a quick effort stands that reasons are for the full one.
        """
        is_quick, stated = self.is_quick(effort), self.restate(found)
        return replace(stated, rows=tuple(explained(row, self.reasons, is_quick=is_quick) for row in stated.rows))

    def check(self, effort: Effort, evaluation: Evaluation) -> tuple[Verdict, ...]:
        """What becomes of each claim: a quick effort is held to the quick bands, any other to the full ones."""
        held_to = self.quick if self.is_quick(effort) else self.full
        return tuple(replace(claim.check(held_to, evaluation), unit=claim.unit) for claim in self.claims)

    def unneeded_reasons(self, evaluation: Evaluation) -> list[Key]:
        """The keys of the reasons that no row of the evaluation, one at the full effort, needs."""
        needed = {row.key for row in evaluation.rows if row.deviates}
        return [key for key in self.reasons if key not in needed]
