"""Tests of RC3 in the kernel: the changes of its patches, and unchanged behaviour without the option."""

import itertools
import os
import re
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import linux_rc3_off
import pytest

from sparelane._native import LinuxError, ScenarioError
from sparelane.cli.commands import reproduce
from sparelane.papers import registry, select
from sparelane.papers.engine import runner
from sparelane.papers.engine.base import Experiment
from sparelane.papers.pages import report
from sparelane.simulation import simulate
from sparelane.uml import kernel, mapping, plan, running

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

stock, patched = kernel.find(), kernel.find("on")
with_rc3 = pytest.mark.skipif(patched is None, reason="no kernel with RC3: sparelane linux build --rc3")
with_both = pytest.mark.skipif(patched is None or stock is None, reason="it takes both: sparelane linux build [--rc3]")


def completion_s(scheme: str, packets: int) -> float:
    settings = [f"workload.scheme={scheme}", f"workload.size={packets}packets"]
    flows = running.run(SCENARIO, set=settings).result.flows
    assert list(flows["delivered_bytes"]) == [packets * 1460]
    return float(flows["completion_s"][0])


def test_the_series_is_short_and_every_patch_has_a_description() -> None:
    texts = [path.read_text() for path in PATCHES]
    added = sum(line.startswith("+") and not line.startswith("+++") for text in texts for line in text.splitlines())
    assert len(PATCHES) == 6
    assert 300 < added < 900
    for number, (path, text) in enumerate(zip(PATCHES, texts, strict=True), start=1):
        message = text.split("\n---\n")[0].split("\n\n", 1)[1]
        assert len(message) > 100, path.name
        assert f"\nSubject: [PATCH {number}/6] " in text, path.name
        # The author of a patch signs it off.
        author = re.search(r"^From: (.*(?:\n .*)*)$", text, re.MULTILINE)
        assert author is not None
        assert message.splitlines()[-1] == f"Signed-off-by: {' '.join(author[1].split())}", path.name


