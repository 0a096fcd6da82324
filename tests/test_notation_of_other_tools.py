"""Messages about the notation of other tools: units, names, files and byte order marks."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import sparelane as sl
from hangs import HANG_S
from sparelane import _native
from sparelane.cli.main import main

SCENARIO = """\
duration = "50ms"
[topology]
kind = "dumbbell"
pairs = 2
[queue]
limit = "100packets"
[scheme.tcp]
controller = "newreno"
[workload]
kind = "bulk"
size = "20kB"
"""
FROM_FILE = SCENARIO.replace('kind = "dumbbell"\npairs = 2', 'kind = "file"\npath = "NAME"')
FLOWS = SCENARIO.replace('kind = "bulk"\nsize = "20kB"', 'kind = "flows"\npath = "NAME"')
SIZES = SCENARIO.replace('size = "20kB"', 'sizes = { kind = "cdf", path = "NAME" }')
TOPO = "host 0\nhost 1\nrouter 2 west\nlink 0 2 1000000000 1000000 20\nlink 2 1 10000000 5000 3333\n"
GRAPHML = (
    '<?xml version="1.0"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">\
<node id="a"/><node id="b"/><edge source="a" target="b"/></graph></graphml>'
)
BOM = "\ufeff"


def cli(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(SCENARIO, encoding="utf-8")
    return tmp_path


def answer(result: Result) -> str:
    assert result.exit_code == 2, result.output
    assert result.output.count("\n") == 1, result.output
    return result.output


def assert_says(text: str, wanted: tuple[str, ...], unwanted: tuple[str, ...]) -> None:
    missing = [word for word in wanted if word not in text]
    wrong = [word for word in unwanted if word in text]
    assert not missing, text
    assert not wrong, text


RATE, DELAY, LIMIT = "topology.bottleneck_rate", "topology.bottleneck_delay", "queue.limit"
# A setting, texts that its error message must contain, and texts that it must not contain.
SETTINGS: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = [
    (f"{RATE}=10Mbit", ('write "10Mbps"',), ("did you mean", "bytes")),
    (f"{RATE}=10mbit", ('write "10Mbps"',), ("did you mean", "bytes")),
    (f"{RATE}=10MBps", ('"80Mbps"', "bits per second"), ('"10Mbps"', "did you mean")),
    (f"{RATE}=1.25MB/s", ('1.25MB/s is "10Mbps"', "bits per second"), ("did you mean",)),
    (f"{RATE}=10mbps", ('"10Mbps" for bits', '"80Mbps" for bytes', "tc"), ("did you mean",)),
    (f"{RATE}=10M", ('"10Mbps"', '"80Mbps"'), ("did you mean",)),
    (f"{RATE}=10", ("needs a unit", "100Mbps"), ("did you mean",)),
    (f"{RATE}=1,5Mbps", ('write "1.5Mbps"',), ("unknown unit",)),
    (f"{RATE}=1,500Mbps", ('"1500Mbps" or "1.500Mbps"',), ("unknown unit",)),
    (f"{RATE}=-5Mbps", ("cannot be negative",), ()),
    (f"{RATE}=nanMbps", ("not a rate",), ()),
    (f"{RATE}=1e400Mbps", ("too large for a rate",), ("not a rate",)),
    (f"{RATE}=10ms", ("unit of time",), ("did you mean",)),
    (f"{LIMIT}=64K", ('"64kB"', '"64KiB"'), ("did you mean",)),
    (f"{LIMIT}=64kb", ('"64kB"', '"64KiB"', '"8kB" for bits'), ("did you mean",)),
    (f"{LIMIT}=1.5packets", ("not a whole number of packets",), ()),
    (f"{LIMIT}=64pkts", ('write "64packets"',), ()),
    (f"{DELAY}=1h", ('write "60min"',), ('"s"', "did you mean")),
    (f"{DELAY}=5m", ('"5min"', '"5ms"'), ("did you mean",)),
    (f"{DELAY}=1e-13s", ("not a whole number of picoseconds",), ()),
    ("scheme.tcp.controller=reno", ('here it is called "newreno"',), ("veno",)),
    ("scheme.tcp.controller=new-reno", ('"newreno"',), ('"veno"?', "not built in")),
    ("scheme.tcp.controller=bbr1", ('called "bbr"',), ('"bbr3"',)),
    ("scheme.tcp.controller=bbrv3", ('called "bbr3"',), ()),
    ("scheme.tcp.controller=bbr2", ("not built in", "bbr3 is its successor"), ("did you mean",)),
    ("scheme.tcp.controller=ctcp", ('called "compound"',), ('"dctcp"?',)),
    ("scheme.tcp.controller=htcp", ('"h-tcp"',), ('"rtcp"?',)),
    ("scheme.tcp.controller=tahoe", ("Tahoe is not built in",), ("did you mean",)),
    ("queue.kind=droptail", ('called "fifo"',), ('"weighted-tail-drop"?',)),
    ("queue.kind=drop-tail", ('called "fifo"',), ()),
    ("queue.kind=tail-drop", ('called "fifo"',), ()),
    ("queue.kind=taildrop", ('called "fifo"',), ()),
    ("queue.kind=pfifo", ('called "fifo"',), ('"pie"',)),
    ("queue.kind=fq_codel", ('"fq-codel"',), ()),
    ("queue.kind=pi2", ("not built in",), ("did you mean",)),
    ("queue.kind=wred", ("not built in",), ("did you mean",)),
    ("topology.kind=parking-lot", ('called "chain"',), ()),
    ("topology.kind=leaf-spine", ('called "spine-leaf"',), ()),
    ("workload.kind=incast", ('"bulk"', '"requests"'), ()),
    ("workload.kind=ftp", ('called "bulk"',), ()),
    ("transport.ecn=rfc3168", ('called "classic"',), ()),
]


@pytest.mark.parametrize(("setting", "wanted", "unwanted"), SETTINGS, ids=[one[0] for one in SETTINGS])
def test_names_and_units_of_other_tools_are_answered_with_ours(
    setting: str, wanted: tuple[str, ...], unwanted: tuple[str, ...], here: Path
) -> None:
    text = answer(cli("check", "s.toml", "--set", setting))
    # The list of allowed values names everything, so only the rest of the message is checked.
    value = setting.partition("=")[2]
    before, _, after = text.partition("; allowed: ")
    problem = before + "".join(after.partition(";")[1:]) if value in text else text
    assert_says(problem, wanted, unwanted)


@pytest.mark.parametrize(
    ("setting", "same"),
    [
        (f"{DELAY}=0.010000000000000002s", f"{DELAY}=10ms"),
        (f"{DELAY}=1.0000000000000002e-2s", f"{DELAY}=10ms"),
        (f"{RATE}=9999999.999999998bps", f"{RATE}=10Mbps"),
        (f"{LIMIT}=29.999999999999996packets", f"{LIMIT}=30packets"),
        ("workload.size=20000.000000000004B", "workload.size=20kB"),
    ],
)
def test_numbers_with_floating_point_errors_are_rounded(setting: str, same: str, here: Path) -> None:
    def digest(one: str) -> str:
        key, _, value = one.partition("=")
        return sl.run(here / "s.toml", set={key: value}).digest

    assert digest(setting) == digest(same)


FILES: list[tuple[str, str, str, tuple[str, ...]]] = [
    (FROM_FILE, "in.cm", "Nodes 4\nConnections 1\n0->3 start 0 size 2\n", ("connection matrix", "[[workload]]")),
    (FROM_FILE, "flow.txt", "1\n1 0 3 100 100000 0.0\n", ("unknown kind of file", "flow format of the HPCC")),
    (FROM_FILE, "net.dot", "graph { a -- b }\n", ("Graphviz", "GraphML")),
    (FLOWS, "n.xml", GRAPHML, ("this is GraphML", "[topology]")),
    (FLOWS, "n.topo", "Nodes 4\nTiers 2\nPodsize 4\n", ("htsim's .topo", "[topology]")),
    (FROM_FILE, "n.topo", "", ("n.topo: this file is empty",)),
    (FROM_FILE, "lte.down", "1\n1\n2\n4\n", ("Mahimahi", "trace = ")),
    (FLOWS, "f.flows", TOPO, ("a .topo file of sparelane", "[topology]")),
    (SIZES, "ws.tcl", "1 1 0\n6 1 0.15\n6667 1 1\n", ("ns-2", "three columns")),
]


@pytest.mark.parametrize(
    ("scenario", "name", "content", "wanted"), FILES, ids=[f"{one[1]}: {one[2][:12]}" for one in FILES]
)
def test_files_of_other_tools_are_recognised_with_a_way_to_convert_them(
    scenario: str, name: str, content: str, wanted: tuple[str, ...], here: Path
) -> None:
    (here / name).write_text(content, encoding="utf-8")
    (here / "s.toml").write_text(scenario.replace("NAME", name), encoding="utf-8")
    assert_says(answer(cli("check", "s.toml")), wanted, ("corner", "did you mean"))


BINARY = [
    (gzip.compress(TOPO.encode()), "gunzip"),
    (TOPO.encode("utf-16"), "UTF-16"),
    (b"host 0\nrouter 1 M\xfcnchen\n", ":2"),
    (b"\x00\x01\x02", "binary"),
]


@pytest.mark.parametrize(("content", "word"), BINARY, ids=[one[1] for one in BINARY])
def test_a_binary_file_is_refused_by_name(content: bytes, word: str, here: Path) -> None:
    for scenario, name in ((FROM_FILE, "n.topo"), (FLOWS, "f.flows"), (SIZES, "c.csv")):
        (here / name).write_bytes(content)
        (here / "s.toml").write_text(scenario.replace("NAME", name), encoding="utf-8")
        assert_says(answer(cli("check", "s.toml")), ("text", word, name), ())
    (here / "b.toml").write_bytes(content)
    for command in ("run", "check", "sweep"):
        assert_says(answer(cli(command, "b.toml")), ("b.toml:", "text", word), ())
    done = CliRunner().invoke(main, ["run", "-"], input=content)
    assert_says(answer(done), ("stdin:", "text", word), ())


def test_a_capture_is_refused_as_a_network_and_as_sizes_and_if_it_is_damaged(here: Path) -> None:
    content = b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00"
    for scenario, name, words in (
        (FROM_FILE, "n.topo", ("text", "packet capture", "[[workload]]")),
        (SIZES, "c.csv", ("text", "packet capture", "[[workload]]")),
        (FLOWS, "f.pcap", ("f.pcap: the capture is damaged after 0 packets", "allowed: pcap or pcapng")),
    ):
        (here / name).write_bytes(content)
        (here / "s.toml").write_text(scenario.replace("NAME", name), encoding="utf-8")
        assert_says(answer(cli("check", "s.toml")), words, ())


def test_a_directory_in_place_of_a_file_is_refused_as_such(here: Path) -> None:
    (here / "n.topo").mkdir()
    (here / "s.toml").write_text(FROM_FILE.replace("NAME", "n.topo"), encoding="utf-8")
    assert_says(answer(cli("check", "s.toml")), ("this is a directory", "n.topo"), ())


@pytest.mark.parametrize("command", ["run", "check", "sweep"])
@pytest.mark.parametrize(
    ("content", "word"),
    [(TOPO, "a .topo file of sparelane"), (GRAPHML, "GraphML"), ("import x\n", "--plugin"), ("", "empty")],
)
def test_a_file_of_another_kind_in_place_of_a_scenario_is_refused_as_such(
    command: str, content: str, word: str, here: Path
) -> None:
    (here / "x.toml").write_text(content, encoding="utf-8")
    assert_says(answer(cli(command, "x.toml")), ("x.toml", word), ())


def test_a_byte_order_mark_is_accepted_in_all_text_files(here: Path) -> None:
    plain = sl.run(SCENARIO).digest
    (here / "s.toml").write_text(BOM + SCENARIO, encoding="utf-8")
    assert sl.run(here / "s.toml").digest == plain
    assert sl.run(BOM + SCENARIO).digest == plain
    done = CliRunner().invoke(main, ["run", "-", "-o", "out"], input=BOM + SCENARIO)
    assert done.exit_code == 0, done.output
    files = {
        "n.topo": (FROM_FILE, TOPO),
        "n.graphml": (FROM_FILE, GRAPHML),
        "n.gml": (FROM_FILE, "graph [ node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 ] ]"),
        "f.flows": (FLOWS, "0 0 1 1000\n"),
        "f.csv": (FLOWS, "start,src,dst,size\n0s,left0,right0,1kB\n"),
        "c.csv": (SIZES, "0,0\n1000,1\n"),
    }
    for name, (scenario, content) in files.items():
        text = scenario.replace("NAME", name)
        digests = []
        for mark in ("", BOM):
            (here / name).write_text(mark + content, encoding="utf-8")
            (here / "s.toml").write_text(mark + text, encoding="utf-8")
            digests.append(sl.run(here / "s.toml").digest)
        assert digests[0] == digests[1], name
    (here / "w.toml").write_text(BOM + SCENARIO.replace('"20kB"', '["10kB", "20kB"]'), encoding="utf-8")
    assert cli("sweep", "w.toml", "-o", "swept", "--jobs", "1").exit_code == 0


def test_a_byte_order_mark_is_accepted_in_a_plugin(here: Path) -> None:
    plugin = 'import sparelane as sl\n@sl.sizes("marked", summary="s")\ndef marked(random):\n    return [1000]\n'
    (here / "p.py").write_text(BOM + plugin, encoding="utf-8")
    words = [sys.executable, "-m", "sparelane", "list", "marked", "--plugin", "p.py"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=HANG_S)
    assert "sizes marked" in done.stdout


# A search word, names or keys that must be found, and texts that must not be in the output.
SEARCHES: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = [
    ("ecn", ("[transport]", "mark_at", "dctcp"), ()),
    ("ECN", ("[transport]", "mark_at"), ()),
    ("loss", ("[[link]]", "loss_from", "probability that a packet is lost"), ()),
    ("delay", ("[[link]]", "bottleneck_delay", "delayed_ack"), ()),
    ("reno", ("is newreno", "controller newreno", "RFC 5681"), ()),
    ("droptail", ("is fifo", "queue fifo"), ()),
    ("tail-drop", ("is fifo", "queue fifo"), ()),
    ("netem", ("[[link]]", "delay", "loss", "rate", "[[change]]"), ()),
    ("fq_codel", ("queue fq-codel",), ()),
    ("bandwidth", ("rate", "[[link]]"), ()),
    ("buffer", ("limit", "[queue]"), ()),
    ("incast", ("bulk", "requests"), ()),
    ("asymmetric", ("rate_from", "[[link]]"), ()),
    ("on-off", ("aggregate", "web-users"), ()),
    ("tahoe", ("not built in",), ("timeout",)),
    ("initial window", ("initial_window", "cubic"), ()),
    ("prague", ("L4S", "virtual_rtt"), ()),
    ("rtt", ("[[link]]", "delay"), ()),
]


@pytest.mark.parametrize(("word", "wanted", "unwanted"), SEARCHES, ids=[one[0] for one in SEARCHES])
def test_list_finds_keys_meanings_and_names_of_other_tools(
    word: str, wanted: tuple[str, ...], unwanted: tuple[str, ...]
) -> None:
    done = CliRunner().invoke(main, ["list", word], env={"COLUMNS": "300"})
    assert done.exit_code == 0, done.output
    assert_says(done.output, wanted, unwanted)


def test_search_results_are_also_printed_as_json() -> None:
    found = json.loads(cli("list", "droptail", "--json").stdout)
    assert found[0]["name"] == "fifo"
    assert "fifo" in found[0]["notes"][0]
    keys = {
        (one["name"], key["name"]) for one in json.loads(cli("list", "ecn", "--json").stdout) for key in one["params"]
    }
    assert ("[transport]", "ecn") in keys


def test_a_search_without_results_suggests_similar_names() -> None:
    assert_says(answer(cli("list", "cubci")), ('"cubic"',), ("veno",))
    assert_says(answer(cli("list", "xyzzy")), ("no entry",), ())


def test_every_alias_leads_to_an_entry_of_the_catalogue() -> None:
    entries = _native.catalogue()
    names = {entry["name"] for entry in entries} | {"classic"}
    keys = {f"{entry['name']} {param['name']}" for entry in entries for param in entry["params"]}
    for alias in _native.aliases():
        assert set(alias["names"]) <= names, alias
        assert set(alias["keys"]) <= keys, alias
        for word in alias["words"]:
            assert CliRunner().invoke(main, ["list", word]).exit_code == 0, word


def test_python_reads_every_unit_that_the_parser_accepts() -> None:
    taken = json.loads(_native.json_schema())["definitions"]["rate"]["pattern"]
    names = taken.rpartition("(")[2].partition(")")[0].split("|")
    assert len(names) >= 10
    assert {_native.quantity(f"10{name}") for name in names} == {(10.0**power, "bit/s") for power in (1, 4, 7, 10, 13)}
    assert _native.quantity("10µs") == _native.quantity("10us")
