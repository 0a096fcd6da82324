"""The parts of TCP RAPID: the gaps of p-streams, their smoothing by BASS, and the bandwidth estimate.

These are the simulator's own functions, usable without a connection. Gaps are in seconds, rates in bits per second.
The defaults are those of the controller `rapid`.

    >>> from sparelane import rapid
    >>> stream = rapid.p_stream(5e9)
    >>> rapid.estimate(stream.gap_s, stream.gap_s, stream.rate_bps) == max(stream.rate_bps)
    True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparelane import _native

# A jumbo frame of 9000 bytes minus IP and TCP headers with timestamps, plus the simulator's headers.
WIRE_BYTES = 8988

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PStream:
    """The packets of one p-stream, in order.

    Attributes:
        gap_s: time before each packet.
        rate_bps: wire rate that each packet probes.
    """

    gap_s: Numbers
    rate_bps: Numbers


@dataclass(frozen=True, slots=True)
class Bass:
    """Thresholds of Buffering-Aware Spike Smoothing (section IV-D of the paper).

    Attributes:
        passes: maximum number of passes; 0 uses the raw gaps.
        factor: a spike exceeds the previous receive gap by this many medians of the receive gaps.
        floor_s: minimum excess of a spike over the previous receive gap.
    """

    passes: int = 3
    factor: float = 0.5
    floor_s: float = 5e-6


@dataclass(frozen=True, slots=True)
class Excursion:
    """The definition of an excursion: packets that wait at the bottleneck consistently.

    Attributes:
        share: share by which the receive gap of a delayed packet exceeds its send gap; also required of a whole
            excursion.
        persistence: minimum share of an excursion's packets that were delayed.
        samples: minimum number of samples in an excursion.
    """

    share: float = 0.03
    persistence: float = 0.45
    samples: int = 8


@dataclass(frozen=True, slots=True)
class Smoothed:
    """Gaps after BASS.

    Attributes:
        send_s: send gaps, averaged over each event.
        receive_s: receive gaps, averaged over each event.
        end: index of the first gap of an incomplete last event, which is unchanged and belongs to the next p-stream.
    """

    send_s: Numbers
    receive_s: Numbers
    end: int


DEFAULT_BASS = Bass()
DEFAULT_EXCURSION = Excursion()


def p_stream(
    average_bps: float,
    *,
    rates: int = 4,
    packets_per_rate: int = 16,
    spread: float = 1.1487,
    wire_bytes: int = WIRE_BYTES,
) -> PStream:
    """Returns the p-stream of an average rate: `rates` rates, each `spread` times the previous one (section II).

    Args:
        average_bps: R_avg; the p-stream lasts as long as its packets take at this rate.
        rates: N_r, the number of rates.
        packets_per_rate: N_p, the number of packets at each rate.
        spread: s, the ratio of each rate to the previous one.
        wire_bytes: P, the size of a packet with headers.

    Raises:
        ValueError: If a number is not positive.
    """
    return PStream(*_native.rapid_gaps(rates, packets_per_rate, spread, round(average_bps), wire_bytes))


def smooth(send_s: ArrayLike, receive_s: ArrayLike, bass: Bass = DEFAULT_BASS, *, in_event: bool = False) -> Smoothed:
    """Applies BASS: finds events of buffering by their spikes and replaces the gaps of each by their averages.

    Args:
        send_s: send gaps.
        receive_s: receive gaps.
        bass: thresholds.
        in_event: treat the first gap as a spike, because the previous p-stream left an event incomplete.

    Raises:
        ValueError: If the numbers of send and receive gaps differ, or a gap is not a time.
    """
    return Smoothed(
        *_native.bass(_numbers(send_s), _numbers(receive_s), bass.passes, bass.factor, bass.floor_s, in_event)
    )


def estimate(
    send_s: ArrayLike,
    receive_s: ArrayLike,
    rate_bps: ArrayLike,
    bass: Bass = DEFAULT_BASS,
    excursion: Excursion = DEFAULT_EXCURSION,
) -> float | None:
    """Returns the available bandwidth (ABest) from one p-stream in b/s, or None for a single gap."""
    return estimates(send_s, receive_s, rate_bps, [len(_numbers(rate_bps))], bass, excursion)[0]


def estimates(
    send_s: ArrayLike,
    receive_s: ArrayLike,
    rate_bps: ArrayLike,
    lengths: Sequence[int],
    bass: Bass = DEFAULT_BASS,
    excursion: Excursion = DEFAULT_EXCURSION,
) -> list[float | None]:
    """Returns the available bandwidth from each of several consecutive p-streams, in b/s.

    The gaps of an event that a p-stream leaves incomplete are prepended to the next p-stream.

    Args:
        send_s: send gaps of all packets.
        receive_s: receive gaps of all packets.
        rate_bps: rates that the packets probe.
        lengths: number of gaps of each p-stream.
        bass: thresholds of the smoothing.
        excursion: definition of an excursion.

    Raises:
        ValueError: If the numbers of gaps, rates and lengths do not match, or a gap is not a time.
    """
    return _native.rapid_estimates(
        _numbers(send_s),
        _numbers(receive_s),
        _numbers(rate_bps),
        list(lengths),
        bass.passes,
        bass.factor,
        bass.floor_s,
        excursion.share,
        excursion.persistence,
        excursion.samples,
    )


def _numbers(values: ArrayLike) -> Numbers:
    return np.ascontiguousarray(values, dtype=np.float64)
