"""Names that a user may mistype."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


class UnknownNameError(ValueError):
    """A name that nothing has, with the nearest one that something has."""

    def __init__(self, kind: str, name: str, known: Sequence[str]) -> None:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f'; did you mean "{near[0]}"?' if near else f"; there are: {', '.join(known)}"
        super().__init__(f'there is no {kind} "{name}"{hint}')
