"""Observations, actions and rewards of the agent of a flow. Environments with one and several agents share them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sparelane import _native

Observation = NDArray[np.float32]
Sets = Literal["window", "pace"]

# The meaning of each number of an observation.
OBSERVED = (
    "rate: payload delivered in the step, as a share of the slowest cable",
    "delay: the mean round-trip time of the step above the minimum of the connection, as a share of the minimum",
    "loss: segments retransmitted in the step, as a share of those delivered or retransmitted",
    "marks: congestion marks, losses and timeouts in the step",
    "window: the logarithm to base 2 of the window as a share of the bandwidth-delay product, over 8",
    "pace: the pace as a share of the slowest cable; 0 without one",
    "in flight: bytes in flight as a share of the window",
)

# Observations are limited to this magnitude, so that their space is bounded.
LARGEST = 10.0

# The smallest and the largest window, segments.
WINDOW_SEGMENTS = (2.0, 1e5)

# The smallest and the largest pace, as shares of the rate of the slowest cable.
PACE_SHARES = (1e-3, 2.0)


def number_of(action: object, flow: int) -> float:
    """Converts an action to a number.

    Args:
        action: A number, or an array with one number.
        flow: The number of the agent's flow, for the message.

    Raises:
        ValueError: The action is not one finite number.
    """
    try:
        numbers = np.asarray(action, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.size != 1 or not math.isfinite(numbers[0]):
        raise ValueError(
            f"the action of flow {flow} (agent flow_{flow}) is {action!r}; allowed: one finite number, which is "
            "limited to -1 to 1"
        )
    return float(numbers[0])


@dataclass(frozen=True, slots=True)
class Reward:
    """The reward of a step: rate - delay_weight * delay - loss_weight * loss, with numbers of the observation.

    Attributes:
        delay_weight: The cost of a queueing delay of one minimum round-trip time.
        loss_weight: The cost of losing every packet.
    """

    delay_weight: float = 0.5
    loss_weight: float = 1.0

    def of(self, observation: Observation) -> float:
        """The reward of a step that ended with this observation."""
        rate, delay, loss = (float(value) for value in observation[:3])
        return rate - self.delay_weight * delay - self.loss_weight * loss


@dataclass(slots=True)
class FlowAgent:
    """The state of one agent between steps.

    Attributes:
        flow: the number of its flow.
        mss_bytes: the payload of a full segment.
        slowest_bps: the rate of the slowest cable.
    """

    flow: int
    mss_bytes: int
    slowest_bps: float
    before: _native.AgentView | None = field(default=None)
    is_over: bool = False

    def observe(self, run: _native.Stepper, step_s: float) -> Observation:
        """The observation of the time since the last call. All zeros if the flow is not open."""
        now = run.view(self.flow)
        if now is None:
            self.is_over = self.before is not None
            return np.zeros(len(OBSERVED), dtype=np.float32)
        before, self.before = self.before, now
        delivered = now.delivered_bytes - (before.delivered_bytes if before else 0)
        samples = now.rtts - (before.rtts if before else 0)
        rtt_sum_s = now.rtt_sum_s - (before.rtt_sum_s if before else 0.0)
        resent = (now.retransmissions - (before.retransmissions if before else 0)) * self.mss_bytes
        signs = sum(
            getattr(now, name) - (getattr(before, name) if before else 0) for name in ("losses", "timeouts", "marks")
        )
        rtt_s = rtt_sum_s / samples if samples else now.last_rtt_s
        product = max(self.slowest_bps / 8 * now.min_rtt_s, self.mss_bytes)
        values = (
            delivered * 8 / step_s / self.slowest_bps,
            rtt_s / now.min_rtt_s - 1 if now.min_rtt_s > 0 else 0.0,
            resent / max(delivered + resent, 1),
            signs,
            math.log2(now.cwnd_bytes / product) / 8,
            (now.pacing_bps or 0.0) / self.slowest_bps,
            now.in_flight_bytes / now.cwnd_bytes,
        )
        return np.clip(np.array(values, dtype=np.float32), -LARGEST, LARGEST)

    def act(self, run: _native.Stepper, sets: Sets, action: float) -> None:
        """Multiplies the window or the pace by 2 to the power of the action, after limiting the action to -1 to 1."""
        if self.before is None or self.is_over:
            return
        factor = 2.0 ** min(max(action, -1.0), 1.0)
        if sets == "pace" and self.before.pacing_bps is not None:
            low, high = (share * self.slowest_bps for share in PACE_SHARES)
            pace = min(max(self.before.pacing_bps * factor, low), high)
            # The window leaves room for two round trips at this pace, so that the pace decides.
            window = 2 * pace / 8 * max(self.before.last_rtt_s, self.before.min_rtt_s) + 10 * self.mss_bytes
            run.steer(self.flow, int(window), pace)
            return
        low, high = (segments * self.mss_bytes for segments in WINDOW_SEGMENTS)
        run.steer(self.flow, int(min(max(self.before.cwnd_bytes * factor, low), high)), None)
