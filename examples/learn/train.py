"""Train a policy that sets the window on a lossy link, and compare it with built-in controllers.

Run it with `python examples/learn/train.py`. It takes about a minute on one core, and needs `pip install
'sparelane[gym]'` and numpy.

The policy is linear: the action is the hyperbolic tangent of a weighted sum of the observations and a constant. The
cross-entropy method draws weights from a normal distribution, runs episodes with each, keeps the best, and draws the
next weights with their mean and standard deviation.
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

# Seeds of the evaluation episodes, which are not used in training.
EVALUATION_SEEDS = tuple(range(1000, 1010))

Weights = NDArray[np.float64]


def environment(**settings: Any) -> CongestionEnv:
    """Return the environment, with `settings` as overrides of the scenario."""
    return CongestionEnv(SCENARIO, step_s=STEP_S, set=settings)


def act(weights: Weights, observation: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the action of the policy."""
    return np.tanh(weights[:-1] @ observation + weights[-1:]).astype(np.float32)


def score(env: CongestionEnv, weights: Weights, seed: int) -> float:
    """Return the mean reward per step in one episode."""
    observation, _ = env.reset(seed=seed)
    rewards, is_over = [], False
    while not is_over:
        observation, reward, terminated, truncated, _ = env.step(act(weights, observation))
        rewards.append(reward)
        is_over = terminated or truncated
    return float(np.mean(rewards))


def train(iterations: int = 15, population: int = 24, kept: int = 6, episodes: int = 2, seed: int = 1) -> Weights:
    """Train by the cross-entropy method and return the weights."""
    env, random = environment(), np.random.default_rng(seed)
    mean, spread = np.zeros(len(OBSERVED) + 1), np.ones(len(OBSERVED) + 1)
    for iteration in range(iterations):
        drawn = mean + spread * random.standard_normal((population, len(mean)))
        # All candidates run the same episodes, so that scores differ only by policy.
        seeds = [seed * 100 + iteration * episodes + number for number in range(episodes)]
        scores = np.array([np.mean([score(env, weights, number) for number in seeds]) for weights in drawn])
        best = drawn[np.argsort(scores)[-kept:]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.05
        print(f"iteration {iteration + 1:2}: best {scores.max():6.3f}, mean {scores.mean():6.3f}", flush=True)
    return mean


def evaluate(weights: Weights, **settings: Any) -> float:
    """Return the mean reward per step over the evaluation episodes."""
    env = environment(**settings)
    return float(np.mean([score(env, weights, seed) for seed in EVALUATION_SEEDS]))


def main() -> None:
    """Train a policy, and print its score and those of built-in controllers."""
    parser = argparse.ArgumentParser(description="train a policy that sets the window on a lossy link")
    parser.add_argument("--iterations", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    weights = train(arguments.iterations, seed=arguments.seed)
    still = np.zeros_like(weights)
    print("\nmean reward per step over ten evaluation episodes:")
    print(f"  learned  {evaluate(weights):6.3f}")
    for law in ("newreno", "cubic", "bbr"):
        print(f"  {law:8} {evaluate(still, **{'scheme.agent.law': law}):6.3f}")
    for what, weight in zip([*(text.split(":")[0] for text in OBSERVED), "always"], weights, strict=True):
        print(f"  weight of {what:10} {weight:6.2f}")


if __name__ == "__main__":
    main()
