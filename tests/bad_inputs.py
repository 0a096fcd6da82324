"""Wrong inputs, each with a text that must be in the error message."""

from __future__ import annotations

from dataclasses import dataclass, field

# A valid scenario; each case changes one part of it.
SCENARIO = """\
title = "one of each"
duration = "50ms"
seed = 1
routing = "single-path"

[topology]
kind = "dumbbell"
pairs = 2
bottleneck_rate = "20Mbps"

[queue]
kind = "priority"
limit = "1bdp"

[nic]
kind = "priority"

[host]
interrupt_after = "10us"

[[host_at]]
hosts = ["left0"]
ack_cost = "10us"

[[link]]
between = ["west", "east"]
loss = 0.0

[[queue_at]]
routers = ["west"]
limit = "30packets"

[transport]
mss = "1460B"

[scheme.tcp]
controller = "newreno"

[scheme.rc3]
controller = "rc3"
inner = { controller = "cubic", beta = 0.7 }

[[workload]]
kind = "poisson"
scheme = "tcp"
load = 0.3
sizes = { kind = "fixed", size = "10packets" }

[[workload]]
kind = "bulk"
scheme = "rc3"
pairs = [["left0", "right1"]]
size = "20kB"

[[workload]]
kind = "requests"
scheme = "tcp"
load = 0.1
clients = ["left0"]
sizes = { kind = "points", bytes = [100, 200], probability = [0.5, 0.5] }
fan_out = [{ flows = 1, share = 1.0 }]

[[workload]]
kind = "web-users"
scheme = "tcp"
pairs = [["right0", "left1"]]
users = 1
largest_file = "1MB"

[[workload]]
kind = "all-reduce"
scheme = "tcp"
name = "gradients"
size = "10kB"
algorithm = "tree"
hosts = ["left0", "right0"]
repeat = 2
compute = "1ms"

[[workload]]
kind = "all-to-all"
scheme = "tcp"
after = ["gradients"]
size = "1kB"

[[cross_traffic]]
kind = "constant"
from = ["left0"]
to = ["right0"]
rate = "1Mbps"

[[drop]]
from = "west"
to = "east"
segments = [1]

[[change]]
at = "10ms"
between = ["west", "east"]
down = false

[sample]
flows = [0]
queues = [["west", "east"]]

[measure]
delays = true

[packets]
flow = 0
"""

TIMES = ['"0.1"', "5", '"5 hours"', '"-1s"', "[]", '"1e99s"', "true"]
RATES = ['"0bps"', "100", '"100 mbit"', '"-1Mbps"', '"1e30bps"', "{}"]
SIZES = ["1460", '"1460"', '"-3kB"', '"1.5.2kB"', '"9 kilo"']
WHOLE = ["-1", "0.5", '"2"', "99999999999999999999", "true"]
SHARES = ["-0.1", "1.5", '"120%"', '"half"', "[]"]
LISTS = ["3", '"west"', "true"]
WORDS = ['"nonsense"', "3", "[]"]
TABLES = ["3", '"text"', "true"]

