//! Time series: the values of probes at every sample.

use super::{Interest, Observer, View};
use crate::records::{Records, SeriesTable};
use crate::routing::network::NodeId;
use sparelane_core::{Dur, Time};

/// The object that a time series measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// A flow, by its number in order of start: window, bytes in flight, smoothed round-trip time.
    Flow(u32),
    /// The output queue of the cable from one node towards another.
    Queue(NodeId, NodeId),
    /// The bytes that a cable carries from one node towards another, and those that it could carry if its rate varies.
    Link(NodeId, NodeId),
}

/// The time series to record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesSpec {
    /// The time between samples. The first sample is at the start of the run.
    pub interval: Dur,
    /// The objects to measure.
    pub probes: Vec<Probe>,
}

/// The probes and their values, for [`Records::series`].
#[derive(Clone, Debug)]
pub struct Series {
    spec: SeriesSpec,
    table: SeriesTable,
    /// The counters of each probe's cable at the previous sample.
    before: Vec<Counters>,
}

/// The counters of a cable since the run began.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    /// Bytes that have reached its far end.
    sent: u64,
    /// Bytes that it could have sent, if its rate varies.
    offered: u64,
}

impl Series {
    /// Time series without samples yet.
    pub fn new(spec: SeriesSpec) -> Series {
        Series { before: vec![Counters::default(); spec.probes.len()], spec, table: SeriesTable::default() }
    }
}

impl Observer for Series {
    fn interest(&self) -> Interest {
        let queues = self.spec.probes.iter().filter_map(|probe| match *probe {
            Probe::Queue(from, to) => Some((from, to)),
            Probe::Flow(_) | Probe::Link(..) => None,
        });
        Interest { first_sample: Some(Time::ZERO), queues: queues.collect(), ..Interest::default() }
    }

    fn on_sample(&mut self, view: &mut View<'_>) -> Time {
        let (now, table) = (view.now(), &mut self.table);
        for ((probe, before), index) in self.spec.probes.iter().zip(&mut self.before).zip(0..) {
            let mut put = |quantity: &'static str, value: f64| {
                table.time_ps.push(now.as_ps());
                table.probe.push(index);
                table.quantity.push(quantity);
                table.value.push(value);
            };
            match *probe {
                Probe::Flow(id) => {
                    if let Some(flow) = view.flow(id) {
                        flow.trace(&mut put);
                    }
                }
                Probe::Queue(from, to) => {
                    if let Some(backlog_bytes) = view.backlog_bytes(from, to) {
                        put("backlog_bytes", backlog_bytes as f64);
                    }
                    if let Some(rate) = view.explicit_rate(from, to) {
                        put("rcp_rate_bps", rate.as_bps() as f64);
                    }
                }
                Probe::Link(from, to) => {
                    if let Some(sent) = view.sent_bytes(from, to) {
                        put("sent_bytes", (sent - before.sent) as f64);
                        before.sent = sent;
                    }
                    if let Some(offered) = view.offered_bytes(from, to) {
                        put("offered_bytes", (offered - before.offered) as f64);
                        before.offered = offered;
                    }
                }
            }
        }
        now + self.spec.interval
    }

    fn finish(self: Box<Self>, records: &mut Records) {
        records.series = self.table;
    }
}
