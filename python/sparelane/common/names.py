"""Names that a user may mistype."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

# The most names that a message suggests.
SUGGESTED = 3
# More names than this are not listed in a message, and a name is told no further than this, in characters.
LISTED = 30
LONGEST = 80
# From here on, of 1, a name is like another one.
ALIKE = 0.6
# Names that are nearly as like as the nearest are suggested, too.
NEARLY = 0.05
# What a name is made of: `rc3/fig8-load` of `rc3`, `fig8` and `load`.
PARTS = re.compile(r"[/_.-]")


class UnknownNameError(ValueError):
    """A name that nothing has, with the nearest ones that something has."""

    def __init__(self, kind: str, name: str, known: Sequence[str], elsewhere: str = "") -> None:
        found = near(name, known)
        every = (
            f"; there are: {', '.join(known)}" if len(known) <= LISTED else f"; `sparelane list` names all {len(known)}"
        )
        hint = f"; did you mean {either(found)}?" if found else every
        told = name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
        super().__init__(f'there is no {kind} "{told}"{elsewhere or hint}')


def near(name: str, known: Iterable[str]) -> list[str]:
    """The known names that are likely meant by `name`, the likeliest first: few, or none."""
    likeness = {one: _likeness(name.lower(), one.lower()) for one in known if name}
    best = max(likeness.values(), default=0.0)
    if best < ALIKE:
        return []
    found = [one for one in likeness if likeness[one] >= max(ALIKE, best - NEARLY)]
    return sorted(found, key=lambda one: -likeness[one])[:SUGGESTED]


def either(names: Sequence[str]) -> str:
    """Names in quotes, of which one is meant."""
    quoted = [f'"{name}"' for name in names]
    return " or ".join(filter(None, [", ".join(quoted[:-1]), quoted[-1]]))


def below(name: str, known: Iterable[str]) -> list[str]:
    """What `name` means among ids such as `rc3/fig8-load`: itself, what begins with it, or the only one below a paper.

    Empty where it means none, or where it is not clear which of several.
    """
    ids = list(known)
    if name in ids or not name:
        return [name] if name else []
    if starting := [id for id in ids if id.startswith(name)]:
        return starting
    inside = [id for id in ids if f"/{name}" in id]
    return inside if len(inside) == 1 else []


def _likeness(name: str, other: str) -> float:
    """How like two names are, from 0 to 1: as a whole, by what one has of the other, or by their parts."""
    if name == other:
        return 1.0
    parts = PARTS.split(other)
    tails = ["-".join(parts[place:]) for place in range(1, len(parts))]
    heads = ["-".join(parts[:place]) for place in range(1, len(parts))]
    # A part that is right counts for more than a whole that is not.
    if name in (*parts, *heads, *tails) or (len(name) > 2 and any(tail.startswith(name) for tail in tails)):
        return 0.95
    shortened = (0.95 * _ratio(name, part) for part in (*parts, *heads, *tails) if len(part) > 3)
    return max([_ratio(name, other), *shortened])


def _ratio(one: str, other: str) -> float:
    # What two short words share by chance counts for little.
    return difflib.SequenceMatcher(None, one, other).ratio()