# Invalid values by the path of their key; the message names the key, the value and the allowed values.
VALUES: dict[str, list[str]] = {
    "title": ["3", "[]"],
    "duration": [*TIMES, '"0s"', '"99999999s"'],
    "seed": WHOLE,
    "routing": WORDS,
    "topology": TABLES,
    "topology.kind": [*WORDS, '"dumbell"'],
    "topology.pairs": [*WHOLE, "0", "10000000"],
    "topology.bottleneck_rate": RATES,
    "topology.bottleneck_delay": TIMES,
    "topology.paris": ["2"],
    "queue": TABLES,
    "queue.kind": [*WORDS, '"fiffo"'],
    "queue.limit": [*SIZES, '"1B"', '"0packets"', '"1.5packets"'],
    "queue.mark_at": [*SIZES[:2], '"99GB"'],
    "queue.low_priority": WORDS,
    "queue.push_out": ["1", '"yes"'],
    "queue.rcp": TABLES,
    "queue.rcp.alpha": ['"big"', "-1"],
    "queue.limmit": ['"1bdp"'],
    "nic.full": WORDS,
    "host.interrupt_after": TIMES[:4],
    "host.ack_cost": TIMES[:2],
    "host_at.0.hosts": [*LISTS, '["nobody"]', "[]"],
    "link.0.between": [*LISTS, '["west"]', '["west", "esat"]'],
    "link.0.loss": SHARES,
    "link.0.rate": RATES[:3],
    "link.0.jitter": TIMES[:4],
    "link.0.jitter_distribution": ["3", '"gauss"'],
    "link.0.jitter_correlation": SHARES,
    "link.0.jitter_reorders": ["1"],
    "link.0.reorder": SHARES,
    "link.0.reorder_distance": ["0", "1.5", '"3"'],
    "link.0.reorder_within": ['"-1ms"', "3"],
    "link.0.duplicate": SHARES,
    "link.0.corrupt": SHARES,
    "link.0.burst_loss": ["0.1", "{ p = 0.1 }", "{ p = 2, r = 0.1 }"],
    "link.0.policer": ["3", '{ rate = "1Mbps" }', '{ rate = "1Mbps", burst = "10B" }'],
    "link.0.effects_from": ['"left0"', "3"],
    "link.0.trace": ["3", '"nowhere.trace"', '"."'],
    "change": TABLES,
    "change.0.at": TIMES[:4],
    "change.0.between": [*LISTS, '["west"]', '["left0", "east"]'],
    "change.0.rate": RATES[:4],
    "change.0.delay": ['"-1ms"', "3"],
    "change.0.loss": SHARES,
    "change.0.down": ["1", '"yes"'],
    "queue_at.0.routers": [*LISTS, '["left0"]', "[]"],
    "queue_at.0.share": SHARES[:3],
    "transport.mss": [*SIZES, '"10B"'],
    "transport.sack": ["1", '"no"'],
    "transport.preset": WORDS,
    "transport.ecn": ['"sometimes"', "3"],
    "transport.delayed_ack": ["3", '"yes"', "{ every = 0 }"],
    "transport.min_rto": TIMES[:4],
    "transport.receive_window": ["0", '"huge"'],
    "transport.read_rate": ["0", '"slow"', '"5 parsecs"', '"-5Mbps"'],
    "scheme": TABLES,
    "scheme.tcp": TABLES,
    "scheme.tcp.controller": [*WORDS, '"newrno"'],
    "scheme.tcp.class": WHOLE[:3],
    "scheme.tcp.initial_window": ["0", '"ten"', "1e9"],
    "scheme.tcp.transport": TABLES[:2],
    "scheme.tcp.lanes": ["3"],
    "scheme.rc3.levels": ["3", '"40"', "[40, 4]", "[1, 2, 3, 4, 5, 6, 7]", "[0.5]"],
    "scheme.rc3.inner": ["3", '"rc3"', "{ beta = 0.7 }", '{ controller = "nobody" }'],
    "scheme.rc3.inner.beta": ["2", '"seven"', "true"],
    "scheme.rc3.feed": WORDS,
    "workload": TABLES,
    "workload.0.kind": [*WORDS, '"poison"'],
    "workload.0.scheme": ['"udp"', "3"],
    "workload.0.load": [*SHARES[:1], "3.5", '"much"', "0"],
    "workload.0.load_on": WORDS,
    "workload.0.sizes": [*TABLES, "{}", '{ kind = "huge" }'],
    "workload.0.sizes.size": [*SIZES[:2], '"0B"'],
    "workload.0.sources": [*LISTS, '["nobody"]', "[]"],
    "workload.0.start": TIMES[:3],
    "workload.0.end": ['"0s"', "3"],
    "workload.0.mix": ["3", "{}", "{ nobody = 1.0 }"],
    "workload.0.writes": ["3", "{}", '{ first = "1kB" }'],
    "workload.0.traffic_classes": ["3", "[]", "[{}]", '[{ name = "a", below = "1kB" }]'],
    "workload.1.pairs": ['"everyone"', '[["left0"]]', '[["left0", "west"]]', '[["left0", "left0"]]'],
    "workload.1.flows": WHOLE[:3],
    "workload.1.size": [*SIZES[:3], '"0B"', '"endless"'],
    "workload.1.gap": TIMES[:2],
    "workload.2.clients": ["3", "[]", '["nobody"]'],
    "workload.2.fan_out": ["3", "[]", "[{ flows = 1 }]", "[{ flows = 0, share = 1.0 }]"],
    "workload.2.sizes.probability": ["[0.5]", "[2, -1]", '"half"'],
    "workload.2.sizes.bytes": ["[200, 100]", "[0.5, 1]", '"many"'],
    "workload.3.users": WHOLE[:3],
    "workload.3.pairs": ["[]", '[["right0"]]', '"all"'],
    "workload.3.tail_alpha": ["0", '"thick"'],
    "workload.4.size": [*SIZES[:3], '"0B"', '"unlimited"'],
    "workload.4.algorithm": WORDS,
    "workload.4.hosts": [*LISTS, '["nobody"]', "[]", '["left0"]', '["left0", "left0"]'],
    "workload.4.repeat": [*WHOLE, "0"],
    "workload.4.compute": TIMES[:3],
    "workload.4.name": ["3", '""'],
    "workload.5.after": ["3", '["nobody"]', "[1]"],
    "cross_traffic": TABLES,
    "cross_traffic.0.from": ["3", "[]", '["nobody"]'],
    "cross_traffic.0.rate": [*RATES[:3], '"9Gbps"'],
    "cross_traffic.0.bucket": ["3", "{}", '{ rate = "1kbps", depth = "30kB" }'],
    "drop.0.from": ["3", '"nowhere"', '"left0"'],
    "drop.0.segments": ["3", "[]", "[-1]", '["one"]'],
    "sample.flows": ["0", "[-1]", '["first"]'],
    "sample.queues": ["3", '["west", "east"]', '[["west", "right0"]]'],
    "sample.interval": ["10", '"0s"', '"1ps"'],
    "measure.delays": ["1", '"yes"'],
    "packets.flow": ["-1", '"first"'],
}

# Replacements in the scenario: the old text, the new text, and a part of the message.
TEXTS: list[tuple[str, str, str]] = [
    ("seed = 1", "seed = = 1", ":3: not valid TOML"),
    ("seed = 1", "seed = 1\nseed = 2", ":4: not valid TOML"),
    ("[queue]\n", "[queue\n", ":11: not valid TOML"),
    ('title = "one of each"', 'title = "one of each', ":1: not valid TOML"),
    ('duration = "50ms"\n', "", "duration: missing; allowed: a time above 0s"),
    ('[topology]\nkind = "dumbbell"\npairs = 2\nbottleneck_rate = "20Mbps"\n', "", "topology: missing"),
    ('kind = "dumbbell"\n', "", "topology.kind: missing; allowed: dumbbell, chain"),
    ('controller = "newreno"\n', "", "scheme.tcp.controller: missing"),
    ("load = 0.3\n", "", "workload.0.load: missing"),
    ('sizes = { kind = "fixed", size = "10packets" }\n', "", "workload.0.sizes: missing"),
    ("users = 1\n", "", "workload.3.users: missing"),
    ("segments = [1]\n", "", "drop.0.segments: missing"),
    ("loss = 0.0\n", "", "changes nothing; allowed: rate, trace, delay, limit, loss, pause, pfc, burst_loss"),
    ('hosts = ["left0"]\n', "", "host_at.0.hosts: missing"),
    ("[sample]", "[sampel]", "unknown key"),
    ("[[drop]]", "[drops]", "unknown key"),
    ("seed = 1", "seed = 1979-05-27", "1979-05-27 is not a seed"),
    ('[nic]\nkind = "priority"', '[nic]\nkind = "fifo"', "allowed: priority"),
    ('pairs = [["left0", "right1"]]', "pairs = []", "the number of flows is 0; allowed: 1 or more"),
    ("share = 1.0 }]", "share = 0.4 }]", "the shares of the fan-out add up to 0.4; allowed: 1"),
    ("probability = [0.5, 0.5]", "probability = [0.5, 0.6]", "the probabilities add up to 1.1; allowed: 1"),
    ("bytes = [100, 200]", "bytes = []", "2 numbers for 0 sizes; allowed: equal numbers"),
    ("load = 0.3", "load = 0.3\nflows_per_second = 3", "load"),
    ('size = "20kB"', 'size = "20kB"\nsizes = { kind = "rc3" }', "allowed: one of the two"),
    ('size = "20kB"', 'size = "20kB"\ngap = "1ms"\nspread = "1ms"', "allowed: one of the two"),
    ("pairs = 2", "pairs = 2\nk = 4", "topology.k: unknown key; allowed: kind, pairs"),
    ("mss =", "msss =", 'did you mean "mss"?'),
    ("\n[host]\n", "\n[host]\n" + "x = [" * 400 + "\n", "not valid TOML"),
    ('title = "one of each"', 'title = "\\q"', "not valid TOML"),
]

