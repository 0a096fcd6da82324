"""Every key of a scenario has an effect in some scenario; if it has no effect, a warning reports it.

The keys come from the catalogue, as `sparelane list` prints them, so a new key fails here until a scenario in which it
matters is added. Each key is changed to values that follow from its declaration, until the digest of the run differs.
"""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import sparelane
from sparelane import _native
from sparelane.scenario.settings import toml_value
from sparelane.simulation import simulate

# A network with losses, queueing, pauses and several round-trip times within two seconds.
NETWORK = """\
duration = "2s"
[topology]
kind = "dumbbell"
pairs = 2
access_rate = "100Mbps"
bottleneck_rate = "20Mbps"
bottleneck_delay = "10ms"
[queue]
limit = "20packets"
[link]
between = ["west", "east"]
loss = 0.001
"""
SCHEME = """\
[scheme.x]
controller = "newreno"
"""
BULK = """\
[[workload]]
kind = "bulk"
spread = "50ms"
writes = { first = "400KB", then = "100KB", every = "500ms" }
size = "50MB"
[[workload]]
kind = "bulk"
flows = 40
gap = "50ms"
size = "30KB"
"""
BASE = NETWORK + SCHEME + BULK
PATHS = """\
duration = "100ms"
[topology]
kind = "{kind}"
{keys}
[queue]
limit = "20packets"
[scheme.x]
controller = "newreno"
[workload]
kind = "poisson"
load = 0.3
destinations = "any"
sizes = {{ kind = "fixed", size = "20KB" }}
"""


# Conditions under which different keys have effects; each case is tried with one after the other.
CONDITIONS: tuple[dict[str, Any], ...] = (
    {},
    {"transport.delayed_ack": True, "link.loss": 0},
    {"queue.limit": "400packets", "link.loss": 0, "workload.0.writes.first": "30MB", "duration": "4s"},
    {"link.loss": 0.08},
    {
        "topology.bottleneck_delay": "60ms",
        "topology.bottleneck_rate": "100Mbps",
        "queue.limit": "300packets",
        "link.loss": 0.0001,
        "workload.0.writes.first": "50MB",
        "duration": "6s",
    },
    {
        "topology.bottleneck_delay": "20us",
        "topology.access_delay": "1us",
        "topology.bottleneck_rate": "90Mbps",
        "queue.limit": "60packets",
        "workload.0.writes.first": "30MB",
        "link.loss": 0,
    },
    {
        "topology.bottleneck_rate": "1Mbps",
        "queue.limit": "40packets",
        "duration": "14s",
        "workload.0.writes.first": "30MB",
    },
    {
        "topology.access_rate": "1Gbps",
        "topology.bottleneck_rate": "900Mbps",
        "topology.bottleneck_delay": "20us",
        "topology.access_delay": "1us",
        "queue.limit": "60packets",
        "duration": "200ms",
        "link.loss": 0,
        "workload.0.spread": "1ms",
        "workload.0.writes.first": "30MB",
    },
    {
        "topology.bottleneck_rate": "300kbps",
        "queue.limit": "200packets",
        "duration": "150s",
        "workload.0.writes.first": "30MB",
    },
)


@dataclass(frozen=True)
class Case:
    """A scenario in which the keys of a table have effects.

    Attributes:
        text: The scenario.
        path: The table that has the keys.
        changes: Other settings that the scenario needs.
        conditions: Settings to try one after the other until a key has an effect.
    """

    text: str
    path: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    conditions: tuple[Mapping[str, Any], ...] = ({},)


def controller(name: str) -> Case:
    """Returns a case for the parameters of a controller."""
    more: dict[str, Any] = {"scheme.x.controller": name}
    match name:
        case "dctcp":
            more |= {"transport.ecn": "dctcp", "queue.mark_at": "5packets"}
        case "prague":
            more |= {"transport.ecn": "accurate", "queue.mark_at": "5packets"}
        case "dcqcn":
            more |= {"transport.ecn": "dctcp", "queue.mark_at": "5packets"}
        case "hpcc":
            more |= {"queue.kind": "priority", "queue.limit": "100packets"}
        case "rcp":
            more |= {"queue.rcp": {}}
        case "rapid":
            more |= {"scheme.x.initial_rate": "2Mbps", "workload.1.flows": 1, "workload.1.size": "3MB"}
            more |= {"scheme.x.most_lateness": "10ms"}
    return Case(BASE, "scheme.x", more, CONDITIONS)


def topology(kind: str, keys: str, changes: Mapping[str, Any] | None = None) -> Case:
    """Returns a case for the keys of a topology."""
    return Case(PATHS.format(kind=kind, keys=keys), "topology", changes or {})


