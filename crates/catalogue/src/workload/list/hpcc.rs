//! `flow.txt` of the HPCC simulator and of the other simulators for RDMA that descend from it.
//!
//! The first line has the number of flows. Then follows one flow on each line:
//! `SOURCE DESTINATION PRIORITY PORT BYTES START`, with the start in seconds. Some of the simulators leave out the port.
//! Priority and port have no effect here. Text after the last flow is a comment.
//!
//! Source: the files in `simulation/mix` of the repository of HPCC (Li et al., SIGCOMM 2019).

use super::FlowList;
use super::numbered::NumberedHosts;
use crate::schema::units;
use crate::workload::{WorkloadError, ends};
use sparelane_core::Time;
use sparelane_sim::{FlowSpec, Network};

/// Reads the flows, all of which use `scheme`, under which a flow has at most `max_bytes`.
///
/// # Errors
/// Fails if the first line is not the number of flows, or a flow is malformed, too large, or does not join two different
/// hosts of `network`.
pub fn parse(text: &str, network: &Network, scheme: u16, max_bytes: u64) -> Result<FlowList, WorkloadError> {
    let lines = (1..).zip(text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()));
    let mut lines = lines.filter(|(_, words)| !words.is_empty());
    let (first, words) = lines.next().unwrap_or((1, Vec::new()));
    let count = <[&str; 1]>::try_from(words).ok().and_then(|[count]| count.parse::<usize>().ok());
    let count = count.ok_or_else(|| WorkloadError::at(first, "allowed: the number of flows, and nothing else"))?;
    let hosts = NumberedHosts::of(network);
    let mut flows = Vec::new();
    while flows.len() < count {
        let Some((line, words)) = lines.next() else {
            let message =
                format!("the first line announces {count} flows; the file has {}; allowed: equal numbers", flows.len());
            return Err(WorkloadError::at(first, message));
        };
        let flow = flow(&words, network, &hosts, scheme, max_bytes);
        flows.push(flow.map_err(|message| WorkloadError::at(line, message))?);
    }
    // Comments may follow, but a further flow shows that the number in the first line is wrong.
    if let Some((line, _)) = lines.find(|(_, words)| flow(words, network, &hosts, scheme, max_bytes).is_ok()) {
        let message = format!("a flow follows the {count} that the first line announces; allowed: equal numbers");
        return Err(WorkloadError::at(line, message));
    }
    Ok(FlowList::sorted(flows))
}

fn flow(
    words: &[&str],
    network: &Network,
    hosts: &NumberedHosts<'_>,
    scheme: u16,
    max_bytes: u64,
) -> Result<FlowSpec, String> {
    let (&[src, dst, _, _, bytes, start] | &[src, dst, _, bytes, start]) = words else {
        return Err(format!(
            "{} words; allowed: 6: source, destination, priority, port, bytes, start in seconds; or 5, without the port",
            words.len()
        ));
    };
    let (src, dst) = (hosts.find("the source", src)?, hosts.find("the destination", dst)?);
    ends::check(network, src, dst)?;
    let size = bytes.parse().ok().filter(|bytes| (1..=max_bytes).contains(bytes));
    let size = size.ok_or_else(|| format!("the bytes are `{bytes}`; allowed: a whole number from 1 to {max_bytes}"))?;
    let time = units::time_of(&format!("{start}s"));
    let time = time.map_err(|_| format!("the start is `{start}`; allowed: a number of seconds, 0 or more"))?;
    Ok(FlowSpec::new(Time::from_ps(time.as_ps()), src, dst, Some(size), scheme))
}

/// Writes flows in this format, with priority 3 and port 100, as the files of HPCC have. Nodes have their numbers in the
/// network.
///
/// # Errors
/// Fails if a flow is unlimited, which the format cannot state.
pub fn write(flows: &[FlowSpec]) -> Result<String, WorkloadError> {
    let mut text = format!("{}\n", flows.len());
    for (place, flow) in flows.iter().enumerate() {
        let size = flow.size_bytes.ok_or_else(|| {
            WorkloadError::new(format!("flow {place} is unlimited; allowed in HPCC's flows: a size in bytes"))
        })?;
        let (seconds, ps) = (flow.start.as_ps() / PS_PER_SECOND, flow.start.as_ps() % PS_PER_SECOND);
        text += &format!("{} {} 3 100 {size} {seconds}.{ps:012}\n", flow.src.0, flow.dst.0);
    }
    Ok(text)
}

const PS_PER_SECOND: u64 = 1_000_000_000_000;