# Other networks: the whole table, and a part of the message.
NETWORKS: list[tuple[str, str]] = [
    ('kind = "fat-tree"\nk = 3', "k = 3"),
    ('kind = "fat-tree"\nk = 100000', "k = 100000"),
    ('kind = "fat-tree"\nk = "4"', "topology.k"),
    ('kind = "chain"\nrouters = 0', "routers = 0"),
    ('kind = "chain"\nrouters = 99999999', "routers"),
    ('kind = "star"\nhosts = 0', "hosts = 0"),
    ('kind = "star"\nhosts = 1', "hosts"),
    ('kind = "spine-leaf"\nspines = 0', "spines = 0"),
    ('kind = "spine-leaf"\nleaves = "four"', 'leaves = "four"'),
    ('kind = "internet2"\nhosts_per_router = 0', "hosts_per_router = 0"),
    ('kind = "internet2"\ncore_delay = 10', "core_delay = 10: a time needs a unit"),
    ('kind = "file"', "topology.path: missing"),
    ('kind = "file"\npath = 3', "path = 3"),
    ('kind = "file"\npath = "nowhere.topo"', "nowhere.topo"),
    ('kind = "file"\npath = "/dev/null"', "unknown kind of file; allowed: .topo"),
    ('kind = "file"\npath = "/dev/zero"', "binary data: /dev/zero"),
    ('kind = "file"\npath = "."', "path"),
    ('kind = "file"\npath = "s.toml"', "unknown kind of file; allowed: .topo"),
]

_GRAPHML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{}</graphml>'
_KEYED = _GRAPHML.format(
    '<key id="r" for="edge" attr.name="{}" attr.type="{}"/><graph edgedefault="undirected">{}</graph>'
)
_NODES = '<node id="a"/><node id="b"/>'
_AB = '<edge source="a" target="b">{}</edge>'

# Files of networks: name, content, and a part of the message.
GRAPHS: list[tuple[str, str, str]] = [
    ("x.graphml", "", "x.graphml"),
    ("x.graphml", "<graphml>", "x.graphml"),
    ("x.graphml", "no xml at all", "x.graphml"),
    ("x.graphml", "<html></html>", "graphml"),
    ("x.graphml", _GRAPHML.format(""), "graph"),
    ("x.graphml", _GRAPHML.format("<graph></graph>"), "x.graphml"),
    ("x.graphml", _GRAPHML.format('<graph><node id="a"/></graph>'), "x.graphml"),
    ("x.graphml", _GRAPHML.format('<graph><node id="a"/><node id="a"/></graph>'), "a"),
    ("x.graphml", _GRAPHML.format("<graph><node/></graph>"), "id"),
    ("x.graphml", _GRAPHML.format(f'<graph>{_NODES}<edge source="a" target="z"/></graph>'), "z"),
    ("x.graphml", _GRAPHML.format(f'<graph>{_NODES}<edge source="a"/></graph>'), "target"),
    ("x.graphml", _GRAPHML.format(f"<graph>{_NODES}</graph>"), "connected"),
    ("x.graphml", _GRAPHML.format(f'<graph>{_NODES}<node id="c"/>{_AB.format("")}</graph>'), 'component = "largest"'),
    ("x.graphml", _KEYED.format("rate", "string", _NODES + _AB.format('<data key="r">fast</data>')), "fast"),
    ("x.graphml", _KEYED.format("rate", "string", _NODES + _AB.format('<data key="r">-3Gbps</data>')), "-3Gbps"),
    ("x.graphml", _KEYED.format("delay", "string", _NODES + _AB.format('<data key="r">5</data>')), "5"),
    ("x.graphml", _KEYED.format("delay", "string", _NODES + _AB.format('<data key="r">2h</data>')), "2h"),
    (
        "x.graphml",
        _KEYED.format("LinkSpeedRaw", "double", _NODES + _AB.format('<data key="r">1e400</data>')),
        "x.graphml",
    ),
    ("x.graphml", '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa">]>' + _GRAPHML.format("&a;"), "x.graphml"),
    ("x.graphml", "<a>" * 100_000, "x.graphml"),
    ("x.gml", "", "x.gml"),
    ("x.gml", "graph", "x.gml"),
    ("x.gml", "graph [", "x.gml"),
    ("x.gml", "graph [ node [ ] ]", "id"),
    ("x.gml", "graph [ node [ id 1 ] node [ id 1 ] ]", "1"),
    ("x.gml", "graph [ node [ id 1 ] node [ id 2 ] edge [ source 1 ] ]", "target"),
    ("x.gml", "graph [ node [ id 1 ] node [ id 2 ] edge [ source 1 target 7 ] ]", "7"),
    ("x.gml", "graph [ node [ id 1 ] node [ id 2 ] ]", "connected"),
    ("x.gml", "graph [ " + "x [ " * 50_000, "x.gml"),
    ("x.gml", 'graph [ node [ id 1 label "open ]', "x.gml"),
    ("x.xml", "", "x.xml"),
    ("x.xml", "<network></network>", "x.xml"),
    ("x.xml", "<other/>", "x.xml"),
    ("x.xml", '<network><networkStructure><nodes><node id="a"/></nodes></networkStructure></network>', "x.xml"),
    ("topology.txt", "4 1 3\n3\n0 3 100Gbps 1us 0\n", "topology.txt:1: the first line announces 3 links"),
    ("topology.txt", "4 1 1\n3\n0 3 100Gbps 1us 0\n", "topology.txt:1: node 1 has no link"),
    ("topology.txt", "2 0 1\n0 9 100Gbps 1us 0\n", "topology.txt:2: the second node is `9`"),
    ("topology.txt", "2 0 1\n0 0 100Gbps 1us 0\n", "topology.txt:2: the link leads from node 0 to itself"),
    ("topology.txt", "4000000000 0 1\n0 1 100Gbps 1us 0\n", "4000000000 nodes; allowed: at most"),
    ("topology.txt", "2 0 1\n0 1 100Gbps -1us 0\n", "(this file is the topology format of the HPCC"),
    ("htsim.topo", "Nodes 4\nTiers 2\nPodsize 4\n", "`Tier 0` is missing"),
    ("htsim.topo", "Nodes -4\nTiers 2\nPodsize 4\n", "htsim.topo:1: Nodes is `-4`"),
    ("x.topo", "", "this file is empty"),
    ("x.topo", "# no host\n", "two hosts"),
    ("x.topo", "host 0\n", "host 0 has no link; a host needs one"),
    ("x.topo", "host zero\n", "x.topo:1"),
    ("x.topo", "host 0\nhost 0\n", "x.topo:2"),
    ("x.topo", "host 0\nhost 2\n", "x.topo:2"),
    ("x.topo", "host 0\nhost 1\nlink 0 5 1000000 100 10\n", "x.topo:3"),
    ("x.topo", "host 0\nhost 1\nlink 0 1 0 100 10\n", "x.topo:3"),
    ("x.topo", "host 0\nhost 1\nlink 0 1 1000000 -5 10\n", "x.topo:3"),
    ("x.topo", "host 0\nhost 1\nlink 0 1 1000000\n", "x.topo:3"),
    ("x.topo", "host 0\nhost 1\nrouter 2 R\nlink 0 2 1000000 100 10\n", "host"),
    ("x.topo", "host 0\nhost 1\nwormhole 0 1\n", "x.topo:3"),
    ("x.topo", "\x00\x01\x02", "x.topo"),
    ("x.topo", "host 0\nhost 1\n" + "router 2 " + "R" * 2_000_000 + "\n", "host"),
]

