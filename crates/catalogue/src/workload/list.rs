//! Flows listed in a file: the neutral `.flows` format, which any simulator can read, CSV, `flow.txt` of the HPCC
//! simulator, htsim's connection matrix, or a packet capture.
//!
//! Neutral: `<start ns> <src> <dst> <bytes>` per line, with hosts by number and 0 bytes for an unlimited flow. The start
//! may have a fraction of up to three decimals. Empty lines and lines that begin with `#` are ignored.
//!
//! CSV: a header with the columns `start`, `src`, `dst`, `size` and optionally `scheme`, `name` and `after`, in any order.
//! Starts and sizes have units, `unlimited` is an unlimited flow, hosts are given by name or number, and schemes by name.
//! A flow with `after` starts once the flows that it names, separated by spaces, are complete. Its start counts from that
//! instant.
//!
//! The formats of other simulators are described in the modules that read them.

pub mod capture;
pub mod hpcc;
pub mod htsim;
mod numbered;

use super::graph::{Dependents, FlowGraph};
use super::{Reader, Workload, WorkloadForm};
use crate::schema::{
    Fallback, FileFormat, Form, Key, Kind, Purpose, ScenarioError, did_you_mean, units, volume::max_flow_bytes,
};
use crate::workload::Demand;
use crate::workload::{WorkloadError, ends};
use sparelane_core::Dur;
use sparelane_core::Time;
use sparelane_sim::{FlowSource, FlowSpec};
use sparelane_sim::{Network, NodeId};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// The form in a scenario.
pub static FORM: WorkloadForm = Form {
    name: "flows",
    summary: "flows of a file: .flows (start in ns, src, dst, bytes), .csv (start, src, dst, size, scheme, name, \
              after), flow.txt of HPCC, .cm of htsim, or a packet capture",
    source: "sparelane; the simulators of HPCC (SIGCOMM 2019) and htsim",
    keys: &[Key::new(
        "path",
        Kind::Path,
        Fallback::Required,
        "file of flows; its content decides its format, and its ending otherwise",
    )],
    read: &read,
};

fn read(reader: &Reader<'_>) -> Result<Arc<dyn Workload>, ScenarioError> {
    let path = reader.section.need("path")?;
    if let Some((name, capture)) = reader.context.source.capture(&path)? {
        let max_bytes = max_flow_bytes(reader.mss_bytes());
        let (network, warnings) = (reader.context.network, reader.context.warnings);
        let list = capture::parse(capture, network, reader.scheme, max_bytes, warnings);
        return Ok(Arc::new(list.map_err(|error| ScenarioError::in_file(name, None, error.message))?));
    }
    let input = reader.context.source.read(&path, Purpose::Flows)?;
    let network = reader.context.network;
    let max_bytes = max_flow_bytes(reader.mss_bytes());
    let list = match input.format {
        Some(FileFormat::Flows) => FlowList::from_neutral(&input.text, network, reader.scheme, max_bytes),
        Some(FileFormat::HpccFlows) => hpcc::parse(&input.text, network, reader.scheme, max_bytes),
        Some(FileFormat::ConnectionMatrix) => {
            htsim::parse(&input.text, network, reader.scheme, max_bytes, reader.context.warnings)
        }
        Some(FileFormat::FlowTable) => {
            let schemes = reader.context.schemes.iter();
            let schemes = schemes.map(|scheme| (scheme.name.clone(), max_flow_bytes(scheme.transport.mss_bytes)));
            FlowList::from_csv(&input.text, network, &schemes.collect::<Vec<_>>(), reader.scheme)
        }
        _ => return Err(input.unknown_kind(&path, ".flows, .csv, flow.txt of HPCC, .cm of htsim, .pcap, .pcapng")),
    };
    let list = list.map_err(|error| input.error(error.line, error.message))?;
    Ok(Arc::new(list))
}

/// The latest start in a neutral list.
const MAX_START_NS: u64 = u64::MAX / 1000 - 1;
/// The required columns of a CSV list.
const REQUIRED: [&str; 4] = ["start", "src", "dst", "size"];
/// The optional columns.
const SCHEME: &str = "scheme";
const NAME: &str = "name";
const AFTER: &str = "after";

/// Listed flows in order of start; simultaneous ones in the order of the list. Flows may wait for others of the list.
#[derive(Clone)]
pub struct FlowList {
    /// The flows that start by themselves.
    roots: std::vec::IntoIter<FlowSpec>,
    /// All flows, if some of them wait for others.
    dependents: Option<Dependents>,
}

