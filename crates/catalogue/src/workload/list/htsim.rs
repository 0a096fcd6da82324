//! htsim's connection matrix, `.cm`.
//!
//! A header gives the numbers of hosts (`Nodes`) and of connections (`Connections`). Then follows one connection on each
//! line: `SOURCE->DESTINATION start PICOSECONDS size BYTES`, with hosts by number. Lines that begin with `#` are ignored.
//!
//! A connection with `trigger N` in place of a start waits for trigger N, which a line `trigger id N oneshot` or
//! `trigger id N barrier count C` declares. Connections with `send_done_trigger N` or `recv_done_trigger N` fire it when
//! they end: one connection fires a `oneshot`, and C connections a `barrier`. Waiting connections then start. htsim stops
//! at any other number of firings. Here both kinds of firing happen when the flow is complete, while `send_done_trigger`
//! in htsim waits for the acknowledgment of the last packet.
//!
//! The words `id` and `prio`, each with a number, have no effect here, and a warning reports priorities. Failures of links
//! are refused, and so are `multishot` triggers, whose order depends on the order in which connections end.
//!
//! Source: `sim/datacenter/connection_matrix.cpp` and `sim/trigger.cpp` of the repository of htsim
//! (Broadcom/csg-htsim).

use super::FlowList;
use super::numbered::NumberedHosts;
use crate::schema::{Warnings, units};
use crate::workload::graph::FlowGraph;
use crate::workload::{WorkloadError, ends};
use sparelane_core::Time;
use sparelane_sim::{FlowSpec, Network};
use std::collections::BTreeMap;

/// Words of the header with the number of things that follow.
const HEADER: [&str; 4] = ["nodes", "connections", "triggers", "failures"];
/// Words that name a trigger to fire when a connection ends.
const FIRES: [&str; 2] = ["send_done_trigger", "recv_done_trigger"];

/// The context in which connections are read.
struct Table<'a> {
    network: &'a Network,
    hosts: NumberedHosts<'a>,
    scheme: u16,
    max_bytes: u64,
    /// Number of connections with a priority.
    priorities: usize,
}

/// A connection, and the triggers that it waits for and fires.
struct Connection {
    line: usize,
    flow: FlowSpec,
    waits_for: Option<u64>,
    fires: Vec<u64>,
}

/// The declaration of a trigger.
struct Trigger {
    line: usize,
    /// The number of connections that fire it before others start.
    firings: u64,
}

/// Reads the flows, all of which use `scheme`, under which a flow has at most `max_bytes`.
///
/// # Errors
/// Fails on an unknown word, a connection that is malformed, too large, or does not join two different hosts of `network`,
/// a trigger that is not declared once or not fired as often as it needs, connections that wait for each other in a circle,
/// and if the header announces another number of connections or triggers, or failures.
pub fn parse(
    text: &str,
    network: &Network,
    scheme: u16,
    max_bytes: u64,
    warnings: &Warnings,
) -> Result<FlowList, WorkloadError> {
    let mut table = Table { network, hosts: NumberedHosts::of(network), scheme, max_bytes, priorities: 0 };
    let mut announced = Vec::new();
    let (mut connections, mut triggers) = (Vec::new(), BTreeMap::new());
    for (line, content) in (1..).zip(text.lines()) {
        let refuse = |message| WorkloadError::at(line, message);
        let words: Vec<_> = content.split_whitespace().collect();
        let Some(first) = words.first().filter(|word| !word.starts_with('#')) else { continue };
        if let Some((src, dst)) = first.split_once("->") {
            connections.push(table.connection(line, src, dst, &words[1..]).map_err(refuse)?);
        } else if *first == "trigger" {
            let (id, firings) = trigger(&words[1..]).map_err(refuse)?;
            if triggers.insert(id, Trigger { line, firings }).is_some() {
                return Err(refuse(format!("trigger {id} is declared again; allowed: each id once")));
            }
        } else {
            match header(first, &words[1..]).map_err(refuse)? {
                ("failures", 1..) => {
                    return Err(refuse("failures of links are not read; allowed: Failures 0".to_owned()));
                }
                (name @ ("connections" | "triggers"), count) => announced.push((line, name, count)),
                _ => {}
            }
        }
    }
    for (line, name, count) in announced {
        let found = if name == "connections" { connections.len() } else { triggers.len() };
        if count != found as u64 {
            let message = format!("the header announces {count} {name}; the file has {found}; allowed: equal numbers");
            return Err(WorkloadError::at(line, message));
        }
    }
    if table.priorities > 0 {
        let count = table.priorities;
        warnings.add(format!("priorities of htsim's connections have no effect: {count} connections"));
    }
    if connections.iter().all(|one| one.waits_for.is_none() && one.fires.is_empty()) && triggers.is_empty() {
        return Ok(FlowList::sorted(connections.into_iter().map(|one| one.flow).collect()));
    }
    graph(&connections, &triggers).map(FlowList::of_graph)
}

