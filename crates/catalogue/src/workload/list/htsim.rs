//! htsim's connection matrix, `.cm`.
//!
//! A header gives the numbers of hosts (`Nodes`) and of connections (`Connections`). Then follows one connection on each
//! line: `SOURCE->DESTINATION start PICOSECONDS size BYTES`, with hosts by number. Lines that begin with `#` are ignored.
//!
//! The words `id` and `prio`, each with a number, have no effect here, and a warning reports priorities. Connections that
//! wait for a trigger are refused, because their start is not known; so are failures of links.
//!
//! Source: `sim/datacenter/connection_matrix.cpp` of the repository of htsim (Broadcom/csg-htsim).

use super::FlowList;
use super::numbered::NumberedHosts;
use crate::schema::{Warnings, units};
use crate::workload::{WorkloadError, ends};
use sparelane_core::Time;
use sparelane_sim::{FlowSpec, Network};

/// Words of the header with the number of things that follow.
const HEADER: [&str; 4] = ["nodes", "connections", "triggers", "failures"];
/// Words that name a trigger to fire when a connection ends. They have no effect without triggered connections.
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

/// Reads the flows, all of which use `scheme`, under which a flow has at most `max_bytes`.
///
/// # Errors
/// Fails on an unknown word, a connection that is malformed, too large, triggered, or does not join two different hosts
/// of `network`, and if the header announces another number of connections, or failures.
pub fn parse(
    text: &str,
    network: &Network,
    scheme: u16,
    max_bytes: u64,
    warnings: &Warnings,
) -> Result<FlowList, WorkloadError> {
    let mut table = Table { network, hosts: NumberedHosts::of(network), scheme, max_bytes, priorities: 0 };
    let mut announced = None;
    let mut flows = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        let words: Vec<_> = content.split_whitespace().collect();
        let Some(first) = words.first().filter(|word| !word.starts_with('#')) else { continue };
        if let Some((src, dst)) = first.split_once("->") {
            let flow = table.flow(src, dst, &words[1..]);
            flows.push(flow.map_err(|message| WorkloadError::at(line, message))?);
            continue;
        }
        match header(first, &words[1..]).map_err(|message| WorkloadError::at(line, message))? {
            ("connections", count) => announced = Some((line, count)),
            ("failures", 1..) => {
                return Err(WorkloadError::at(line, "failures of links are not read; allowed: Failures 0"));
            }
            _ => {}
        }
    }
    match announced {
        Some((line, count)) if count != flows.len() as u64 => {
            let message = format!(
                "the header announces {count} connections; the file has {}; allowed: equal numbers",
                flows.len()
            );
            Err(WorkloadError::at(line, message))
        }
        _ => {
            if table.priorities > 0 {
                let count = table.priorities;
                warnings.add(format!("priorities of htsim's connections have no effect: {count} connections"));
            }
            Ok(FlowList::sorted(flows))
        }
    }
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
    fn flow(&mut self, src: &str, dst: &str, words: &[&str]) -> Result<FlowSpec, String> {
        let (src, dst) = (self.hosts.find("the source", src)?, self.hosts.find("the destination", dst)?);
        ends::check(self.network, src, dst)?;
        let (mut start, mut size) = (None, None);
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            if word == "trigger" {
                return Err("the connection waits for a trigger; allowed: connections with a start".to_owned());
            }
            if word == "addon" {
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
                _ if FIRES.contains(&word) => {}
                _ => return Err(format!("`{word}` is not known; allowed: start, size, id, prio")),
            }
        }
        let start = start.ok_or("the connection has no start; allowed: start and picoseconds")?;
        let size = size.ok_or("the connection has no size; allowed: size and bytes")?;
        Ok(FlowSpec::new(start, src, dst, Some(size), self.scheme))
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

    fn read(text: &str) -> Result<(Vec<FlowSpec>, Vec<String>), String> {
        let mut network = Network::default();
        network.add("router", NodeKind::Router);
        ["a", "b", "c"].into_iter().for_each(|name| {
            network.add(name, NodeKind::Host);
        });
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
        let (flows, warnings) =
            read("Nodes 3\nConnections 1\n0->1 start 0 size 1 prio 4 send_done_trigger 1\n").unwrap();
        assert_eq!(flows, [flow(0, 1, 2, 1)]);
        assert_eq!(warnings, ["priorities of htsim's connections have no effect: 1 connections"]);
    }

    #[test]
    fn each_error_states_its_line_and_the_allowed_values() {
        for (text, expected) in [
            ("Connections 2\n0->1 start 0 size 1\n", "line 1: the header announces 2 connections; the file has 1"),
            ("Connections x\n", "line 1: `x` is not a whole number"),
            ("Connections 1 1\n", "line 1: 2 words after `Connections`; allowed: a number"),
            ("Failures 1\n", "line 1: failures of links are not read; allowed: Failures 0"),
            ("trigger id 1 oneshot\n", "line 1: `trigger` is not known; allowed: connections such as 0->3"),
            ("0->1 trigger 1 size 1\n", "line 1: the connection waits for a trigger; allowed: connections with a"),
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
