"""Why ours differs from Linux, where it does: each reason names a run that shows it."""

from __future__ import annotations

from collections.abc import Mapping

from sparelane.experiments.rows import Key

# Of differences above 10 %, which stand beside the rows.
REASONS: Mapping[Key, str] = {}
# Of those between 5 and 10 %, which are named in a note.
SMALLER: Mapping[Key, str] = {}