# Files of flows and of sizes: the workload, the file and its content, and a part of the message.
WORKLOADS: list[tuple[str, str, str, str]] = [
    ('kind = "flows"', "f.flows", "", "path: missing"),
    ('kind = "flows"\npath = "nowhere.flows"', "f.flows", "", "nowhere.flows"),
    ('kind = "flows"\npath = "f.flows"', "f.flows", "0 0 1\n", "f.flows:1"),
    ('kind = "flows"\npath = "f.flows"', "f.flows", "0 0 1 100 tcp more\n", "f.flows:1"),
    ('kind = "flows"\npath = "f.flows"', "f.flows", "x 0 1 100\n", "f.flows:1"),
    ('kind = "flows"\npath = "f.flows"', "f.flows", "-1 0 1 100\n", "f.flows:1"),
    ('kind = "flows"\npath = "f.flows"', "f.flows", "0 0 9 100\n", "f.flows:1"),
    ('kind = "flows"\npath = "f.flows"', "f.flows", "0 1 1 100\n", "f.flows:1"),
    ('kind = "flows"\npath = "f.flows"', "f.flows", "0 0 1 many\n", "f.flows:1"),
    ('kind = "flows"\npath = "f.flows"', "f.flows", "0 0 1 99999999999999999999\n", "f.flows:1"),
    ('kind = "flows"\npath = "f.txt"', "f.txt", "2\n1 0 3 9 5 0\n", "f.txt:1: the first line announces 2 flows"),
    ('kind = "flows"\npath = "f.txt"', "f.txt", "1\n1 99 3 9 5 0\n", "f.txt:2: the destination is `99`"),
    ('kind = "flows"\npath = "f.txt"', "f.txt", "1\n1 1 3 9 5 0\n", "f.txt:2: src and dst are both"),
    ('kind = "flows"\npath = "f.txt"', "f.txt", "1\n1 0 3 9 -5 0\n", "(this file is the flow format of the HPCC"),
    ('kind = "flows"\npath = "f.cm"', "f.cm", "Nodes 2\nConnections 2\n0->1 start 0 size 1\n", "f.cm:2: the header"),
    ('kind = "flows"\npath = "f.cm"', "f.cm", "Connections 1\n0->1 trigger 1 size 1\n", "f.cm:2: trigger 1 is not"),
    ('kind = "flows"\npath = "f.cm"', "f.cm", "Connections 1\n0->1 start -1 size 1\n", "f.cm:2: start is `-1`"),
    (
        'kind = "bulk"\nsizes = { kind = "cdf", path = "f.txt" }',
        "f.txt",
        "0 0\n9 97\n",
        "ends at 97; allowed: 1, or 100",
    ),
    ('kind = "bulk"\nsizes = { kind = "cdf" }', "f.csv", "", "sizes.bytes: missing"),
    ('kind = "bulk"\nsizes = { kind = "cdf", path = "no.csv" }', "f.csv", "", "no.csv"),
    ('kind = "bulk"\nsizes = { kind = "cdf", path = "f.csv" }', "f.csv", "", "f.csv"),
    ('kind = "bulk"\nsizes = { kind = "cdf", path = "f.csv" }', "f.csv", "bytes\n100\n", "f.csv"),
    ('kind = "bulk"\nsizes = { kind = "cdf", path = "f.csv" }', "f.csv", "100,0.5\n50,1\n", "f.csv"),
    ('kind = "bulk"\nsizes = { kind = "cdf", path = "f.csv" }', "f.csv", "100,0.5\n200,0.4\n", "f.csv"),
    ('kind = "bulk"\nsizes = { kind = "cdf", path = "f.csv" }', "f.csv", "100,0.5\n200,0.9\n", "f.csv"),
    ('kind = "bulk"\nsizes = { kind = "cdf", path = "f.csv" }', "f.csv", "100,nan\n200,1\n", "f.csv"),
    ('kind = "bulk"\nsizes = { kind = "cdf", path = "f.csv" }', "f.csv", "-5,0.5\n200,1\n", "f.csv"),
    ('kind = "bulk"\nsizes = { kind = "lognormal", median = "1kB", sigma = 0, cap = "2kB" }', "f.csv", "", "sigma"),
    ('kind = "bulk"\nsizes = { kind = "lognormal", median = "1kB", sigma = 1 }', "f.csv", "", "cap: missing"),
    ('kind = "bulk"\nsizes = { kind = "lognormal", median = "3kB", sigma = 1, cap = "2kB" }', "f.csv", "", "cap"),
]