with_source = pytest.mark.skipif(
    not kernel.ARCHIVE.is_file() or shutil.which("perl") is None, reason=f"no {kernel.ARCHIVE}, or no perl"
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The unpacked kernel source of the distribution: 1.5 GB, deleted after these tests."""
    place = tmp_path_factory.mktemp("linux")
    subprocess.run(["tar", "xf", str(kernel.ARCHIVE)], cwd=place, check=True)
    yield place / kernel.ARCHIVE.name.removesuffix(".tar.xz")
    shutil.rmtree(place)


@with_source
@pytest.mark.slow
def test_checkpatch_finds_nothing_in_any_patch(source: Path) -> None:
    for patch in PATCHES:
        words = ["perl", "scripts/checkpatch.pl", "--strict", "--no-summary", str(patch)]
        found = subprocess.run(words, cwd=source, capture_output=True, text=True, check=False)
        complaints = re.findall(r"^(?:ERROR|WARNING|CHECK): .*$", found.stdout, re.MULTILINE)
        assert (found.returncode, complaints) == (0, []), patch.name
    # Checkpatch works: it complains without the sign-off.
    unsigned = re.sub(r"^Signed-off-by: .*\n", "", PATCHES[0].read_text(), flags=re.MULTILINE)
    words = ["perl", "scripts/checkpatch.pl", "--strict", "-"]
    found = subprocess.run(words, cwd=source, input=unsigned, capture_output=True, text=True, check=False)
    assert "ERROR: Missing Signed-off-by" in found.stdout


@with_source
@pytest.mark.slow
def test_the_series_applies_with_git_am_and_reverts(source: Path, tmp_path: Path) -> None:
    changed = sorted(set(re.findall(r"^diff --git a/(\S+) ", "".join(map(Path.read_text, PATCHES)), re.MULTILINE)))
    for name in changed:
        if (source / name).exists():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, tmp_path / name)
    environment = {
        **os.environ,
        **{f"GIT_{who}_{what}": what for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "the distribution's")
    git("am", "-q", *map(str, PATCHES))
    assert git("log", "--format=%s").count("\n") == 7
    assert git("diff", "--stat", "HEAD~6").splitlines()[-1].startswith(f" {len(changed)} files changed")


# The compiled files of the kernel that the series changes.
OBJECTS = [
    f"net/ipv4/{name}.o" for name in ("proc", "sysctl_net_ipv4", "tcp", "tcp_input", "tcp_offload", "tcp_output")
]


@with_source
@pytest.mark.slow
@pytest.mark.skipif(any(shutil.which(tool) is None for tool in kernel.TOOLS), reason="no compiler for a kernel")
@pytest.mark.parametrize(
    "options", ["", "CONFIG_IPV6=y\n", "CONFIG_TCP_RC3=y\n"], ids=["off", "off-ipv6", "without-ipv6"]
)
def test_the_patched_sources_compile_without_a_warning_with_the_option_off_and_on(source: Path, options: str) -> None:
    if not (source / "Documentation" / "networking" / "tcp_rc3.rst").exists():
        for patch in PATCHES:
            subprocess.run(["patch", "-p1", "--forward", "--silent", "-i", str(patch)], cwd=source, check=True)
    wanted = source / "wanted.config"
    wanted.write_text((kernel.FILES / "kernel.config").read_text() + options)
    make = ["make", "ARCH=um", "KCFLAGS=-Werror"]
    subprocess.run([*make, "allnoconfig", f"KCONFIG_ALLCONFIG={wanted}"], cwd=source, capture_output=True, check=True)
    has_option = "CONFIG_TCP_RC3=y" in (source / ".config").read_text().splitlines()
    assert has_option == ("RC3" in options)
    built = subprocess.run([*make, "-j2", *OBJECTS], cwd=source, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[-2000:]
    names = subprocess.run(["nm", "net/ipv4/tcp_output.o"], cwd=source, capture_output=True, text=True, check=True)
    assert ("tcp_rc3_send_tail" in names.stdout) == has_option


@pytest.mark.parametrize(
    ("setting", "what", "allowed"),
    [
        ("workload.size=unlimited", "a flow of unlimited size under rc3", "a size"),
        ("queue={kind='fifo'}", "queue.kind = 'fifo' with rc3", "priority"),
        ("scheme.rc3.inner=ledbat", "scheme.rc3.inner = 'ledbat'", "newreno"),
        ("scheme.rc3.feed=pull", "scheme.rc3.feed", "controller, inner, levels"),
        (
            "scheme.other={controller='rc3', levels=[10]}",
            "scheme.rc3.levels and scheme.other.levels with other values",
            "the same levels for all schemes",
        ),
        ("topology={kind='chain'}", "topology.kind = 'chain' with rc3", "dumbbell"),
        (
            "transport={mss='1440B', header='40B'}",
            "transport.mss = 1440B with transport.header = 40B",
            "1440B with 60B",
        ),
    ],
)
def test_settings_that_the_kernel_does_not_support_with_rc3_are_refused_by_name(
    setting: str, what: str, allowed: str
) -> None:
    settings = ["workload.scheme=rc3", setting]
    if "chain" in setting:
        settings.append("workload.pairs=[['h3', 'h5']]")
    with pytest.raises(ScenarioError) as refusal:
        mapping.network(simulate.prepare(SCENARIO, set=settings))
    assert what in str(refusal.value)
    assert allowed in str(refusal.value)


def test_hosts_and_routers_serve_the_levels_by_code_point() -> None:
    lines = list(plan.lines(mapping.network(simulate.prepare(SCENARIO, set=["workload.scheme=rc3"]))))
    filters = [line for line in lines if " filter add " in line]
    # Four levels, at four hosts and at both ends of the bottleneck.
    assert len(filters) == 4 * (4 + 2)
    assert [line.split()[-3] for line in lines if line.startswith("flow ")] == ["4"]
    assert sum(" prio bands 5 " in line for line in lines) == 4 + 2
    assert [line.split(maxsplit=3)[3] for line in lines if "tcp_rc3_packets" in line] == ["40 400 4000"] * 4
    assert not any("netem delay" in line and "dev eth" in line for line in lines)
    assert sum("tcp_rc3 1" in line for line in lines) == 4
    plain = list(plan.lines(mapping.network(simulate.prepare(SCENARIO, set=["workload.scheme=tcp"]))))
    assert not any("rc3" in line or "filter" in line for line in plain)


@with_rc3
@pytest.mark.parametrize("packets", [1, 10])
def test_a_flow_of_the_first_window_is_as_fast_as_with_tcp(packets: int) -> None:
    assert completion_s("rc3", packets) == pytest.approx(completion_s("tcp", packets), rel=0.01)


@with_both
@pytest.mark.parametrize("packets", [100, 1000])
def test_a_hundred_packets_and_more_are_faster_by_two_fifths(packets: int) -> None:
    assert completion_s("rc3", packets) < 0.6 * completion_s("tcp", packets)


@with_rc3
def test_equal_runs_send_identical_packets() -> None:
    runs = [running.run(SCENARIO, set=["workload.scheme=rc3", "workload.size=500packets"]) for _ in range(2)]
    assert runs[0].packet_digest == runs[1].packet_digest
    assert runs[0].packets == runs[1].packets


@with_both
@pytest.mark.parametrize("case", linux_rc3_off.CASES, ids=str)
def test_without_the_option_the_patched_kernel_sends_the_bytes_of_the_stock_kernel(case: linux_rc3_off.Case) -> None:
    """Every packet leaves at the same nanosecond, also with losses."""
    assert stock is not None
    assert patched is not None
    found = linux_rc3_off.compare(case, (stock, patched))
    assert (found.differing, found.counters) == (0, 0)
    assert found.packets[0] == found.packets[1] > 4000
    assert found.digests[0] == found.digests[1]
    assert (found.marked if case.queue == "marks" else found.retransmitted) > 0


def capture(*packets: tuple[int, bytes]) -> bytes:
    """Returns a pcap file of packets, each with its time in nanoseconds."""
    return bytes(24) + b"".join(struct.pack("<4I", 0, at, len(data), 1500) + data for at, data in packets)


def test_differing_and_missing_packets_and_counters_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    both, late, other = (7, b"as it was"), (8, b"as it was"), (7, b"as it is!")
    known = {"Tcp.RetransSegs": 3, "IpExt.InCEPkts": 4}

    def compared(captures: list[bytes], counted: dict[str, int]) -> linux_rc3_off.Compared:
        def run(*_: object, on: object, **__: object) -> SimpleNamespace:
            files = [capture(both, both)] * 3 if on == "stock" else captures
            return SimpleNamespace(
                captures=files, counters=dict.fromkeys(("left0", "right0"), known if on == "stock" else counted)
            )

        monkeypatch.setattr(running, "run", run)
        return linux_rc3_off.compare(linux_rc3_off.CASES[0], ("stock", "off"))  # type: ignore[arg-type]

    same = compared([capture(both, both)] * 3, known | {"TcpExt.TCPRc3Sent": 0})
    assert (same.packets, same.differing, same.counters) == ((6, 6), 0, 0)
    assert (same.retransmitted, same.marked) == (3, 4)
    differs = compared([capture(both, late), capture(other, both), capture(both)], known | {"TcpExt.TCPRc3Sent": 1})
    assert (differs.packets, differs.differing, differs.counters) == ((6, 5), 3, 2)
    assert differs.digests[0] == same.digests[0] == same.digests[1] != differs.digests[1]


def test_the_page_of_the_comparison_has_a_line_per_transfer_with_its_differences(tmp_path: Path) -> None:
    (tmp_path / "linux").write_bytes(b"a kernel")
    kernels = (
        kernel.Kernel(tmp_path / "linux", tmp_path, "6.12-one"),
        kernel.Kernel(tmp_path / "linux", tmp_path, "6.12-two"),
    )
    same = linux_rc3_off.Compared((5, 5), 0, 0, ("abc", "abc"), 2, 0)
    done = [(case, same) for case in linux_rc3_off.CASES[1:]]
    page = linux_rc3_off.page([*done, (linux_rc3_off.CASES[0], replace(same, differing=3, counters=1))], kernels)
    assert f"of {5 * len(linux_rc3_off.CASES)} captured packets 3 differ" in page
    assert page.count("\n| newreno |") == page.count("\n| cubic |") == 4
    assert "6.12-two" in page


@with_rc3
def test_a_kernel_contains_neither_time_nor_place_of_its_build() -> None:
    assert patched is not None
    content = patched.binary.read_bytes()
    assert b"(sparelane@sparelane)" in content
    assert b"#1 Thu Jan  1 00:00:00 UTC 1970" in content


@dataclass(frozen=True)
class Segment:
    """A TCP segment in a capture."""

    time_s: float
    point: int
    from_port: int
    to_port: int
    sequence: int
    acknowledges: int
    payload: int
    blocks: list[tuple[int, int]]


def segments_of(capture: bytes) -> Iterator[Segment]:
    """Returns the TCP segments of a capture in order."""
    at = 24
    while at < len(capture):
        seconds, nanoseconds, kept, length = struct.unpack_from("<4I", capture, at)
        packet, at = capture[at + 16 : at + 16 + kept], at + 16 + kept
        is_ipv6 = packet[0] >> 4 == 6
        service = ((packet[0] << 8 | packet[1]) >> 4) & 0xFF if is_ipv6 else packet[1]
        ip_header = 40 if is_ipv6 else 20
        segment = packet[ip_header:]
        from_port, to_port, sequence, acknowledges = struct.unpack_from(">2H2I", segment)
        header = (segment[12] >> 4) * 4
        time_s, payload = seconds + nanoseconds / 1e9, length - ip_header - header
        blocks = sack_blocks(segment[20:header])
        yield Segment(time_s, service >> 2, from_port, to_port, sequence, acknowledges, payload, blocks)


def sack_blocks(options: bytes) -> list[tuple[int, int]]:
    """Returns the SACK blocks among the options of a segment (RFC 2018)."""
    while options and options[0] != 0:
        if options[0] == 1:
            options = options[1:]
        elif options[0] == 5:
            edges = struct.unpack_from(f">{(options[1] - 2) // 4}I", options, 2)
            return list(zip(edges[::2], edges[1::2], strict=True))
        else:
            options = options[options[1] :]
    return []


def data_packets(capture: bytes) -> list[tuple[int, int]]:
    """Returns the DSCP and the sequence number of each data packet of a flow, in order."""
    return [(one.point, one.sequence) for one in segments_of(capture) if one.to_port >= 10000 and one.payload]


OFFLOAD = ["transport.send_batch=44", "transport.receive_batch=44", "transport.receive_batch_timeout=20us"]
OVER_IPV6 = ["transport.preset=linux", "transport.mss=1440B", "transport.header=60B"]


@with_rc3
@pytest.mark.parametrize("settings", [[], OFFLOAD, OVER_IPV6, [*OVER_IPV6, *OFFLOAD]])
def test_levels_have_forty_and_four_hundred_packets_at_their_code_points(settings: list[str]) -> None:
    all_settings = ["workload.scheme=rc3", "workload.size=1000packets", *settings]
    outcome = running.run(SCENARIO, set=all_settings, captures=[("left0", "eth")])
    points = Counter(point for point, _ in data_packets(outcome.captures[0]))
    assert points[3] == 40
    assert points[11] == 400
    assert points[19] > 500
    assert set(points) == {0, 3, 11, 19}
    assert outcome.counters["left0"]["TcpExt.TCPRc3Sent"] == sum(points.values()) - points[0]
    assert outcome.counters["left0"]["Tcp.RetransSegs"] == 0


@with_rc3
@pytest.mark.parametrize("limits", [[], [5], [4, 12, 28, 60, 124, 252]])
def test_levels_of_the_scenario_are_those_of_the_kernel(limits: list[int]) -> None:
    settings = ["workload.scheme=rc3", "workload.size=1000packets", f"scheme.rc3.levels={limits}"]
    outcome = running.run(SCENARIO, set=settings, captures=[("left0", "eth")])
    points = Counter(point for point, _ in data_packets(outcome.captures[0]))
    sent = [points[8 * level - 5] for level in range(1, len(limits) + 2)]
    assert sent[:-1] == [end - start for start, end in itertools.pairwise([0, *limits])]
    assert sent[-1] > 500
    assert sum(points.values()) == points[0] + sum(sent)


@with_rc3
def test_a_packet_of_a_level_is_acknowledged_at_that_level_with_sack() -> None:
    """Section 4.1.2: each packet at once, at its own priority, with the cumulative acknowledgment of class 0."""
    settings = ["workload.scheme=rc3", "workload.size=500packets"]
    outcome = running.run(SCENARIO, set=settings, captures=[("right0", "eth")])
    came: Counter[int] = Counter()
    answered: Counter[int] = Counter()
    ends: dict[int, int] = {}
    expected = None
    for one in segments_of(outcome.captures[0]):
        if one.to_port >= 10000 and one.payload:
            came[one.point] += 1
            newest = (one.sequence, one.sequence + one.payload)
            ends[newest[0]] = newest[1]
            expected = newest[0] if expected is None else expected
            while expected in ends:
                expected = ends[expected]
        elif one.from_port >= 10000 and one.point:
            answered[one.point] += 1
            assert one.acknowledges == expected
            start, end = one.blocks[0] if one.blocks else (expected, expected)
            assert expected >= newest[1] or start <= newest[0] < newest[1] <= end, (one, newest)
    assert came[3] == 40
    assert {point: count for point, count in came.items() if point} == answered


@with_rc3
def test_low_priority_acknowledgments_do_not_open_the_window() -> None:
    """Class 0 has the same packets as without RC3 in the first round trips, until head and tail meet."""
    sent: dict[str, list[int]] = {}
    for scheme in ("tcp", "rc3"):
        settings = [f"workload.scheme={scheme}", "workload.size=1000packets"]
        outcome = running.run(SCENARIO, set=settings, captures=[("left0", "eth")])
        head = [
            one for one in segments_of(outcome.captures[0]) if one.to_port >= 10000 and one.payload and not one.point
        ]
        sent[scheme] = [sum(int((one.time_s - head[0].time_s) / 0.02) == trip for one in head) for trip in range(2)]
    assert sent["rc3"] == sent["tcp"] == [10, 20]


@with_rc3
def test_a_batch_of_the_tail_has_one_level_and_at_most_64_kilobytes() -> None:
    """Packets in a batch are in order; the last batch leaves first."""
    settings = ["workload.scheme=rc3", "workload.size=1000packets", *OFFLOAD]
    outcome = running.run(SCENARIO, set=settings, captures=[("left0", "eth")])
    tail = [packet for packet in data_packets(outcome.captures[0]) if packet[0]]
    batches = [1]
    for (before, earlier), (level, sequence) in itertools.pairwise(tail):
        if level == before and sequence == earlier + 1460:
            batches[-1] += 1
        else:
            batches.append(1)
    assert sum(batches) / len(batches) > 10
    assert max(batches) <= 44
    counted = outcome.counters["left0"]
    assert counted["Tcp.OutSegs"] / counted["Ip.OutRequests"] > 10


@with_rc3
@pytest.mark.parametrize("controller", ["newreno", "cubic"])
def test_offload_costs_rc3_no_time_and_spares_the_receiver_most_packets(controller: str) -> None:
    base = ["workload.scheme=rc3", f"scheme.rc3.inner={controller}", "workload.size=1000packets"]
    sends, joins, waits = OFFLOAD
    handed, times_s = {}, {}
    for name, settings in {"none": [], "tso": [sends], "gro": [joins, waits], "both": OFFLOAD}.items():
        outcome = running.run(SCENARIO, set=[*base, *settings])
        times_s[name] = outcome.result.flows["completion_s"][0]
        handed[name] = outcome.counters["right0"]["Ip.InReceives"]
    assert max(times_s.values()) < 1.02 * min(times_s.values())
    assert handed["both"] < 0.2 * handed["none"]


@with_rc3
def test_rc3_over_ipv6_is_as_fast_as_over_ipv4() -> None:
    base = ["workload.scheme=rc3", "workload.size=1000packets"]
    four, six = (running.run(SCENARIO, set=[*base, *settings]).result.flows for settings in ([], OVER_IPV6))
    assert list(six["delivered_bytes"]) == [1000 * 1440]
    assert six["completion_s"][0] == pytest.approx(four["completion_s"][0], rel=0.01)


NEED_KERNEL = [one for one in registry().values() if one.needs_kernel == "rc3"]


def test_an_experiment_without_its_kernel_is_skipped_with_a_message_or_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kernel, "find", lambda rc3="none": None)
    [experiment] = select(["rc3/fig18"])
    with pytest.raises(LinuxError, match="rc3/fig18 needs the Linux kernel with RC3: sparelane linux build --rc3"):
        reproduce.is_ready(experiment, ["rc3/fig18"])
    assert not reproduce.is_ready(experiment, ["rc3"])
    assert "skipped: rc3/fig18 needs" in capsys.readouterr().err
    assert reproduce.is_ready(registry()["rc3/model"], [])


@with_rc3
@pytest.mark.parametrize("experiment", NEED_KERNEL, ids=[one.id for one in NEED_KERNEL])
def test_claims_of_the_paper_hold_on_the_kernel(experiment: Experiment, tmp_path: Path) -> None:
    [done] = runner.reproduce([runner.Task(experiment, experiment.quick)], 2, lambda share: None)
    keys = [row.key for row in done.evaluation.rows]
    assert len(set(keys)) == len(keys)
    assert done.verdicts
    assert [verdict.text for verdict in done.verdicts if verdict.holds is False] == []
    report.save_experiment(done, tmp_path)
    assert (tmp_path / experiment.id / "figure.png").stat().st_size > 0


# A flow that fills the bottleneck, another that starts later, and one packet with RC3, so that all runs have the same
# hosts.
COMPETING = (
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
size = "20000packets"
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
@pytest.mark.parametrize("controller", ["newreno", "cubic"])
def test_the_tail_takes_nothing_from_a_competing_flow(controller: str) -> None:
    """Section 5.3 of the paper: a flow has the same throughput next to an RC3 flow as next to a TCP flow."""
    settings = [f"scheme.tcp.controller={controller}", f"scheme.rc3.inner={controller}"]

    def delivered(text: str, duration: str) -> int:
        flows = running.run(text, set=[*settings, f"duration={duration}"]).result.flows
        return int(flows["delivered_bytes"][0])

    texts = {scheme: COMPETING.replace("OTHER", scheme) for scheme in ("tcp", "rc3")}
    # The runs are equal until the other flow starts; then it takes its share for half a second.
    before = delivered(texts["tcp"].replace('"1400ms"', '"900ms"'), "1s")
    contested = {scheme: delivered(text, "1500ms") - before for scheme, text in texts.items()}
    assert 0.3 * 0.5e9 / 8 < contested["tcp"] < 0.97 * 0.5e9 / 8, contested
    assert contested["rc3"] > 0.99 * contested["tcp"], contested


@with_rc3
@pytest.mark.parametrize(("controller", "seed"), [("newreno", 1), ("cubic", 2)])
def test_losses_of_head_and_tail_are_repaired_no_slower_than_with_tcp(controller: str, seed: int) -> None:
    # The tail loses about 150 segments, which the head then sends for the first time; some are lost again.
    lossy = ["link={select = 'core', loss = 0.05}", "workload.size=3000packets", "duration=120s"]
    settings = [*lossy, f"scheme.tcp.controller={controller}", f"scheme.rc3.inner={controller}"]
    times_s = {}
    for scheme in ("tcp", "rc3"):
        outcome = running.run(SCENARIO, seed=seed, set=[*settings, f"workload.scheme={scheme}"])
        assert outcome.result.flows["delivered_bytes"][0] == 3000 * 1460
        times_s[scheme] = outcome.result.flows["completion_s"][0]
        if scheme == "rc3":
            assert outcome.counters["left0"]["Tcp.RetransSegs"] > 0
            assert outcome.counters["left0"]["TcpExt.TCPSACKReneging"] == 0
    assert times_s["rc3"] < times_s["tcp"], times_s


# An RC3 flow, and a flow that fills the reverse path, so that low-priority acknowledgments never arrive.
REVERSE = (
    SCENARIO[: SCENARIO.index("[workload]")]
    + """
[[workload]]
kind = "bulk"
scheme = "tcp"
pairs = [["right1", "left1"]]
[[workload]]
kind = "bulk"
scheme = "rc3"
pairs = [["left0", "right0"]]
size = "200packets"
start = "400ms"
"""
)


@with_rc3
def test_the_head_skips_the_received_tail_after_an_ack_bump() -> None:
    """ACK bump, section 4.1.2 of the paper: when the head reaches the tail, one acknowledgment covers all of it."""
    settings = ["topology.bottleneck_rate=500Mbps", "queue.limit=500packets", "duration=600ms"]
    outcome = running.run(REVERSE, set=settings)
    counted = outcome.counters["left0"]
    assert counted["TcpExt.TCPRc3AckBumps"] >= 1
    assert counted["TcpExt.TCPRc3LowAcks"] == 0
    assert counted["TcpExt.TCPRc3Skipped"] > 100
    assert counted["Tcp.RetransSegs"] == 0
    plain = running.run(REVERSE.replace('scheme = "rc3"', 'scheme = "tcp"'), set=settings)
    times_s = [run.result.flows["completion_s"][1] for run in (outcome, plain)]
    assert times_s[0] < 0.8 * times_s[1]
