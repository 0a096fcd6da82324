//! A network as JSON, with positions for drawing if it is small.
//!
//! Routers in a row have the hosts of the first one to the left, those of the last one to the right, and others above
//! and below. A single router is in the middle of its hosts. Routers of other networks repel each other and are pulled
//! together by their cables (Fruchterman and Reingold, 1991), from a fixed start, so that the same network always looks
//! the same; hosts surround their router.

use sparelane_scenario::Json;
use sparelane_sim::{Network, NodeId, NodeKind};
use std::collections::BTreeSet;
use std::f64::consts::{PI, TAU};

/// The largest number of nodes that are drawn.
const MOST_DRAWN: usize = 200;
/// The number of steps of the simulated forces.
const STEPS: usize = 300;
/// Space between the nodes and the border of the drawing.
const MARGIN: f64 = 0.06;

/// A position; both coordinates are between 0 and 1.
type Point = [f64; 2];

/// A network as JSON: `Network` of the protocol.
pub fn to_json(network: &Network) -> Json {
    let (layout, positions) = layout(network);
    let nodes = network.nodes.iter().enumerate().map(|(index, node)| {
        let coordinate = |axis: usize| {
            positions.get(index).map_or(Json::Null, |point| Json::Number((point[axis] * 1e4).round() / 1e4))
        };
        Json::object([
            ("name", Json::text(&node.name)),
            ("isHost", Json::Flag(node.kind == NodeKind::Host)),
            ("x", coordinate(0)),
            ("y", coordinate(1)),
        ])
    });
    let links = network.cables.iter().flat_map(|cable| {
        [(cable.a, cable.b, 0), (cable.b, cable.a, 1)].map(|(from, to, direction)| {
            Json::object([
                ("from", Json::whole(from.0)),
                ("to", Json::whole(to.0)),
                ("rateBps", Json::whole(cable.rates[direction].as_bps())),
                ("delayS", Json::Number(cable.delay.as_secs_f64())),
            ])
        })
    });
    Json::object([
        ("nodes", Json::List(nodes.collect())),
        ("links", Json::List(links.collect())),
        ("layout", Json::text(layout)),
    ])
}

/// The kind of the layout, and the position of each node; no positions for a network that is too large.
fn layout(network: &Network) -> (&'static str, Vec<Point>) {
    let routers = network.routers();
    if network.nodes.len() > MOST_DRAWN || routers.is_empty() {
        return ("none", Vec::new());
    }
    let edges = edges_of(network);
    let mut positions = vec![[0.5, 0.5]; network.nodes.len()];
    let kind = match (routers.len(), row_of(&routers, &edges)) {
        (1, _) => {
            let hosts = hosts_of(network, routers[0]);
            for (place, host) in hosts.iter().enumerate() {
                let angle = TAU * place as f64 / hosts.len() as f64 + PI;
                positions[host.index()] = [0.5 + 0.44 * angle.cos(), 0.5 + 0.44 * angle.sin()];
            }
            "star"
        }
        (_, Some(row)) => {
            place_row(network, &row, &mut positions);
            "row"
        }
        (_, None) => {
            place_graph(network, &routers, &edges, &mut positions);
            "graph"
        }
    };
    (kind, positions)
}

/// The pairs of routers with a cable, each once and with the lower number first.
fn edges_of(network: &Network) -> BTreeSet<(NodeId, NodeId)> {
    let is_router = |node: NodeId| network.nodes[node.index()].kind == NodeKind::Router;
    let between = network.cables.iter().filter(|cable| is_router(cable.a) && is_router(cable.b));
    between.map(|cable| (cable.a.min(cable.b), cable.a.max(cable.b))).collect()
}

fn hosts_of(network: &Network, router: NodeId) -> Vec<NodeId> {
    let ends = network.cables.iter().filter_map(|cable| match router {
        _ if cable.a == router => Some(cable.b),
        _ if cable.b == router => Some(cable.a),
        _ => None,
    });
    ends.filter(|node| network.nodes[node.index()].kind == NodeKind::Host).collect()
}