impl FlowList {
    /// Reads the neutral format. All flows use `scheme`, under which a flow has at most `max_bytes`.
    ///
    /// # Errors
    /// Fails on a line without exactly four whole numbers, a flow that is too large, or one that does not join two
    /// different hosts of `network`.
    pub fn from_neutral(text: &str, network: &Network, scheme: u16, max_bytes: u64) -> Result<FlowList, WorkloadError> {
        let mut flows = Vec::new();
        for (index, content) in text.lines().enumerate() {
            let words: Vec<_> = content.split_whitespace().collect();
            if words.first().is_some_and(|word| !word.starts_with('#')) {
                let flow = neutral_flow(&words, network, scheme, max_bytes);
                flows.push(flow.map_err(|message| WorkloadError::at(index + 1, message))?);
            }
        }
        Ok(FlowList::sorted(flows))
    }

    /// Creates a list from flows that the caller has read.
    ///
    /// # Errors
    /// Fails if a flow does not join two different hosts of `network`. The error's line is the flow's position, counted
    /// from 1.
    pub fn of(flows: Vec<FlowSpec>, network: &Network) -> Result<FlowList, WorkloadError> {
        for (index, flow) in flows.iter().enumerate() {
            ends::check(network, flow.src, flow.dst).map_err(|message| WorkloadError::at(index + 1, message))?;
        }
        Ok(FlowList::sorted(flows))
    }

    /// Reads CSV. `schemes` are the names of the run's schemes with the maximum bytes of a flow under each. A flow
    /// without a scheme uses `scheme`.
    ///
    /// # Errors
    /// Fails on a missing, unknown or repeated column; a row of another length; a value that is not allowed; or a flow
    /// that does not join two different hosts of `network`.
    pub fn from_csv(
        text: &str,
        network: &Network,
        schemes: &[(String, u64)],
        scheme: u16,
    ) -> Result<FlowList, WorkloadError> {
        let mut reader =
            csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
        let columns = columns(reader.headers().map_err(|error| csv_error(&error))?)?;
        let names = network.nodes.iter().zip(0..).map(|(node, id)| (node.name.as_str(), NodeId(id))).collect();
        let table = Table { network, names, columns, schemes, scheme };
        let (mut flows, mut labels) = (Vec::new(), Labels::default());
        for record in reader.records() {
            let record = record.map_err(|error| csv_error(&error))?;
            let line = record.position().map(|position| position.line() as usize);
            let refuse = |message| WorkloadError { line, message };
            flows.push(table.flow(&record).map_err(refuse)?);
            labels.add(line, table.field(&record, NAME), table.field(&record, AFTER)).map_err(refuse)?;
        }
        if labels.after.iter().all(String::is_empty) {
            return Ok(FlowList::sorted(flows));
        }
        Ok(FlowList::of_graph(labels.graph(&flows)?))
    }

    /// Creates a list from flows that may wait for others. There must be no cycle.
    pub(super) fn of_graph(graph: FlowGraph) -> FlowList {
        let (roots, dependents) = graph.split();
        FlowList { roots: roots.into_iter(), dependents: Some(dependents).filter(|dependents| !dependents.is_empty()) }
    }

    /// Returns the number of flows: the remaining ones, and all that wait for others.
    pub fn len(&self) -> usize {
        self.flows().count()
    }

    /// Returns true if no flow remains that starts by itself.
    pub fn is_empty(&self) -> bool {
        self.roots.len() == 0
    }

    /// Returns the schemes of these flows.
    pub fn schemes(&self) -> impl Iterator<Item = u16> {
        self.flows().map(|flow| flow.scheme)
    }

    fn flows(&self) -> impl Iterator<Item = &FlowSpec> {
        let roots = self.roots.as_slice().iter().filter(|_| self.dependents.is_none());
        roots.chain(self.dependents.iter().flat_map(Dependents::flows))
    }

    fn sorted(mut flows: Vec<FlowSpec>) -> FlowList {
        flows.sort_by_key(|flow| flow.start);
        FlowList { roots: flows.into_iter(), dependents: None }
    }
}

/// The columns `name` and `after` of a CSV list.
#[derive(Default)]
struct Labels {
    by_name: BTreeMap<String, u32>,
    names: Vec<String>,
    after: Vec<String>,
    lines: Vec<Option<usize>>,
}