# Replacements in a small sweep file: the old text, the new text, and a part of the message.
SWEEP = """\
duration = "50ms"
[topology]
kind = "dumbbell"
pairs = 2
[queue]
limit = ["10packets", "20packets"]
[scheme.tcp]
controller = "newreno"
[workload]
kind = "bulk"
size = "20kB"
"""
SWEEPS: list[tuple[str, str, str]] = [
    ('["10packets", "20packets"]', '"10packets"', "nothing varies; allowed: a list or a range"),
    ('["10packets", "20packets"]', "[]", "limit: an empty list; allowed: one value or more"),
    ('["10packets", "20packets"]', '["10packets", "10packets"]', '"10packets" is repeated'),
    ('["10packets", "20packets"]', '["10packets", "tiny"]', '"tiny"'),
    ('["10packets", "20packets"]', '[["10packets"], ["20packets"]]', "limit"),
    (
        '["10packets", "20packets"]',
        '{ from = "1packets", to = "9packets" }',
        "a range has one of step, factor and points",
    ),
    ('["10packets", "20packets"]', '{ from = "1packets", to = "9kB", step = "1kB" }', "allowed: one unit"),
    ('["10packets", "20packets"]', '{ from = "9packets", to = "1packets", step = "1packets" }', "is not above from"),
    (
        '["10packets", "20packets"]',
        '{ from = "1packets", to = "9packets", step = "0packets" }',
        "allowed: a step above 0",
    ),
    ('["10packets", "20packets"]', '{ from = "1packets", to = "9packets", step = 1 }', 'in "packets" as from is'),
    ('["10packets", "20packets"]', "{ from = 1, to = 9, step = 0 }", "a step above 0, without a unit, as from"),
    ('["10packets", "20packets"]', '{ from = "1packets", to = "9packets", factor = 1 }', "a factor above 1"),
    (
        '["10packets", "20packets"]',
        '{ from = "1packets", to = "9packets", points = 1 }',
        "points, a whole number from 2",
    ),
    ('["10packets", "20packets"]', '{ from = "1packets", to = "9packets", points = 3, log = 1 }', "log, true or false"),
    ('["10packets", "20packets"]', "{ from = 0, to = 9, points = 3, log = true }", "from above 0"),
    ('["10packets", "20packets"]', '{ from = "x", to = "y", points = 3 }', "is not a number"),
    ('["10packets", "20packets"]', "{ from = 1, to = 9, step = 1, by = 2 }", 'unknown key "by" in a range'),
    ('["10packets", "20packets"]', "{ from = 0, to = 1, step = 0.000001 }", "allowed: at most 10000"),
    ('["10packets", "20packets"]', "{ each = 3 }", "each is the only key of its table"),
    ('["10packets", "20packets"]', "{ each = [] }", "an empty list"),
    ('["10packets", "20packets"]', '{ each = ["1packets"], from = 1 }', "each is the only key of its table"),
    ("limit =", "limmit =", "limmit"),
    ('duration = "50ms"', 'duration = ["50ms", "never"]', "never"),
    ('duration = "50ms"', 'duration = "50ms"\nseed = []', "seed"),
    ('duration = "50ms"', 'duration = "50ms"\nseed = [1, 1]', "is repeated"),
    ('duration = "50ms"', 'duration = "50ms"\nseed = [1, -1]', "-1 is not a seed; allowed: whole numbers"),
    ('duration = "50ms"', 'duration = "50ms"\nseed = "one"', "one is not a seed"),
    ("pairs = 2", "pairs = [2, 3]\nk = [4, 8]", "k"),
    ("pairs = 2", "pairs = [2, 0]", "pairs = 0"),
    ('controller = "newreno"', 'controller = ["newreno", "renoo"]', "renoo"),
    ('controller = "newreno"', 'controller = "newreno"\ninitial_window = [2, -4]', "-4"),
    ('size = "20kB"', 'size = { from = "1kB", to = "1GB", points = 100000 }', "allowed: one unit"),
    ('kind = "bulk"', 'kind = ["bulk", "hulk"]', "hulk"),
    ("[queue]", "[queue", "not valid TOML"),
    ('duration = "50ms"', "duration = = 3", "not valid TOML"),
    ('duration = "50ms"', 'duration = "50ms"\ntitle = ["a", "b"]', "title"),
]


@dataclass(frozen=True, slots=True)
class Line:
    """A wrong command line.

    Attributes:
        words: The arguments.
        message: A text that the error message must contain.
        files: The content of files by name; a name that ends with a slash is a folder.
    """

    words: list[str]
    message: str
    files: dict[str, str] = field(default_factory=dict)


_RUN = {"s.toml": SWEEP.replace('["10packets", "20packets"]', '"10packets"')}
_SWEEP = {"w.toml": SWEEP}
_BENCH = {"x.topo": "host 0\nhost 1\nlink 0 1 1000000 100 10\n", "x.flows": "0 0 1 0\n"}

