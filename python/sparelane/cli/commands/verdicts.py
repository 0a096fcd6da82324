"""Claims and reasons of several experiments, printed after their tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sparelane.terminal import console as terminal

if TYPE_CHECKING:
    from sparelane.papers.engine.base import Verdict
    from sparelane.papers.engine.rows import Key

FAILED = 1


def show_claims(judged: Sequence[tuple[str, Sequence[Verdict]]]) -> bool:
    """Prints every claim of the experiments, by id, with its number and band; false if one fails."""
    from sparelane.papers.pages.text import CLAIM_HEADINGS, claim_cells

    lines = [(id, *claim_cells(verdict)) for id, verdicts in judged for verdict in verdicts]
    holds = [verdict.holds for _, verdicts in judged for verdict in verdicts]
    if lines:
        terminal.show_table("claims", ("experiment", *CLAIM_HEADINGS), ("experiment", "claim", "verdict"), lines)
    held, failed, rest = holds.count(True), holds.count(False), holds.count(None)
    count = f"{len(holds)} claim{'' if len(holds) == 1 else 's'}"
    terminal.output().print(f"{count}: {held} held, {failed} failed, {rest} not checked", markup=False)
    return failed == 0


def show_unneeded(reasons: Iterable[tuple[str, Sequence[Key]]]) -> None:
    """Prints which reasons of the experiments, by id, no row needs."""
    lines = [f"{id}: {key.words}" for id, unneeded in reasons for key in unneeded]
    if lines:
        terminal.output().print("\n".join(["reasons that no row needs:", *lines]), markup=False)
