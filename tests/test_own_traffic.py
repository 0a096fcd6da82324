"""Tests of workloads and flow sizes in Python, which are read and checked before the run."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

import sparelane as sl
from sparelane.plugins.registry import REGISTRY

SCENARIO = """
duration = "2s"
seed = 5
[topology]
kind = "dumbbell"
pairs = 3
bottleneck_rate = "50Mbps"
bottleneck_delay = "2ms"
[scheme.tcp]
controller = "newreno"
[scheme.rc3]
controller = "rc3"
[queue]
kind = "priority"
[[workload]]
scheme = "tcp"
"""


@pytest.fixture(autouse=True)
def _own_registry() -> Iterator[None]:
    kinds, made = {kind: dict(registered) for kind, registered in REGISTRY.kinds.items()}, REGISTRY.made
    yield
    REGISTRY.kinds, REGISTRY.made = kinds, made


def with_workload(text: str, **more: Any) -> sl.Result:
    return sl.run(f"{SCENARIO}{text}\n", **more)


def test_a_generator_determines_the_flows_and_their_starts() -> None:
    @sl.workload("bursts")
    def bursts(
        run: Any,
        every: float = sl.param(0.1, "the time between bursts", min=0.001, unit="s"),
        flows: int = sl.param(4, "flows of a burst", min=1, max=100),
    ) -> Iterator[sl.Flow]:
        """Yields groups of flows that start at the same time, in equal intervals."""
        seen.append((run.duration_s, run.mss_bytes, run.line_rate_bps, run.hosts[:1]))
        start_s = 0.0
        while True:
            start_s += run.random.expovariate(1 / every)
            for number in range(flows):
                scheme = "rc3" if number == 0 else None
                yield sl.Flow(start_s, run.hosts[0], run.hosts[-1], 3000 + number, scheme)

    seen: list[object] = []
    result = with_workload('kind = "bursts"\nevery = "50ms"')
    flows = result.flows
    assert seen[0] == (2.0, 1460, 1e9, ["left0"])
    assert 20 < flows["start_s"].n_unique() < 80
    assert len(flows) == 4 * flows["start_s"].n_unique()
    assert set(flows["size_bytes"]) == {3000, 3001, 3002, 3003}
    assert set(flows.filter(flows["size_bytes"] == 3000)["scheme"]) == {"rc3"}
    assert with_workload('kind = "bursts"\nevery = "50ms"').digest == result.digest
    assert with_workload('kind = "bursts"\nevery = "50ms"', seed=6).digest != result.digest
    with pytest.raises(sl.ScenarioError, match="allowed: a time from 1ms"):
        with_workload('kind = "bursts"\nevery = "1us"')
    with pytest.raises(sl.ScenarioError, match='did you mean "bursts"'):
        with_workload('kind = "burst"')
    assert next(entry for entry in listed("workload") if entry.name == "bursts").params[0]["default"] == "100ms"


def listed(kind: str) -> list[Any]:
    from sparelane.cli.commands.list import catalogue

    return [entry for entry in catalogue() if entry.kind == kind]


def test_samples_become_a_distribution_whose_load_is_exact() -> None:
    @sl.sizes("two-sizes", summary="small and large")
    def two_sizes(
        random: random.Random, large: int = sl.param(50_000, "the large one", unit="bytes")
    ) -> Iterable[float]:
        return [1000, 1000, 1000, large]

    text = 'kind = "poisson"\nload = 0.004\nend = "1.9s"\nsizes = { kind = "two-sizes", large = "97KB" }'
    flows = with_workload(text).flows
    assert set(flows["size_bytes"]) == {1000, 97_000}
    share = (flows["size_bytes"] == 1000).mean()
    assert share == pytest.approx(0.75, abs=0.08)
    # The expected number of flows of 25,000 bytes from six hosts with 1 Gb/s at 0.4 %.
    rate = flows.height / 1.9
    assert rate == pytest.approx(0.004 * 6 * 1e9 / 8 / 25_000, rel=0.2)
    assert "two-sizes" in {entry.name for entry in listed("sizes")}


def wrong_flow(**change: Any) -> sl.Flow:
    return sl.Flow(**{"start_s": 0.5, "src": "left0", "dst": "right0", "size_bytes": 1000, **change})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"start_s": -1.0}, "flow 2: start_s is -1; allowed: a time from 0.25"),
        ({"start_s": 0.1}, "flow 2: start_s is 0.1; allowed: a time from 0.25"),
        ({"start_s": float("nan")}, "start_s is NaN"),
        ({"src": "lfet0"}, 'flow 2: src is "lfet0"; allowed: the name of a host, such as left0'),
        ({"dst": "left0"}, "flow 2: src and dst are both `left0`"),
        ({"dst": "west"}, "dst is router `west`; allowed: a host"),
        ({"size_bytes": 0}, "flow 2: size_bytes is 0; allowed: 1 to"),
        ({"size_bytes": float("nan")}, "size_bytes is NaN"),
        ({"scheme": "udp"}, 'flow 2: scheme is "udp"; allowed: tcp, rc3, or None'),
        ({"start_s": "now"}, "flow 2: Flow(start_s='now'"),
    ],
)
def test_an_invalid_flow_is_refused_with_its_number(change: dict[str, Any], expected: str) -> None:
    @sl.workload("wrong")
    def wrong(run: Any) -> Iterator[sl.Flow]:
        yield wrong_flow(start_s=0.25)
        yield wrong_flow(**change)

    with pytest.raises(sl.PluginError) as refusal:
        with_workload('kind = "wrong"')
    assert str(refusal.value).startswith('workload "wrong": ')
    assert expected in str(refusal.value)


def test_a_generator_that_fails_names_its_line() -> None:
    @sl.workload("failing")
    def failing(run: Any) -> Iterator[sl.Flow]:
        yield wrong_flow()
        raise RuntimeError("no more")

    with pytest.raises(sl.PluginError, match=r"RuntimeError: no more \(.*test_own_traffic.py, line \d+, in failing\)"):
        with_workload('kind = "failing"')


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([], "the size distribution is empty"),
        ([1000, -3], "sample 1 is -3 bytes; allowed: 1 to"),
        ([float("nan")], "sample 0 is NaN bytes"),
        (["many"], "allowed: a number of bytes"),
        (7, "is not iterable; allowed: an iterable of sizes in bytes"),
    ],
)
def test_invalid_samples_are_refused(samples: Any, expected: str) -> None:
    @sl.sizes("wrong-sizes")
    def wrong_sizes(random: random.Random) -> Iterable[float]:
        return samples  # type: ignore[no-any-return]

    with pytest.raises(sl.PluginError, match='sizes "wrong-sizes"') as refusal:
        with_workload('kind = "poisson"\nload = 0.001\nsizes = { kind = "wrong-sizes" }')
    assert expected in str(refusal.value)


def test_an_undeclared_argument_is_refused() -> None:
    def undeclared(run: Any, every: float = 3.0) -> Iterator[sl.Flow]:
        yield wrong_flow()

    with pytest.raises(ValueError, match=r"the argument 'every' is not declared; allowed: every = sparelane.param"):
        sl.workload("undeclared")(undeclared)
    with pytest.raises(ValueError, match=r"there is a (workload|topology) called"):
        sl.workload("poisson")(lambda run: [])
    with pytest.raises(ValueError, match="not a valid name; allowed"):
        sl.sizes("Big Sizes")(lambda random: [1])