impl Labels {
    /// Adds those of the next flow.
    fn add(&mut self, line: Option<usize>, name: &str, after: &str) -> Result<(), String> {
        if name.contains(char::is_whitespace) {
            return Err(format!("name is `{name}`; allowed: one word"));
        }
        if !name.is_empty() && self.by_name.insert(name.to_owned(), self.names.len() as u32).is_some() {
            return Err(format!("name is `{name}`, as that of another flow; allowed: each name once"));
        }
        self.names.push(name.to_owned());
        self.after.push(after.to_owned());
        self.lines.push(line);
        Ok(())
    }

    /// Resolves the names.
    fn graph(&self, flows: &[FlowSpec]) -> Result<FlowGraph, WorkloadError> {
        let mut graph = FlowGraph::default();
        for (place, flow) in flows.iter().enumerate() {
            let refuse = |message| WorkloadError { line: self.lines[place], message };
            let after: BTreeSet<_> = self.after[place].split_whitespace().collect();
            let after = after.into_iter().map(|name| self.find(name, flows));
            let after = after.collect::<Result<Vec<_>, _>>().map_err(refuse)?;
            graph.add_flow(*flow, after);
        }
        match graph.cycle() {
            None => Ok(graph),
            Some(cycle) => {
                let message = in_circle(cycle.iter().map(|&flow| self.names[flow as usize].as_str()));
                Err(WorkloadError { line: self.lines[cycle[0] as usize], message })
            }
        }
    }

    /// Returns the number of the flow that has this name, for which others may wait.
    fn find(&self, name: &str, flows: &[FlowSpec]) -> Result<u32, String> {
        let Some(&number) = self.by_name.get(name) else {
            let hint = did_you_mean(name, self.by_name.keys().map(String::as_str));
            return Err(format!("after names `{name}`, but no flow has this name{hint}"));
        };
        match flows[number as usize].size_bytes {
            Some(_) => Ok(number),
            None => Err(format!("after names `{name}`, a flow without end; allowed: flows of a size")),
        }
    }
}

/// The message about names each of which waits for the next one, and the last for the first.
pub(super) fn in_circle<'n>(names: impl Iterator<Item = &'n str> + Clone) -> String {
    let circle: Vec<_> = names.clone().chain(names.take(1)).map(|name| format!("`{name}`")).collect();
    format!("after leads in a circle: {}; allowed: nothing that waits for itself", circle.join(" after "))
}

impl fmt::Debug for FlowList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tuple = f.debug_tuple("FlowList");
        tuple.field(&self.roots);
        // Stored results are found by this text, so that of a plain list has nothing else.
        if let Some(dependents) = &self.dependents {
            tuple.field(dependents);
        }
        tuple.finish()
    }
}

impl FlowSource for FlowList {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        self.roots.next()
    }

    fn is_open_loop(&self) -> bool {
        self.dependents.is_none()
    }

    fn follow(&mut self, waiter: u64, now: Time) -> Vec<FlowSpec> {
        self.dependents.as_mut().map_or_else(Vec::new, |dependents| dependents.follow(waiter, now))
    }
}

/// Writes flows in the neutral format. Schemes, classes of traffic and requests are not part of it.
pub fn write_neutral(flows: &[FlowSpec]) -> String {
    let line = |flow: &FlowSpec| {
        let (ns, ps) = (flow.start.as_ps() / 1000, flow.start.as_ps() % 1000);
        let start = if ps == 0 { ns.to_string() } else { format!("{ns}.{ps:03}") };
        format!("{start} {} {} {}\n", flow.src.0, flow.dst.0, flow.size_bytes.unwrap_or(0))
    };
    flows.iter().map(line).collect()
}

/// Returns the number of hosts that a list needs whose hosts have numbers by position; `None` for lists of other kinds.
pub fn hosts_needed(text: &str, format: FileFormat) -> Option<u64> {
    match format {
        FileFormat::HpccFlows => Some(hpcc::hosts_needed(text)),
        FileFormat::ConnectionMatrix => Some(htsim::hosts_needed(text)),
        _ => None,
    }
}

fn neutral_flow(words: &[&str], network: &Network, scheme: u16, max_bytes: u64) -> Result<FlowSpec, String> {
    let &[start, src, dst, bytes] = words else {
        return Err(format!("{} fields; allowed: exactly 4: start in ns, src, dst, bytes", words.len()));
    };
    // A start may have a fraction, in which whole picoseconds are written.
    let start = match whole("the start in ns", start, MAX_START_NS) {
        Ok(ns) => Time::from_ns(ns),
        Err(message) => Time::from_ps(units::time_of(&format!("{start}ns")).map_err(|_| message)?.as_ps()),
    };
    let node = |field, text| whole(field, text, u64::from(u32::MAX)).map(|id| NodeId(id as u32));
    let (src, dst) = (node("src", src)?, node("dst", dst)?);
    ends::check(network, src, dst)?;
    let bytes = whole("the bytes", bytes, max_bytes)?;
    Ok(FlowSpec::new(start, src, dst, (bytes > 0).then_some(bytes), scheme))
}