/// Returns the connections with the order in which they start.
fn graph(connections: &[Connection], triggers: &BTreeMap<u64, Trigger>) -> Result<FlowGraph, WorkloadError> {
    let declared = |line, id: u64| match triggers.contains_key(&id) {
        true => Ok(()),
        false => {
            let message = format!("trigger {id} is not declared; allowed: a line such as `trigger id {id} oneshot`");
            Err(WorkloadError::at(line, message))
        }
    };
    // The numbers of the connections that fire each trigger. Triggers without waiting connections are checked, too.
    let mut fired: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for (number, one) in (0..).zip(connections) {
        for &id in &one.fires {
            declared(one.line, id)?;
            fired.entry(id).or_default().push(number);
        }
        one.waits_for.map_or(Ok(()), |id| declared(one.line, id))?;
    }
    for (id, trigger) in triggers {
        let found = fired.get(id).map_or(0, Vec::len) as u64;
        let is_awaited = connections.iter().any(|one| one.waits_for == Some(*id));
        if is_awaited && found != trigger.firings {
            let needed = trigger.firings;
            let message = format!(
                "trigger {id} is fired by {found} connections and needs {needed}; allowed: equal numbers, of \
                 send_done_trigger and recv_done_trigger"
            );
            return Err(WorkloadError::at(trigger.line, message));
        }
    }
    // Connections are the first nodes; a barrier follows for each trigger that needs several firings.
    let mut barriers = BTreeMap::new();
    for (id, firing) in &fired {
        if firing.len() > 1 {
            barriers.insert(*id, (connections.len() + barriers.len()) as u32);
        }
    }
    let mut graph = FlowGraph::default();
    for one in connections {
        let after = one.waits_for.map(|id| barriers.get(&id).copied().unwrap_or_else(|| fired[&id][0]));
        graph.add_flow(one.flow, after.into_iter().collect());
    }
    for id in barriers.keys() {
        graph.add_barrier(fired[id].clone());
    }
    match graph.cycle() {
        None => Ok(graph),
        Some(cycle) => {
            let lines: Vec<_> =
                cycle.iter().filter_map(|&node| connections.get(node as usize)).map(|one| one.line).collect();
            let names: Vec<_> = lines.iter().chain(lines.first()).map(|line| format!("line {line}")).collect();
            let message =
                format!("triggers lead in a circle: {}; allowed: nothing that waits for itself", names.join(" after "));
            Err(WorkloadError::at(lines.first().copied().unwrap_or(1), message))
        }
    }
}

