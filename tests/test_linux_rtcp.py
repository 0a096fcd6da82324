"""Tests of RTCP in the kernel of scenarios: constants, refused settings, and transfers compared with the simulator."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from sparelane import _native
from sparelane._native import ScenarioError
from sparelane.papers import registry
from sparelane.papers.engine import declared, simulations
from sparelane.papers.engine.base import Effort, Outcome
from sparelane.papers.engine.rows import Evaluation
from sparelane.papers.rtcp import clients, testbed
from sparelane.reports import plots
from sparelane.simulation import simulate
from sparelane.uml import kernel, mapping, plan, running
from sparelane.uml.network import Network

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
with_kernel = pytest.mark.skipif(kernel.find() is None, reason="there is no kernel: sparelane linux build")

SCENARIO = """
title = "One flow of RTCP"
duration = "10s"
[topology]
kind = "dumbbell"
access_rate = "100Mbps"
bottleneck_rate = "50Mbps"
bottleneck_delay = "18ms"
[queue]
limit = "1000packets"
[scheme.flow]
controller = "rtcp"
interface = "delay"
alpha = 500
delta = 12.5
min_window = 2
[workload]
kind = "bulk"
size = "10MB"
"""


def network(*settings: str) -> Network:
    return mapping.network(simulate.prepare(SCENARIO, set=list(settings)))


def constants(*settings: str) -> list[int]:
    """Returns the numbers on the kernel's command line."""
    [word] = network(*settings).parameters
    name, _, numbers = word.partition("=")
    assert name == "tcp_rtcp.settings"
    return [int(number) for number in numbers.split(",")]


def test_the_constants_are_those_that_the_bpf_loader_sets() -> None:
    settings = [("alpha", "500"), ("delta", "12.5"), ("min_window", "2")]
    loaded = _native.linux_constants("rtcp", settings, 100_000_000)
    assert constants() == loaded[: len(constants())]
    assert not any(loaded[len(constants()) :])
    # alpha in Q16, delta in KB per microsecond in Q16, and a smoothing of one half.
    assert constants()[:3] == [500 << 16, round(0.0125 * 65536), 1 << 15]


def test_the_minimum_window_is_the_simulators_default_or_the_schemes() -> None:
    without = SCENARIO.replace("min_window = 2\n", "")
    [word] = mapping.network(simulate.prepare(without)).parameters
    assert word.split(",")[6] == "1"
    assert constants()[6] == 2


def test_weights_by_size_come_from_the_scheme() -> None:
    weights = "scheme.flow.weights={ urgent = 30000, high-volume = 5000 }"
    found = constants('scheme.flow.classify="by-size"', weights, 'scheme.flow.urgent_below="20KB"')
    assert found[8:10] == [20_000, 2]
    # A weight has five numbers; the first weight is that of large flows.
    assert [found[11] >> 16, found[16] >> 16] == [5_000, 30_000]


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ('scheme.flow.interface="apart"', "scheme.flow.interface = 'apart'"),
        ("scheme.flow.weights={ urgent = 1.0 }", "scheme.flow.weights"),
        ("scheme.flow.transport={ rtt_granularity = '1ms' }", "scheme.flow.transport"),
        ('scheme.other={controller = "rtcp", interface = "delay", alpha = 3}', "scheme.other and scheme.flow"),
    ],
)
def test_settings_that_the_program_does_not_support_are_refused_by_name(setting: str, named: str) -> None:
    with pytest.raises(ScenarioError, match=r"<text>: .*--on linux cannot do it; allowed: ") as caught:
        network("workload.scheme=flow", setting)
    assert named in str(caught.value)


def test_a_queue_marks_packets_that_waited_longer_than_its_threshold() -> None:
    lines = list(plan.lines(network("queue={limit = '300packets', mark_at = '20packets'}")))
    # The transmission time of 20 packets of 1500 bytes at 50 Mb/s.
    assert any("codel limit 300 target 1000s interval 1000s noecn ce_threshold 4800us" in line for line in lines)


TESTBED = Path(testbed.__file__).with_name("testbed.toml")
SETTINGS = clients.settings(declared.read(TESTBED, testbed.METRICS, testbed.VALUES).rest)
RUNS = [(setting, scheme) for setting in SETTINGS for scheme in setting.schemes]


@pytest.mark.parametrize("is_reused", [True, False])
@pytest.mark.parametrize(("setting", "scheme"), RUNS, ids=lambda part: getattr(part, "name", part))
def test_the_testbeds_flows_are_the_same_on_both_sides(setting: clients.Setting, scheme: str, is_reused: bool) -> None:
    setting = setting if is_reused else testbed.with_own_connections(setting)
    ours, linux = (testbed.cell(setting, scheme, side, SHORT).simulation(1) for side in testbed.SIDES)
    simulated = simulate.run("rtcp-linux", seed=1, set=list(ours.settings)).flows
    flows = mapping.network(simulate.prepare("rtcp-linux", seed=1, set=list(linux.settings))).flows
    assert [flow.size_bytes for flow in flows] == list(simulated["size_bytes"])
    assert [flow.traffic_class for flow in flows] == list(simulated["traffic_class"].cast(pl.String))
    assert [flow.request for flow in flows] == list(simulated["request"])
    assert {flow.target for flow in flows} == {"right0"}
    assert len({flow.source for flow in flows}) == (1 if setting.name == SETTINGS[0].name else 4)
    assert {flow.pool > 0 for flow in flows} == {is_reused}
    assert {flow.priority > 0 for flow in flows} == {is_reused and scheme == "RTCP"}
    assert (simulated["connection"] == simulated["id"]).all() != is_reused


