"""Prints claims of several experiments, and reasons that no row needs any more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sparelane.terminal import console

if TYPE_CHECKING:
    from sparelane.papers.engine.base import Verdict
    from sparelane.papers.engine.rows import Key

FAILED = 1


def show_claims(judged: Sequence[tuple[str, Sequence[Verdict]]]) -> bool:
    """Prints every claim of the experiments with its number and band. Returns `False` if a claim fails."""
    from sparelane.papers.pages.text import CLAIM_HEADINGS, claim_cells

    lines = [(id, *claim_cells(verdict)) for id, verdicts in judged for verdict in verdicts]
    holds = [verdict.holds for _, verdicts in judged for verdict in verdicts]
    if lines:
        console.show_table("claims", ("experiment", *CLAIM_HEADINGS), ("experiment", "claim", "verdict"), lines)
    held, failed, rest = holds.count(True), holds.count(False), holds.count(None)
    count = f"{len(holds)} claim{'' if len(holds) == 1 else 's'}"
    console.output().print(f"{count}: {held} held, {failed} failed, {rest} not checked", markup=False)
    return failed == 0


def show_unneeded(reasons: Iterable[tuple[str, Sequence[Key]]]) -> None:
    """Prints the reasons, by experiment, that no row needs since it lies within its band."""
    lines = [f"{id}: {key.words}" for id, unneeded in reasons for key in unneeded]
    if lines:
        console.output().print("\n".join(["reasons that no row needs:", *lines]), markup=False)
