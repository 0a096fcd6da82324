//! What a node does for whoever watches it: samples of its flows, and their qlog.

use super::peer::Peer;
use super::{FlowId, Node};
use crate::carrier::{AssociationId, Carrier};
use crate::flow::{Log, ReceiveFlow, SendFlow};
use crate::telemetry::{Telemetry, TelemetryConfig, Totals};
use sparelane_core::Time;
use std::collections::BTreeMap;

impl<C: Carrier> Node<C> {
    /// From now on the node keeps what is asked for, of all flows that open from now on.
    pub fn watch(&mut self, now: Time, config: TelemetryConfig) {
        self.telemetry = Some(Box::new(Telemetry::new(config, now, self.config.classes)));
    }

    /// What is kept for whoever watches.
    pub fn telemetry_mut(&mut self) -> Option<&mut Telemetry> {
        self.telemetry.as_deref_mut()
    }

    /// Sums over all flows since the node began.
    pub fn totals(&self) -> Totals {
        let mut totals = self.closed;
        self.peers.values().for_each(|peer| totals.add(&peer.totals()));
        totals
    }

    /// Each flow that this node sends now.
    pub fn sending_flows(&self) -> impl Iterator<Item = &SendFlow> {
        self.peers.values().flat_map(|peer| peer.sending.values())
    }

    /// Each flow that this node receives now.
    pub fn receiving_flows(&self) -> impl Iterator<Item = &ReceiveFlow> {
        self.peers.values().flat_map(|peer| peer.receiving.values())
    }

    /// How many associations are open.
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

    /// Takes the last sample of an association, whose flows end with it.
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
        sending.settle_watch();
        telemetry.sample_sending(now, FlowId { association, flow }, sending);
    }
    for (&flow, receiving) in &peer.receiving {
        telemetry.sample_receiving(now, FlowId { association, flow }, receiving);
    }
}

fn log(telemetry: &Telemetry, association: AssociationId, flow: u32) -> Option<Log> {
    telemetry.logs().then(|| Log::new(&format!("{}.{flow}", association.0), flow))
}

/// A flow that is sent begins.
pub(super) fn begin_sending(telemetry: &Telemetry, association: AssociationId, flow: u32, sending: &mut SendFlow) {
    sending.watch(log(telemetry, association, flow));
}

/// A flow of the peer begins.
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

/// A flow that is sent ends: its last sample, however short it was.
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
        sending.settle_watch();
        telemetry.sample_sending(now, FlowId { association, flow }, sending);
    }
}

/// Writes what the flows of this number have logged.
pub(super) fn write_log(telemetry: &mut Telemetry, peer: &mut Peer, flow: u32) {
    if let Some(sending) = peer.sending.get_mut(&flow) {
        telemetry.write_log(|text| sending.take_log(text));
    }
    if let Some(receiving) = peer.receiving.get_mut(&flow) {
        telemetry.write_log(|text| receiving.take_log(text));
    }
}
