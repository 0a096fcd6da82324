//! Telemetry of a node: samples of its flows, totals, and the qlog.

use super::peer::Peer;
use super::{FlowId, Node};
use crate::carrier::{AssociationId, Carrier};
use crate::flow::{Log, ReceiveFlow, SendFlow};
use crate::telemetry::{Telemetry, TelemetryConfig, Totals};
use sparelane_core::Time;
use std::collections::BTreeMap;

impl<C: Carrier> Node<C> {
    /// Starts telemetry for all flows that open from now on.
    pub fn enable_telemetry(&mut self, now: Time, config: TelemetryConfig) {
        self.telemetry = Some(Box::new(Telemetry::new(config, now, self.config.classes)));
    }

    /// The telemetry, if it is enabled.
    pub fn telemetry_mut(&mut self) -> Option<&mut Telemetry> {
        self.telemetry.as_deref_mut()
    }

    /// Totals over all flows since the node was created.
    pub fn totals(&self) -> Totals {
        let mut totals = self.closed;
        self.peers.values().for_each(|peer| totals.add(&peer.totals()));
        totals
    }

    /// The flows that this node is sending.
    pub fn sending_flows(&self) -> impl Iterator<Item = &SendFlow> {
        self.peers.values().flat_map(|peer| peer.sending.values())
    }

    /// The flows that this node is receiving.
    pub fn receiving_flows(&self) -> impl Iterator<Item = &ReceiveFlow> {
        self.peers.values().flat_map(|peer| peer.receiving.values())
    }

    /// The number of open associations.
    pub fn associations(&self) -> usize {
        self.peers.len()
    }

    /// Takes a sample of every flow.
    pub(super) fn sample(&mut self, now: Time) {
        let Some(telemetry) = self.telemetry.as_deref_mut() else { return };
        for (&association, peer) in &mut self.peers {
            sample_peer(telemetry, now, association, peer);
        }
        telemetry.note_sample(now);
    }

    /// Takes the last sample of an association that is about to close.
    pub(super) fn sample_closing(&mut self, now: Time, association: AssociationId) {
        if let (Some(telemetry), Some(peer)) = (self.telemetry.as_deref_mut(), self.peers.get_mut(&association))
            && telemetry.samples()
        {
            sample_peer(telemetry, now, association, peer);
        }
    }
}

fn sample_peer(telemetry: &mut Telemetry, now: Time, association: AssociationId, peer: &mut Peer) {
    telemetry.sample_association(now, association, &peer.totals());
    for (&flow, sending) in &mut peer.sending {
        sending.settle_monitor();
        telemetry.sample_sending(now, FlowId { association, flow }, sending);
    }
    for (&flow, receiving) in &peer.receiving {
        telemetry.sample_receiving(now, FlowId { association, flow }, receiving);
    }
}

fn log(telemetry: &Telemetry, association: AssociationId, flow: u32) -> Option<Log> {
    telemetry.logs().then(|| Log::new(&format!("{}.{flow}", association.0), flow))
}

/// Starts the monitor of a flow that this node sends.
pub(super) fn begin_sending(telemetry: &Telemetry, association: AssociationId, flow: u32, sending: &mut SendFlow) {
    sending.attach_monitor(log(telemetry, association, flow));
}

/// Starts the qlog of a flow that this node receives.
pub(super) fn begin_receiving(
    telemetry: &Telemetry,
    association: AssociationId,
    flow: u32,
    receiving: &mut ReceiveFlow,
) {
    if let Some(log) = telemetry.logs().then(|| Log::new(&format!("{}.{flow} received", association.0), flow)) {
        receiving.log(log);
    }
}

/// Takes the last sample of a flow that this node has sent, however short it was.
pub(super) fn end_sending(
    telemetry: Option<&mut Telemetry>,
    now: Time,
    association: AssociationId,
    flow: u32,
    flows: &mut BTreeMap<u32, SendFlow>,
) {
    let (Some(telemetry), Some(sending)) = (telemetry, flows.get_mut(&flow)) else { return };
    telemetry.write_log(|text| sending.take_log(text));
    if telemetry.samples() {
        sending.settle_monitor();
        telemetry.sample_sending(now, FlowId { association, flow }, sending);
    }
}

/// Writes the qlog records of the flows with this number.
pub(super) fn write_log(telemetry: &mut Telemetry, peer: &mut Peer, flow: u32) {
    if let Some(sending) = peer.sending.get_mut(&flow) {
        telemetry.write_log(|text| sending.take_log(text));
    }
    if let Some(receiving) = peer.receiving.get_mut(&flow) {
        telemetry.write_log(|text| receiving.take_log(text));
    }
}