/// Parses a whole number up to `max`.
fn whole(field: &str, text: &str, max: u64) -> Result<u64, String> {
    let value = text.parse().ok().filter(|value| *value <= max);
    value.ok_or_else(|| format!("{field} is `{text}`; allowed: a whole number from 0 to {max}"))
}

/// The context in which rows of a CSV list are read.
struct Table<'a> {
    network: &'a Network,
    names: BTreeMap<&'a str, NodeId>,
    /// The positions of the columns, by name.
    columns: BTreeMap<String, usize>,
    /// The names of the schemes, and the maximum bytes of a flow under each.
    schemes: &'a [(String, u64)],
    scheme: u16,
}

impl Table<'_> {
    /// Returns the text in a column, which is empty if there is no such column.
    fn field<'r>(&self, record: &'r csv::StringRecord, name: &str) -> &'r str {
        self.columns.get(name).and_then(|&place| record.get(place)).unwrap_or("")
    }

    fn flow(&self, record: &csv::StringRecord) -> Result<FlowSpec, String> {
        let field = |name: &str| self.field(record, name);
        let (start, size) = (field("start"), field("size"));
        let src = self.host("src", field("src"))?;
        let dst = self.host("dst", field("dst"))?;
        ends::check(self.network, src, dst)?;
        let start = units::time_of(start).map_err(|allowed| format!("start is `{start}`; allowed: {allowed}"))?;
        let scheme = self.scheme(field(SCHEME))?;
        let size_bytes = self.size(size, scheme)?;
        Ok(FlowSpec::new(Time::from_ps(start.as_ps()), src, dst, size_bytes, scheme))
    }

    /// Returns a node by name, otherwise by number.
    fn host(&self, field: &str, text: &str) -> Result<NodeId, String> {
        let by_number = || text.parse().ok().map(NodeId).filter(|id| id.index() < self.network.nodes.len());
        let known = self.names.get(text).copied().or_else(by_number);
        known.ok_or_else(|| format!("{field} is `{text}`; allowed: the name or number of a host"))
    }

    fn size(&self, text: &str, scheme: u16) -> Result<Option<u64>, String> {
        if text == "unlimited" {
            return Ok(None);
        }
        match units::size_of(text) {
            Ok(0) => Err(format!("size is `{text}`; allowed: 1 byte or more, or unlimited")),
            Ok(bytes) => match self.schemes.get(usize::from(scheme)) {
                Some((name, max_bytes)) if bytes > *max_bytes => {
                    Err(format!("size is `{text}`; allowed: at most {max_bytes} bytes under scheme `{name}`"))
                }
                _ => Ok(Some(bytes)),
            },
            Err(allowed) => Err(format!("size is `{text}`; allowed: {allowed}, or unlimited")),
        }
    }

    fn scheme(&self, text: &str) -> Result<u16, String> {
        if text.is_empty() {
            return Ok(self.scheme);
        }
        let place = (0..).zip(self.schemes).find(|(_, (name, _))| name == text).map(|(place, _)| place);
        let names: Vec<_> = self.schemes.iter().map(|(name, _)| name.as_str()).collect();
        place.ok_or_else(|| format!("scheme is `{text}`; allowed: {}, or nothing", names.join(", ")))
    }
}

fn columns(header: &csv::StringRecord) -> Result<BTreeMap<String, usize>, WorkloadError> {
    const ALLOWED: &str = "allowed: start, src, dst, size, each once, and optionally scheme, name, after";
    let line = header.position().map(|position| position.line() as usize);
    let refuse = |what: String| WorkloadError { line, message: format!("{what}; {ALLOWED}") };
    let mut columns = BTreeMap::new();
    for (place, name) in header.iter().enumerate() {
        if !REQUIRED.contains(&name) && ![SCHEME, NAME, AFTER].contains(&name) {
            return Err(refuse(format!("column `{name}` is not known")));
        }
        if columns.insert(name.to_owned(), place).is_some() {
            return Err(refuse(format!("column `{name}` appears twice")));
        }
    }
    match REQUIRED.iter().find(|&&name| !columns.contains_key(name)) {
        Some(missing) => Err(refuse(format!("column `{missing}` is missing"))),
        None => Ok(columns),
    }
}