LINES: list[Line] = [
    Line(["rnu"], 'did you mean "run"?'),
    Line(["--colour"], "--colour"),
    Line(["run"], "FILE"),
    Line(["run", "a.toml", "b.toml"], "unexpected extra argument"),
    Line(["run", "nowhere.toml"], 'there is no file "nowhere.toml"'),
    Line(["run", "dumbell"], 'did you mean "dumbbell-cubic" or "rcp-dumbbell"?'),
    Line(["run", ""], '"" is not a file'),
    Line(["run", "."], "is not a file"),
    Line(["run", "/dev/zero"], "is not a file"),
    Line(["run", "rc3/fig8-load"], "sparelane reproduce rc3/fig8-load"),
    Line(["run", "s.toml", "--seed", "-1"], "--seed", _RUN),
    Line(["run", "s.toml", "--seed", "many"], "--seed", _RUN),
    Line(["run", "s.toml", "--seed", str(2**64)], "is not in the range", _RUN),
    Line(["run", "s.toml", "--seeds", "1"], "is not in the range", _RUN),
    Line(["run", "s.toml", "--seeds", "1000000000"], "is not in the range", _RUN),
    Line(["run", "s.toml", "--jobs", "0"], "--jobs", _RUN),
    Line(["run", "s.toml", "--format", "xml"], "'xml' is not one of 'parquet', 'csv', 'json'", _RUN),
    Line(["run", "s.toml", "--on", "windows"], "'windows' is not one of 'simulator', 'linux'", _RUN),
    Line(["run", "s.toml", "--sed", "1"], "--seed", _RUN),
    Line(["run", "s.toml", "--set"], "--set", _RUN),
    Line(["run", "s.toml", "--set", "duration"], "duration", _RUN),
    Line(["run", "s.toml", "--set", "=3"], "not a key; allowed: names joined by dots", _RUN),
    Line(["run", "s.toml", "--set", "durations=3s"], 'did you mean "duration"?', _RUN),
    Line(["run", "s.toml", "--set", "queue.limit.deep=3"], "limit", _RUN),
    Line(["run", "s.toml", "--set", "workload.5.size=3kB"], "workload", _RUN),
    Line(["run", "s.toml", "--set", "queue..limit=3kB"], "queue..limit", _RUN),
    Line(["run", "s.toml", "--trace", "flow"], "flow", _RUN),
    Line(["run", "s.toml", "--trace", "flow=x"], "x", _RUN),
    Line(["run", "s.toml", "--trace", "packet=3"], "packet", _RUN),
    Line(["run", "s.toml", "--trace", ""], "trace", _RUN),
    Line(["run", "s.toml", "--trace", "port=nowhere"], "nowhere", _RUN),
    Line(["run", "s.toml", "--trace", "flow=1,snap=-3"], "snap", _RUN),
    Line(["run", "s.toml", "--trace", "flow=1", "--seeds", "2"], "--trace", _RUN),
    Line(["run", "s.toml", "-o", "s.toml/x"], "s.toml/x", _RUN),
    Line(["run", "s.toml", "-o", "/proc/none/x"], "/proc/none/x", _RUN),
    Line(["run", "run.json"], "not JSON", {"run.json": "{"}),
    Line(["run", "run.json"], "not the run.json of a run; allowed", {"run.json": "[]"}),
    Line(["run", "run.json"], "not the run.json of a run; allowed", {"run.json": '{"scenario": 3}'}),
    Line(["run", "s.toml", "--plugin", "nowhere.py"], "nowhere.py", _RUN),
    Line(["check"], "FILE"),
    Line(["check", "nowhere.toml"], "nowhere.toml"),
    Line(["check", "s.toml", "--seeds", "0"], "--seeds", _RUN),
    Line(["check", "s.toml", "--set", "queue=3"], "queue", _RUN),
    Line(["check", "w.toml", "--jobs", "none"], "--jobs", _SWEEP),
    Line(["new"], "FILE"),
    Line(["new", "s.toml"], "exists already: use another name", _RUN),
    Line(["new", "no/such/s.toml"], "no/such/s.toml"),
    Line(["list", "newrno"], 'did you mean "newreno"?'),
    Line(["list", ""], "there is no entry"),
    Line(["list", "a", "b"], "unexpected extra argument"),
    Line(["schema", "-o", "no/such.json"], "no/such.json"),
    Line(["schema", "x"], "unexpected extra argument"),
    Line(["sweep"], "FILE"),
    Line(["sweep", "nowhere.toml"], "nowhere.toml"),
    Line(["sweep", "s.toml"], "nothing varies", _RUN),
    Line(["sweep", "w.toml", "--seeds", "0"], "--seeds", _SWEEP),
    Line(["sweep", "w.toml", "--jobs", "-2"], "--jobs", _SWEEP),
    Line(["sweep", "w.toml", "--seeds", "10001"], "--seeds", _SWEEP),
    Line(["sweep", "w.toml", "-o", "w.toml"], "w.toml", _SWEEP),
    Line(["sweep", "w.toml", "--set", "queue"], "an override is KEY=VALUE, as in", _SWEEP),
    Line(["sweep", "w.toml", "--set", "=3"], "not a key; allowed: names joined by dots", _SWEEP),
    Line(["sweep", "w.toml", "--set", "queue.limit=10packets"], "nothing varies", _SWEEP),
    Line(["sweep", "w.toml", "--set", "queue.limit=[]"], "an empty list", _SWEEP),
    Line(["sweep", "w.toml", "--set", "queue.limmit=[1, 2]"], "limmit: unknown key", _SWEEP),
    Line(["sweep", "w.toml", "--set", "workload.7.flows=[1, 2]"], "workload", _SWEEP),
    Line(["sweep", "w.toml", "--set", "seed=[1, x]"], "seed", _SWEEP),
    Line(["sweep", "w.toml", "--set", "scheme=3"], "scheme", _SWEEP),
    Line(["sweep", "w.toml", "--set", "workload=[3]"], "workload", _SWEEP),
    Line(["sweep", "w.toml", "--dask", "nonsense"], "nonsense", _SWEEP),
    Line(["sweep", "w.toml", "-o", "other"], "other", {**_SWEEP, "other/manifest.json": "{}"}),
    Line(["sweep", "w.toml", "-o", "other"], "other", {**_SWEEP, "other/manifest.json": "no json"}),
    Line(["compare"], "WHAT"),
    Line(["compare", "nowhere"], "nowhere"),
    Line(["compare", "empty"], "empty", {"empty/": ""}),
    Line(["compare", "s.toml", "nowhere.toml"], "nowhere.toml", _RUN),
    Line(["compare", "s.toml", "--seeds", "0"], "--seeds", _RUN),
    Line(["compare", "rc3-internet2", "--json", "no/such.json"], "no/such.json"),
    Line(["plot"], "WHAT"),
    Line(["plot", "nowhere"], "nowhere"),
    Line(["plot", "empty"], "empty", {"empty/": ""}),
    Line(["plot", "empty", "-o", "x.jpg"], "x.jpg", {"empty/": ""}),
    Line(["plot", "s.toml"], "s.toml", _RUN),
    Line(["report", "nowhere"], "nowhere"),
    Line(["report", "empty"], "empty", {"empty/": ""}),
    Line(["report", "s.toml"], "s.toml", _RUN),
    Line(["report", "broken"], "broken", {"broken/run.json": "{"}),
    Line(["report", "broken"], "broken", {"broken/manifest.json": '{"kind": "else"}'}),
    Line(["reproduce", "rc3/fig99"], "rc3/fig99"),
    Line(["reproduce", "fig8"], '"rapid/fig8-timescales" or "rc3/fig8-load"'),
    Line(["reproduce", "rc3-internet2"], "sparelane run rc3-internet2"),
    Line(["reproduce", ""], "there is no experiment"),
    Line(["reproduce", "rc3/model", "--seeds", "0"], "--seeds"),
    Line(["reproduce", "rc3/model", "--jobs", "0"], "--jobs"),
    Line(["reproduce", "rc3/model", "--json", "no/such.json"], "no/such.json"),
    Line(["reproduce", "rc3/model", "-o", "s.toml"], "s.toml", _RUN),
    Line(["reproduce", "rc3/model", "--dask", "nonsense"], "nonsense"),
    Line(["bench", "nowhere.topo", "--duration", "1s"], "nowhere.topo"),
    Line(["bench", "x.topo", "--duration", "soon"], "soon", _BENCH),
    Line(["bench", "x.topo"], "--duration", _BENCH),
    Line(["bench", "x.topo", "--duration", "1s"], 'there is no file "x.flows"', {"x.topo": "host 0\n"}),
    Line(["bench", "--ladder", "--ssthresh", "20"], "its own workloads"),
    Line(["kernel", "load", "nonsense"], "nonsense"),
    Line(["kernel", "unload"], "NAME"),
    Line(["kernel", "frobnicate"], "frobnicate"),
    Line(["linux", "frobnicate"], "frobnicate"),
    Line(["run", "s.toml", "--on", "linux", "--seeds", "2"], "--seeds", _RUN),
]

