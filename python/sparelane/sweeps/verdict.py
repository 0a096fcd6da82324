"""States the conclusions of comparisons in sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sparelane.sweeps.axes import short_key
from sparelane.sweeps.differences import (
    DIRECTED,
    SIZE,
    SMALL,
    UNKNOWN,
    Change,
    Comparison,
    Difference,
    Outcome,
    Thresholds,
    effect,
    grouped,
    outcome,
)
from sparelane.sweeps.intervals import adjusted
from sparelane.sweeps.metrics import Metric

# The outcome if the numbers are equal for all seeds.
EXACT = "exact: nothing is random"
# The largest number of values of a key that a sentence lists.
LISTED = 4
# The largest number of decimals of the ends of an interval.
MOST_DECIMALS = 3


def headline(one: Comparison, thresholds: Thresholds) -> str:
    """The conclusion about a scheme and one metric, in one or two sentences.

    They include a number for all settings only if the settings do not contradict each other by more than noise.
    """
    if one.is_split:
        return f"{_split(one, thresholds)}{_unfinished(one)}"
    metric, change = one.metric, one.overall
    than = f"under {one.other} than under {one.baseline}"
    between = f"between {one.other} and {one.baseline}"
    if one.outcome in DIRECTED or one.outcome is Outcome.DOUBTFUL:
        words = f"{_upper(metric.label)} is {size(change, metric)} {than}{_exactly(change)}"
    elif one.outcome is Outcome.EQUAL:
        words = f"{_upper(metric.label)} is equal {between} in every seed{_exactly(change)}"
    elif one.outcome is Outcome.NEGLIGIBLE:
        words = f"{_upper(metric.label)} differs negligibly {between}: {change_text(change, metric)}{_exactly(change)}"
    elif one.outcome in UNKNOWN:
        found = "equal" if change.value == 0 else size(change, metric)
        words = f"{_upper(metric.label)} is {found} {than if change.value else between}; {_why(one.outcome)}"
    else:
        among = f", adjusted for {one.compared} comparisons" if one.outcome is Outcome.ADJUSTED else ""
        words = f"No clear difference in {metric.label} {between}: {change_text(change, metric)}{among}"
    return f"{words}{_settings(one)}.{_unfinished(one)}"


def _exactly(change: Change) -> str:
    return ", exactly: nothing is random" if change.is_exact else ""


def _unfinished(one: Comparison) -> str:
    """A sentence about unfinished flows, if their different shares make an outcome doubtful; otherwise empty."""
    found = [pair.finished for pair in one.pairs if pair.finished is not None]
    if all(outcome is not Outcome.DOUBTFUL for outcome in (one.outcome, *(each.outcome for each in one.differences))):
        return ""
    baseline, other = (sum(shares) / len(found) for shares in zip(*found, strict=True))
    return (
        f" This covers only finished flows: {baseline:.1f} % finished under {one.baseline} and {other:.1f} % under "
        f"{one.other}, whose slow flows may be missing."
        if other < baseline
        else f" This covers only finished flows: {other:.1f} % finished under {one.other} and {baseline:.1f} % under "
        f"{one.baseline}, whose slow flows may be missing."
    )


def _split(one: Comparison, thresholds: Thresholds) -> str:
    """The conclusion about settings that contradict each other, by the keys that determine the sign."""
    subject = f"{_upper(one.metric.label)} under {one.other}, compared with {one.baseline},"
    if not one.is_certain:
        least, most = (choose(one.differences, key=_value) for choose in (min, max))
        ends = " to ".join(f"{_bare(each.change, one.metric)} with {each.setting}" for each in (least, most))
        return f"{subject} ranges from {ends}; {_why(one.differences[0].outcome)}, so the signs are not certain."
    if one.depends_on:
        on = " and ".join("flow size" if key == SIZE else key for key in one.depends_on)
        values = by_values(one, one.depends_on, thresholds)
        if len(values) <= LISTED:
            return f"{subject} depends on {on}: {'; '.join(_of_value(value, one.metric) for value in values)}."
    else:
        on = "the setting"
    count = len(one.differences)
    parts = []
    for sign, word in ((-1, "lower"), (1, "higher")):
        some = [each for each in one.differences if _sign(each) == sign]
        if some:
            parts.append(f"{word} in {len(some)} of {count} settings{_where(some, one)}")
    rest = count - sum(_sign(each) != 0 for each in one.differences)
    if parts and rest:
        parts.append(f"not clearly different in {rest}")
    if not parts:
        least, most = (choose(one.differences, key=_value) for choose in (min, max))
        parts = [f"{_bare(each.change, one.metric)} with {each.setting}" for each in (least, most)]
    return f"{subject} depends on {on}: {', '.join(parts)}."


def _why(outcome: Outcome) -> str:
    """The reason for a missing interval."""
    return {
        Outcome.ONE_SEED: "one seed cannot support an interval",
        Outcome.TWO_SEEDS: "two seeds cannot support an interval",
    }.get(outcome, "there is no interval")


def by_values(one: Comparison, keys: Sequence[str], thresholds: Thresholds) -> list[Difference]:
    """Groups the settings of a comparison by the values of some keys. Each group has an outcome."""
    groups = [(words, axes, pairs, effect(pairs, one.metric)) for words, axes, pairs in grouped(one.pairs, keys)]
    ps = adjusted([change.p for *_, change in groups])
    least = thresholds.of(one.metric)
    return [
        Difference(
            words, axes, math.nan, math.nan, change, (), tuple(pairs), outcome(change, p, one.metric, least, pairs)
        )
        for (words, axes, pairs, change), p in zip(groups, ps, strict=True)
    ]


def _of_value(found: Difference, metric: Metric) -> str:
    if found.outcome in DIRECTED or found.outcome is Outcome.DOUBTFUL:
        return f"{size(found.change, metric)} with {found.setting}{_exactly(found.change)}"
    word = {Outcome.ADJUSTED: Outcome.UNCLEAR}.get(found.outcome, found.outcome)
    return f"{word} with {found.setting} ({change_text(found.change, metric)})"


def _value(found: Difference) -> float:
    return found.change.value


def _sign(found: Difference) -> int:
    """The sign of a difference if it is established, otherwise 0."""
    return found.change.sign if found.outcome in DIRECTED else 0


def size(found: Change, metric: Metric) -> str:
    """The size of a change and its direction: "43 % (41 to 45) lower"."""
    word = "lower" if found.sign < 0 else "higher"
    if math.isinf(found.value):
        return f"{word} (from 0)"
    sign = found.sign or 1
    decimals = _decimals(found, metric)
    text = f"{_number(abs(found.value), metric, decimals)} {metric.change_unit}"
    if found.low is None or found.high is None:
        return f"{text} {word}"
    if found.low == found.high:
        return f"{text} {word} in every seed"
    low, high = sorted((sign * found.low, sign * found.high))
    return f"{text} ({_number(low, metric, decimals)} to {_number(high, metric, decimals)}) {word}"


def change_text(found: Change, metric: Metric) -> str:
    """A change with its sign, and the interval in parentheses."""
    if math.isinf(found.value):
        return "from 0" if found.value > 0 else "to 0"
    decimals = _decimals(found, metric)
    text = f"{signed(found.value, metric, decimals)} {metric.change_unit}"
    if found.low is None or found.high is None:
        return text
    if found.low == found.high:
        return f"{text} in every seed"
    return f"{text} ({signed(found.low, metric, decimals)} to {signed(found.high, metric, decimals)})"


def signed(value: float, metric: Metric, decimals: int | None = None) -> str:
    """The number of a change, with a typographic sign."""
    text = _number(abs(value), metric, decimals)
    return text if not text.strip("0.") else f"{'−' if value < 0 else '+'}{text}"


def _decimals(found: Change, metric: Metric) -> int | None:
    """The smallest number of decimals with which the ends of the interval differ from the value."""
    if found.low is None or found.high is None or not math.isfinite(found.low + found.high):
        return None
    factor = 1 if metric.is_difference else 100
    shown = max(abs(found.low), abs(found.high)) * factor
    fewest = 0 if shown >= 9.95 else 1
    for decimals in range(fewest, MOST_DECIMALS):
        texts = {f"{factor * value:.{decimals}f}" for value in (found.low, found.value, found.high)}
        if len(texts) == 3 or found.low == found.high:
            return decimals
    return MOST_DECIMALS


def _number(value: float, metric: Metric, decimals: int | None = None) -> str:
    if math.isinf(value):
        return "∞"
    shown = value if metric.is_difference else 100 * value
    sign = "−" if shown < 0 else ""
    shown = abs(shown)
    if decimals is not None:
        text = f"{shown:.{decimals}f}"
    else:
        text = f"{shown:.0f}" if shown >= 9.95 else f"{shown:.1f}" if shown >= 0.095 else f"{shown:.2f}"
    return text if not text.strip("0.") else f"{sign}{text}"


def outcome_text(found: Difference | Comparison) -> str:
    """The outcome of a setting or of a whole comparison, as a phrase."""
    if isinstance(found, Comparison) and found.is_split:
        if not found.is_certain:
            return str(found.differences[0].outcome)
        on = " and ".join(found.depends_on) or "the setting"
        return f"depends on {on}"
    change = found.overall if isinstance(found, Comparison) else found.change
    return f"{found.outcome} ({EXACT})" if change.is_exact else str(found.outcome)


def _settings(one: Comparison) -> str:
    """A clause with the numbers of better and worse settings, and the largest and smallest changes."""
    count = len(one.differences)
    if count < 2:
        return ""
    rising, falling = ([each for each in one.differences if _sign(each) == sign] for sign in (1, -1))
    small = [each for each in one.differences if each.outcome in SMALL]
    if not rising and not falling:
        return "" if len(small) < count or one.outcome in SMALL else "; negligible in every setting"
    words = {1: "higher", -1: "lower"}
    if one.metric.better:
        words = {one.metric.better: "better", -one.metric.better: "worse"}
    if count in (len(rising), len(falling)):
        most, *rest = _most_and_least(rising or falling, one)
        least = f", least with {rest[0][0]} ({rest[0][1]})" if rest else ""
        return f"; {words[1 if rising else -1]} {_every(one)}: most with {most[0]} ({most[1]}){least}"
    first = one.metric.better or 1
    ways = [(sign, rising if sign == 1 else falling) for sign in (first, -first)]
    parts = [f"{words[sign]} in {len(some)} of {count} settings{_where(some, one)}" for sign, some in ways if some]
    unclear = count - len(rising) - len(falling) - len(small)
    parts += [f"negligible in {len(small)}"] if small else []
    parts += [f"not clear in {unclear}"] if unclear else []
    return f"; {', '.join(parts)}"


def _where(found: Sequence[Difference], one: Comparison) -> str:
    """The settings of differences with the same sign, in parentheses."""
    (most, most_change), *rest = _most_and_least(found, one)
    if not rest:
        return f" ({most}: {most_change})"
    (least, least_change), *_ = rest
    return f" (most with {most}: {most_change}, least with {least}: {least_change})"


def _most_and_least(found: Sequence[Difference], one: Comparison) -> list[tuple[str, str]]:
    """The settings with the largest and the smallest change, each with its change; one if there is only one."""
    ranked = sorted(found, key=lambda difference: abs(difference.change.value))
    chosen = [ranked[-1], ranked[0]] if len(ranked) > 1 else ranked
    return [(each.setting, _bare(each.change, one.metric)) for each in chosen]


def _bare(change: Change, metric: Metric) -> str:
    """A change without its interval."""
    return change_text(Change(change.value), metric)


def _every(one: Comparison) -> str:
    axes = [found.axes for found in one.differences]
    keys = [key for key in axes[0] if len({str(values.get(key)) for values in axes}) > 1]
    return f"at every {short_key(keys[0], keys)}" if len(keys) == 1 else "in every setting"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