/// The routers in order, if they form a row.
fn row_of(routers: &[NodeId], edges: &BTreeSet<(NodeId, NodeId)>) -> Option<Vec<NodeId>> {
    let neighbours = |node: NodeId| -> Vec<NodeId> {
        let ends = edges.iter().filter_map(|&(a, b)| match node {
            _ if a == node => Some(b),
            _ if b == node => Some(a),
            _ => None,
        });
        ends.collect()
    };
    let first = *routers.iter().find(|&&router| neighbours(router).len() == 1)?;
    let mut row = vec![first];
    while let Some(next) = neighbours(row[row.len() - 1]).into_iter().find(|node| !row.contains(node)) {
        row.push(next);
    }
    (row.len() == routers.len() && edges.len() == routers.len() - 1).then_some(row)
}

fn place_row(network: &Network, row: &[NodeId], positions: &mut [Point]) {
    let (left, right) = if row.len() == 2 { (0.32, 0.68) } else { (0.2, 0.8) };
    let last = row.len() - 1;
    for (place, &router) in row.iter().enumerate() {
        let x = left + (right - left) * place as f64 / last as f64;
        positions[router.index()] = [x, 0.5];
        let hosts = hosts_of(network, router);
        if place == 0 || place == last {
            let column = if place == 0 { MARGIN } else { 1.0 - MARGIN };
            for (host, y) in hosts.iter().zip(spread(hosts.len(), 0.5, 1.0 - 2.0 * MARGIN)) {
                positions[host.index()] = [column, y];
            }
            continue;
        }
        // Half of the hosts above, half below, each within the router's part of the row.
        let (above, below) = hosts.split_at(hosts.len().div_ceil(2));
        let width = 0.8 * (right - left) / last as f64;
        for (some, y) in [(above, 0.12), (below, 0.88)] {
            for (host, x) in some.iter().zip(spread(some.len(), x, width)) {
                positions[host.index()] = [x, y];
            }
        }
    }
}

/// Returns `count` values around `middle`, evenly within `width`.
fn spread(count: usize, middle: f64, width: f64) -> impl Iterator<Item = f64> {
    (0..count).map(move |place| middle + width * ((place as f64 + 0.5) / count as f64 - 0.5))
}

fn place_graph(network: &Network, routers: &[NodeId], edges: &BTreeSet<(NodeId, NodeId)>, positions: &mut [Point]) {
    for (place, router) in routers.iter().enumerate() {
        let angle = TAU * place as f64 / routers.len() as f64;
        // Unequal radii, since a regular polygon of equal forces would not move.
        let radius = 0.3 + 0.1 * ((place * 7) % 5) as f64 / 5.0;
        positions[router.index()] = [0.5 + radius * angle.cos(), 0.5 + radius * angle.sin()];
    }
    let ideal = (1.0 / routers.len() as f64).sqrt();
    for step in 0..STEPS {
        let furthest = 0.1 * (1.0 - step as f64 / STEPS as f64);
        let pushes: Vec<Point> =
            routers.iter().map(|&router| force(router, routers, edges, positions, ideal)).collect();
        for (router, push) in routers.iter().zip(pushes) {
            let length = push[0].hypot(push[1]).max(1e-9);
            let moved = length.min(furthest) / length;
            let point = &mut positions[router.index()];
            (point[0], point[1]) = (point[0] + push[0] * moved, point[1] + push[1] * moved);
        }
    }
    let centre = centre_of(routers.iter().map(|router| positions[router.index()]));
    for &router in routers {
        let hosts = hosts_of(network, router);
        let [x, y] = positions[router.index()];
        let outwards = (y - centre[1]).atan2(x - centre[0]);
        let width = if hosts.len() < 2 { 0.0 } else { (0.5 * hosts.len() as f64).min(TAU * 0.8) };
        for (host, angle) in hosts.iter().zip(spread(hosts.len(), outwards, width)) {
            positions[host.index()] = [x + 0.45 * ideal * angle.cos(), y + 0.45 * ideal * angle.sin()];
        }
    }
    fit(positions);
}

