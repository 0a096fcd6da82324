//! Time series: what the probes see at every sample.

use crate::config::{Probe, Sampling};
use crate::fabric::Fabric;
use crate::records::SeriesTable;
use crate::world::World;
use sparelane_core::Time;

/// The probes and what they saw.
#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    sampling: Sampling,
    series: SeriesTable,
    /// Bytes that came to the far end of each probe's cable until the sample before.
    sent_before: Vec<u64>,
}

impl Sampler {
    pub(crate) fn new(sampling: Sampling) -> Sampler {
        Sampler { sent_before: vec![0; sampling.probes.len()], sampling, series: SeriesTable::default() }
    }

    /// Takes one sample; returns when the next is due.
    pub(crate) fn sample<F: Fabric>(&mut self, world: &mut World<F>) -> Time {
        let now = world.now;
        let series = &mut self.series;
        let probes = self.sampling.probes.iter().zip(&mut self.sent_before);
        for ((probe, sent_before), index) in probes.zip(0..) {
            let mut put = |quantity: &'static str, value: f64| {
                series.time_ps.push(now.as_ps());
                series.probe.push(index);
                series.quantity.push(quantity);
                series.value.push(value);
            };
            match *probe {
                Probe::Flow(id) => {
                    let Some(flow) = world.flows.iter().find(|flow| flow.open && flow.id == id) else { continue };
                    flow.sender.controller().trace(&mut put);
                    put("in_flight_bytes", flow.sender.in_flight_bytes() as f64);
                    put("held_bytes", flow.receiver.held_bytes() as f64);
                    if let Some(srtt) = flow.sender.srtt() {
                        put("srtt_s", srtt.as_secs_f64());
                    }
                }
                Probe::Queue(from, to) => {
                    if let Some(link) = world.link_between(from, to) {
                        put("backlog_bytes", world.fabric.backlog_bytes(now, link) as f64);
                        if let Some(rate) = world.fabric.explicit_rate(now, link) {
                            put("rcp_rate_bps", rate.as_bps() as f64);
                        }
                    }
                }
                Probe::Link(from, to) => {
                    if let Some(link) = world.link_between(from, to) {
                        let sent = world.fabric.counts(now, link).delivered_bytes;
                        put("sent_bytes", (sent - *sent_before) as f64);
                        *sent_before = sent;
                    }
                }
            }
        }
        now + self.sampling.interval
    }

    pub(crate) fn into_series(self) -> SeriesTable {
        self.series
    }
}
