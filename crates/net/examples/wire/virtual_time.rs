//! Transfers in virtual time: with this crate's frames under any controller, and with a plain stream of QUIC.

use crate::Failure;
use crate::sockets::pair;
use bytes::Bytes;
use sparelane_core::{Dur, Time};
use sparelane_net::node::{NodeConfig, NodeEvent};
use sparelane_net::quic::QuicConfig;
use sparelane_net::quic::plain::{PlainController, PlainEvent, PlainStream};
use sparelane_net::virt::{Path, Virtual, address_of};
use std::time::Instant;

/// The maximum duration of a run.
const LIMIT: Time = Time::from_ps(600 * 1_000_000_000_000);

/// Sends `bytes` in one flow, after the path has been discovered. Returns the time from the opening of the flow to the
/// last byte read.
pub fn ours(path: Path, config: NodeConfig, bytes: usize, seed: u64) -> Result<Dur, Failure> {
    let mut net = Virtual::new(path, config, seed)?;
    let association = net.connect()?;
    // Wait for the discovery of the path; a handshake with losses takes some seconds.
    let mut is_open = false;
    while let Some((node, event)) = net.next_event(if is_open { net.now() + Dur::from_ms(200) } else { LIMIT }) {
        is_open |= node == 0 && matches!(event, NodeEvent::Opened { .. });
    }
    let began = net.now();
    let flow = net.node(0).open_flow(began, association, Some(bytes as u64))?;
    net.node(0).write(flow, vec![7; bytes].into());
    net.node(0).finish(flow);
    while let Some((node, event)) = net.next_event(LIMIT) {
        match (node, event) {
            (1, NodeEvent::Readable(flow)) => {
                while net.node(1).read(flow).is_some() {}
                if net.node(1).is_read(flow) {
                    return Ok(net.now() - began);
                }
            }
            (_, NodeEvent::Closed { reason, .. }) => return Err(reason.to_string().into()),
            _ => {}
        }
    }
    Err(format!("not done after {LIMIT}").into())
}

/// Sends `bytes` in a plain stream of QUIC. Returns the time from the connection to the last byte read.
pub fn stream(path: Path, controller: PlainController, bytes: usize, seed: u64) -> Result<Dur, Failure> {
    let epoch = Instant::now();
    let [client, server] = pair(1)?;
    let end = |config: QuicConfig, side| {
        let config = QuicConfig { seed: Some(seed << 1 | side), ..config };
        PlainStream::new(&config, controller, epoch)
    };
    let mut net = Virtual::between([end(client, 0)?, end(server, 1)?], path, seed);
    let now = net.now();
    net.node(0).send(now, address_of(1), Bytes::from(vec![7; bytes]))?;
    let mut opened = Time::ZERO;
    while let Some((node, event)) = net.next_event(LIMIT) {
        match (node, event) {
            (0, PlainEvent::Connected) => opened = net.now(),
            (1, PlainEvent::Received { .. }) => {
                return Ok(net.now() - opened);
            }
            (_, PlainEvent::Lost) => return Err("the connection was lost".into()),
            _ => {}
        }
    }
    Err(format!("not done after {LIMIT}").into())
}
