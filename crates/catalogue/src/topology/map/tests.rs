//! Tests of the interpretation of maps.

use super::*;
use sparelane_sim::{Limit, NodeId};

const DEFAULTS: MapDefaults = MapDefaults { rate: Rate::from_gbps(40), delay: Dur::from_ms(7) };

/// A graph as a sparelane user writes it: kinds, and values with units.
const WITH_HOSTS: &str = r#"<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="k" for="node" attr.name="kind" attr.type="string"><default>host</default></key>
  <key id="r" for="edge" attr.name="rate" attr.type="string"><default>1Gbps</default></key>
  <key id="d" for="edge" attr.name="Delay" attr.type="string"/>
  <key id="q" for="edge" attr.name="queue" attr.type="string"/>
  <key id="l" for="edge" attr.name="loss" attr.type="double"/>
  <graph edgedefault="undirected">
    <node id="left"/>
    <node id="right"/>
    <node id="middle"><data key="k">Router</data></node>
    <edge source="left" target="middle"/>
    <edge source="middle" target="right">
      <data key="r">10Gbps</data><data key="d">5ms</data><data key="q">64kB</data><data key="l">0.01</data>
    </edge>
  </graph>
</graphml>"#;

/// A graph as in the Topology Zoo: labels, coordinates, raw speeds, parallel edges, and a `type` with another meaning.
const ZOO: &str = r#"<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d35" />
  <key attr.name="Longitude" attr.type="double" for="node" id="d29" />
  <key attr.name="label" attr.type="string" for="node" id="d33" />
  <key attr.name="Latitude" attr.type="double" for="node" id="d32" />
  <key attr.name="type" attr.type="string" for="node" id="d22" />
  <key attr.name="Network" attr.type="string" for="graph" id="d3" />
  <graph edgedefault="undirected">
    <data key="d3">Abilene</data>
    <node id="0"><data key="d29">-74.00597</data><data key="d32">40.71427</data><data key="d33">New York</data></node>
    <node id="1"><data key="d29">-87.65005</data><data key="d32">41.85003</data><data key="d33">Chicago</data></node>
    <node id="2"><data key="d22">Small Node</data><data key="d33">Chicago</data></node>
    <node id="3"><data key="d33" /></node>
    <edge source="0" target="1"><data key="d35">2500000000.0</data></edge>
    <edge source="1" target="0"><data key="d35">10000000000</data></edge>
    <edge source="1" target="2" />
    <edge source="1" target="0" />
  </graph>
</graphml>"#;

fn read_as(
    format: FileFormat,
    text: &str,
    component: Component,
    warnings: &Warnings,
) -> Result<Network, TopologyError> {
    let options = MapOptions { defaults: DEFAULTS, component, capacity_unit: None, has_latencies: false };
    parse(text, format, &options, warnings).map(Option::unwrap)
}

fn read(text: &str) -> Result<Network, TopologyError> {
    read_as(FileFormat::GraphMl, text, Component::All, &Warnings::default())
}

fn error(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn kinds_and_values_with_units_make_a_network_with_hosts() {
    let network = read(WITH_HOSTS).unwrap();
    assert_eq!(network.hosts(), [NodeId(0), NodeId(1)]);
    assert_eq!(network.find("middle"), Some(NodeId(2)));
    let [plain, full] = &network.cables[..] else { panic!("two cables") };
    assert_eq!(
        (plain.rates, plain.delay, plain.limit, plain.loss),
        ([Rate::from_gbps(1); 2], DEFAULTS.delay, None, [Loss::NONE; 2])
    );
    assert_eq!((full.rates, full.delay), ([Rate::from_gbps(10); 2], Dur::from_ms(5)));
    assert_eq!((full.limit, full.loss), (Some(Limit::Bytes(64_000)), [Loss::of_any(0.01); 2]));
}

#[test]
fn a_zoo_file_is_a_graph_of_routers_with_fibre_delays() {
    let network = read(ZOO).unwrap();
    assert!(network.hosts().is_empty());
    let names: Vec<_> = network.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["New York", "Chicago", "Chicago-2", "3"]);
    let [merged, silent] = &network.cables[..] else { panic!("parallel edges are one cable") };
    assert_eq!(merged.rates, [Rate::from_gbps(10); 2]);
    // New York to Chicago is 1,145 km.
    assert!(merged.delay.abs_diff(Dur::from_us(5_725)) < Dur::from_us(25), "{}", merged.delay);
    assert_eq!((silent.rates, silent.delay), ([DEFAULTS.rate; 2], DEFAULTS.delay));
}

