//! The results of a run, with everything needed to read them and to repeat the run.

use crate::Scenario;
use crate::columns::{Column, Table};
use crate::digest::digest;
use sparelane_cc::UNBOUNDED;
use sparelane_sim::{CLASSES, FlowTable, LinkTable, Records};

/// The records of a run, the names that they refer to, and the scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// The records.
    pub records: Records,
    /// Their digest.
    pub digest: String,
    /// The scenario as TOML, overrides included.
    pub scenario: String,
    /// The seed of the run.
    pub seed: u64,
    /// The version of sparelane.
    pub version: String,
    /// Warnings about the scenario.
    pub warnings: Vec<String>,
    /// Names of the schemes, by index.
    pub schemes: Vec<String>,
    /// Names of the classes of traffic, by index.
    pub traffic_classes: Vec<String>,
    /// Names of the nodes, by index.
    pub nodes: Vec<String>,
    /// Names of the probes, by index: `flow 0`, or `r0->r1`.
    pub probes: Vec<String>,
}

impl Results {
    /// The results of `scenario`.
    pub fn new(scenario: &Scenario, records: Records) -> Results {
        Results {
            digest: digest(&records),
            records,
            scenario: scenario.canonical(),
            seed: scenario.seed,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            warnings: scenario.warnings().to_vec(),
            schemes: scenario.scheme_names(),
            traffic_classes: scenario.traffic_class_names(),
            nodes: scenario.node_names(),
            probes: scenario.probe_names(),
        }
    }
}

/// One row per flow, in order of start.
pub fn flow_columns(results: &Results) -> Table {
    let flows = &results.records.flows;
    let schemes = flows.scheme.iter().map(|&scheme| u32::from(scheme)).collect();
    let completion = |(&finish, &start): (&u64, &u64)| if finish == u64::MAX { u64::MAX } else { finish - start };
    let completion_ps: Vec<_> = flows.finish_ps.iter().zip(&flows.start_ps).map(completion).collect();
    let rows = flows.id.len();
    let (mean_delay, max_delay) = delays_of_flows(flows);
    let mut table = vec![
        ("id".to_owned(), Column::u32(flows.id.clone())),
        ("scheme".to_owned(), Column::text(schemes, results.schemes.clone())),
        ("traffic_class".to_owned(), class_column(or_none(&flows.traffic_class, rows, u16::MAX), results)),
        ("connection".to_owned(), Column::u32(connections(flows))),
        ("request".to_owned(), Column::optional_u64(&or_none(&flows.request, rows, u64::MAX))),
        ("src".to_owned(), Column::text(flows.src.clone(), results.nodes.clone())),
        ("dst".to_owned(), Column::text(flows.dst.clone(), results.nodes.clone())),
        ("size_bytes".to_owned(), Column::optional_u64(&flows.size_bytes)),
        ("start_s".to_owned(), Column::seconds(&flows.start_ps)),
        ("finish_s".to_owned(), Column::optional_seconds(&flows.finish_ps)),
        ("completion_s".to_owned(), Column::optional_seconds(&completion_ps)),
        ("ideal_s".to_owned(), Column::optional_seconds(&flows.ideal_ps)),
        ("first_write_s".to_owned(), Column::optional_seconds(&or_none(&flows.first_write_ps, rows, u64::MAX))),
        ("delivered_bytes".to_owned(), Column::u64(flows.delivered_bytes.clone())),
    ];
    let used = |class: &usize| flows.sent_packets[*class].iter().any(|&count| count > 0);
    let highest = (0..CLASSES).rev().find(used).unwrap_or(0);
    for (class, column) in flows.sent_packets.iter().enumerate().take(highest + 1) {
        table.push((format!("sent_packets_{class}"), Column::u64(column.clone())));
    }
    table.push(("lost_packets".to_owned(), Column::u64(flows.lost_packets.clone())));
    table.push(("retransmissions".to_owned(), Column::u64(flows.retransmissions.clone())));
    table.push(("timeouts".to_owned(), Column::u64(flows.timeouts.clone())));
    table.push(("srtt_s".to_owned(), Column::optional_seconds(&flows.srtt_ps)));
    table.push(("min_rtt_s".to_owned(), Column::optional_seconds(&flows.min_rtt_ps)));
    let measured_bytes = or_none(&flows.measured_bytes, rows, u64::MAX);
    table.push(("measured_bytes".to_owned(), Column::optional_u64(&measured_bytes)));
    table.push(("mean_delay_s".to_owned(), mean_delay));
    table.push(("max_delay_s".to_owned(), max_delay));
    table
}