/// Reads the words of a trigger's declaration. Returns its id and the number of connections that fire it.
fn trigger(words: &[&str]) -> Result<(u64, u64), String> {
    const ALLOWED: &str = "allowed: `trigger id N oneshot`, or `trigger id N barrier count C`";
    let (mut id, mut kind, mut count) = (None, None, None);
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        match word {
            "oneshot" | "barrier" if kind.is_none() => kind = Some(word),
            "multishot" => return Err(format!("multishot triggers are not read; {ALLOWED}")),
            "id" | "count" => {
                let value = words.next().ok_or_else(|| format!("`{word}` has no number"))?;
                let number = number(word, value)?;
                *(if word == "id" { &mut id } else { &mut count }) = Some(number);
            }
            _ => return Err(format!("`{word}` is not known in a trigger; {ALLOWED}")),
        }
    }
    let id = id.ok_or_else(|| format!("the trigger has no id; {ALLOWED}"))?;
    match (kind, count) {
        (Some("oneshot"), _) => Ok((id, 1)),
        (Some(_), Some(count)) => Ok((id, count)),
        (Some(_), None) => Err(format!("the barrier has no count; {ALLOWED}")),
        (None, _) => Err(format!("the trigger is of no kind; {ALLOWED}")),
    }
}

/// Reads an id or a count, which is not zero.
fn number(word: &str, value: &str) -> Result<u64, String> {
    let number = value.parse().ok().filter(|&number| number > 0);
    number.ok_or_else(|| format!("{word} is `{value}`; allowed: a whole number, 1 or more"))
}

/// Reads a line of the header.
fn header(word: &str, rest: &[&str]) -> Result<(&'static str, u64), String> {
    let name = HEADER.into_iter().find(|name| name.eq_ignore_ascii_case(word));
    let name = name.ok_or_else(|| {
        format!("`{word}` is not known; allowed: connections such as 0->3, and {} with a number", HEADER.join(", "))
    })?;
    match rest {
        [count] => count.parse().map(|count| (name, count)).map_err(|_| format!("`{count}` is not a whole number")),
        _ => Err(format!("{} words after `{word}`; allowed: a number", rest.len())),
    }
}

impl Table<'_> {
    fn connection(&mut self, line: usize, src: &str, dst: &str, words: &[&str]) -> Result<Connection, String> {
        let (src, dst) = (self.hosts.find("the source", src)?, self.hosts.find("the destination", dst)?);
        ends::check(self.network, src, dst)?;
        let (mut start, mut size) = (None, None);
        let (mut waits_for, mut fires, mut adds) = (None, Vec::new(), false);
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            if word == "addon" {
                adds = true;
                continue;
            }
            let value = words.next().ok_or_else(|| format!("`{word}` has no number"))?;
            match word {
                "start" => start = Some(picoseconds(value)?),
                "size" => {
                    let bytes = value.parse().ok().filter(|bytes| (1..=self.max_bytes).contains(bytes));
                    let allowed = || format!("size is `{value}`; allowed: bytes from 1 to {}", self.max_bytes);
                    size = Some(bytes.ok_or_else(allowed)?);
                }
                "prio" => self.priorities += 1,
                "id" => {}
                "trigger" => waits_for = Some(number(word, value)?),
                _ if FIRES.contains(&word) => fires.push(number(word, value)?),
                _ => {
                    return Err(format!(
                        "`{word}` is not known; allowed: start, size, id, prio, trigger, {}",
                        FIRES.join(", ")
                    ));
                }
            }
        }
        if waits_for.is_some() && start.is_some() {
            return Err("the connection has a start and a trigger; allowed: one of them".to_owned());
        }
        if waits_for.is_some() && adds {
            return Err("connections to which a trigger adds bytes are not read; allowed: no addon".to_owned());
        }
        let start = start.or(waits_for.map(|_| Time::ZERO));
        let start = start.ok_or("the connection has no start; allowed: start and picoseconds, or trigger and an id")?;
        let size = size.ok_or("the connection has no size; allowed: size and bytes")?;
        let flow = FlowSpec::new(start, src, dst, Some(size), self.scheme);
        Ok(Connection { line, flow, waits_for, fires })
    }
}