_KEYS = ["--keys", "keys", "--trust", "0" * 64]

# Command lines of transfers and tunnels; none of them reaches a peer.
WIRE: list[Line] = [
    Line(["keys"], "COMMAND"),
    Line(["keys", "new"], "/proc/none"),
    Line(["keys", "new", "--keys", "s.toml"], "s.toml", _RUN),
    Line(["keys", "new", "--keys", "/proc/none"], "/proc/none"),
    Line(["keys", "show", "--keys", "nowhere"], "nowhere"),
    Line(["keys", "trust", "--keys", "keys", "abc"], '"abc" is not a fingerprint'),
    Line(["keys", "trust", "--keys", "keys"], "FINGERPRINT"),
    Line(["keys", "frobnicate"], "frobnicate"),
    Line(["send"], "FILE"),
    Line(["send", *_KEYS], "FILE"),
    Line(["send", *_KEYS, "s.toml", "nowhere:"], '"nowhere:" is not an address; allowed: HOST or HOST:PORT', _RUN),
    Line(["send", *_KEYS, "s.toml", "127.0.0.1:65536"], "is not an address", _RUN),
    Line(["send", *_KEYS, "s.toml", "127.0.0.1:"], "is not an address", _RUN),
    Line(["send", *_KEYS, "s.toml", ":9"], "is not an address", _RUN),
    Line(["send", *_KEYS, "none.txt", "127.0.0.1:9"], "none.txt"),
    Line(["send", *_KEYS, "--cc", "cubik", "s.toml", "127.0.0.1:9"], "cubik", _RUN),
    Line(["send", *_KEYS, "--cc", "", "s.toml", "127.0.0.1:9"], "controller", _RUN),
    Line(["send", *_KEYS, "--set", "lanes=3", "s.toml", "127.0.0.1:9"], "lanes", _RUN),
    Line(["send", *_KEYS, "--set", "levels", "s.toml", "127.0.0.1:9"], "allowed: key=value", _RUN),
    Line(["send", *_KEYS, "--set", "levels=x", "s.toml", "127.0.0.1:9"], "levels", _RUN),
    Line(["recv", *_KEYS, "--listen", "127.0.0.1:0", "-o", "to", "--chmod", "888"], "is not an octal mode", _RUN),
    Line(["send", *_KEYS, "--dscp", "0,99", "s.toml", "127.0.0.1:9"], "99", _RUN),
    Line(["send", *_KEYS, "--dscp", "a", "s.toml", "127.0.0.1:9"], "not a list of numbers", _RUN),
    Line(["send", *_KEYS, "--dscp", "0,3,3", "s.toml", "127.0.0.1:9"], "for two classes", _RUN),
    Line(["send", *_KEYS, "--mtu", "500", "s.toml", "127.0.0.1:9"], "--mtu", _RUN),
    Line(["send", *_KEYS, "--mtu", "big", "s.toml", "127.0.0.1:9"], "--mtu", _RUN),
    Line(["send", *_KEYS, "--window", "0MB", "s.toml", "127.0.0.1:9"], "window", _RUN),
    Line(["send", *_KEYS, "--window", "32", "s.toml", "127.0.0.1:9"], "window", _RUN),
    Line(["send", *_KEYS, "--tail-rate", "100", "s.toml", "127.0.0.1:9"], "allowed: a rate", _RUN),
    Line(["send", *_KEYS, "--tail-rate-cap", "-1Mbps", "s.toml", "127.0.0.1:9"], "rate", _RUN),
    Line(["send", *_KEYS, "--unmarked", "maybe", "s.toml", "127.0.0.1:9"], "'maybe' is not one of", _RUN),
    Line(["send", *_KEYS, "--connect-timeout", "0", "s.toml", "127.0.0.1:9"], "--connect-timeout", _RUN),
    Line(["send", "--keys", "nowhere", "--trust", "0" * 64, "s.toml", "127.0.0.1:9"], "nowhere", _RUN),
    Line(["send", "--keys", "keys", "--trust", "xyz", "s.toml", "127.0.0.1:9"], '"xyz" is not a fingerprint', _RUN),
    Line(["recv", *_KEYS], "--output"),
    Line(["recv", *_KEYS, "--listen", "nowhere:http", "-o", "to"], "is not an address", {"to/": ""}),
    Line(["recv", *_KEYS, "--listen", "127.0.0.1:0", "-o", "none/inside"], "none/inside"),
    Line(["recv", *_KEYS, "--listen", "192.0.2.1:7777", "-o", "to"], "192.0.2.1:7777", {"to/": ""}),
    Line(["recv", *_KEYS, "--listen", "127.0.0.1:0", "-o", "s.toml"], "s.toml", _RUN),
    Line(["recv", *_KEYS, "-o", "to", "--partial-age", "-1"], "--partial-age"),
    Line(["recv", *_KEYS, "-o", "to", "--fsync", "often"], "--fsync"),
    Line(["partial"], "COMMAND"),
    Line(["partial", "list"], "FOLDER"),
    Line(["partial", "list", "nowhere"], "nowhere"),
    Line(["partial", "list", "s.toml"], "s.toml", _RUN),
    Line(["partial", "clean", ".", "--partial-age", "soon"], "--partial-age"),
    Line(["tunnel", *_KEYS], "--listen"),
    Line(["tunnel", *_KEYS, "--forward", "nonsense", "127.0.0.1:9"], "nonsense"),
    Line(["tunnel", *_KEYS, "--forward", "127.0.0.1:8022", "127.0.0.1:9"], "127.0.0.1:8022"),
    Line(["tunnel", *_KEYS, "--listen", "127.0.0.1:0", "--allow", "everything"], "everything"),
    Line(["tunnel", *_KEYS, "--listen", "127.0.0.1:0", "127.0.0.1:9"], "--listen"),
    Line(["path", *_KEYS], "HOST"),
    Line(["path", *_KEYS, "::1"], "is not an address"),
    Line(["path", *_KEYS, "--load", "-1", "127.0.0.1:9"], "--load"),
    Line(["path", *_KEYS, "--load-rate", "fast", "127.0.0.1:9"], "cannot read the load's rate; allowed: a rate"),
    Line(["harm"], "HOST"),
    Line(["harm", *_KEYS, "nowhere"], "--tcp"),
    Line(["harm", "--serve", "nonsense"], "nonsense"),
    Line(["harm", *_KEYS, "--seconds", "0", "127.0.0.1:9"], "--seconds"),
    Line(["harm", *_KEYS, "--rounds", "0", "127.0.0.1:9"], "--rounds"),
]

