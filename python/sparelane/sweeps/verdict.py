"""A comparison in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sparelane.sweeps.differences import Change, Comparison, Difference

# A change below this is none, whatever the interval says: a share of one, or a difference in its unit.
NEGLIGIBLE = 0.005
# What is said where no number differs from seed to seed.
EXACTLY = "exactly: nothing is random"
EXACT = "exactly, nothing is random"
NEGLIGIBLE_DIFFERENCES = {"points": 0.05, "per flow": 0.001}


def sentences(comparisons: Sequence[Comparison]) -> list[str]:
    """What can be said of a scheme beside the baseline; the first sentence is the headline."""
    if not comparisons:
        return []
    said = [headline(comparisons[0])]
    rest = [clause(one) for one in comparisons[1:] if _matters(one.overall, one)]
    if rest:
        said.append(f"{_upper('; '.join(rest))}.")
    same = [one for one in comparisons[1:] if not _matters(one.overall, one)]
    for words, is_exact in (("No clear difference", False), ("Hardly any difference, exactly", True)):
        names = [name(one) for one in same if one.overall.is_exact is is_exact]
        if names:
            said.append(f"{words}: {', '.join(names)}.")
    return said


def headline(one: Comparison) -> str:
    """The change over all settings, and in how many of them it is one."""
    subject, overall = f"{one.other} beside {one.baseline}", one.overall
    if overall.is_exact and not _matters(overall, one):
        words = f"{subject}: hardly any difference of the {name(one)} ({change(overall, one)})"
    elif _matters(overall, one):
        words = f"{one.other} {clause(one)}{_than(one)}"
    elif overall.low is None:
        words = f"{subject}: {clause(one)}, by one seed, which has no interval"
    else:
        words = f"{subject}: no clear difference of the {name(one)} ({change(overall, one)})"
    return f"{words}{f', {EXACTLY}' if overall.is_exact else ''}{_settings(one)}."


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
    if found.change.is_exact:
        return EXACT
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
    """In how many of the settings it helps, and where most and least: of those in which it clearly does."""
    if len(one.differences) < 2:
        return ""
    signs = [_clearly(found, one) * (one.better or 0) for found in one.differences]
    better, worse = (
        [found for found, sign in zip(one.differences, signs, strict=True) if sign == way] for way in (1, -1)
    )
    count = len(one.differences)
    if not better and not worse:
        return ""
    if len(better) == count or len(worse) == count:
        most, *least = [f"with {where} ({change})" for where, change in _most_and_least(better or worse, one)]
        return f"; it {'helps' if better else 'harms'} {_every(one)}: most {most}, least {least[0]}"
    none = count - len(better) - len(worse)
    parts = [
        f"helps in {len(better)} of {count} settings{_where(better, one)}" if better else "",
        f"harms in {len(worse)}{_where(worse, one)}" if worse else "",
        f"makes no clear difference in {none}" if none else "",
    ]
    return f"; it {', '.join(part for part in parts if part)}"


def _clearly(found: Difference, one: Comparison) -> int:
    """The sign of a difference that is clear; 0 for any other."""
    return found.change.sign if _matters(found.change, one) else 0


def _where(found: Sequence[Difference], one: Comparison) -> str:
    """Where differences with the same sign are, in parentheses."""
    (most, most_change), (least, least_change) = _most_and_least(found, one)
    if len(found) == 1:
        return f" ({most}: {most_change})"
    return f" (most with {most}: {most_change}, least with {least}: {least_change})"


def _most_and_least(found: Sequence[Difference], one: Comparison) -> list[tuple[str, str]]:
    """The settings with the largest and the smallest change, and how large it is."""
    ranked = sorted(found, key=lambda difference: abs(difference.change.value))
    return [(each.setting, f"{signed(each.change.value, one)} {unit(one)}") for each in (ranked[-1], ranked[0])]


def _every(one: Comparison) -> str:
    keys = [key for key in one.differences[0].axes if len({str(found.axes[key]) for found in one.differences}) > 1]
    return f"at every {keys[0].rpartition('.')[2]}" if len(keys) == 1 else "in every setting"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