@with_kernel
def test_an_rtcp_flow_has_the_simulators_bounds_and_repeats_its_packets() -> None:
    settings = ["workload.size=5MB", "sample={ interval = '5ms', flows = [0] }"]
    settings += ["transport={ preset = 'linux', mss = '1448B', header = '52B' }"]
    first, second = (running.run(SCENARIO, set=settings) for _ in range(2))
    assert first.packet_digest == second.packet_digest
    ours = simulate.run(SCENARIO, set=[*settings, "transport.delayed_ack=false"])
    windows = [
        result.series.filter(pl.col("quantity").cast(pl.String) == "cwnd_bytes")["value"].to_numpy() // 1448
        for result in (first.result, ours)
    ]
    # The bounds are two segments and twice the bandwidth-delay product of the line, 1 MB.
    assert [own.min() for own in windows] == [2, 2]
    assert windows[0].max() == pytest.approx(windows[1].max(), rel=0.01)
    # Windows double and halve at other instants than in the simulator, so times are similar but not equal.
    assert first.result.flows["completion_s"][0] == pytest.approx(ours.flows["completion_s"][0], rel=0.4)


@with_kernel
@pytest.mark.long_on_linux
def test_an_rtcp_flow_with_a_larger_weight_gets_more_of_the_link() -> None:
    flows = (
        'classify="by-size"',
        "weights={ urgent = 24000, high-volume = 6000 }",
    )
    settings = [f"scheme.flow.{setting}" for setting in flows]
    # Both flows have the same size. The first is always urgent, since all of its data is below the bound.
    settings += ["topology.pairs=2", "workload.size=5MB", "duration='6s'"]
    heavy = running.run(SCENARIO, set=[*settings, 'scheme.flow.urgent_below="100MB"']).result
    light = running.run(SCENARIO, set=[*settings, 'scheme.flow.urgent_below="1KB"']).result
    queueing = [
        result.flows.select((pl.col("srtt_s") - pl.col("min_rtt_s")).mean()).item() for result in (heavy, light)
    ]
    assert queueing[0] > queueing[1], "a larger weight tolerates more congestion"


def test_flows_on_reused_connections_are_classified_by_priority() -> None:
    weighed = ('scheme.flow.classify="by-size"', "scheme.flow.weights={ urgent = 24000, high-volume = 6000 }")
    small, large = (
        network(*weighed, f"workload.size={size}", "workload.connections=reused").flows[0] for size in ("20KB", "40KB")
    )
    assert (small.priority, large.priority) == (16, 32)
    assert network(*weighed, "workload.size=20KB").flows[0].priority == 0
    # The same constants, but for the kind of class and the numbers of its two classes.
    new, reused = (constants(*weighed, f"workload.connections={word}") for word in ("new", "reused"))
    assert new != reused
    assert {16, 32} <= set(reused)


@with_kernel
def test_small_flows_on_reused_connections_get_the_weight_of_their_class() -> None:
    reused = "kind = 'bulk', scheme = 'flow', connections = 'reused'"
    small = f"{{ {reused}, size = '25KB', flows = 40, gap = '50ms', pairs = [['left0', 'right0']] }}"
    large = f"{{ {reused}, size = '3MB', flows = 3, gap = '700ms', pairs = [['left1', 'right1']] }}"
    settings = ('scheme.flow.classify="by-size"', "topology.pairs=2", "duration=4s", f"workload=[{small}, {large}]")
    mean_s = []
    for urgent, other in ((24000, 6000), (6000, 24000)):
        weights = f"scheme.flow.weights={{ urgent = {urgent}, high-volume = {other} }}"
        flows = running.run(SCENARIO, set=[*settings, weights]).result.flows.filter(pl.col("size_bytes") == 25_000)
        assert flows["connection"].n_unique() < 20 < flows.height
        mean_s.append(sum(flows["completion_s"].to_list()) / flows.height)
    assert mean_s[0] < mean_s[1]


def test_reused_and_new_connections_of_one_scheme_classified_by_size_are_refused() -> None:
    one = "kind = 'bulk', scheme = 'flow', size = '20KB'"
    with pytest.raises(ScenarioError, match="reused and new connections of flow"):
        network(
            'scheme.flow.classify="by-size"',
            "scheme.flow.weights={ urgent = 24000, high-volume = 6000 }",
            f"workload=[{{ {one}, connections = 'reused' }}, {{ {one} }}]",
        )