#[test]
fn unknown_values_count_as_missing() {
    let plain = read(ZOO).unwrap();
    for word in ["nan", "None", "NULL", "unknown", "?", ""] {
        let speed = ZOO.replace("10000000000</data>", &format!("{word}</data>"));
        assert_eq!(read(&speed).unwrap().cables[0].rates, [Rate::from_mbps(2_500); 2], "{word}");
        let place = ZOO.replace("-74.00597", word);
        let network = read(&place).unwrap();
        assert_eq!((network.cables[0].delay, network.nodes.len()), (DEFAULTS.delay, plain.nodes.len()), "{word}");
    }
    assert_eq!(read(&ZOO.replace("2500000000.0", "0.0")).unwrap().cables[0].rates, [Rate::from_gbps(10); 2]);
    let silent = ZOO.replace("2500000000.0", "0").replace("10000000000</data>", "0</data>");
    assert_eq!(read(&silent).unwrap().cables[0].rates, [DEFAULTS.rate; 2]);
    assert!(error(&ZOO.replace("-74.00597", "west")).contains("allowed: a number from -180 to 180"));
    assert!(error(&ZOO.replace("2500000000.0", "-1")).contains("allowed: a number from 0"));
    assert!(error(&ZOO.replace("2500000000.0", "12")).contains("allowed: 1000 to"));
}

#[test]
fn half_the_earth_is_a_hundred_milliseconds() {
    let pole = |latitude: f64| Place { latitude: latitude.to_radians(), longitude: 0.0 };
    assert!(fibre_delay(pole(90.0), pole(-90.0)).abs_diff(Dur::from_ms(100)) < Dur::from_us(100));
    assert_eq!(fibre_delay(pole(10.0), pole(10.0)), Dur::ZERO);
}

#[test]
fn each_error_states_its_line_and_the_allowed_values() {
    for (from, to, expected) in [
        (
            "5ms",
            "5 parsecs",
            "line 14: `delay` is `5 parsecs`; allowed: a time such as \"40ms\" (units: ps, ns, us, ms, s, min)",
        ),
        (
            "10Gbps",
            "fast",
            "line 14: `rate` is `fast`; allowed: a rate such as \"100Mbps\" (units: bps, kbps, Mbps, Gbps, Tbps, b/s, \
             kb/s, Mb/s, Gb/s, Tb/s)",
        ),
        ("10Gbps", "0Gbps", "line 13: the rate of the edge is 0 b/s; allowed: 1000 to 100000000000000 b/s"),
        ("0.01", "1.5", "line 14: `loss` is `1.5`; allowed: a number from 0 to 1"),
        ("0.01", "NaN", "line 14: `loss` is `NaN`; allowed: a number from 0 to 1"),
        ("Router", "switch", "line 11: `kind` is `switch`; allowed: host or router"),
        ("target=\"right\"", "target=\"west\"", "line 13: the edge's target is `west`; allowed: the id of a node"),
        ("target=\"right\"", "", "line 13: <edge> has no `target`; it needs one"),
        ("target=\"right\"", "target=\"middle\"", "line 10: host `right` has no edge; a host needs one"),
        ("id=\"right\"", "id=\"left\"", "line 10: node id `left` is given twice; allowed: each id once"),
        ("<edge source=\"left\" target=\"middle\"/>", "", "line 9: host `left` has no edge; a host needs one"),
        (
            "<data key=\"k\">",
            "<data key=\"z\">",
            "line 11: <data> refers to key `z`; allowed: a key that the file declares",
        ),
    ] {
        assert!(WITH_HOSTS.contains(from), "{from}");
        assert_eq!(error(&WITH_HOSTS.replacen(from, to, 1)), expected);
    }
}

#[test]
fn malformed_graphml_is_refused() {
    assert!(error("").contains("not well-formed XML"));
    assert!(error("<graphml>\n<graph></node>").starts_with("line 2: this is not well-formed XML"));
    assert_eq!(error("<svg/>"), "line 1: the file's element is <svg>; allowed: <graphml>");
    assert_eq!(error("<graphml/>"), "line 1: <graphml> holds no <graph>; it needs one");
}

#[test]
fn an_edge_from_a_node_to_itself_is_left_out_with_a_warning() {
    let text = ZOO.replace(
        "<edge source=\"1\" target=\"2\" />",
        "<edge source=\"1\" target=\"2\" /><edge source=\"2\" target=\"2\"/>",
    );
    let warnings = Warnings::default();
    let network = read_as(FileFormat::GraphMl, &text, Component::All, &warnings).unwrap();
    assert_eq!(network.cables.len(), 2);
    assert_eq!(warnings.list()[0], "edges from a node to itself are left out of the map: 1 (line 16)");
}