fn csv_error(error: &csv::Error) -> WorkloadError {
    let line = error.position().map(|position| position.line() as usize);
    let message = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} fields; allowed: exactly {expected_len}, as in the header")
        }
        _ => format!("this is not CSV: {error}"),
    };
    WorkloadError { line, message }
}

impl Workload for FlowList {
    fn flows(&self, _network: &Network, _seed: u64) -> Result<Box<dyn FlowSource>, WorkloadError> {
        Ok(Box::new(self.clone()))
    }

    fn demand(&self, _network: &Network, _duration: Dur) -> Demand {
        Demand { flows: self.len() as f64, at_once: 0.0 }
    }

    fn schemes(&self) -> Vec<u16> {
        FlowList::schemes(self).collect()
    }

    fn ends(&self) -> bool {
        self.flows().all(|flow| flow.size_bytes.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_sim::NodeKind;

    /// Hosts `a` (0) and `b` (1), router `r` (2).
    fn network() -> Network {
        let mut network = Network::default();
        for (name, kind) in [("a", NodeKind::Host), ("b", NodeKind::Host), ("r", NodeKind::Router)] {
            network.add(name, kind);
        }
        network
    }

    fn neutral(text: &str) -> Result<FlowList, WorkloadError> {
        FlowList::from_neutral(text, &network(), 4, 5_000)
    }

    fn csv(text: &str) -> Result<FlowList, WorkloadError> {
        let schemes = [("tcp", 5_000), ("rc3", 64_000)].map(|(name, max_bytes)| (name.to_owned(), max_bytes));
        FlowList::from_csv(text, &network(), &schemes, 0)
    }

    fn flow(start_ns: u64, src: u32, dst: u32, size_bytes: Option<u64>, scheme: u16) -> FlowSpec {
        FlowSpec::new(Time::from_ns(start_ns), NodeId(src), NodeId(dst), size_bytes, scheme)
    }

    #[test]
    fn neutral_flows_are_sorted_by_start_and_keep_their_order_otherwise() {
        let list = neutral("# start src dst bytes\n20 0 1 1460\n\n5 1 0 0\n20 1 0 7\n").unwrap();
        assert_eq!(list.len(), 3);
        let expected = [flow(5, 1, 0, None, 4), flow(20, 0, 1, Some(1460), 4), flow(20, 1, 0, Some(7), 4)];
        assert_eq!(list.roots.collect::<Vec<_>>(), expected);
        assert!(neutral("").unwrap().is_empty());
    }

    #[test]
    fn neutral_flows_that_are_written_and_read_are_the_same() {
        let mut flows = vec![flow(5, 1, 0, None, 4), flow(20, 0, 1, Some(1460), 4)];
        flows[1].start = Time::from_ps(20_125);
        let text = write_neutral(&flows);
        assert_eq!(text, "5 1 0 0\n20.125 0 1 1460\n");
        assert_eq!(neutral(&text).unwrap().roots.collect::<Vec<_>>(), flows);
    }

    #[test]
    fn csv_accepts_names_numbers_units_and_schemes_in_any_column_order() {
        let list = csv("size, scheme, src, dst, start\n64kB, rc3, a, 1, 5ms\n\nunlimited,, b, a, 2ms\n").unwrap();
        let expected = [flow(2_000_000, 1, 0, None, 0), flow(5_000_000, 0, 1, Some(64_000), 1)];
        assert_eq!(list.roots.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn csv_flows_wait_for_the_flows_that_they_name() {
        let rows = "1ms,a,b,1kB,first,\n2ms,b,a,2kB,,first second\n3ms,a,b,3kB,second,first\n";
        let mut list = csv(&format!("start,src,dst,size,name,after\n{rows}")).unwrap();
        assert_eq!((list.len(), list.is_open_loop(), list.ends()), (3, false, true));
        let first = list.next_flow().unwrap();
        assert_eq!((first.size_bytes, list.next_flow()), (Some(1_000), None));
        let second = list.follow(first.waiter.unwrap(), Time::from_ns(7));
        assert_eq!((second.len(), second[0].start), (1, Time::from_ns(3_000_007)));
        let third = list.follow(second[0].waiter.unwrap(), Time::from_ns(9));
        assert_eq!((third[0].size_bytes, third[0].start), (Some(2_000), Time::from_ns(2_000_009)));
    }

    #[test]
    fn csv_flows_that_can_never_start_are_refused() {
        let circle = |line: usize, names: &str| {
            format!("line {line}: after leads in a circle: {names}; allowed: nothing that waits for itself")
        };
        for (rows, expected) in [
            ("a,c\nb,a\nc,b", circle(2, "`a` after `c` after `b` after `a`")),
            ("a,a", circle(2, "`a` after `a`")),
            (
                "first,\nb,fist",
                "line 3: after names `fist`, but no flow has this name; did you mean \"first\"?".to_owned(),
            ),
            ("a,\na,", "line 3: name is `a`, as that of another flow; allowed: each name once".to_owned()),
            ("a b,", "line 2: name is `a b`; allowed: one word".to_owned()),
        ] {
            let rows: String = rows.lines().map(|row| format!("0s,a,b,1kB,{row}\n")).collect();
            let text = format!("start,src,dst,size,name,after\n{rows}");
            assert_eq!(csv(&text).unwrap_err().to_string(), expected);
        }
        let endless = "start,src,dst,size,name,after\n0s,a,b,unlimited,a,\n0s,a,b,1kB,,a\n";
        let expected = "line 3: after names `a`, a flow without end; allowed: flows of a size";
        assert_eq!(csv(endless).unwrap_err().to_string(), expected);
    }

    #[test]
    fn each_error_in_neutral_text_states_its_line_and_the_allowed_values() {
        for (text, expected) in [
            ("0 0 1 5\n0 0 1", "line 2: 3 fields; allowed: exactly 4: start in ns, src, dst, bytes"),
            ("-1 0 1 5", "line 1: the start in ns is `-1`; allowed: a whole number from 0 to 18446744073709550"),
            ("0 0 1 -5", "line 1: the bytes is `-5`; allowed: a whole number from 0 to 5000"),
            ("0 0 1 5001", "line 1: the bytes is `5001`; allowed: a whole number from 0 to 5000"),
            ("0 h0 1 5", "line 1: src is `h0`; allowed: a whole number from 0 to 4294967295"),
            ("0 0 3 5", "line 1: dst is node 3; allowed: a host, and the network's nodes are 0 to 2"),
            ("0 2 1 5", "line 1: src is router `r`; allowed: a host"),
            ("0 1 1 5", "line 1: src and dst are both `b`; allowed: two different hosts"),
        ] {
            assert_eq!(neutral(text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn each_error_in_csv_states_its_line_and_the_allowed_values() {
        const COLUMNS: &str = "allowed: start, src, dst, size, each once, and optionally scheme, name, after";
        for (header, expected) in [
            ("start,src,dst", format!("line 1: column `size` is missing; {COLUMNS}")),
            ("start,src,dst,size,colour", format!("line 1: column `colour` is not known; {COLUMNS}")),
            ("start,src,dst,size,src", format!("line 1: column `src` appears twice; {COLUMNS}")),
        ] {
            assert_eq!(csv(header).unwrap_err().to_string(), expected);
        }
        for (row, expected) in [
            ("1ms,a,b", "line 3: 3 fields; allowed: exactly 5, as in the header"),
            ("1,a,b,1kB,", "line 3: start is `1`; allowed: a time such as \"40ms\" (units: ps, ns, us, ms, s, min)"),
            (
                "1ms,a,b,many,",
                "line 3: size is `many`; allowed: a size such as \"5MB\" (units: B, kB, KB, MB, GB, KiB, MiB, GiB), or \
                 unlimited",
            ),
            ("1ms,a,b,0kB,", "line 3: size is `0kB`; allowed: 1 byte or more, or unlimited"),
            ("1ms,a,b,6kB,", "line 3: size is `6kB`; allowed: at most 5000 bytes under scheme `tcp`"),
            ("1ms,a,z,1kB,", "line 3: dst is `z`; allowed: the name or number of a host"),
            ("1ms,a,3,1kB,", "line 3: dst is `3`; allowed: the name or number of a host"),
            ("1ms,r,a,1kB,", "line 3: src is router `r`; allowed: a host"),
            ("1ms,a,0,1kB,", "line 3: src and dst are both `a`; allowed: two different hosts"),
            ("1ms,a,b,1kB,bbr", "line 3: scheme is `bbr`; allowed: tcp, rc3, or nothing"),
        ] {
            let text = format!("start,src,dst,size,scheme\n1ms,a,b,1kB,tcp\n{row}\n");
            assert_eq!(csv(&text).unwrap_err().to_string(), expected);
        }
    }
}
