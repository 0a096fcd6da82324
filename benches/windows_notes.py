"""Scripts in which windows differ from ns-3's beyond the bounds, with the checked reasons."""

from dataclasses import dataclass

MEAN_WITHIN = 0.05
QUARTERS_WITHIN = 0.10


@dataclass(frozen=True, slots=True)
class WindowNote:
    """The allowed difference from ns-3's windows as a share of ns-3's, and its reason.

    Attributes:
        reason: The cause of the difference and how it was checked.
        mean: Bounds of the mean absolute difference over all samples.
        quarters: Bounds of the largest difference at the end of a quarter of the run.
    """

    reason: str
    mean: tuple[float, float] = (0.0, MEAN_WITHIN)
    quarters: tuple[float, float] = (-QUARTERS_WITHIN, QUARTERS_WITHIN)


AS_EXPECTED = WindowNote("")

# Scripts for which no difference between the simulators is known.
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

# `mended` scripts use the changes to ns-3 in ns3_mended.h.
WHOLE_BYTES = (
    "ns-3 truncates NewReno's growth to whole bytes with each acknowledgment, such as 3.6 to 3 at 400 segments. "
)
BIC_PRICE = (
    "ns-3's counter must exceed the number of acknowledgments per segment, 20 here, so a segment takes 21: 95.2 % of "
    "our growth predicted, 95.1 % measured"
)
HYBLA = (
    "rho should be 2 but stays 1 in ns-3. It is updated only if the smoothed round-trip time equals the minimum, which "
    "comes from the small packets of the handshake. With this mended, the windows are the same"
)
ILLINOIS = (
    "ns-3's controller gets the smoothed round-trip time in whole milliseconds, so a small delay becomes zero and "
    "alpha is 10 at once. It also counts alpha in whole numbers with each acknowledgment, so the window stays constant "
    "if alpha is below 1. With microseconds, and acknowledgments counted in fifties"
)
YEAH = (
    "ns-3 divides 1 by phy in integers, which gives 0, so any delay leads to slow mode: NewReno's growth, and half at "
    "a loss. With phy = 1 in both, for which the quotient is exact"
)
VEGAS = (
    "ns-3's controller gets the smoothed round-trip time, which the bursts of slow start raise, so slow start ends at "
    "about 140 instead of 250 segments. A loss reduces the window by a quarter, down to ssthresh; in Linux, by half. "
    "With single samples, and halving"
)
HTCP = "ns-3 adds alpha bytes per acknowledgment to NewReno's growth, instead of alpha segments per window. Mended"
HTCP_TIME = (
    "our time since a loss starts at the end of its repair, and initially at the first acknowledgment, 100 ms later "
    "than in ns-3; and the factor is rounded down to a whole number, as in Linux. With windows shifted by 100 ms, and "
    "by 150 ms for losses, the difference is "
)

# Notes by the name of the script.
NOTES: dict[str, WindowNote] = {
    "bic-lossless": WindowNote(BIC_PRICE, mean=(0.04, 0.05)),
    "bic-plain-lossless": WindowNote(BIC_PRICE, mean=(0.04, 0.05)),
    "bic-drops": WindowNote(
        "ns-3's smooth part is 5, ours 20 as in Linux. The target of its fast convergence is 0.8 of the window, of "
        "ours 0.9. With a smooth part of 5 and no fast convergence in both (plain): 2 %",
        mean=(0.15, 0.25),
        quarters=(-0.40, -0.20),
    ),
    "h-tcp-lossless": WindowNote(f"{HTCP}: 3 %", mean=(0.35, 0.42), quarters=(-0.75, -0.65)),
    "h-tcp-drops": WindowNote(
        f"{HTCP}, and with adaptation to the round-trip times at each loss in both: 6 %",
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
        f"{WHOLE_BYTES}With fractions, and with Veno's own law, which ns-3 never uses: 1 %", mean=(0.04, 0.06)
    ),
    "yeah-lossless": WindowNote(f"{YEAH}: 1 %", mean=(0.2, 0.3), quarters=(0.3, 0.45)),
    "yeah-drops": WindowNote(f"{YEAH}: 3 %", mean=(1.1, 1.5), quarters=(2.2, 2.7)),
    "yeah-phy1-mended-lossless": WindowNote(
        "the same sawtooth, whose last drop is one sample later in ns-3", quarters=(-0.2, -0.1)
    ),
    "lp-lossless": WindowNote(f"{WHOLE_BYTES}With fractions: 0.2 %", mean=(0.04, 0.06)),
    "lp-drops": WindowNote(
        "in ns-3, acknowledgments during the repair of a loss echo the timestamp of a segment before the hole. This "
        "counts as one-way delay, so each loss causes early congestion repeatedly. Ours report the delay of the packet "
        "that caused them. Without samples during a repair, and with NewReno's fractions of a byte (mended): 6 %",
        mean=(4.0, 5.5),
        quarters=(25.0, 32.0),
    ),
    "lp-mended-drops": WindowNote(
        "the same sawtooth, with one drop a few samples later in ns-3", mean=(0.05, 0.07), quarters=(-0.55, -0.40)
    ),
    "vegas-lossless": WindowNote(f"{VEGAS}: 0.2 %", mean=(0.38, 0.48), quarters=(0.5, 0.65)),
    "vegas-drops": WindowNote(f"{VEGAS}: 0.5 %", mean=(0.17, 0.25), quarters=(-0.55, -0.45)),
}


def note_of(script_name: str) -> WindowNote:
    """Returns the note of a script, or the default bounds."""
    return NOTES.get(script_name, THE_SAME if script_name in SAME else AS_EXPECTED)