/// The force on a router: repulsion from all others, attraction along its cables.
fn force(
    router: NodeId,
    routers: &[NodeId],
    edges: &BTreeSet<(NodeId, NodeId)>,
    positions: &[Point],
    ideal: f64,
) -> Point {
    let here = positions[router.index()];
    let mut push = [0.0, 0.0];
    for &other in routers.iter().filter(|&&other| other != router) {
        let there = positions[other.index()];
        let away = [here[0] - there[0], here[1] - there[1]];
        let distance = away[0].hypot(away[1]).max(1e-3);
        let is_joined = edges.contains(&(router.min(other), router.max(other)));
        let strength = ideal * ideal / distance - if is_joined { distance * distance / ideal } else { 0.0 };
        (push[0], push[1]) = (push[0] + away[0] / distance * strength, push[1] + away[1] / distance * strength);
    }
    push
}

fn centre_of(points: impl ExactSizeIterator<Item = Point>) -> Point {
    let count = points.len() as f64;
    let sum = points.fold([0.0, 0.0], |sum, point| [sum[0] + point[0], sum[1] + point[1]]);
    [sum[0] / count, sum[1] / count]
}

/// Scales positions so that they fill the drawing.
fn fit(positions: &mut [Point]) {
    for axis in 0..2 {
        let (low, high) = positions
            .iter()
            .fold((f64::MAX, f64::MIN), |(low, high), point| (low.min(point[axis]), high.max(point[axis])));
        let scale = (1.0 - 2.0 * MARGIN) / (high - low).max(1e-9);
        positions.iter_mut().for_each(|point| point[axis] = MARGIN + (point[axis] - low) * scale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_scenario::{Scenario, Source};

    fn laid_out(topology: &str) -> (&'static str, Vec<Point>, Network) {
        let text = format!(
            "duration = \"1s\"\nscheme.tcp.controller = \"cubic\"\nworkload = {{ kind = \"bulk\", size = \"1kB\" }}\n\
             topology = {topology}\n"
        );
        let source = Source { file: "t.toml".to_owned(), folder: ".".into() };
        let scenario = Scenario::parse(&text, &source, &[]).unwrap_or_else(|error| panic!("{error}"));
        let (kind, positions) = layout(scenario.network());
        (kind, positions, scenario.network().clone())
    }

    #[test]
    fn small_networks_have_a_layout_that_suits_them() {
        let cases = [
            ("{ kind = \"dumbbell\", pairs = 3 }", "row"),
            ("{ kind = \"star\", hosts = 5 }", "star"),
            ("{ kind = \"internet2\" }", "graph"),
            ("{ kind = \"fat-tree\", k = 4 }", "graph"),
            ("{ kind = \"fat-tree\", k = 12 }", "none"),
        ];
        for (topology, expected) in cases {
            assert_eq!(laid_out(topology).0, expected, "{topology}");
        }
    }

    #[test]
    fn nodes_are_apart_and_inside_the_drawing() {
        for topology in
            ["{ kind = \"dumbbell\", pairs = 4 }", "{ kind = \"internet2\" }", "{ kind = \"fat-tree\", k = 4 }"]
        {
            let (_, positions, network) = laid_out(topology);
            assert_eq!(positions.len(), network.nodes.len());
            for (place, point) in positions.iter().enumerate() {
                assert!(point.iter().all(|value| (0.0..=1.0).contains(value)), "{topology}: {point:?}");
                for other in &positions[..place] {
                    let distance = (point[0] - other[0]).hypot(point[1] - other[1]);
                    assert!(distance > 0.01, "{topology}: {point:?} and {other:?}");
                }
            }
        }
    }

    #[test]
    fn senders_of_a_dumbbell_are_left_and_receivers_right() {
        let (_, positions, network) = laid_out("{ kind = \"dumbbell\", pairs = 2 }");
        let x = |name: &str| positions[network.find(name).expect("a node").index()][0];
        assert!(x("west") < x("east"));
        let cable = |router: &str| hosts_of(&network, network.find(router).expect("a router"));
        assert!(cable("west").iter().all(|host| positions[host.index()][0] < x("west")));
        assert!(cable("east").iter().all(|host| positions[host.index()][0] > x("east")));
    }
}
