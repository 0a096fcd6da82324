"""Learns to set a window on a lossy link, by the cross-entropy method, and shows it beside NewReno.

Run it: `python examples/learn/train.py`. It takes a minute or so on one core, and numpy is all that it needs beside
`pip install 'sparelane[gym]'`.

The policy is linear: the action is the tangent hyperbolic of a weighted sum of what is observed, and of one. The
cross-entropy method draws weights from a normal distribution, plays an episode with each, keeps the best, and draws
from their mean and spread the next time.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparelane.gym import OBSERVED, CongestionEnv

SCENARIO = Path(__file__).parent / "lossy.toml"
STEP_S = 0.05

# Seeds of the episodes that a policy is judged by, which it has not seen in training.
JUDGED = tuple(range(1000, 1010))

Weights = NDArray[np.float64]


def environment(**settings: Any) -> CongestionEnv:
    """The task, with these values in place of the scenario's."""
    return CongestionEnv(SCENARIO, step_s=STEP_S, set=settings)


def act(weights: Weights, observation: NDArray[np.float32]) -> NDArray[np.float32]:
    """The policy."""
    return np.tanh(weights[:-1] @ observation + weights[-1:]).astype(np.float32)


def score(env: CongestionEnv, weights: Weights, seed: int) -> float:
    """The mean reward of a step, in one episode."""
    observation, _ = env.reset(seed=seed)
    rewards, is_over = [], False
    while not is_over:
        observation, reward, terminated, truncated, _ = env.step(act(weights, observation))
        rewards.append(reward)
        is_over = terminated or truncated
    return float(np.mean(rewards))


def train(iterations: int = 15, population: int = 24, kept: int = 6, episodes: int = 2, seed: int = 1) -> Weights:
    """Weights that the cross-entropy method finds."""
    env, random = environment(), np.random.default_rng(seed)
    mean, spread = np.zeros(len(OBSERVED) + 1), np.ones(len(OBSERVED) + 1)
    for iteration in range(iterations):
        drawn = mean + spread * random.standard_normal((population, len(mean)))
        # All play the same episodes: what differs is the policy.
        seeds = [seed * 100 + iteration * episodes + number for number in range(episodes)]
        scores = np.array([np.mean([score(env, weights, number) for number in seeds]) for weights in drawn])
        best = drawn[np.argsort(scores)[-kept:]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.05
        print(f"iteration {iteration + 1:2}: best {scores.max():6.3f}, mean {scores.mean():6.3f}", flush=True)
    return mean


def judge(weights: Weights, **settings: Any) -> float:
    """The mean reward of a step over the episodes that policies are judged by."""
    env = environment(**settings)
    return float(np.mean([score(env, weights, seed) for seed in JUDGED]))


def main() -> None:
    """Trains, and prints what the policy and some laws are worth."""
    parser = argparse.ArgumentParser(description="learns to set a window on a lossy link")
    parser.add_argument("--iterations", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    weights = train(arguments.iterations, seed=arguments.seed)
    still = np.zeros_like(weights)
    print("\nmean reward of a step, over ten episodes that were not trained on:")
    print(f"  learned  {judge(weights):6.3f}")
    for law in ("newreno", "cubic", "bbr"):
        print(f"  {law:8} {judge(still, **{'scheme.agent.law': law}):6.3f}")
    for what, weight in zip([*(text.split(":")[0] for text in OBSERVED), "always"], weights, strict=True):
        print(f"  weight of {what:10} {weight:6.2f}")


if __name__ == "__main__":
    main()
