"""Where windows differ from ns-3's by more than they should, and the checked reason."""

from dataclasses import dataclass

MEAN_WITHIN = 0.05
QUARTERS_WITHIN = 0.10


@dataclass(frozen=True, slots=True)
class WindowNote:
    """How far our windows may be from ns-3's, as a share of ns-3's, and why.

    Attributes:
        reason: what was found to make the difference, and how it was checked.
        mean: from and to, of the mean difference over all looks, whatever its sign.
        quarters: the same of the largest difference at the end of a quarter of the run.
    """

    reason: str
    mean: tuple[float, float] = (0.0, MEAN_WITHIN)
    quarters: tuple[float, float] = (-QUARTERS_WITHIN, QUARTERS_WITHIN)


AS_EXPECTED = WindowNote("")

# Where nothing known differs.
THE_SAME = WindowNote("", mean=(0.0, 0.01), quarters=(-0.02, 0.02))
SAME = (
    "highspeed-lossless",
    "scalable-lossless",
    "hybla-mended-lossless",
    "hybla-mended-slow-start",
    "illinois-mended-lossless",
    "westwood-mended-lossless",
    "veno-mended-lossless",
    "veno-mended-drops",
    "lp-mended-lossless",
    "vegas-mended-lossless",
    "vegas-mended-drops",
)

# What `mended` changes in ns-3 is in ns3_mended.h.
WHOLE_BYTES = "ns-3 cuts NewReno's growth with every acknowledgment to whole bytes, so 3 of 3.6 at 400 segments. "
BIC_PRICE = (
    "ns-3's counter has to exceed the price of a segment, 20 acknowledgments here, so that it costs 21: predicted 95.2 "
    "% of our growth, measured 95.1 %"
)
HYBLA = (
    "rho, which should be 2, stays 1 in ns-3: it is taken only when the smoothed round-trip time equals the least, "
    "which is the handshake's with its small packets. Mended, so that it is taken, the windows are the same"
)
ILLINOIS = (
    "ns-3 hears the smoothed round-trip time in whole milliseconds, so that little delay is none (alpha 10 at once), "
    "and counts alpha in whole numbers with every acknowledgment, so that the window stands still where alpha is below "
    "1. With microseconds and acknowledgments counted by fifties"
)
YEAH = (
    "ns-3 divides 1 by phy in whole numbers, which is 0, so that any delay is slow mode: NewReno's growth, and half at "
    "a loss. With phy = 1 in both, whose quotient is whole"
)
VEGAS = (
    "ns-3 hears the smoothed round-trip time, which the queue of slow start's bursts raises: it ends at about "
    "140 segments and not at 250. A loss takes a quarter, down to the threshold of slow start, where Linux halves. "
    "With each time, and halving"
)
HTCP = (
    "ns-3 adds alpha bytes with every acknowledgment to NewReno's growth, not alpha segments with every window. Mended"
)
HTCP_TIME = (
    "our time since a loss counts from the end of its repair, and first from the first acknowledgment, a tenth of a "
    "second later than in ns-3; and the factor is rounded down to a whole number, as in Linux. Ours of 100 ms later, "
    "with losses of 150 ms later, differ by "
)

# By the script's name.
NOTES: dict[str, WindowNote] = {
    "bic-lossless": WindowNote(BIC_PRICE, mean=(0.04, 0.05)),
    "bic-plain-lossless": WindowNote(BIC_PRICE, mean=(0.04, 0.05)),
    "bic-drops": WindowNote(
        "ns-3's smooth part is 5, ours 20 as in Linux, and its fast convergence seeks 0.8 of the window, ours 0.9. "
        "With a smooth part of 5 and no fast convergence in both (plain): 2 %",
        mean=(0.15, 0.25),
        quarters=(-0.40, -0.20),
    ),
    "h-tcp-lossless": WindowNote(f"{HTCP}: 3 %", mean=(0.35, 0.42), quarters=(-0.75, -0.65)),
    "h-tcp-drops": WindowNote(
        f"{HTCP}, and with every loss adapting to the round-trip times in both: 6 %",
        mean=(0.18, 0.25),
        quarters=(0.3, 0.5),
    ),
    "h-tcp-mended-lossless": WindowNote(f"{HTCP_TIME}0.5 %"),
    "h-tcp-mended-drops": WindowNote(f"{HTCP_TIME}2 %", mean=(0.05, 0.07)),
    "hybla-lossless": WindowNote(HYBLA, mean=(0.55, 0.70), quarters=(0.85, 1.00)),
    "hybla-drops": WindowNote(HYBLA, mean=(1.0, 1.2), quarters=(1.9, 2.1)),
    "illinois-lossless": WindowNote(f"{ILLINOIS}: 1 %", mean=(0.08, 0.12), quarters=(0.12, 0.20)),
    "illinois-drops": WindowNote(f"{ILLINOIS}: 2 %", mean=(0.13, 0.20), quarters=(-0.55, -0.40)),
    "veno-drops": WindowNote(
        f"{WHOLE_BYTES}With fractions, and Veno's own law, which ns-3 never reaches: 1 %", mean=(0.04, 0.06)
    ),
    "yeah-lossless": WindowNote(f"{YEAH}: 1 %", mean=(0.2, 0.3), quarters=(0.3, 0.45)),
    "yeah-drops": WindowNote(f"{YEAH}: 3 %", mean=(1.1, 1.5), quarters=(2.2, 2.7)),
    "yeah-phy1-mended-lossless": WindowNote(
        "the same saw, whose last tooth falls one look later in ns-3", quarters=(-0.2, -0.1)
    ),
    "lp-lossless": WindowNote(f"{WHOLE_BYTES}With fractions: 0.2 %", mean=(0.04, 0.06)),
    "lp-drops": WindowNote(
        "in ns-3 acknowledgments echo the time of a segment before the hole while a loss is repaired, which counts as "
        "one-way delay: a loss brings early congestion, again and again. Ours tell the delay of the packet that caused "
        "them. Without what comes during a repair, and with NewReno's fractions of a byte (mended): 6 %",
        mean=(4.0, 5.5),
        quarters=(25.0, 32.0),
    ),
    "lp-mended-drops": WindowNote(
        "the same saw, one tooth of which falls a few looks later in ns-3", mean=(0.05, 0.07), quarters=(-0.55, -0.40)
    ),
    "vegas-lossless": WindowNote(f"{VEGAS}: 0.2 %", mean=(0.38, 0.48), quarters=(0.5, 0.65)),
    "vegas-drops": WindowNote(f"{VEGAS}: 0.5 %", mean=(0.17, 0.25), quarters=(-0.55, -0.45)),
}


def note_of(script_name: str) -> WindowNote:
    """What is expected of a script."""
    return NOTES.get(script_name, THE_SAME if script_name in SAME else AS_EXPECTED)