/// Returns the number of hosts that flows by position need: one more than the highest number of a source or destination
/// in the file.
pub fn hosts_needed(text: &str) -> u64 {
    let ends = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let highest = words.iter().take(2).map(|word| word.parse::<u64>().ok()).max().flatten();
        highest.filter(|_| (5..=6).contains(&words.len()))
    };
    text.lines().filter_map(ends).max().map_or(0, |highest| highest.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_sim::{NodeId, NodeKind};

    /// A switch and three hosts, as in a star. The names are numbers if `numbered`.
    fn network(numbered: bool) -> Network {
        let mut network = Network::default();
        for (number, name) in ["switch", "h1", "h2", "h3"].iter().enumerate() {
            let kind = if number == 0 { NodeKind::Router } else { NodeKind::Host };
            network.add(if numbered { number.to_string() } else { (*name).to_owned() }, kind);
        }
        network
    }

    fn read(text: &str, numbered: bool) -> Result<Vec<FlowSpec>, String> {
        let list = parse(text, &network(numbered), 2, 1_000_000).map_err(|error| error.to_string())?;
        Ok(list.roots.collect())
    }

    fn flow(start_us: u64, src: u32, dst: u32, bytes: u64) -> FlowSpec {
        FlowSpec::new(Time::from_ns(start_us * 1000), NodeId(src), NodeId(dst), Some(bytes), 2)
    }

    #[test]
    fn flows_have_bytes_and_seconds_and_hosts_by_name_or_by_position() {
        let text =
            "2\n1 0 3 100 100000 0.001\n2 0 3 100 100000 0.0\n\nFirst line: # of flows\nsrc0 dst0 3 port size start\n";
        assert_eq!(read(text, false), Ok(vec![flow(0, 3, 1, 100_000), flow(1000, 2, 1, 100_000)]));
        let ids = "1 \n3 1 3 5 2.000000123\n";
        let expected = FlowSpec::new(Time::from_ns(2_000_000_123), NodeId(3), NodeId(1), Some(5), 2);
        assert_eq!(read(ids, true), Ok(vec![expected]));
        assert_eq!(read("0\n", true), Ok(vec![]));
    }

    #[test]
    fn flows_that_are_written_and_read_are_the_same() {
        let flows = [flow(0, 1, 2, 5), flow(2_000_001, 3, 1, 1_000_000)];
        let text = write(&flows).unwrap();
        assert_eq!(text, "2\n1 2 3 100 5 0.000000000000\n3 1 3 100 1000000 2.000001000000\n");
        assert_eq!(read(&text, true).unwrap(), flows);
        assert_eq!(hosts_needed(&text), 4);
        let unlimited = FlowSpec::new(Time::ZERO, NodeId(1), NodeId(2), None, 0);
        assert!(write(&[unlimited]).unwrap_err().message.starts_with("flow 0 is unlimited"));
    }

    #[test]
    fn each_error_states_its_line_and_the_allowed_values() {
        for (text, expected) in [
            ("", "line 1: allowed: the number of flows, and nothing else"),
            ("-2\n", "line 1: allowed: the number of flows, and nothing else"),
            ("2\n1 0 3 100 5 0\n", "line 1: the first line announces 2 flows; the file has 1"),
            (
                "1\n1 0 3 100 5 0\n1 0 3 100 5 0\n",
                "line 3: a flow follows the 1 that the first line announces; allowed",
            ),
            ("1\n1 0 3 100\n", "line 2: 4 words; allowed: 6: source, destination, priority, port, bytes, start in"),
            ("1\n3 0 3 100 5 0\n", "line 2: the source is `3`; allowed: the name of a host, or its position, below 3"),
            ("1\n1 -1 3 100 5 0\n", "line 2: the destination is `-1`; allowed: the name of a host, or its position"),
            ("1\n1 1 3 100 5 0\n", "line 2: src and dst are both `h2`; allowed: two different hosts"),
            ("1\n1 0 3 100 0 0\n", "line 2: the bytes are `0`; allowed: a whole number from 1 to 1000000"),
            ("1\n1 0 3 100 1000001 0\n", "line 2: the bytes are `1000001`; allowed: a whole number from 1 to 1000000"),
            ("1\n1 0 3 100 5 -1\n", "line 2: the start is `-1`; allowed: a number of seconds, 0 or more"),
            ("1\n1 0 3 100 5 nan\n", "line 2: the start is `nan`; allowed: a number of seconds, 0 or more"),
        ] {
            let found = read(text, false).unwrap_err();
            assert!(found.starts_with(expected), "{found}");
        }
        assert_eq!(read("1\n0 1 3 100 5 0\n", true).unwrap_err(), "line 2: src is router `0`; allowed: a host");
        // A number of flows that the file does not hold takes no memory.
        assert!(read("18446744073709551615\n1 0 3 100 5 0\n", false).unwrap_err().contains("the file has 1"));
    }
}
