"""RC3 in the kernel: what its patches change, and what they leave as it was."""

import pytest

from sparelane._native import ScenarioError
from sparelane.linux import kernel, mapping, plan, running

PATCHES = sorted((kernel.FILES / "rc3").glob("*.patch"))

SCENARIO = """
duration = "4s"
[topology]
kind = "dumbbell"
pairs = 2
access_rate = "1Gbps"
bottleneck_rate = "1Gbps"
access_delay = "1ms"
bottleneck_delay = "8ms"
[queue]
kind = "priority"
push_out = false
limit = "10000packets"
[scheme.tcp]
controller = "newreno"
[scheme.rc3]
controller = "rc3"
inner = "newreno"
[workload]
kind = "bulk"
pairs = [["left0", "right0"]]
size = "100packets"
"""

stock, patched = kernel.find(), kernel.find(rc3=True)
with_rc3 = pytest.mark.skipif(patched is None, reason="no kernel with RC3: sparelane linux build --rc3")
with_both = pytest.mark.skipif(patched is None or stock is None, reason="it takes both: sparelane linux build [--rc3]")


def completion_s(scheme: str, packets: int) -> float:
    settings = [f"workload.scheme={scheme}", f"workload.size={packets}packets"]
    flows = running.run(SCENARIO, set=settings).result.flows
    assert list(flows["delivered_bytes"]) == [packets * 1460]
    return float(flows["completion_s"][0])


def test_the_series_is_short_and_its_patches_explain_themselves() -> None:
    texts = [path.read_text() for path in PATCHES]
    added = sum(line.startswith("+") and not line.startswith("+++") for text in texts for line in text.splitlines())
    assert len(PATCHES) == 6
    assert 300 < added < 800
    for path, text in zip(PATCHES, texts, strict=True):
        message = text.split("\n---\n")[0].split("\n\n", 1)[1]
        assert len(message) > 100, path.name


@pytest.mark.parametrize(
    ("setting", "what", "allowed"),
    [
        ("workload.size=unlimited", "workload.0.size = 'unlimited' under rc3", "a size"),
        ("queue={kind='fifo'}", "queue.kind = 'fifo' with rc3", "priority"),
        ("scheme.rc3.inner=rcp", "scheme.rc3.inner = 'rcp'", "newreno"),
        ("scheme.rc3.feed=pull", "scheme.rc3.feed", "controller, inner"),
        ("topology={kind='chain'}", "topology.kind = 'chain' with rc3", "dumbbell"),
    ],
)
def test_what_the_kernel_cannot_do_with_rc3_is_refused_by_name(setting: str, what: str, allowed: str) -> None:
    settings = ["workload.scheme=rc3", setting]
    if "chain" in setting:
        settings.append("workload.pairs=[['h3', 'h5']]")
    with pytest.raises(ScenarioError) as refusal:
        mapping.network(mapping.with_settings(SCENARIO, settings), "scenario.toml")
    assert what in str(refusal.value)
    assert allowed in str(refusal.value)


def test_hosts_and_routers_serve_the_levels_by_code_point() -> None:
    lines = list(plan.lines(mapping.network(mapping.with_settings(SCENARIO, ["workload.scheme=rc3"]), "x.toml")))
    filters = [line for line in lines if " filter add " in line]
    # Three levels at four hosts and at both ends of the bottleneck.
    assert len(filters) == 3 * (4 + 2)
    assert [line.split()[-1] for line in lines if line.startswith("flow ")] == ["3"]
    assert not any("netem delay" in line and "dev eth" in line for line in lines)
    assert sum("tcp_rc3 1" in line for line in lines) == 4
    plain = list(plan.lines(mapping.network(mapping.with_settings(SCENARIO, []), "x.toml")))
    assert not any("rc3" in line or "filter" in line for line in plain)


@with_rc3
@pytest.mark.parametrize("packets", [1, 10])
def test_a_flow_of_the_first_window_is_as_fast_as_ever(packets: int) -> None:
    assert completion_s("rc3", packets) == pytest.approx(completion_s("tcp", packets), rel=0.01)


@with_both
@pytest.mark.parametrize("packets", [100, 1000])
def test_a_hundred_packets_and_more_take_two_fifths_less(packets: int) -> None:
    assert completion_s("rc3", packets) < 0.6 * completion_s("tcp", packets)


@with_rc3
def test_equal_runs_are_identical_packets() -> None:
    runs = [running.run(SCENARIO, set=["workload.scheme=rc3", "workload.size=500packets"]) for _ in range(2)]
    assert runs[0].packet_digest == runs[1].packet_digest
    assert runs[0].packets == runs[1].packets


@with_both
@pytest.mark.parametrize("controller", ["newreno", "cubic"])
def test_where_nobody_asks_the_patched_kernel_does_what_the_stock_one_does(
    monkeypatch: pytest.MonkeyPatch, controller: str
) -> None:
    """To the nanosecond. Initial sequence numbers differ: kernels draw them from the time of their build, too."""
    assert stock is not None
    assert patched is not None
    done = []
    for binary in (stock.binary, patched.binary):
        # The guest's path is on the command line, from which the kernel draws its random numbers.
        one = kernel.Kernel(binary, stock.guest, stock.key)
        monkeypatch.setattr(kernel, "find", lambda rc3=False, one=one: one)
        settings = ["workload.scheme=tcp", f"scheme.tcp.controller={controller}", "workload.size=2000packets"]
        outcome = running.run(SCENARIO, set=[*settings, "queue.limit=200packets"])
        done.append((outcome.packets, outcome.result.flows.to_dicts()))
    assert done[0] == done[1]


# A flow that fills the bottleneck, another in its middle, and a packet under RC3, so that hosts are laid out alike.
BESIDE = (
    SCENARIO[: SCENARIO.index("[workload]")]
    + """
[[workload]]
kind = "bulk"
scheme = "tcp"
pairs = [["left0", "right0"]]
[[workload]]
kind = "bulk"
scheme = "OTHER"
pairs = [["left1", "right1"]]
size = "1000packets"
start = "1s"
[[workload]]
kind = "bulk"
scheme = "rc3"
pairs = [["left1", "right1"]]
size = "1packets"
start = "1400ms"
"""
)


@with_rc3
def test_the_tail_takes_nothing_from_a_flow_beside_it() -> None:
    """Section 5.3 of the paper: beside RC3 a flow has what it has beside the same flow under TCP."""
    delivered = {}
    for scheme in ("tcp", "rc3"):
        flows = running.run(BESIDE.replace("OTHER", scheme), set=["duration=1500ms"]).result.flows
        delivered[scheme] = int(flows["delivered_bytes"][0])
    assert delivered["tcp"] > 0.9 * 1.4 * 1e9 / 8
    assert delivered["rc3"] > 0.99 * delivered["tcp"]
