"""Suggestions for mistyped names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

# The largest number of suggestions in a message.
SUGGESTED = 3
# The largest number of names that a message lists, and the longest name that it prints in full, characters.
LISTED = 30
LONGEST = 80
# Names with at least this similarity, from 0 to 1, are suggested.
ALIKE = 0.6
# Names whose similarity is at most this much below the best are also suggested.
NEARLY = 0.05
# Separators of the parts of a name: `rc3/fig8-load` has the parts `rc3`, `fig8` and `load`.
PARTS = re.compile(r"[/_.-]")


class UnknownNameError(ValueError):
    """A name is unknown. The message suggests similar names."""

    def __init__(self, kind: str, name: str, known: Sequence[str], elsewhere: str = "") -> None:
        found = near(name, known)
        every = (
            f"; there are: {', '.join(known)}" if len(known) <= LISTED else f"; `sparelane list` names all {len(known)}"
        )
        hint = f"; did you mean {either(found)}?" if found else every
        shown = name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
        super().__init__(f'there is no {kind} "{shown}"{elsewhere or hint}')


def near(name: str, known: Iterable[str]) -> list[str]:
    """The known names that are similar to `name`, best first: at most `SUGGESTED`, and possibly none."""
    likeness = {one: _likeness(name.lower(), one.lower()) for one in known if name}
    best = max(likeness.values(), default=0.0)
    if best < ALIKE:
        return []
    found = [one for one in likeness if likeness[one] >= max(ALIKE, best - NEARLY)]
    return sorted(found, key=lambda one: -likeness[one])[:SUGGESTED]


def either(names: Sequence[str]) -> str:
    """The names in quotes, joined by "or"."""
    quoted = [f'"{name}"' for name in names]
    return " or ".join(filter(None, [", ".join(quoted[:-1]), quoted[-1]]))


def below(name: str, known: Iterable[str]) -> list[str]:
    """The ids, such as `rc3/fig8-load`, that `name` selects.

    An exact id selects itself. Otherwise `name` selects all ids that start with it. If no id does, it selects the
    single id whose part after the slash starts with it. The list is empty if nothing matches or several ids do so.
    """
    ids = list(known)
    if name in ids or not name:
        return [name] if name else []
    if starting := [id for id in ids if id.startswith(name)]:
        return starting
    inside = [id for id in ids if f"/{name}" in id]
    return inside if len(inside) == 1 else []


def _likeness(name: str, other: str) -> float:
    """The similarity of two names, from 0 to 1: the best of a comparison as a whole and one with their parts."""
    if name == other:
        return 1.0
    parts = PARTS.split(other)
    tails = ["-".join(parts[place:]) for place in range(1, len(parts))]
    heads = ["-".join(parts[:place]) for place in range(1, len(parts))]
    # An exact part of a name ranks above a similar whole name.
    if name in (*parts, *heads, *tails) or (len(name) > 2 and any(tail.startswith(name) for tail in tails)):
        return 0.95
    shortened = (0.95 * _ratio(name, part) for part in (*parts, *heads, *tails) if len(part) > 3)
    return max([_ratio(name, other), *shortened])


def _ratio(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other).ratio()
