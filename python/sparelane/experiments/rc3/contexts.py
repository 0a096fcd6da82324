"""TCP against RC3 in several contexts whose runs differ in length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sparelane.experiments.base import Effort, Outcomes, Row, Simulation
from sparelane.experiments.rc3 import internet2
from sparelane.experiments.rc3.internet2 import Printed, Setting


@dataclass(frozen=True, slots=True)
class Context:
    """A setting, and how long to watch it.

    Attributes:
        setting: what is simulated.
        part: the length of its runs, as a share of the effort's.
    """

    setting: Setting
    part: float = 1.0

    @property
    def name(self) -> str:
        """How rows call it."""
        return self.setting.name

    def effort(self, effort: Effort) -> Effort:
        """The effort with the length of this context's runs."""
        return replace(effort, stop_s=self.part * effort.stop_s)


def plan(contexts: Sequence[Context], effort: Effort) -> list[Simulation]:
    """Both schemes in every context."""
    return [run for context in contexts for run in internet2.plan([context.setting], context.effort(effort))]


def rows(context: Context, printed: Mapping[str, Printed], effort: Effort, outcomes: Outcomes) -> Iterable[Row]:
    """TCP's time, RC3's time and the reduction, over flows and over bytes; `printed` has the paper's by average."""
    return internet2.completion_rows(context.setting, printed, context.effort(effort), outcomes)