@with_kernel
def test_dctcp_is_marked_above_the_threshold_of_a_queue() -> None:
    settings = ['scheme.flow={controller = "dctcp"}', 'transport.ecn="dctcp"', "workload.size=20MB"]
    marked = running.run(SCENARIO, set=[*settings, "queue={limit = '1000packets', mark_at = '20packets'}"]).result
    assert marked.links["marked_packets"].sum() > 0
    assert marked.links["dropped_packets"].sum() == 0


def test_the_kernel_is_built_with_the_source_of_the_bpf_program(tmp_path: Path) -> None:
    folder = tmp_path / "net" / "ipv4"
    folder.mkdir(parents=True)
    (folder / "Makefile").write_text("obj-y := tcp.o\n")
    kernel._add_own_parts(tmp_path)
    assert (folder / "Makefile").read_text() == "obj-y := tcp.o\nobj-y += rtcp/\nobj-y += traffic/\n"
    programs = Path(__file__).parents[1] / "crates" / "bpf" / "programs"
    for name in ("rtcp.bpf.c", "fixed.h"):
        copy = folder / "rtcp" / name
        assert not copy.is_symlink()
        assert copy.read_bytes() == (programs / name).read_bytes()
    assert "rtcp.bpf.c" in (folder / "rtcp" / "tcp_rtcp.c").read_text()


EXPERIMENT = registry()["rtcp/testbed"]
SHORT = Effort("full", seeds=2, stop_s=0.4)


def evaluation(factor: float, *schemes: str) -> Evaluation:
    """Evaluates runs in which the simulator replaces Linux, with completion times of some schemes multiplied."""
    outcomes: dict[object, Outcome] = {}
    own = [(testbed.with_own_connections(setting), scheme) for setting, scheme in RUNS]
    for setting, scheme in (*RUNS, *own):
        for seed in SHORT.seed_numbers():
            ours, plain = (testbed.cell(setting, scheme, side, SHORT).simulation(seed) for side in testbed.SIDES)
            outcome = simulations.simulate(ours)
            flows = outcome.flows.with_columns(pl.col("completion_s") * (factor if scheme in schemes else 1.0))
            counted = {"right0": {"Tcp.InSegs": 100, "Tcp.OutSegs": 80}}
            outcomes |= {ours: outcome, plain: replace(outcome, flows=flows, counters=counted)}
            # With an acknowledgment for each segment, both sides are equal.
            outcomes[testbed.cell(setting, scheme, "linux", SHORT, *testbed.EACH).simulation(seed)] = outcome
            orders = testbed.other_orders(setting, scheme, SHORT)
            outcomes |= dict.fromkeys((cell.simulation(seed) for cell in orders), outcome)
    assert set(EXPERIMENT.plan(SHORT)) <= set(outcomes)
    return EXPERIMENT.explain(EXPERIMENT.full, EXPERIMENT.evaluate(SHORT, outcomes))  # type: ignore[arg-type]


def test_the_testbed_compares_both_sides_and_checks_the_papers_order() -> None:
    equal, slow = evaluation(1.0), evaluation(1000.0, "RTCP")
    assert all(row.value == row.paper for row in equal.rows)
    # In some settings, such short runs have no urgent flow.
    missing = sum(row.value is None for row in equal.rows if row.counts)
    assert [verdict.value for verdict in EXPERIMENT.check(EXPERIMENT.full, equal)][:2] == [0, missing]
    counted = [row for row in slow.rows if row.counts]
    rows = [row for row in counted if row.key.scheme == "RTCP" and row.key.metric.name == "FCT" and row.paper]
    assert all(row.value == pytest.approx((row.paper or 0) / 1000) for row in rows)
    off = [row for row in counted if row.deviates and not row.is_explained]
    assert EXPERIMENT.check(EXPERIMENT.full, slow)[1].value == len(off) > missing
    kinds = [row.key.variant for row in slow.rows]
    assert kinds.count(testbed.OWN) == kinds.count("")
    # With an acknowledgment for each segment, Linux is not slow in this test.
    assert all(row.value == row.paper for row in slow.rows if row.key.variant == testbed.EACH_ON_BOTH)
    claims = [
        verdict for verdict in EXPERIMENT.check(EXPERIMENT.full, slow) if "on Linux: RTCP's urgent" in verdict.text
    ]
    assert len(claims) == len(SETTINGS)
    assert not any(verdict.holds for verdict in claims)
    assert any("Cubic 80 %" in note for note in slow.notes)
    with plots.style():
        assert len(EXPERIMENT.draw(slow).axes) == 15


@with_kernel
@pytest.mark.long_on_linux
def test_the_testbed_runs_on_the_kernel_with_cubic_as_in_the_simulator() -> None:
    cells = [testbed.cell(SETTINGS[0], "Cubic", side, SHORT) for side in testbed.SIDES]
    ours, linux = (simulations.simulate(cell.simulation(1)) for cell in cells)
    assert ours.flows.height > 3
    assert list(ours.flows["size_bytes"]) == list(linux.flows["size_bytes"])
    differences = (ours.flows["completion_s"] / linux.flows["completion_s"] - 1).abs()
    assert float(differences.median() or 0.0) < 0.02  # type: ignore[arg-type]