#[test]
fn the_largest_component_is_taken_on_request_with_a_warning() {
    let warnings = Warnings::default();
    let network = read_as(FileFormat::GraphMl, ZOO, Component::Largest, &warnings).unwrap();
    let names: Vec<_> = network.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["New York", "Chicago", "Chicago-2"]);
    assert_eq!(warnings.list()[1..], ["the map is not connected: its largest part has 3 of 4 nodes"]);
}

#[test]
fn merged_parallel_edges_are_a_warning() {
    let warnings = Warnings::default();
    read_as(FileFormat::GraphMl, ZOO, Component::All, &warnings).unwrap();
    assert_eq!(
        warnings.list(),
        ["parallel edges of the map are merged: 2 (line 15, 17); the merged link has the highest rate and the least \
          delay of them"]
    );
}

#[test]
fn each_direction_of_a_directed_graph_has_its_own_values() {
    let gml = "graph [ directed 1 node [ id 0 ] node [ id 1 ] node [ id 2 ]
        edge [ source 1 target 0 rate \"10Mbps\" delay \"3ms\" loss 0.1 ]
        edge [ source 0 target 1 rate \"1Mbps\" delay \"4ms\" ]
        edge [ source 1 target 2 rate \"5Mbps\" ]
        edge [ source 1 target 0 rate \"2Mbps\" ] ]";
    let graphml = r#"<graphml><key id="r" attr.name="rate"/><key id="d" attr.name="delay"/><key id="l" attr.name="loss"/>
        <graph edgedefault="directed"><node id="0"/><node id="1"/><node id="2"/>
        <edge source="1" target="0"><data key="r">10Mbps</data><data key="d">3ms</data><data key="l">0.1</data></edge>
        <edge source="0" target="1"><data key="r">1Mbps</data><data key="d">4ms</data></edge>
        <edge source="1" target="2"><data key="r">5Mbps</data></edge>
        <edge source="1" target="0"><data key="r">2Mbps</data></edge></graph></graphml>"#;
    for (format, text) in [(FileFormat::Gml, gml), (FileFormat::GraphMl, graphml)] {
        let warnings = Warnings::default();
        let network = read_as(format, text, Component::All, &warnings).unwrap();
        let [both, single] = &network.cables[..] else { panic!("two cables") };
        assert_eq!((both.a, both.rates), (NodeId(1), [10, 1].map(Rate::from_mbps)));
        assert_eq!((both.delay, both.loss), (Dur::from_ms(4), [0.1, 0.0].map(Loss::of_any)));
        assert_eq!(single.rates, [Rate::from_mbps(5); 2]);
        let starts: Vec<_> =
            warnings.list().iter().map(|one| one.split(" (").next().unwrap_or("").to_owned()).collect();
        assert_eq!(
            starts,
            [
                "parallel edges of the map are merged: 1",
                "directed edges of the map have no edge back: 1",
                "the two directions of edges of the map differ in delay: 1"
            ]
        );
    }
    // An edge of GraphML may differ from the graph, and an undirected pair is parallel.
    let mixed =
        graphml.replace("<edge source=\"1\" target=\"2\">", "<edge source=\"1\" target=\"2\" directed=\"false\">");
    let warnings = Warnings::default();
    read_as(FileFormat::GraphMl, &mixed, Component::All, &warnings).unwrap();
    assert!(!warnings.list().iter().any(|one| one.contains("no edge back")), "{:?}", warnings.list());
}

#[test]
fn a_map_means_the_same_in_gml() {
    let gml = r#"graph [ directed 0
        node [ id 0 label "New York" Longitude -74.00597 Latitude 40.71427 ]
        node [ id 1 label "Chicago" Longitude -87.65005 Latitude 41.85003 ]
        node [ id 2 label "Chicago" type "Small Node" ]
        node [ id 3 ]
        edge [ source 0 target 1 LinkSpeedRaw 2500000000.0 ]
        edge [ source 1 target 0 LinkSpeedRaw 10000000000 ]
        edge [ source 1 target 2 ]
        edge [ source 1 target 0 ] ]"#;
    let parsed = read_as(FileFormat::Gml, gml, Component::All, &Warnings::default()).unwrap();
    let same = read(ZOO).unwrap();
    let names = |network: &Network| network.nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>();
    assert_eq!((names(&parsed), format!("{:?}", parsed.cables)), (names(&same), format!("{:?}", same.cables)));
}