/// The flow that opened each flow's connection: the flow itself in runs that reuse none.
fn connections(flows: &FlowTable) -> Vec<u32> {
    if flows.connection.is_empty() { flows.id.clone() } else { flows.connection.clone() }
}

/// A column that is empty if no row has a value, filled with `none`.
fn or_none<T: Copy>(values: &[T], rows: usize, none: T) -> Vec<T> {
    if values.is_empty() { vec![none; rows] } else { values.to_vec() }
}

fn class_column(classes: Vec<u16>, results: &Results) -> Column {
    Column::optional_text(
        classes.into_iter().map(|class| (class != u16::MAX).then_some(u32::from(class))),
        &results.traffic_classes,
    )
}

/// The mean and the largest one-way delay of each flow, if delays were measured.
fn delays_of_flows(flows: &FlowTable) -> (Column, Column) {
    let rows = flows.id.len();
    let packets = or_none(&flows.delay_packets, rows, 0);
    let seconds = |column: &[u64], divisor: fn(u64) -> f64| {
        let values = or_none(column, rows, 0).into_iter().zip(&packets);
        Column::optional_f64(values.map(|(ns, &packets)| (packets > 0).then(|| ns as f64 / divisor(packets) / 1e9)))
    };
    (seconds(&flows.delay_sum_ns, |packets| packets as f64), seconds(&flows.delay_max_ns, |_| 1.0))
}

/// One row per scheme, class of traffic and bin of one-way delays of packets.
pub fn delay_columns(results: &Results) -> Table {
    let delays = &results.records.delays;
    let schemes = delays.scheme.iter().map(|&scheme| u32::from(scheme)).collect();
    vec![
        ("scheme".to_owned(), Column::text(schemes, results.schemes.clone())),
        ("traffic_class".to_owned(), class_column(delays.traffic_class.clone(), results)),
        ("delay_s".to_owned(), Column::f64(delays.delay_ns.iter().map(|&ns| ns as f64 / 1e9).collect())),
        ("packets".to_owned(), Column::u64(delays.packets.clone())),
    ]
}

/// One row per direction of a cable; arrivals and drops are those of all classes.
pub fn link_columns(results: &Results) -> Table {
    columns_of_links(&results.records.links, &results.nodes)
}

/// Like [`link_columns`], for links outside a run. `nodes` are the names of the nodes.
pub fn columns_of_links(links: &LinkTable, nodes: &[String]) -> Table {
    let all_classes = |columns: &[Vec<u64>; CLASSES]| {
        let sum = |row: usize| columns.iter().map(|column| column[row]).sum();
        Column::u64((0..links.from.len()).map(sum).collect())
    };
    let rows = links.from.len();
    vec![
        ("from".to_owned(), Column::text(links.from.clone(), nodes.to_vec())),
        ("to".to_owned(), Column::text(links.to.clone(), nodes.to_vec())),
        ("rate_bps".to_owned(), Column::u64(links.rate_bps.clone())),
        ("sent_packets".to_owned(), Column::u64(links.sent_packets.clone())),
        ("sent_bytes".to_owned(), Column::u64(links.sent_bytes.clone())),
        ("arrived_packets".to_owned(), all_classes(&links.arrived_packets)),
        ("dropped_packets".to_owned(), all_classes(&links.dropped_packets)),
        ("lost_packets".to_owned(), Column::u64(links.lost_packets.clone())),
        ("marked_packets".to_owned(), Column::u64(links.marked_packets.clone())),
        ("peak_backlog_bytes".to_owned(), Column::u64(links.peak_backlog_bytes.clone())),
        ("pause_frames".to_owned(), Column::u64(or_none(&links.pause_frames, rows, 0))),
        ("paused_s".to_owned(), Column::seconds(&or_none(&links.paused_ps, rows, 0))),
        ("duplicated_packets".to_owned(), Column::u64(or_none(&links.duplicated_packets, rows, 0))),
        ("reordered_packets".to_owned(), Column::u64(or_none(&links.reordered_packets, rows, 0))),
    ]
}