/// Reads a start, which may have a fraction: scripts write `5e6` and `1.0`.
fn picoseconds(text: &str) -> Result<Time, String> {
    let time = units::time_of(&format!("{text}ps"));
    let time = time.map_err(|_| format!("start is `{text}`; allowed: a whole number of picoseconds, 0 or more"))?;
    Ok(Time::from_ps(time.as_ps()))
}

/// Returns the number of hosts that flows by position need: one more than the highest number of a source or destination
/// in the file.
pub fn hosts_needed(text: &str) -> u64 {
    let ends = |line: &str| {
        let (src, dst) = line.split_whitespace().next()?.split_once("->")?;
        Some(src.parse::<u64>().ok()?.max(dst.parse().ok()?))
    };
    text.lines().filter_map(ends).max().map_or(0, |highest| highest.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_sim::{NodeId, NodeKind};

    fn network() -> Network {
        let mut network = Network::default();
        network.add("router", NodeKind::Router);
        ["a", "b", "c"].into_iter().for_each(|name| {
            network.add(name, NodeKind::Host);
        });
        network
    }

    fn read(text: &str) -> Result<(Vec<FlowSpec>, Vec<String>), String> {
        let network = network();
        let warnings = Warnings::new();
        let list = parse(text, &network, 0, 2_000_000, &warnings).map_err(|error| error.to_string())?;
        Ok((list.roots.collect(), warnings.list()))
    }

    fn flow(start_ps: u64, src: u32, dst: u32, bytes: u64) -> FlowSpec {
        FlowSpec::new(Time::from_ps(start_ps), NodeId(src), NodeId(dst), Some(bytes), 0)
    }

    #[test]
    fn connections_have_picoseconds_bytes_and_hosts_by_position() {
        let text = "# two\nNodes 3\nConnections 2\n0->2 start 5e6 size 2000000\n\n1->2 id 7 start 3 size 9\n";
        let expected = vec![flow(3, 2, 3, 9), flow(5_000_000, 1, 3, 2_000_000)];
        assert_eq!(read(text), Ok((expected, vec![])));
        assert_eq!(hosts_needed(text), 3);
        let (flows, warnings) = read("Nodes 3\nConnections 1\n0->1 start 0 size 1 prio 4\n").unwrap();
        assert_eq!(flows, [flow(0, 1, 2, 1)]);
        assert_eq!(warnings, ["priorities of htsim's connections have no effect: 1 connections"]);
    }

    #[test]
    fn connections_start_when_their_triggers_have_fired() {
        let text = "Nodes 3\nConnections 5\nTriggers 3\n\
            0->1 start 0 size 1 send_done_trigger 7 recv_done_trigger 9\n\
            0->2 trigger 7 size 2 send_done_trigger 8\n\
            1->2 start 5 size 3 send_done_trigger 8\n\
            2->0 id 4 trigger 8 size 4\n\
            2->1 id 5 trigger 8 size 5\n\
            trigger id 7 oneshot\ntrigger id 8 barrier count 2\ntrigger id 9 oneshot\n";
        let mut list = parse(text, &network(), 0, 2_000_000, &Warnings::new()).expect("a list");
        assert_eq!(list.len(), 5);
        let mut dependents = list.dependents.take().expect("waiting connections");
        // Sizes are the numbers of the connections. The last two wait for the second and the third.
        let at = |us: u64| Time::from_ps(us * 1_000_000);
        let roots: Vec<_> = list.roots.collect();
        assert_eq!(roots.iter().map(|flow| flow.size_bytes.unwrap()).collect::<Vec<_>>(), [1, 3]);
        let mut started = |waiter: Option<u64>, now| -> Vec<_> {
            let flows = dependents.follow(waiter.expect("a waiter"), now);
            flows.into_iter().map(|flow| (flow.size_bytes.unwrap(), flow.start, flow.waiter)).collect()
        };
        let second = started(roots[0].waiter, at(20));
        assert_eq!(second.iter().map(|one| (one.0, one.1)).collect::<Vec<_>>(), [(2, at(20))]);
        assert!(started(roots[1].waiter, at(30)).is_empty());
        let last = started(second[0].2, at(40));
        assert_eq!(last.iter().map(|one| (one.0, one.1)).collect::<Vec<_>>(), [(4, at(40)), (5, at(40))]);
    }

    #[test]
    fn each_error_states_its_line_and_the_allowed_values() {
        for (text, expected) in [
            ("Connections 2\n0->1 start 0 size 1\n", "line 1: the header announces 2 connections; the file has 1"),
            ("Connections x\n", "line 1: `x` is not a whole number"),
            ("Connections 1 1\n", "line 1: 2 words after `Connections`; allowed: a number"),
            ("Failures 1\n", "line 1: failures of links are not read; allowed: Failures 0"),
            ("Triggers 1\n", "line 1: the header announces 1 triggers; the file has 0; allowed: equal numbers"),
            ("trigger id 1\n", "line 1: the trigger is of no kind; allowed: `trigger id N oneshot`, or"),
            ("trigger oneshot\n", "line 1: the trigger has no id; allowed: `trigger id N oneshot`, or"),
            ("trigger id 0 oneshot\n", "line 1: id is `0`; allowed: a whole number, 1 or more"),
            ("trigger id 1 barrier\n", "line 1: the barrier has no count; allowed: `trigger id N oneshot`, or"),
            ("trigger id 1 multishot\n", "line 1: multishot triggers are not read; allowed: `trigger id N oneshot`"),
            ("trigger id 1 oneshot fast\n", "line 1: `fast` is not known in a trigger; allowed: `trigger id N"),
            ("trigger id 1 oneshot\ntrigger id 1 oneshot\n", "line 2: trigger 1 is declared again; allowed: each"),
            ("0->1 trigger 1 size 1\n", "line 1: trigger 1 is not declared; allowed: a line such as `trigger id 1"),
            ("0->1 start 0 size 1 send_done_trigger 2\n", "line 1: trigger 2 is not declared; allowed: a line"),
            ("0->1 trigger 1 start 0 size 1\n", "line 1: the connection has a start and a trigger; allowed: one"),
            ("0->1 trigger 1 size 1 addon\n", "line 1: connections to which a trigger adds bytes are not read"),
            (
                "0->1 trigger 1 size 1\ntrigger id 1 oneshot\n",
                "line 2: trigger 1 is fired by 0 connections and needs 1; allowed: equal numbers, of send_done_trigger",
            ),
            (
                "0->1 start 0 size 1 send_done_trigger 1\n0->2 trigger 1 size 1\ntrigger id 1 barrier count 2\n",
                "line 3: trigger 1 is fired by 1 connections and needs 2; allowed: equal numbers, of send_done_trigger",
            ),
            (
                "0->1 trigger 1 size 1 send_done_trigger 2\n0->2 trigger 2 size 1 recv_done_trigger 1\n\
                 trigger id 1 oneshot\ntrigger id 2 oneshot\n",
                "line 1: triggers lead in a circle: line 1 after line 2 after line 1; allowed: nothing that waits for",
            ),
            ("0->1 size 1\n", "line 1: the connection has no start"),
            ("0->1 start 0\n", "line 1: the connection has no size"),
            ("0->1 start 0 size\n", "line 1: `size` has no number"),
            ("0->1 start -1 size 1\n", "line 1: start is `-1`; allowed: a whole number of picoseconds, 0 or more"),
            ("0->1 start 0 size 0\n", "line 1: size is `0`; allowed: bytes from 1 to 2000000"),
            ("0->1 start 0 size 1 colour 2\n", "line 1: `colour` is not known; allowed: start, size, id, prio"),
            ("0->3 start 0 size 1\n", "line 1: the destination is `3`; allowed: the name of a host, or its position"),
            ("0->0 start 0 size 1\n", "line 1: src and dst are both `a`; allowed: two different hosts"),
        ] {
            let found = read(text).unwrap_err();
            assert!(found.starts_with(expected), "{found}");
        }
    }
}