def other(default: str, allowed: str) -> Iterator[Any]:
    """Returns values other than `default` that the declaration allows."""
    if allowed in {"true or false"} or default in {"true", "false"}:
        yield default != "true"
        return
    words = allowed.removeprefix("one of ").split(", ")
    if default in words:
        yield from (word for word in words if word != default)
        return
    if re.fullmatch(r"\d+", default):
        number = int(default)
        yield from (value for value in (number * 2, number // 2, number + 1, number * 50, 1, 3, 0) if value != number)
        yield from () if "whole" in allowed else (0.5, 0.3)
        return
    if re.fullmatch(r"[\d.]+(e-?\d+)?", default):
        real = float(default)
        yield from (value for value in (real * 2, real / 2, 0.5, 0.9, real * 100, real / 100) if value != real)
        return
    found = _native.quantity(default.replace(" ", "").replace("b/s", "bps"))
    if found is not None:
        value, unit = found
        write = {"s": lambda x: f"{round(x * 1e12)}ps", "bit/s": lambda x: f"{round(x)}bps"}.get(unit)
        write = write or (lambda x: f"{round(x)}{unit}")
        yield from (write(value * factor) for factor in (2, 0.5, 10, 0.1, 100) if value)
    if "a time" in allowed:
        yield from ("100us", "5ms", "50ms", "500ms")
    if "a rate" in allowed or "rate such as" in allowed:
        yield from ("5Mbps", "50Mbps")
    if "packets" in allowed:
        yield from ("5packets", "10packets")
    if "a size" in allowed or "size such as" in allowed:
        yield from ("10KB", "1KB", "100B")
    if "unbounded" in allowed or "whole number" in allowed:
        yield from (2, 10, 1)
    if "number from 0" in allowed:
        yield from (0.5, 0.1)


def workload(table: str, changes: Mapping[str, Any] | None = None) -> Case:
    """Returns a case for the keys of a workload."""
    text = NETWORK.replace("pairs = 2", "pairs = 4") + SCHEME + f"[workload]\n{table}"
    return Case(text, "workload", changes or {})


POISSON = 'kind = "poisson"\nload = 0.5\nsizes = { kind = "fixed", size = "20KB" }\n'
WEB = 'kind = "web-users"\nusers = 40\nlargest_file = "10MB"\npairs = [["left0", "right0"]]\n'


def sizes(table: str) -> Case:
    """Returns a case for the keys of a distribution of sizes."""
    return Case(workload(f'kind = "poisson"\nload = 0.5\nsizes = {{ {table} }}\n').text, "workload.sizes")


def queue(table: str, changes: Mapping[str, Any] | None = None) -> Case:
    """Returns a case for the keys of a kind of queue."""
    return Case(BASE, "queue", {"queue": {"limit": "20packets"} | tomllib.loads(table), **(changes or {})}, CONDITIONS)


def cross(table: str) -> Case:
    """Returns a case for the keys of cross traffic."""
    hosts = 'from = ["left0"]\nto = ["right0"]\nrate = "5Mbps"\n'
    return Case(BASE + f"[cross_traffic]\n{hosts}{table}", "cross_traffic")


HOSTS = ["left0", "left1", "right0", "right1"]
SMALL_PACKETS = {"kind": "constant", "from": ["left0"], "to": ["right0"], "rate": "1Mbps", "packet": "300B"}
ECN = {"transport.ecn": "classic"}
LOAD = {"kind": "bulk", "flows": 2, "size": "200KB", "scheme": "x"}
CLASSES = {"scheme.low": {"controller": "newreno", "class": 1}, "workload.0.scheme": "x", "workload.1.scheme": "low"}
SAMPLED = {"sample.interval": "10ms"}

# Six hosts that send to one, over links without drops.
LOSSLESS = """\
duration = "60ms"
[topology]
kind = "star"
hosts = 7
rate = "1Gbps"
delay = "5us"
[queue]
limit = "30packets"
kind = "priority"
[nic]
kind = "priority"
[link]
select = "all"
pfc = { xoff = "9KB" }
[transport]
ecn = "dctcp"
[scheme.x]
controller = "constant"
window = 60
[workload]
kind = "bulk"
pairs = "incast"
size = "400KB"
"""
RAMP = {
    "queue.mark_ramp": {"from": "3KB", "to": "20KB", "probability": 0.2},
    "scheme.x": {"controller": "dctcp", "initial_window": 60},
}

# The case of each entry with keys, by its kind and name.
CASES: dict[tuple[str, str], Case] = {
    ("topology", "dumbbell"): topology("dumbbell", 'pairs = 2\nbottleneck_rate = "20Mbps"'),
    ("topology", "chain"): topology("chain", "routers = 3"),
    ("topology", "fat-tree"): topology("fat-tree", 'rate = "50Mbps"', {"duration": "20ms"}),
    ("topology", "spine-leaf"): topology(
        "spine-leaf", 'leaves = 2\nservers = 2\nserver_rate = "20Mbps"\nspine_rate = "20Mbps"'
    ),
    ("topology", "star"): topology("star", 'rate = "50Mbps"'),
    ("topology", "internet2"): topology("internet2", 'hosts_per_router = 1\naccess_rate = "20Mbps"'),
    ("workload", "poisson"): workload(POISSON),
    ("workload", "bulk"): workload('kind = "bulk"\nflows = 5\nsize = "200KB"\n'),
    ("workload", "requests"): workload(POISSON.replace("poisson", "requests")),
    ("workload", "all-reduce"): workload('kind = "all-reduce"\nsize = "100KB"\n'),
    ("workload", "all-to-all"): workload('kind = "all-to-all"\nsize = "20KB"\n'),
    ("workload", "web-users"): workload(WEB, {"duration": "4s"}),
    ("sizes", "fixed"): sizes('kind = "fixed", size = "20KB"'),
    ("sizes", "points"): sizes('kind = "points", bytes = [1460, 29200], probability = [0.5, 0.5]'),
    ("sizes", "cdf"): sizes('kind = "cdf", bytes = [1460, 29200], cumulative = [0.5, 1.0]'),
    ("sizes", "lognormal"): sizes('kind = "lognormal", median = "20KB", sigma = 1.0, cap = "200KB"'),
    ("cross_traffic", "constant"): cross('kind = "constant"'),
    ("cross_traffic", "aggregate"): cross('kind = "aggregate"\npeak = "8Mbps"\nsmallest = "3KB"\nlargest = "100KB"\n'),
    ("queue", "red"): queue('kind = "red"\nmin = "3packets"\nmax = "9packets"\n', ECN),
    ("queue", "codel"): queue('kind = "codel"\n', ECN),
    ("queue", "fq-codel"): queue('kind = "fq-codel"\n', ECN),
    ("queue", "pie"): queue('kind = "pie"\n', ECN),
    ("queue", "fq-pie"): queue('kind = "fq-pie"\n', ECN),
    ("queue", "cobalt"): queue('kind = "cobalt"\n', ECN),
    ("queue", "dualpi2"): queue(
        'kind = "dualpi2"\nlimit = "200packets"\n',
        {
            "transport.ecn": "l4s",
            "scheme.classic": {"controller": "newreno", "transport": {"ecn": "classic"}},
            "workload.0.scheme": "x",
            "workload.1.scheme": "classic",
        },
    ),
    ("queue", "cells"): queue('kind = "cells"\ncell = "1000B"\n'),
    ("queue", "weighted-tail-drop"): queue('kind = "weighted-tail-drop"\nclass_shares = [1.0, 0.5]\n', CLASSES),
    ("topology", "file"): topology("file", 'path = "{folder}/map.gml"\ncomponent = "largest"\ndefault_rate = "50Mbps"'),
    ("workload", "flows"): workload('kind = "flows"\npath = "{folder}/flows.csv"\n'),
    ("table", "(top level)"): Case(PATHS.format(kind="fat-tree", keys='rate = "50Mbps"'), ""),
    ("table", "[[link]]"): Case(BASE, "link"),
    # Of the cables of hosts alone: a frame on the cable of 10 ms would arrive too late.
    ("table", "pause"): Case(
        BASE.replace("[link]", "[[link]]").replace("loss = 0.001", 'loss = 0.001\n[[link]]\nselect = "access"'),
        "link.1.pause",
        {"link.1.pause": {"xoff": "9packets", "xon": "4packets"}},
    ),
    ("table", "pfc"): Case(LOSSLESS, "link.pfc", {"link.pfc": {"xoff": "9KB", "headroom": "6KB"}}),
    ("table", "mark_ramp"): Case(LOSSLESS, "queue.mark_ramp", RAMP),
    ("table", "burst_loss"): Case(
        BASE, "link.burst_loss", {"link.burst_loss": {"p": "2%", "r": "20%", "1-h": "90%", "1-k": "0.1%"}}
    ),
    ("table", "policer"): Case(BASE, "link.policer", {"link.policer": {"rate": "10Mbps", "burst": "20kB"}}),
    ("table", "[queue]"): Case(BASE, "queue", {"queue.kind": "priority"} | CLASSES),
    ("table", "[[queue_at]]"): Case(
        BASE, "queue_at", {"queue_at.routers": ["west"], "queue_at.kind": "priority"} | CLASSES
    ),
    ("table", "[nic]"): Case(BASE, "nic", {"nic.limit": "10packets"} | ECN, CONDITIONS),
    ("table", "[switch]"): Case(BASE, "switch", {"switch.memory": "20KB"}),
    ("table", "[queue.rcp]"): Case(BASE, "queue.rcp", {"queue.rcp": {}, "scheme.x.controller": "rcp"}, CONDITIONS),
    ("table", "[host]"): Case(
        BASE, "host", {"host.interrupt_after": "1ms", "scheme.x.controller": "lp", "transport.receive_batch": 4}
    ),
    ("table", "[[host_at]]"): Case(
        BASE,
        "host_at",
        {
            "host_at": {"hosts": ["right0"], "interrupt_after": "1ms"},
            "scheme.x.controller": "lp",
            "transport.receive_batch": 4,
        },
    ),
    ("table", "[transport]"): Case(BASE, "transport", {}, CONDITIONS),
    ("table", "delayed_ack"): Case(BASE, "transport.delayed_ack", {"transport.delayed_ack": {"timeout": "5ms"}}),
    ("table", "[scheme.NAME]"): Case(BASE, "scheme.x"),
    ("table", "inner"): Case(
        BASE, "scheme.x.inner", {"scheme.x": {"controller": "rc3", "inner": {"controller": "newreno"}}}
    ),
    ("table", "[[workload]]"): workload(
        'kind = "bulk"\nflows = 8\nsize = "200KB"\n', {"scheme.y.controller": "cubic", "workload.scheme": "x"}
    ),
    ("table", "fan_out"): workload(POISSON.replace("poisson", "requests") + "fan_out = [{ flows = 2, share = 1.0 }]\n"),
    ("table", "writes"): Case(BASE, "workload.0.writes"),
    ("table", "traffic_classes"): workload('kind = "bulk"\nsize = "20KB"\n'),
    ("table", "[[cross_traffic]]"): cross('kind = "constant"\n'),
    ("table", "bucket"): Case(
        cross('kind = "constant"\nburst = 20\nbucket = { rate = "6Mbps", depth = "3KB" }\n').text,
        "cross_traffic.bucket",
    ),
    ("table", "[[change]]"): Case(
        BASE, "change", {"change": {"at": "500ms", "between": ["west", "east"], "rate": "5Mbps", "loss": 0.01}}
    ),
    ("table", "[[drop]]"): Case(BASE, "drop", {"drop": {"from": "west", "to": "east", "segments": [20]}}),
    ("table", "[sample]"): Case(BASE, "sample", {"sample.flows": [0]}),
    ("table", "[measure]"): Case(BASE, "measure", {"measure.from": "100ms"}),
    ("table", "[packets]"): Case(BASE, "packets", {"packets.flow": 0}),
}


FILES = {
    "map.gml": "graph [ node [ id 0 ] node [ id 1 ] node [ id 2 ] node [ id 3 ] "
    "edge [ source 0 target 1 ] edge [ source 1 target 2 ] ]",
    "map.xml": "<network><networkStructure><nodes><node id='a'/><node id='b'/></nodes><links><link><source>a</source>"
    "<target>b</target><preInstalledModule><capacity>5</capacity></preInstalledModule></link></links>"
    "</networkStructure></network>",
    "other.gml": "graph [ node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 ] ]",
    "flows.csv": "start,src,dst,size\n0s,left0,right0,20kB\n",
    "other.csv": "start,src,dst,size\n0s,left0,right0,40kB\n",
    "lte.down": "1\n3\n9\n",
    "sizes.csv": "bytes,cumulative\n1460,0.1\n29200,1.0\n",
}


@cache
def files() -> str:
    """Returns a folder with the files that the scenarios here name."""
    folder = Path(tempfile.mkdtemp(prefix="sparelane-effects-"))
    atexit.register(shutil.rmtree, folder)
    for name, content in FILES.items():
        (folder / name).write_text(content)
    return str(folder)


@cache
def entries() -> dict[tuple[str, str], Mapping[str, Any]]:
    """Returns the entries of the catalogue by kind and name."""
    return {(entry["kind"], entry["name"]): entry for entry in _native.catalogue(None)}


def keys() -> list[tuple[str, str, str]]:
    """Returns every key of every entry, with the kind and name of the entry."""
    return [(kind, name, param["name"]) for (kind, name), entry in entries().items() for param in entry["params"]]


@cache
def run(text: str, changes: tuple[tuple[str, str], ...]) -> tuple[str, tuple[str, ...]]:
    """Runs a scenario and returns its digest and its warnings."""
    result = sparelane.run(text.replace("{folder}", files()), set=[f"{key}={value}" for key, value in changes])
    return result.digest, tuple(result._native.warnings)


def resolved(text: str, changes: tuple[tuple[str, str], ...]) -> str:
    """Returns the text by which stored outcomes of a scenario are found."""
    return simulate.prepare(
        text.replace("{folder}", files()), set=[f"{key}={value}" for key, value in changes]
    ).resolved()


def settings(changes: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Returns changes in the notation of the command line."""
    return tuple((key, toml_value(value).replace("{folder}", files())) for key, value in changes.items())


# Other settings that a key needs to have an effect.
REQUIREMENTS: dict[str, dict[str, Any]] = {
    # The path has 20 Mb/s, so R_avg falls from here to its minimum.
    "controller rapid: min_rate": {"scheme.x.initial_rate": "50Mbps"},
    "controller newreno: beta_ecn": {"transport.ecn": "classic", "queue.mark_at": "5packets"},
    "controller cubic: beta_ecn": {"transport.ecn": "classic", "queue.mark_at": "5packets"},
    "controller prague: virtual_rtt": {"scheme.x.transition": 0},
    # Only a long queue with large variations of its delay counts as a classic one, after many round trips.
    "controller prague: classic_detection": {
        "queue.limit": "300packets",
        "queue.mark_at": "100packets",
        "workload.1.size": "40MB",
        "duration": "30s",
    },
    "controller swift: host_target": {"host.receive_cost": "100us"},
    "controller cubic: hystart_divisor": {"scheme.x.hystart": True},
    "controller cubic: hystart_least_rise": {"scheme.x.hystart": True},
    "controller westwood: tick": {"scheme.x.like": "linux"},
    "controller rc3: tail_gain": {"scheme.x.tail_rate": "delivered"},
    "controller rc3: tail_burst": {"scheme.x.tail_rate": "delivered"},
    "controller nv: nv_stop_rtt_cnt": {"scheme.x.nv_dec_eval_min_calls": 255},
    "controller yeah: zeta": {"scheme.x.alpha": 2, "scheme.x.delta": 1, "scheme.x.phy": 4},
    "controller bic: growth_limit": {"scheme.x.slow_start_limit": 10},
    "controller rapid: lossy_streams": {"scheme.x.most_missing": 50},
    "controller rapid: most_missing": {"scheme.x.lossy_streams": "until-repaired"},
    "controller rtcp: weights": {"scheme.x.classify": "by-size"},
    "controller rtcp: urgent_below": {"scheme.x.classify": "by-size"},
    "topology internet2: core_rate_min": {"topology.core_rate_max": "40Mbps", "topology.core_rate_min": "10Mbps"},
    "topology internet2: core_rate_max": {"topology.core_rate_max": "40Mbps", "topology.core_rate_min": "10Mbps"},
    "topology file: capacity_unit": {"topology.path": "{folder}/map.xml"},
    "queue pie: mark_ecn_threshold": {"queue.ecn": True},
    "queue fq-pie: mark_ecn_threshold": {"queue.ecn": True},
    "queue dualpi2: t_shift": {"queue.scheduler": "ts-fifo"},
    "queue dualpi2: lower_bands": CLASSES,
    "queue fq-codel: ce_threshold_selector": {"queue.ce_threshold": "1ms"},
    "table (top level): routing": {"topology.rate": "50Mbps"},
    "table [queue]: mark_at": ECN,
    "queue cells: cell": {"queue.limit": "30KB"},
    "table [queue]: room": {"queue.limit": "20600B", "workload.1.size": "1KB"},
    "table [[queue_at]]: mark_at": ECN,
    "table [[queue_at]]: room": {"queue_at.limit": "20600B", "workload.1.size": "1KB"},
    "table [nic]: room": {"nic.limit": "5000B", "cross_traffic": SMALL_PACKETS},
    "table [[queue_at]]: routers": {"queue_at.limit": "3packets"},
    "table [[queue_at]]: of": {"queue_at": {"share": 0.5, "limit": "3packets"}},
    "table [[queue_at]]: share": {"queue_at": {"share": 0.5, "limit": "3packets"}},
    "table [[link]]: rate_from": {"link.rate": "5Mbps"},
    "table [[link]]: jitter_distribution": {"link.jitter": "3ms"},
    "table [[link]]: jitter_correlation": {"link.jitter": "3ms"},
    "table [[link]]: jitter_reorders": {"link.jitter": "3ms"},
    "table [[link]]: reorder_distance": {"link.reorder": "5%"},
    "table [[link]]: reorder_within": {"link.reorder": "5%"},
    "table [[link]]: effects_from": {"link.jitter": "3ms"},
    "table [[change]]: reorder": {"change.delay": "1ms"},
    "table [[queue_at]]: between": {"queue_at": {"between": ["left0", "west"], "limit": "3packets"}},
    "table [[queue_at]]: from": {"queue_at": {"between": ["west", "east"], "limit": "3packets"}},
    "table [[link]]: trace_from": {"link.trace": "{folder}/lte.down"},
    "table [host]: stall_every": {"host.stall_length": "5ms", "host.stall_every": "50ms"},
    "table [host]: stall_length": {"host.stall_length": "5ms", "host.stall_every": "50ms"},
    "table [host]: timer_error": {"scheme.x.controller": "bbr"},
    "table [[host_at]]: stall_every": {"host_at.stall_length": "5ms", "host_at.stall_every": "50ms"},
    "table [[host_at]]: stall_length": {"host_at.stall_length": "5ms", "host_at.stall_every": "50ms"},
    "table [[host_at]]: timer_error": {"scheme.x.controller": "bbr", "host_at.hosts": ["left0"]},
    "table [host]: timestamp_at": {"host.ack_cost": "1ms"},
    "table [[host_at]]: timestamp_at": {"host_at.ack_cost": "1ms"},
    "table [transport]: adaptive_reordering": {
        "transport.rack_tlp": True,
        "transport.undo_spurious": True,
        "transport.min_rto": "5ms",
    },
    "table [transport]: rdma_recovery": {"transport.mode": "rdma"},
    "table [transport]: rack_timer_delay": {"transport.rack_tlp": True},
    "table [transport]: receive_batch_timeout": {"transport.receive_batch": 8},
    "table [transport]: pacing_catch_up": {"scheme.x.controller": "bbr", "host.timer_error": "1ms"},
    "table [transport]: ecn": {"queue.mark_at": "5packets"},
    "table [transport]: peer_ecn": {"transport.ecn": "accurate", "queue.mark_at": "5packets"},
    # Acknowledgments of eight segments or more are unusual at first, and then make the counter of three bits ambiguous.
    "table [transport]: ecn_option": {
        "transport.ecn": "accurate",
        "transport.delayed_ack": {"every": 16, "timeout": "40ms"},
        "scheme.x.controller": "dctcp",
        "queue.mark_at": "5packets",
    },
    "table [[workload]]: mix_by": {"workload.mix": {"x": 0.5, "y": 0.5}},
    "table [queue]: mark_ramp": {
        "link": {"select": "all", "pfc": {"xoff": "900KB"}},
        "transport.ecn": "classic",
    },
    "table [queue]: telemetry": {"queue.kind": "priority", "nic.kind": "priority", "scheme.x.controller": "hpcc"}
    | CLASSES,
    "table [[queue_at]]: telemetry": {"queue_at.kind": "fifo", "scheme.x.controller": "hpcc"},
    "table [[workload]]: after": {"workload": [LOAD | {"name": "load"}, LOAD]},
    "controller dcqcn: r_hai": {"scheme.x.byte_counter": "3KB", "scheme.x.fast_recovery": 1},
    "workload all-reduce: compute": {"workload.repeat": 2},
    "workload all-to-all: compute": {"workload.repeat": 2},
}

# Values for keys whose declarations do not imply any.
VALUES: dict[str, tuple[Any, ...]] = {
    "controller rapid: min_rate": ("50Mbps",),
    "controller ledbat: base_history": (1,),
    "controller ledbat-plus-plus: base_history": (1,),
    "controller rtcp: weights": ({"urgent": 48000, "high-volume": 1000},),
    "controller nv: nv_stop_rtt_cnt": (0,),
    "controller yeah: zeta": (0,),
    "controller rc3: inner": ("cubic",),
    "queue codel: ce_threshold": ("1ms",),
    "queue fq-codel: ce_threshold": ("1ms",),
    "queue dualpi2: alpha": (10.0,),
    "queue dualpi2: beta": (30.0,),
    "queue dualpi2: p_c_max": (0.0001,),
    "queue dualpi2: step_threshold": ("100us", "5ms"),
    "controller rc3: levels": ([10],),
    "topology internet2: core_rate_min": ("5Mbps",),
    "topology file: capacity": ("internet2-rule",),
    "topology file: capacity_unit": ("3Mbps",),
    "topology internet2: core_rate_max": ("50Mbps",),
    "workload bulk: pairs": ("all",),
    "workload web-users: largest_file": ("150KB",),
    "sizes points: bytes": ([1460, 14600],),
    "sizes points: probability": ([0.1, 0.9],),
    "sizes cdf: bytes": ([1460, 14600],),
    "sizes cdf: cumulative": ([0.1, 1.0],),
    "sizes lognormal: sigma": (2.0,),
    "sizes lognormal: cap": ("25KB",),
    "queue cells: cell": ("64B",),
    "queue weighted-tail-drop: class_shares": ([1.0, 0.2],),
    "table [[link]]: rate_from": ("west",),
    "table [transport]: read_rate": ("1Mbps",),
    "table pause: xoff": ("12packets",),
    "table pause: xon": ("2packets",),
    # A pause of 65535 quanta, 335 ms at 100 Mb/s, is ended by a frame; a short one ends by itself.
    "table pause: quanta": (20, 60),
    "table [[link]]: burst_loss": ({"p": "2%", "r": "20%"},),
    "table [[link]]: policer": ({"rate": "10Mbps", "burst": "20kB"},),
    "table [[link]]: jitter": ("3ms",),
    "table [[link]]: reorder_within": ("1ms",),
    "table [[link]]: effects_from": ("west",),
    "table policer: burst": ("30kB",),
    "table [[queue_at]]: between": (["west", "east"],),
    "table [[queue_at]]: from": ("east",),
    "table [[link]]: trace": ("{folder}/lte.down",),
    "table [[link]]: trace_from": ("west",),
    "table [[link]]: loss_from": ("west",),
    "table [queue]: kind": ("codel",),
    "table [[queue_at]]: kind": ("codel",),
    "table [[queue_at]]: routers": (["east"],),
    "table [[queue_at]]: share": (0.0,),
    "table [[queue_at]]: low_priority": ("drop",),
    "table [[queue_at]]: push_out": (False,),
    "table [[queue_at]]: room": ("full-packet",),
    "table [[queue_at]]: telemetry": ("off",),
    "table [nic]: kind": ("codel",),
    "table [[host_at]]: hosts": (["left0"],),
    "table [transport]: preset": ("linux",),
    "table [transport]: ecn": ("classic",),
    "table [scheme.NAME]: controller": ("cubic",),
    "table inner: controller": ("cubic",),
    "table [[workload]]: scheme": ("y",),
    "table [[workload]]: mix_by": ("host",),
    "table [[workload]]: traffic_class": ("urgent",),
    "table [[cross_traffic]]: from": (["left1"],),
    "table [[cross_traffic]]: to": (["right1"],),
    "table [[change]]: at": ("300ms",),
    "table [[change]]: between": (["left0", "west"],),
    "table [[change]]: select": ("access",),
    "table [[change]]: from": ("west",),
    "table [[change]]: rate": ("2Mbps",),
    "table [[change]]: delay": ("30ms",),
    "table [[change]]: reorder": (True,),
    "table [[change]]: loss": (0.05,),
    "table [[change]]: down": (True,),
    "table [[drop]]: from": ("left0",),
    "table [[drop]]: to": ("right0",),
    "table [[drop]]: segments": ([30],),
    "table [sample]: flows": ([1],),
    "table [sample]: queues": ([["west", "east"]],),
    "table [sample]: links": ([["west", "east"]],),
}

# Changes of several keys at once, for keys that exclude another or are in a list.
TOGETHER: dict[str, dict[str, Any]] = {
    "workload poisson: flows_per_second": {
        "workload": {"kind": "poisson", "flows_per_second": 40, "sizes": {"kind": "fixed", "size": "20KB"}}
    },
    "workload poisson: sizes": {"workload.sizes": {"kind": "fixed", "size": "40KB"}},
    "workload poisson: sources": {"workload.sources": ["left0"]},
    "topology file: component": {"topology.path": "{folder}/other.gml", "topology.component": "all"},
    "topology file: path": {"topology.path": "{folder}/other.gml"},
    "workload flows: path": {"workload.path": "{folder}/other.csv"},
    "sizes cdf: path": {"workload.sizes": {"kind": "cdf", "path": "{folder}/sizes.csv"}},
    "workload bulk: sizes": {"workload": {"kind": "bulk", "flows": 5, "sizes": {"kind": "fixed", "size": "40KB"}}},
    "workload requests: sizes": {"workload.sizes": {"kind": "fixed", "size": "40KB"}},
    "workload requests: clients": {"workload.clients": ["right0"]},
    "workload requests: servers": {"workload.servers": ["right0"]},
    "workload requests: fan_out": {"workload.fan_out": [{"flows": 2, "share": 1.0}]},
    "workload all-reduce: hosts": {"workload.hosts": ["left0", "right0", "left1"]},
    "workload all-to-all: hosts": {"workload.hosts": ["left0", "right0", "left1"]},
    "workload web-users: pairs": {"workload.pairs": [["left1", "right0"]]},
    "workload web-users: servers": {
        "workload": tomllib.loads(
            WEB.replace('pairs = [["left0", "right0"]]', 'servers = ["left1"]\nclients = ["right0"]')
        )
    },
    "workload web-users: clients": {
        "workload": tomllib.loads(
            WEB.replace('pairs = [["left0", "right0"]]', 'servers = ["left0"]\nclients = ["right1"]')
        )
    },
    "table [[link]]: select": {"link": {"select": "all", "loss": 0.001}},
    "table [[link]]: between": {"link": {"between": ["left0", "west"], "loss": 0.001}},
    "table [[link]]: loss_from": {"link.loss_from": "east"},
    "table pfc: classes": {"link.pfc": {"xoff": "9KB", "headroom": "6KB", "classes": [1]}},
    "table [[link]]: pfc": {"link": {"select": "all", "pfc": {"xoff": "9KB"}}},
    "table [queue]: mark_ramp": {
        "link": {"select": "all", "pfc": {"xoff": "900KB"}},
        "queue.mark_ramp": {"from": "1KB", "to": "9KB", "probability": 0.5},
    },
    "table [[link]]: pause": {"link": {"select": "all", "pause": {"xoff": "9packets", "xon": "4packets"}}},
    "table [[workload]]: after": {"workload": [LOAD | {"name": "load"}, LOAD | {"after": ["load"]}]},
    "table [[workload]]: writes": {"workload.writes": {"first": "1KB", "then": "1KB", "every": "5ms"}},
    "table [[workload]]: traffic_classes": {
        "workload.traffic_classes": [{"name": "urgent", "below": "30KB"}, {"name": "bulk"}]
    },
    "table [[cross_traffic]]: bucket": {
        "cross_traffic.burst": 20,
        "cross_traffic.bucket": {"rate": "6Mbps", "depth": "3KB"},
    },
    "table [[workload]]: mix": {"workload": {"kind": "bulk", "flows": 8, "size": "200KB", "mix": {"x": 0.5, "y": 0.5}}},
    "table fan_out: flows": {"workload.fan_out": [{"flows": 3, "share": 1.0}]},
    "table fan_out: share": {"workload.fan_out": [{"flows": 2, "share": 0.5}, {"flows": 1, "share": 0.5}]},
    "table traffic_classes: name": {"workload.traffic_classes": [{"name": "urgent", "below": "1KB"}, {"name": "bulk"}]},
    "table traffic_classes: below": {
        "workload.traffic_classes": [{"name": "urgent", "below": "30KB"}, {"name": "bulk"}]
    },
    "table [[change]]: select": {"change": {"at": "500ms", "select": "core", "rate": "5Mbps"}},
    "table [[drop]]: from": {"drop": {"from": "left0", "to": "west", "segments": [20]}},
    "table [[drop]]: to": {"drop": {"from": "east", "to": "right0", "segments": [20]}},
}


# Keys whose value is a table; its keys are tested with the entry of that table.
INSIDE: dict[str, tuple[str, str]] = {
    "table [queue]: rcp": ("table", "[queue.rcp]"),
    "table [nic]: rcp": ("table", "[queue.rcp]"),
    "table [scheme.NAME]: transport": ("table", "[transport]"),
    "table (top level): scheme": ("table", "[scheme.NAME]"),
}

# Keys that do not affect simulations, with the reason.
NOT_SIMULATED: dict[str, str] = {
    "table (top level): title": "text for people",
    "table [[workload]]: name": "after of another workload refers to it",
    "table (top level): source": "text for people",
    "table (top level): threads": "results do not depend on the number of threads",
}


def case_of(kind: str, name: str) -> Case:
    """Returns the scenario in which the keys of an entry have effects."""
    found = controller(name) if kind == "controller" else CASES.get((kind, name))
    assert found is not None, f"add a scenario to CASES in which the keys of {kind} {name} have effects"
    return found


def attempts(kind: str, name: str, key: str) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yields scenarios to try for a key: a text, changes to it, and changes that also set the key to another value."""
    label, case = f"{kind} {name}: {key}", case_of(kind, name)
    param = next(param for param in entries()[kind, name]["params"] if param["name"] == key)
    path = f"{case.path}.{key}" if case.path else key
    given = [{path: value} for value in VALUES.get(label) or other(param["default"], param["allowed"])]
    for condition in case.conditions:
        before = {**case.changes, **REQUIREMENTS.get(label, {}), **condition}
        yield from (
            (case.text, before, before | change) for change in ([TOGETHER[label]] if label in TOGETHER else given)
        )


NO_EFFECT = " has no effect: "
KEYS = [label for label in keys() if label[1] != "[emulate]"]


@pytest.mark.parametrize(("kind", "name", "key"), KEYS, ids=[f"{kind} {name} {key}" for kind, name, key in KEYS])
def test_every_key_has_an_effect(kind: str, name: str, key: str) -> None:
    label = f"{kind} {name}: {key}"
    if label in NOT_SIMULATED:
        return
    inside = INSIDE.get(label) or next(
        (("table", text) for text in (f"[{key}]", f"[[{key}]]") if ("table", text) in entries()), None
    )
    if inside is not None and (name == "(top level)" or label in INSIDE):
        assert inside in entries()
        return
    for text, before, after in attempts(kind, name, key):
        try:
            digest, _ = run(text, settings(before))
            other_digest, warnings = run(text, settings(after))
        except sparelane.ScenarioError:
            # The value is not allowed in combination with the others.
            continue
        if other_digest != digest:
            assert resolved(text, settings(before)) != resolved(text, settings(after))
            changed = {path for path in after if after[path] != before.get(path)}
            assert not [warning for warning in warnings if warning.split(" ")[0] in changed and NO_EFFECT in warning]
            return
    pytest.fail(f"no value of {label} changes a run: name a scenario or values here, or a reason in NOT_SIMULATED")


# Changes of a scenario, the path of a key that then has no effect, and the reason.
WITHOUT_EFFECT: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({"workload.0.name": "load"}, "workload.0.name", "no workload is after it"),
    (
        {"workload": {"kind": "all-reduce", "size": "1MB", "compute": "1ms"}},
        "workload.compute",
        "there is one round",
    ),
    ({"routing": "ecmp"}, "routing", "there is one path between any two nodes"),
    ({"transport.rack_timer_delay": "2ms"}, "transport.rack_timer_delay", "rack_tlp is off"),
    ({"transport.receive_batch_timeout": "1ms"}, "transport.receive_batch_timeout", "receive_batch is 1"),
    (
        {"scheme.x.controller": "rapid", "transport.cached_ssthresh": True},
        "transport.cached_ssthresh",
        "the controller has no slow-start threshold",
    ),
    (
        {"transport.sack": False, "transport.sack_survives_timeout": False},
        "transport.sack_survives_timeout",
        "sack is off",
    ),
    (
        {"transport.timestamps": False, "transport.resent_rtt_tick": "1ms"},
        "transport.resent_rtt_tick",
        "timestamps is off",
    ),
    (
        {"transport.rack_tlp": True, "transport.limited_transmit": False},
        "transport.limited_transmit",
        "rack_tlp finds losses by time",
    ),
    (
        {"transport.rack_tlp": True, "transport.detect_lost_retransmissions": True},
        "transport.detect_lost_retransmissions",
        "rack_tlp finds them",
    ),
    ({"transport.pacing_catch_up": "1ms"}, "transport.pacing_catch_up", "the controller does not pace"),
    (
        {"scheme.x.controller": "rapid", "transport.pacing_catch_up": "1ms"},
        "transport.pacing_catch_up",
        "the controller has a send clock of its own",
    ),
    (
        {"scheme.x.controller": "rapid", "transport.send_batch": 4},
        "transport.send_batch",
        "the controller schedules each segment",
    ),
    ({"transport.ecn": "classic"}, "transport.ecn", "no queue marks packets"),
    (
        {"change": [{"at": "500ms", "between": ["west", "east"], "delay": "30ms", "reorder": True}]},
        "change.0.reorder",
        "the delay does not fall",
    ),
    ({"scheme.x.transport": {"ecn": "classic"}}, "scheme.x.transport.ecn", "no queue marks packets"),
    (
        {"scheme.x.transport": {"mss": "1000B"}, "transport.mss": "500B"},
        "transport.mss",
        "each scheme has its own",
    ),
    ({"queue.mark_at": "5packets"}, "queue.mark_at", "no scheme is ECN-capable"),
    ({"nic.mark_at": "5packets"}, "nic.mark_at", "no scheme is ECN-capable"),
    ({"queue.kind": "codel", "queue.ecn": True}, "queue.ecn", "no scheme is ECN-capable"),
    (
        {"queue.kind": "pie", "queue.mark_ecn_threshold": 0.5, "transport.ecn": "classic"},
        "queue.mark_ecn_threshold",
        "ecn is off in this queue",
    ),
    (
        {"queue.kind": "codel", "queue.ce_threshold": "1ms"},
        "queue.ce_threshold",
        "no scheme is ECN-capable",
    ),
    (
        {"queue.kind": "fq-codel", "queue.ce_threshold_selector": "ect-1"},
        "queue.ce_threshold_selector",
        "ce_threshold is not given",
    ),
    (
        {
            "queue": {"kind": "fq-codel", "ce_threshold": "1ms", "ce_threshold_selector": "ect-1"},
            "transport.ecn": "classic",
        },
        "queue.ce_threshold",
        "no scheme sends ECT(1)",
    ),
    ({"queue.kind": "dualpi2", "queue.t_shift": "1ms"}, "queue.t_shift", "scheduler is wrr"),
    ({"queue.kind": "dualpi2", "queue.lower_bands": True}, "queue.lower_bands", "all packets are in class 0"),
    (
        {"queue": {"kind": "dualpi2", "scheduler": "ts-fifo", "classic_weight": 0.2}},
        "queue.classic_weight",
        "scheduler is ts-fifo",
    ),
    (
        {"queue": {"kind": "dualpi2", "alpha": 0.1, "beta": 1.0, "rtt_max": "50ms"}},
        "queue.rtt_max",
        "alpha and beta are given",
    ),
    ({"queue.rcp": {}}, "queue.rcp", "no scheme asks for a rate"),
    ({"queue.low_priority": "drop"}, "queue.low_priority", "no packet is below class 0"),
    ({"queue.kind": "priority", "queue.push_out": False}, "queue.push_out", "all packets are in class 0"),
    ({"host.timestamp_clock": "1ms"}, "host.timestamp_clock", "no controller uses receive times"),
    ({"host.timer_error": "1ms"}, "host.timer_error", "no controller paces"),
    (
        {"host.ack_cost": "1ms", "host_at": {"hosts": HOSTS, "ack_cost": "0s"}},
        "host.ack_cost",
        "[[host_at]] sets it for every host",
    ),
    (
        {"host_at": [{"hosts": ["left0"], "ack_cost": "1ms"}, {"hosts": HOSTS, "ack_cost": "0s"}]},
        "host_at.0",
        "later [[host_at]] tables decide on each of its hosts",
    ),
    (
        {"queue_at": [{"routers": ["west"], "limit": "3packets"}, {"share": 1.0, "limit": "20packets"}]},
        "queue_at.0",
        "later [[queue_at]] tables decide on each of its queues",
    ),
    (
        {"queue.kind": "codel", "queue_at": {"share": 1.0, "kind": "fifo"}},
        "queue.kind",
        "[[queue_at]] sets it for each queue",
    ),
    (
        {"queue.limit": "9packets", "queue_at": {"share": 1.0, "limit": "20packets"}},
        "queue.limit",
        "set the limit of each queue",
    ),
    (
        {"nic.limit": "20packets", "link": {"select": "all", "limit": "50packets"}},
        "nic.limit",
        "set the limit of each queue",
    ),
    (
        {"link": [{"select": "all", "rate": "3Mbps", "delay": "2ms"}, {"select": "all", "rate": "9Mbps"}]},
        "link.0.rate",
        "a later [[link]] sets the rate of each of its cables",
    ),
    ({"link": {"select": "core", "loss": 0.0, "loss_of": "data"}}, "link.loss_of", "loss is 0"),
    (
        {"link": {"select": "core", "delay": "9ms", "jitter": "0s", "jitter_reorders": True}},
        "link.jitter_reorders",
        "jitter is 0",
    ),
    (
        {"link": [{"select": "core", "delay": "9ms", "jitter": "1ms"}, {"select": "all", "jitter": "2ms"}]},
        "link.0.jitter",
        "a later [[link]] sets the jitter of each of its cables",
    ),
    (
        {
            "link": [
                {"select": "all", "rate": "9Mbps", "pause": {"xoff": "9packets", "xon": "4packets"}},
                {"select": "all", "pause": {"xoff": "8packets", "xon": "4packets"}},
            ]
        },
        "link.0.pause",
        "a later [[link]] sets the pause of each of its cables",
    ),
    ({"scheme.x.controller": "cubic", "scheme.x.hystart_divisor": 4}, "scheme.x.hystart_divisor", "hystart = true"),
    ({"scheme.x.beta_ecn": 0.8}, "scheme.x.beta_ecn", "the scheme is not ECN-capable"),
    (
        {
            "scheme.x": {"controller": "rc3", "inner": {"controller": "cubic", "beta_ecn": 0.8}},
            "queue.kind": "priority",
        },
        "scheme.x.inner.beta_ecn",
        "the scheme is not ECN-capable",
    ),
    (
        {"scheme.x.controller": "cubic", "scheme.x.like": "linux", "scheme.x.beta": 0.5},
        "scheme.x.beta",
        'cubic uses it only with like = "rfc"',
    ),
    (
        {"scheme.x": {"controller": "rc3", "tail_gain": 2.0}, "queue.kind": "priority"},
        "scheme.x.tail_gain",
        'tail_rate = "delivered"',
    ),
    (
        {
            "scheme.x": {"controller": "rc3", "inner": {"controller": "cubic", "hystart_divisor": 4}},
            "queue.kind": "priority",
        },
        "scheme.x.inner.hystart_divisor",
        "hystart = true",
    ),
    (
        {"scheme.x.controller": "hybla", "scheme.x.like": "linux", "scheme.x.initial_window": 3},
        "scheme.x.initial_window",
        'like = "segments"',
    ),
    ({"scheme.x.controller": "lp", "scheme.x.like": "linux", "scheme.x.tick": "1ms"}, "scheme.x.tick", "like"),
    (
        {"scheme.x.controller": "rapid", "scheme.x.bass_passes": 0, "scheme.x.spike_factor": 2.0},
        "scheme.x.spike_factor",
        "does not use it with its other parameters",
    ),
    ({"workload": {"kind": "bulk", "flows": 1, "gap": "1ms"}}, "workload.gap", "there is one flow"),
    (
        {"workload": {"kind": "poisson", "load": 0.1, "sizes": {"kind": "rc3"}, "end": "5s"}},
        "workload.end",
        "the run ends at 2s",
    ),
    (
        {"cross_traffic": {"kind": "constant", "from": ["left0"], "to": ["right0"], "rate": "1Mbps", "stop": "5s"}},
        "cross_traffic.stop",
        "the run ends at 2s",
    ),
    (
        {
            "cross_traffic": {
                "kind": "constant",
                "from": ["left0"],
                "to": ["right0"],
                "rate": "1Mbps",
                "bucket": {"rate": "1Mbps", "depth": "3KB"},
            }
        },
        "cross_traffic.bucket",
        "packets at even intervals never wait for a token",
    ),
    ({"queue.room": "full-packet"}, "queue.room", "limits are in packets"),
    ({"queue.kind": "cells", "queue.cell": "64B"}, "queue.cell", "limits are in packets"),
    ({"emulate.classes": [0, 8]}, "emulate.classes", "sparelane emulate alone uses it"),
    ({"emulate.delay_error": "2ms"}, "emulate.delay_error", "sparelane emulate alone uses it"),
)


def without(changes: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Returns the changes without a key, which may be inside one of the values."""
    if path in changes:
        return {key: value for key, value in changes.items() if key != path}
    outer = next(key for key in changes if path.startswith(f"{key}."))
    inner = changes[outer]
    rest = path.removeprefix(f"{outer}.")
    if isinstance(inner, Mapping):
        return {**changes, outer: without(inner, rest)}
    place, _, below = rest.partition(".")
    row = [without(inner[int(place)], below)] if below else []
    return {**changes, outer: [*inner[: int(place)], *row, *inner[int(place) + 1 :]]}


@pytest.mark.parametrize(("changes", "path", "reason"), WITHOUT_EFFECT, ids=[path for _, path, _ in WITHOUT_EFFECT])
def test_a_key_without_effect_is_named_once_with_the_reason_and_changes_nothing(
    changes: dict[str, Any], path: str, reason: str
) -> None:
    digest, warnings = run(BASE, settings(changes))
    (found,) = (warning for warning in warnings if warning.split(" ")[0] == path)
    assert NO_EFFECT in found
    assert reason in found
    assert "\n" not in found
    # A required key gets another value instead.
    rest = without(changes, path) if path != "queue.cell" else changes | {path: "1000B"}
    assert run(BASE, settings(rest))[0] == digest


@pytest.mark.parametrize("name", sorted(path.stem for path in Path("scenarios").glob("*.toml")))
def test_a_ready_made_scenario_has_no_key_without_effect(name: str) -> None:
    result = sparelane.run(name, set={"duration": "6ms"})
    # In a run of this length, periods end early.
    assert not [text for text in result._native.warnings if NO_EFFECT in text and "the run ends" not in text]


RC3 = {"scheme.x": {"controller": "rc3", "inner": "newreno"}}


def of_classes(changes: Mapping[str, Any]) -> list[str]:
    """Returns the warnings about priority classes."""
    return [warning for warning in run(BASE, settings(changes))[1] if "priority" in warning]


def test_rc3_with_queues_that_treat_all_classes_alike_warns_with_the_routers() -> None:
    (everywhere,) = of_classes(RC3 | {"queue.kind": "fifo"})
    assert everywhere == (
        "scheme x sends in priority classes down to 4, but the queues of all routers treat all classes alike (fifo), "
        'so that low-priority packets delay and displace others; queue.kind = "priority" separates the classes'
    )
    partly = {"queue.kind": "priority", "queue_at": {"routers": ["west"], "kind": "fq-codel"}}
    (at_west,) = of_classes(RC3 | partly)
    assert "the queues of 1 of 2 routers (west) treat all classes alike (fq-codel)" in at_west
    assert of_classes(RC3 | {"queue.kind": "priority"}) == []
    assert of_classes(RC3 | {"queue.kind": "fifo", "queue.low_priority": "drop"}) == []
    assert of_classes(RC3 | {"queue.kind": "weighted-tail-drop", "queue.class_shares": [1.0, 0.5]}) == []


def test_a_class_of_all_packets_gives_no_priority() -> None:
    assert of_classes({"scheme.x.class": 2}) == ["scheme.x.class = 2 gives no priority: all packets are in class 2"]
    other = {"scheme.y.controller": "cubic", "workload.0.scheme": "x", "workload.1.scheme": "y"}
    (mixed,) = of_classes(other | {"scheme.x.class": 2, "queue.kind": "fifo"})
    assert mixed.startswith("scheme x sends in priority classes down to 2")


def test_a_priority_queue_for_one_class_warns_that_it_is_a_fifo_and_is_one() -> None:
    priority, fifo = (sparelane.run(BASE, set={"queue.kind": kind}) for kind in ("priority", "fifo"))
    assert priority.warnings[0] == 'queue.kind = "priority" serves packets like a fifo here: all packets are in class 0'
    assert priority.flows.equals(fifo.flows)
    assert priority.drops.equals(fifo.drops)


def test_a_series_without_a_second_sample_is_a_warning() -> None:
    _, (warning,) = run(BASE, settings({"sample": {"flows": [0], "interval": "5s"}}))
    assert warning == "sample.interval = 5s is not shorter than the run, 2s: no series has a second sample"


def test_schemes_without_flows_are_one_warning() -> None:
    more = {
        "scheme.y.controller": "cubic",
        "scheme.z.controller": "bic",
        "workload.0.scheme": "x",
        "workload.1.scheme": "x",
    }
    assert run(BASE, settings(more))[1] == ("no workload has flows of scheme y, z",)


def test_a_setting_for_full_interfaces_that_are_never_full_is_a_warning() -> None:
    found = sparelane.run(BASE, set={"nic.full": "wait"}).warnings
    assert "nic.full has no effect: no interface was ever full; nic.limit is 2.048GB unless it is given" in found
    limited = sparelane.run(BASE, set={"nic.full": "wait", "nic.limit": "10packets"})
    assert not [warning for warning in limited.warnings if "nic.full" in warning]


def test_cross_traffic_that_starts_after_the_run_is_a_warning() -> None:
    late = {"cross_traffic": SMALL_PACKETS | {"start": "3s"}}
    assert run(BASE, settings(late))[1] == ("cross_traffic sends nothing: it starts after the run, which ends at 2s",)


# Traffic whose flows write without end, in pieces, one after another on a connection, or in answers.
TRAFFIC = {
    "unlimited": '[workload]\nkind = "bulk"\n',
    "pieces": '[workload]\nkind = "bulk"\nwrites = { first = "2MB", then = "500KB", every = "300ms" }\n',
    "reused": '[workload]\nkind = "bulk"\nflows = 8\ngap = "200ms"\nsize = "200KB"\nconnections = "reused"\n',
    "requests": f"[workload]\n{POISSON.replace('poisson', 'requests')}".replace('"20KB"', '"200KB"'),
}


@pytest.mark.parametrize("key", ["send_buffer", "receive_window"])
@pytest.mark.parametrize("traffic", TRAFFIC)
def test_a_small_buffer_limits_every_kind_of_traffic(traffic: str, key: str) -> None:
    text = NETWORK.replace("loss = 0.001", "loss = 0.0") + SCHEME + TRAFFIC[traffic]
    free, limited = (run(text, settings(changes))[0] for changes in ({}, {f"transport.{key}": "15KB"}))
    assert free != limited


def test_a_send_buffer_bounds_the_rate_of_an_unlimited_flow_to_its_size_per_round_trip() -> None:
    limits = {"transport.send_buffer": "30KB", "link.loss": 0, "measure.from": "1s"}
    flow = sparelane.run(NETWORK + SCHEME + TRAFFIC["unlimited"], set=limits).flows.row(0, named=True)
    most_bytes = 30_000 / flow["min_rtt_s"]
    # A buffer that is refilled by thirds holds two thirds at least. The queue makes round trips up to a fifth longer.
    assert 2 / 3 / 1.2 * most_bytes < flow["measured_bytes"] <= most_bytes
