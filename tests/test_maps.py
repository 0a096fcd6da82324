"""Tests of real maps, which may have several parts, loops, and missing names, speeds or coordinates."""

import os
import re
from collections import Counter
from pathlib import Path

import pytest

import sparelane

SCENARIO = """\
duration = "100ms"
[topology]
kind = "file"
path = "{path}"
component = "largest"
hosts_per_router = 2
access_rate = "1Gbps"
default_rate = "1Gbps"
[queue]
kind = "fifo"
# The bandwidth-delay product, which is the default, is less than a packet where a cable of the map has 9.6 kb/s.
limit = "100packets"
[scheme.tcp]
controller = "cubic"
[workload]
kind = "bulk"
pairs = "next"
size = "20kB"
"""

# One map with all peculiarities that occur in the Internet Topology Zoo.
GRAPHML = """\
<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d35" />
  <key attr.name="LinkLabel" attr.type="string" for="edge" id="d36" />
  <key attr.name="Longitude" attr.type="double" for="node" id="d29" />
  <key attr.name="Latitude" attr.type="double" for="node" id="d32" />
  <key attr.name="label" attr.type="string" for="node" id="d33" />
  <key attr.name="type" attr.type="string" for="node" id="d22" />
  <key attr.name="hyperedge" attr.type="int" for="node" id="d34" />
  <key attr.name="Note" attr.type="string" for="graph" id="d1" />
  <graph edgedefault="undirected">
    <data key="d1">&lt;10 Mb/s, caf\u00e9</data>
    <node id="0"><data key="d29">-0.12574</data><data key="d32">51.50853</data><data key="d33">London</data></node>
    <node id="1"><data key="d29">2.3488</data><data key="d32">48.85341</data><data key="d33">London</data></node>
    <node id="2"><data key="d29">nan</data><data key="d32">48.0</data><data key="d22">Blue Square</data></node>
    <node id="3"><data key="d34">1</data><data key="d33">?</data></node>
    <node id="4"><data key="d33">?</data></node>
    <node id="5"><data key="d33">Alone</data></node>
    <node id="6"><data key="d33">Apart</data></node>
    <node id="7"><data key="d33">Apart</data></node>
    <edge source="0" target="1"><data key="d36">10 Gbps</data><data key="d35">10000000000.0</data></edge>
    <edge source="1" target="0"><data key="d35">2500000000.0</data></edge>
    <edge source="1" target="1" />
    <edge source="1" target="2"><data key="d35">0.0</data></edge>
    <edge source="2" target="3"><data key="d36">&lt;45 Mb/s</data><data key="d35">None</data></edge>
    <edge source="3" target="4" />
    <edge source="4" target="0" />
    <edge source="6" target="7" />
  </graph>
</graphml>
"""
GML = """\
graph [
  directed 0
  label "Map"
  Note "a quote &quot;and&#233; more"
  node [ id 0 label "London" Longitude -0.12574 Latitude 51.50853 ]
  node [ id 1 label "London" Longitude 2.3488 Latitude 48.85341 ]
  node [ id 2 type "Blue Square" Internal 0 ]
  node [ id 3 label "?" hyperedge 1 ]
  node [ id 4 label "?" ]
  node [ id 5 label "Alone" ]
  node [ id 6 label "Apart" ]
  node [ id 7 label "Apart" ]
  edge [ source 0 target 1 LinkLabel "10 Gbps" LinkSpeedRaw 10000000000.0 ]
  edge [ source 1 target 0 LinkSpeedRaw 2500000000.0 ]
  edge [ source 1 target 1 ]
  edge [ source 1 target 2 LinkSpeedRaw 0.0 ]
  edge [ source 2 target 3 LinkLabel "<45 Mb/s" ]
  edge [ source 3 target 4 ]
  edge [ source 4 target 0 ]
  edge [ source 6 target 7 ]
]
"""


def run(path: Path) -> sparelane.Result:
    scenario = path.with_suffix(".toml")
    scenario.write_text(SCENARIO.format(path=path.name), encoding="utf-8")
    return sparelane.run(scenario)


@pytest.mark.parametrize(("name", "content"), [("map.graphml", GRAPHML), ("map.gml", GML)])
def test_a_map_with_all_kinds_of_gaps_runs_and_warns_of_omissions(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    result = run(tmp_path / name)
    # Each router of the largest part has two hosts, each with a flow, and all flows progress.
    assert result.totals["finished_flows"] == result.totals["flows"] == 10
    loops, merged, parts = result.warnings
    assert loops.startswith("edges from a node to itself are left out of the map: 1 (line ")
    assert merged.startswith("parallel edges of the map are merged: 1 (line ")
    assert parts == "the map is not connected: its largest part has 5 of 8 nodes"
    rates = {(row["from"], row["to"]): row["rate_bps"] for row in result.links.iter_rows(named=True)}
    assert rates["London", "London-2"] == 10_000_000_000
    assert rates["London-2", "2"] == rates["2", "?"] == 1_000_000_000


@pytest.mark.slow
@pytest.mark.skipif("SPARELANE_MAPS" not in os.environ, reason="SPARELANE_MAPS names no folder of maps (see .ci/maps)")
def test_every_map_of_a_folder_runs(tmp_path: Path) -> None:
    maps = sorted(path for path in Path(os.environ["SPARELANE_MAPS"]).rglob("*") if path.suffix in {".graphml", ".gml"})
    assert maps
    failed = {}
    warnings: Counter[str] = Counter()
    for path in maps:
        copy = tmp_path / path.name
        copy.write_bytes(path.read_bytes())
        try:
            # Other warnings concern the run: some cables carry no flow in such a short time.
            of_the_map = (warning for warning in run(copy).warnings if " map" in warning)
            warnings.update(re.sub(r"\d+", "N", warning.split(" (")[0]) for warning in of_the_map)
        except sparelane.ScenarioError as error:
            failed[path.name] = str(error)
    print(f"{len(maps) - len(failed)} of {len(maps)} run; {dict(warnings)}")
    assert not failed, f"{len(maps) - len(failed)} of {len(maps)} run"
    # Only omissions from a map are reported.
    assert set(warnings) <= {
        "edges from a node to itself are left out of the map: N",
        "parallel edges of the map are merged: N",
        "the map is not connected: its largest part has N of N nodes",
    }