# Files of aliases, and a part of the message.
ALIASES = [
    ("[archive\n", "hosts.toml: Expected ']'"),
    ('archive = "192.0.2.1"\n', '"archive" is no table; allowed: a table for each alias'),
    ('[archive]\nadress = "192.0.2.1"\n', 'the alias [archive] has the unknown key "adress"; did you mean "address"?'),
    (
        '[archive]\naddress = "192.0.2.1"\n',
        "the alias [archive] has no fingerprint, which is needed: `sparelane keys show`",
    ),
    (f'[archive]\nfingerprint = "{"0" * 64}"\n', "the alias [archive] has no address"),
    ('[archive]\naddress = "192.0.2.1"\nfingerprint = "abc"\n', '[archive]: "abc" is not a fingerprint'),
    ('[archive]\nport = "7777"\n', "has port = '7777'; allowed: a whole number"),
    ("[archive]\naddress = 7\n", "has address = 7; allowed: a text in quotes"),
    *(
        (f'[archive]\naddress = "192.0.2.1"\nport = {port}\nfingerprint = "{"0" * 64}"\n', "allowed: 1 to 65535")
        for port in (0, -1, 65536)
    ),
    (f'[archive]\naddress = "host:7777"\nfingerprint = "{"0" * 64}"\n', "allowed: an address without port"),
    (f'["a:b"]\naddress = "192.0.2.1"\nfingerprint = "{"0" * 64}"\n', "allowed: no colon, slash or space"),
]
WIRE += [
    Line(["send", *_KEYS, "s.toml", "archive"], message, {**_RUN, "sparelane/hosts.toml": text})
    for text, message in ALIASES
]

_LAW = """\
import sparelane

@sparelane.controller("bad-{0}")
class Law(sparelane.Controller):
    {1}
    def on_ack(self, ack):
        {2}
    def on_congestion(self, event):
        {3}
"""
_FLOWS = """\
import sparelane
from sparelane import Flow

@sparelane.workload("bad-{0}")
def flows(run{1}):
    {2}
"""
_SIZES = """\
import sparelane

@sparelane.sizes("bad-{0}")
def sizes(random):
    {1}
"""


def _law(
    number: int, message: str, first: str = "", ack: str = "pass", congestion: str = "pass"
) -> tuple[str, str, str]:
    return _LAW.format(number, first, ack, congestion), f"scheme.tcp.controller=bad-{number}", message


def _flows(number: int, message: str, body: str, more: str = "") -> tuple[str, str, str]:
    return _FLOWS.format(number, more, body), f'workload={{ kind = "bad-{number}", scheme = "tcp" }}', message


def _sizes(number: int, message: str, body: str) -> tuple[str, str, str]:
    change = f'workload={{ kind = "bulk", scheme = "tcp", sizes = {{ kind = "bad-{number}" }} }}'
    return _SIZES.format(number, body), change, message


# Plugin files: the text, a setting that makes the scenario use the plugin, and a part of the message.
PLUGINS: list[tuple[str, str, str]] = [
    ("import nonsense_that_is_not_there\n", "seed=1", "nonsense_that_is_not_there"),
    ("def broken(:\n", "seed=1", "line 1"),
    ("raise ValueError('no')\n", "seed=1", "no ("),
    ("import sys\nsys.exit(3)\n", "seed=1", "ends the program (SystemExit: 3)"),
    ("\x00", "seed=1", "bad.py"),
    ("import sparelane\n@sparelane.controller('bad-a')\nclass Law:\n    pass\n", "seed=1", "sparelane.Controller"),
    (
        "import sparelane\n@sparelane.controller('bad-b')\nclass Law(sparelane.Controller):\n    pass\n",
        "seed=1",
        "on_ack",
    ),
    (_LAW.format("Upper Case", "", "pass", "pass"), "seed=1", "lower-case letters"),
    (_LAW.replace("bad-{0}", "cubic").format(0, "", "pass", "pass"), "seed=1", "cubic"),
    (_LAW.format(1, "x = sparelane.param(2.0, 'too much', min=0.0, max=1.0)", "pass", "pass"), "seed=1", "x"),
    (_LAW.format(2, "x = sparelane.param([], 'a list')", "pass", "pass"), "seed=1", "and not list"),
    (_LAW.format(3, "x = sparelane.param('a', 'a word', choices=['b'])", "pass", "pass"), "seed=1", "x"),
    _law(4, "ZeroDivisionError", ack="1 / 0"),
    _law(5, "cwnd", ack="self.cwnd_bytes = -5"),
    _law(6, "cwnd", ack="self.cwnd_bytes = float('nan')"),
    _law(7, "line 7", ack="self.cwnd_bytes = 'much'"),
    _law(8, "pacing", ack="self.pacing_bps = -1.0"),
    _law(9, "no_such_thing", ack="ack.no_such_thing"),
    _law(24, "SystemExit: 0", ack="raise SystemExit(0)"),
    _law(25, "RecursionError", ack="self.on_ack(ack)"),
    _law(26, "limits() returned 'many'; allowed: a window", first="def limits(self):\n        return 'many'"),
    _law(10, "KeyError", first="def __init__(self):\n        {}['x']"),
    (_law(11, "")[0], 'scheme.tcp={ controller = "bad-11", gain = 3 }', "gain: unknown key"),
    (_law(12, "")[0], "scheme.tcp.controller=bad-21", "bad-21"),
    _flows(13, "Flow", "yield 3"),
    _flows(14, "nobody", "yield Flow(0.0, 'nobody', run.hosts[0], 1000)"),
    _flows(15, "ZeroDivisionError", "yield 1 / 0"),
    _flows(
        16,
        "the start of the flow before it",
        "yield Flow(0.02, run.hosts[0], run.hosts[1], 9)\n    yield Flow(0.01, run.hosts[0], run.hosts[1], 9)",
    ),
    _flows(17, "3 is not iterable; allowed: an iterable of flows", "return 3"),
    (_FLOWS.format(18, ", gain", "return []"), "seed=1", "'gain' is not declared"),
    _sizes(19, "bad-19", "return []"),
    _sizes(20, "bad-20", "return [-5]"),
    _sizes(22, "sample 0 is big; allowed: a number of bytes", "return ['big']"),
    _sizes(23, "ZeroDivisionError", "return [1 / 0]"),
]