/// One row per direction of a cable and class that arrived at its queue.
pub fn drop_columns(results: &Results) -> Table {
    columns_of_drops(&results.records.links, &results.nodes)
}

/// Like [`drop_columns`], for links outside a run. `nodes` are the names of the nodes.
pub fn columns_of_drops(links: &LinkTable, nodes: &[String]) -> Table {
    let (mut from, mut to, mut classes) = (Vec::new(), Vec::new(), Vec::new());
    let (mut arrived, mut dropped) = (Vec::new(), Vec::new());
    for row in 0..links.from.len() {
        for class in (0..CLASSES).filter(|&class| links.arrived_packets[class][row] > 0) {
            from.push(links.from[row]);
            to.push(links.to[row]);
            classes.push(class as u32);
            arrived.push(links.arrived_packets[class][row]);
            dropped.push(links.dropped_packets[class][row]);
        }
    }
    vec![
        ("from".to_owned(), Column::text(from, nodes.to_vec())),
        ("to".to_owned(), Column::text(to, nodes.to_vec())),
        ("class".to_owned(), Column::u32(classes)),
        ("arrived_packets".to_owned(), Column::u64(arrived)),
        ("dropped_packets".to_owned(), Column::u64(dropped)),
    ]
}

/// One row per source of cross traffic, in the order of the scenario.
pub fn cross_traffic_columns(results: &Results) -> Table {
    let sources = &results.records.cross_traffic;
    let mut table = vec![
        ("from".to_owned(), Column::text(sources.from.clone(), results.nodes.clone())),
        ("to".to_owned(), Column::text(sources.to.clone(), results.nodes.clone())),
        ("kind".to_owned(), Column::words(&sources.kind)),
    ];
    let counts = [
        ("offered", &sources.offered_packets),
        ("delivered", &sources.delivered_packets),
        ("dropped", &sources.dropped_packets),
    ];
    for (name, packets) in counts {
        let bytes = packets.iter().zip(&sources.packet_bytes).map(|(&packets, &bytes)| packets * u64::from(bytes));
        table.push((format!("{name}_packets"), Column::u64(packets.clone())));
        table.push((format!("{name}_bytes"), Column::u64(bytes.collect())));
    }
    table
}

/// One row per data packet of the logged flow, in order of sending.
pub fn packet_columns(results: &Results) -> Table {
    let packets = &results.records.packets;
    vec![
        ("segment".to_owned(), Column::u32(packets.segment.clone())),
        ("is_retransmission".to_owned(), Column::flags(packets.is_retransmission.clone())),
        ("due_s".to_owned(), Column::optional_seconds(&packets.due_ps)),
        ("sent_s".to_owned(), Column::seconds(&packets.sent_ps)),
        ("departed_s".to_owned(), Column::optional_seconds(&packets.departed_ps)),
        ("arrived_s".to_owned(), Column::optional_seconds(&packets.arrived_ps)),
        ("stamped_s".to_owned(), Column::optional_seconds(&packets.stamped_ps)),
    ]
}

/// One row per sample of one quantity. An unbounded value is null.
pub fn series_columns(results: &Results) -> Table {
    let series = &results.records.series;
    vec![
        ("time_s".to_owned(), Column::seconds(&series.time_ps)),
        ("probe".to_owned(), Column::text(series.probe.clone(), results.probes.clone())),
        ("quantity".to_owned(), Column::words(&series.quantity)),
        ("value".to_owned(), Column::optional_f64(series.value.iter().map(|&value| bounded(value)))),
    ]
}

/// Returns `value`, unless it stands for "no bound", like a slow-start threshold before the first loss.
pub fn bounded(value: f64) -> Option<f64> {
    (value < UNBOUNDED as f64).then_some(value)
}
