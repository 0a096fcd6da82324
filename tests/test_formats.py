"""Tests of the files in which other simulators describe networks, flows and sizes: each means what it means there."""

import struct
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

import sparelane as sl
from sparelane.cli.main import main

SCENARIO = """\
duration = "100ms"
[topology]
{topology}
[queue]
limit = "100packets"
[scheme.tcp]
controller = "cubic"
[workload]
{workload}
"""
STAR = 'kind = "star"\nhosts = 3'
BULK = 'kind = "bulk"\npairs = "permutation"\nsize = "20kB"'

HPCC_TOPOLOGY = "4 1 3\n3\n0 3 100Gbps 1000ns 0\n1 3 100Gbps 1000ns 0\n2 3 100Gbps 1000ns 0\n"
HPCC_FLOWS = "2\n1 0 3 100 100000 0.0\n2 0 3 100 100000 0.001\n"
HTSIM_TOPOLOGY = """\
Nodes 4
Tiers 2
Podsize 4
Tier 0
Downlink_speed_Gbps 100
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Tier 1
Downlink_speed_Gbps 100
Radix_Down 2
Downlink_Latency_ns 1000
"""
HTSIM_CONNECTIONS = "Nodes 4\nConnections 2\n0->3 start 0 size 2000000\n1->3 start 2e6 size 2000000\n"
SNDLIB = """\
<network xmlns="http://sndlib.zib.de/network" version="1.0"><networkStructure>
<nodes coordinatesType="geographical">
<node id="A"><coordinates><x>10.0</x><y>50.0</y></coordinates></node>
<node id="B"><coordinates><x>11.0</x><y>50.0</y></coordinates></node>
<node id="C"><coordinates><x>12.0</x><y>50.0</y></coordinates></node>
</nodes><links>
<link id="1"><source>A</source><target>B</target>
<preInstalledModule><capacity>9920.0</capacity></preInstalledModule></link>
<link id="2"><source>B</source><target>C</target>
<preInstalledModule><capacity>2480.0</capacity></preInstalledModule></link>
</links></networkStructure></network>
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(here: Path, topology: str = STAR, workload: str = BULK) -> sl.Result:
    (here / "s.toml").write_text(SCENARIO.format(topology=topology, workload=workload), encoding="utf-8")
    return sl.run(here / "s.toml")


def from_file(here: Path, name: str, content: str) -> str:
    (here / name).write_text(content, encoding="utf-8")
    return f'kind = "file"\npath = "{name}"'


def flows_of(here: Path, name: str, content: str) -> str:
    (here / name).write_text(content, encoding="utf-8")
    return f'kind = "flows"\npath = "{name}"'


def rates(result: sl.Result) -> dict[tuple[str, str], int]:
    return {(row["from"], row["to"]): row["rate_bps"] for row in result.links.iter_rows(named=True)}


@pytest.mark.parametrize("name", ["topology.txt", "t.topo"])
def test_a_topology_of_hpcc_has_its_hosts_links_and_delays(name: str, here: Path) -> None:
    result = run(here, from_file(here, name, HPCC_TOPOLOGY))
    gbps = 10**9
    assert {pair: rate for pair, rate in rates(result).items() if pair[1] == "3"} == {
        (host, "3"): 100 * gbps for host in "012"
    }
    # Two links of 1 us each way, and the time to send.
    assert 4e-6 < result.flows["min_rtt_s"][0] < 5e-6


@pytest.mark.parametrize("name", ["flow.txt", "f.flows"])
def test_flows_of_hpcc_start_in_seconds_between_hosts_by_position(name: str, here: Path) -> None:
    flows = run(here, STAR, flows_of(here, name, HPCC_FLOWS)).flows
    columns = flows.select("src", "dst", "size_bytes", "start_s").rows()
    assert columns == [("h2", "h1", 100_000, 0.0), ("h3", "h1", 100_000, 0.001)]


def test_flows_of_hpcc_name_the_nodes_of_its_topology(here: Path) -> None:
    # The switch is node 0, so positions among the hosts differ from ids.
    network = from_file(here, "topology.txt", "3 1 2\n0\n0 1 10Gbps 1us 0\n0 2 10Gbps 1us 0\n")
    flows = run(here, network, flows_of(here, "flow.txt", "1\n1 2 3 100 5000 0\n")).flows
    assert flows.select("src", "dst").rows() == [("1", "2")]


def test_htsims_tiers_and_connections_are_a_leaf_spine_network_with_flows(here: Path) -> None:
    network = from_file(here, "ls.topo", HTSIM_TOPOLOGY)
    result = run(here, network, flows_of(here, "in.cm", HTSIM_CONNECTIONS))
    assert result.flows.select("src", "dst", "size_bytes", "start_s").rows() == [
        ("h0", "h3", 2_000_000, 0.0),
        ("h1", "h3", 2_000_000, 2e-6),
    ]
    assert rates(result)["tor0", "agg1"] == 100 * 10**9
    assert result.links.height == 2 * (4 + 4)


@pytest.mark.parametrize(
    "content",
    ["0 0\n10000 15\n30000 30\n1000000 100\n", "0,0\n10000,15\n30000,30\n1000000,100\n"],
    ids=["blanks", "commas"],
)
def test_sizes_in_per_cent_are_those_in_probabilities(content: str, here: Path) -> None:
    poisson = 'kind = "poisson"\nload = 0.01\ndestinations = "any"\nsizes = {{ kind = "cdf", path = "{}" }}'
    (here / "per-cent.txt").write_text(content, encoding="utf-8")
    (here / "shares.csv").write_text("0,0\n10000,0.15\n30000,0.30\n1000000,1\n", encoding="utf-8")
    found, same = (run(here, STAR, poisson.format(name)).digest for name in ("per-cent.txt", "shares.csv"))
    assert found == same


def test_capacities_of_sndlib_are_rates(here: Path) -> None:
    network = from_file(here, "n.xml", SNDLIB)
    result = run(here, network)
    assert (rates(result)["A", "B"], rates(result)["B", "C"]) == (9_920_000_000, 2_480_000_000)
    assert any("Mb/s is assumed" in warning for warning in result.warnings)
    result = run(here, network + '\ncapacity_unit = "10Mbps"')
    assert rates(result)["B", "C"] == 24_800_000_000
    assert not any("assumed" in warning for warning in result.warnings)


def test_a_directed_graph_keeps_the_rate_of_each_direction(here: Path) -> None:
    gml = """graph [ directed 1 node [ id 0 label "a" ] node [ id 1 label "b" ]
    edge [ source 0 target 1 rate "10Mbps" ] edge [ source 1 target 0 rate "2Mbps" ] ]"""
    result = run(here, from_file(here, "n.gml", gml))
    assert (rates(result)["a", "b"], rates(result)["b", "a"]) == (10_000_000, 2_000_000)
    assert not result.links.filter(pl.col("rate_bps") == 10**10).height


def udp_packet(src: int, dst: int, payload: int) -> bytes:
    """Returns the headers of a packet between two hosts of 10.0.0.0/24."""
    ip = struct.pack("!BBHHHBBH4B4B", 0x45, 0, 28 + payload, 0, 0, 64, 17, 0, 10, 0, 0, src, 10, 0, 0, dst)
    return ip + struct.pack("!HHHH", 5000, 6000, 8 + payload, 0)


def capture(packets: list[tuple[int, bytes]]) -> bytes:
    """Returns a pcap of packets at microseconds that begin with their IP header."""
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    records = (struct.pack("<IIII", us // 10**6, us % 10**6, len(one), len(one)) + one for us, one in packets)
    return header + b"".join(records)


PACKETS = capture([(7, udp_packet(1, 2, 1000)), (1007, udp_packet(3, 1, 500)), (1010, udp_packet(1, 2, 200))])


def convert(*words: str) -> Result:
    return CliRunner().invoke(main, ["convert", *words])


def test_the_flows_of_a_capture_have_their_starts_sizes_and_hosts(here: Path) -> None:
    (here / "c.pcap").write_bytes(PACKETS)
    flows = run(here, STAR, 'kind = "flows"\npath = "c.pcap"').flows
    rows = flows.select("src", "dst", "size_bytes", "start_s").rows()
    assert rows == [("h1", "h2", 1200, 0.0), ("h3", "h1", 500, 0.001)]


def test_the_trace_of_a_flow_is_read_as_that_flow(here: Path) -> None:
    (here / "s.toml").write_text(SCENARIO.format(topology=STAR, workload=BULK), encoding="utf-8")
    sl.run(here / "s.toml", trace="flow=0", trace_folder=here)
    again = run(here, STAR, 'kind = "flows"\npath = "flow-0.pcapng"').flows
    assert again["size_bytes"].to_list() == [20_000]


@pytest.mark.parametrize(
    ("files", "sides"),
    [
        ({"topology.txt": HPCC_TOPOLOGY, "flow.txt": HPCC_FLOWS}, [("1", "0"), ("2", "0")]),
        ({"flow.txt": HPCC_FLOWS}, [("h2", "h1"), ("h3", "h1")]),
        ({"ls.topo": HTSIM_TOPOLOGY, "in.cm": HTSIM_CONNECTIONS}, [("h0", "h3"), ("h1", "h3")]),
    ],
    ids=["network and flows", "flows", "htsim"],
)
def test_converted_files_are_a_scenario_with_the_same_flows(
    files: dict[str, str], sides: list[tuple[str, str]], here: Path
) -> None:
    for name, content in files.items():
        (here / name).write_text(content, encoding="utf-8")
    (here / "out").mkdir()
    done = convert(*files, "-o", "out/fabric.toml")
    assert done.exit_code == 0, done.output
    # The scenario needs none of the files that were converted.
    for name in files:
        (here / name).unlink()
    flows = sl.run(here / "out" / "fabric.toml").flows
    assert flows.select("src", "dst").rows() == sides
    assert flows["completion_s"].is_not_null().all()


def test_a_converted_network_is_the_network_of_the_file(here: Path) -> None:
    network = from_file(here, "n.xml", SNDLIB)
    same = from_file(here, "n.topo", "")
    (here / "n.topo").unlink()
    done = convert("n.xml", "-o", "n.toml")
    assert done.exit_code == 0, done.output
    assert "Mb/s is assumed" in done.output
    assert run(here, same).digest == run(here, network).digest


def test_sizes_and_captures_are_converted(here: Path) -> None:
    (here / "ws.txt").write_text("0 0\n10000 15\n1000000 100\n", encoding="utf-8")
    (here / "c.pcap").write_bytes(PACKETS)
    for name in ("ws.txt", "c.pcap"):
        done = convert(name)
        assert done.exit_code == 0, done.output
    assert sl.run(here / "ws.toml", set={"duration": "100ms"}).flows.height > 0
    assert sl.run(here / "c.toml").flows["size_bytes"].to_list() == [1200, 500]


@pytest.mark.parametrize("content", ["1\n1\n2\n4\n4\n4\n7\n10\n", "time_s,rate_mbps\n0,9.6\n1,9.6\n"])
def test_a_trace_becomes_a_link_that_follows_it(content: str, here: Path) -> None:
    (here / "lte.down").write_text(content, encoding="utf-8")
    done = convert("lte.down", "-o", "lte.toml")
    assert done.exit_code == 0, done.output
    (here / "lte.down").unlink()
    result = sl.run(here / "lte.toml", set={"duration": "1s", "workload.size": "unlimited"})
    assert rates(result)["west", "east"] == pytest.approx(9.6e6, rel=1e-3)


def test_a_scenario_is_written_for_hpcc_and_read_again(here: Path) -> None:
    (here / "s.toml").write_text(SCENARIO.format(topology=STAR, workload=BULK), encoding="utf-8")
    done = convert("s.toml", "--to", "hpcc", "-o", "hpcc")
    assert done.exit_code == 0, done.output
    assert (here / "hpcc" / "topology.txt").read_text().startswith("4 1 3\n0\n0 1 1000000000bps 50000ns 0\n")
    again = run(here, 'kind = "file"\npath = "hpcc/topology.txt"', 'kind = "flows"\npath = "hpcc/flow.txt"')
    first = sl.run(here / "s.toml")
    columns = ("size_bytes", "start_s", "completion_s")
    assert again.flows.select(columns).rows() == first.flows.select(columns).rows()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.txt"], "none.txt: cannot be read (no such file or directory)"),
        (["odd.txt"], "odd.txt: unknown kind of file; allowed: a network, a list of flows"),
        (["flow.txt", "flow.txt"], "is given for the same purpose; allowed: one file of each purpose"),
        (["s.toml"], "s.toml: this is a scenario already; allowed with --to hpcc"),
        (["s.toml", "flow.txt", "--to", "hpcc"], "s.toml: a scenario is complete; allowed: no other file"),
        (["own.flows"], "own.flows: its hosts are those of a network; allowed: the file of the network, too"),
        (["flow.txt", "ws.txt"], "ws.txt: the flows of flow.txt have sizes; allowed: one of the two files"),
        (["lte.down", "flow.txt"], "lte.down: a link of a dumbbell follows the trace; allowed: no other file"),
        (["flow.txt", "-o", "s.toml"], '"s.toml" exists already: use another name'),
        (["bad.txt"], "bad.txt:1: the first line announces 2 flows; the file has 1"),
    ],
)
def test_files_that_cannot_be_converted_are_refused(words: list[str], message: str, here: Path) -> None:
    (here / "lte.down").write_text("1\n2\n", encoding="utf-8")
    (here / "odd.txt").write_text("what is this\n", encoding="utf-8")
    (here / "flow.txt").write_text(HPCC_FLOWS, encoding="utf-8")
    (here / "bad.txt").write_text("2\n1 0 3 100 5 0\n", encoding="utf-8")
    (here / "own.flows").write_text("0 0 1 5\n5 0 1 5\n", encoding="utf-8")
    (here / "ws.txt").write_text("0 0\n10000 15\n1000000 100\n", encoding="utf-8")
    (here / "s.toml").write_text(SCENARIO.format(topology=STAR, workload=BULK), encoding="utf-8")
    before = sorted(here.iterdir())
    done = convert(*words)
    assert done.exit_code == 2
    assert message in done.output
    assert sorted(here.iterdir()) == before
