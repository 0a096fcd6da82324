//! The actions of one flow's sender as qlog: see [`sparelane_transport::qlog`].

use super::super::{FlowView, Flows, Interest, Kind, Observer, Opened, PacketEvent, Step};
use super::{Outcome, Sink};
use crate::records::Records;
use sparelane_core::Time;
use sparelane_transport::qlog::{Events, Extent, head};
use std::io::Write;

/// The log of one flow.
pub struct Qlog {
    flow: u32,
    header_bytes: u32,
    sink: Sink,
    events: Events,
    now: Time,
}

impl Qlog {
    /// A log to `out` of at most `most` events.
    pub fn new(flow: u32, most: u64, out: Box<dyn Write + Send>, outcome: Outcome) -> Qlog {
        Qlog { flow, header_bytes: 0, sink: Sink::new(out, outcome, most), events: Events::new(), now: Time::ZERO }
    }
}

impl Observer for Qlog {
    fn interest(&self) -> Interest {
        Interest { packets: Flows::One(self.flow), ..Interest::default() }
    }

    fn on_open(&mut self, flow: &Opened) {
        if flow.flow == self.flow {
            self.header_bytes = flow.header_bytes as u32;
            let group = self.flow.to_string();
            self.sink.put_head(head(&format!("flow {group}"), "client", &group, "TCP").as_bytes());
        }
    }

    fn on_packet(&mut self, packet: &PacketEvent) {
        self.now = packet.now;
        let (events, sink) = (&mut self.events, &mut self.sink);
        let mut put = |record: &str| sink.put_one(record.as_bytes());
        match (packet.kind, packet.step) {
            (Kind::Data { segment, is_retransmission, offset_bytes }, Step::Sent { .. }) => {
                let wire_bytes = packet.wire_bytes;
                let extent = Extent { offset_bytes, payload_bytes: wire_bytes - self.header_bytes, wire_bytes };
                events.on_sent(packet.now, segment, is_retransmission, extent, &mut put);
            }
            (Kind::Acknowledgment { cumulative, trigger, .. }, Step::Received { .. }) => {
                events.on_acknowledged(packet.now, cumulative, trigger, packet.wire_bytes, &mut put);
            }
            _ => {}
        }
    }

    fn on_acknowledged(&mut self, flow: &FlowView<'_>) {
        let sink = &mut self.sink;
        self.events.on_metrics(self.now, &mut |put| flow.trace(put), &mut |record| sink.put_one(record.as_bytes()));
    }

    fn finish(self: Box<Self>, _records: &mut Records) {
        self.sink.finish();
    }
}
