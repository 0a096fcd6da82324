"""A comparison in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sparelane.sweeps.differences import Change, Comparison, Difference

# A change below this is none, whatever the interval says: a share of one, or a difference in its unit.
NEGLIGIBLE = 0.005
NEGLIGIBLE_DIFFERENCES = {"points": 0.05, "per flow": 0.001}


def sentences(comparisons: Sequence[Comparison]) -> list[str]:
    """What can be said of a scheme beside the baseline; the first sentence is the headline."""
    if not comparisons:
        return []
    said = [headline(comparisons[0])]
    rest = [clause(one) for one in comparisons[1:] if _matters(one.overall, one)]
    if rest:
        said.append(f"{_upper('; '.join(rest))}.")
    same = [name(one) for one in comparisons[1:] if not _matters(one.overall, one)]
    if same:
        said.append(f"No clear difference: {', '.join(same)}.")
    return said


def headline(one: Comparison) -> str:
    """The change over all settings, and in how many of them it is one."""
    subject = f"{one.other} beside {one.baseline}"
    if not _matters(one.overall, one):
        reason = " (one seed: no interval)" if one.overall.low is None else f" ({change(one.overall, one)})"
        words = f"{subject}: no clear difference of the {name(one)}{reason}" if one.overall.low is not None else ""
        return f"{words or f'{subject}: {clause(one)}, by one seed, which has no interval'}{_settings(one)}."
    return f"{one.other} {clause(one)}{_than(one)}{_settings(one)}."


def _than(one: Comparison) -> str:
    return f" than {one.baseline}" if not one.question.less.startswith("{}") else f", beside {one.baseline}"


def clause(one: Comparison) -> str:
    """The change over all settings as a clause, with its interval."""
    words = one.question.less if one.overall.value < 0 else one.question.more
    return words.format(size(one.overall, one))


def name(one: Comparison) -> str:
    """What is compared: "completion time (mean over flows)"."""
    average = one.question.average
    return one.question.metric if average in ("total", "Jain's index") else f"{one.question.metric} ({average})"


def size(found: Change, one: Comparison) -> str:
    """How large a change is, without its sign: "43 % (41 to 45)"."""
    ends = [end for end in (found.low, found.high) if end is not None]
    sign = -1 if found.value < 0 else 1
    text = f"{_number(abs(found.value), one)} {unit(one)}"
    if not ends:
        return text
    low, high = sorted(sign * end for end in ends)
    return f"{text} ({_number(low, one)} to {_number(high, one)})"


def change(found: Change, one: Comparison) -> str:
    """A change with its sign, and its interval in parentheses."""
    text = f"{signed(found.value, one)} {unit(one)}"
    if found.low is None or found.high is None:
        return text
    return f"{text} ({signed(found.low, one)} to {signed(found.high, one)})"


def unit(one: Comparison) -> str:
    """What changes are told in."""
    return one.question.told_in


def signed(value: float, one: Comparison) -> str:
    """A change with a proper sign."""
    text = _number(abs(value), one)
    return text if not text.strip("0.") else f"{'−' if value < 0 else '+'}{text}"


def _number(value: float, one: Comparison) -> str:
    if math.isinf(value):
        return "∞"
    shown = value if one.question.is_difference else 100 * value
    sign = "−" if shown < 0 else ""
    shown = abs(shown)
    text = f"{shown:.0f}" if shown >= 9.95 else f"{shown:.1f}" if shown >= 0.095 else f"{shown:.2g}" if shown else "0"
    return f"{sign}{text}"


def outcome(found: Difference, one: Comparison) -> str:
    """One setting in a word."""
    if found.change.low is None:
        return "one seed" if len(found.seeds) == 1 else "no interval"
    if not _matters(found.change, one):
        return "no clear difference"
    if one.better is None:
        return "less" if found.change.value < 0 else "more"
    return "better" if found.change.sign == one.better else "worse"


def _matters(found: Change, one: Comparison) -> bool:
    least = NEGLIGIBLE_DIFFERENCES.get(one.question.told_in, NEGLIGIBLE)
    return found.sign != 0 and abs(found.value) >= least


def _settings(one: Comparison) -> str:
    """In how many of the settings it helps, and where most and least."""
    if len(one.differences) < 2:
        return ""
    outcomes = [outcome(found, one) for found in one.differences]
    better, worse, count = outcomes.count("better"), outcomes.count("worse"), len(outcomes)
    if not better and not worse:
        return ""
    if better == count:
        words = f"it helps {_every(one)}"
    elif worse == count:
        words = f"it harms {_every(one)}"
    else:
        parts = [
            f"helps in {better} of {count} settings" if better else "",
            f"harms in {worse}" if worse else "",
            f"makes no clear difference in {count - better - worse}" if count - better - worse else "",
        ]
        words = "it " + ", ".join(part for part in parts if part)
    ranked = sorted(one.differences, key=lambda found: found.change.value * (one.better or 1))
    least, most = ranked[0], ranked[-1]
    return (
        f"; {words}: most with {most.setting} ({signed(most.change.value, one)} {unit(one)}), "
        f"least with {least.setting} ({signed(least.change.value, one)} {unit(one)})"
    )


def _every(one: Comparison) -> str:
    keys = [key for key in one.differences[0].axes if len({str(found.axes[key]) for found in one.differences}) > 1]
    return f"at every {keys[0].rpartition('.')[2]}" if len(keys) == 1 else "in every setting"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
