//! Transfers in virtual time: ours under any controller, and a plain stream of QUIC over the same network.

use crate::Failure;
use crate::sockets::pair;
use bytes::Bytes;
use sparelane_core::{Dur, Time};
use sparelane_net::node::{NodeConfig, NodeEvent};
use sparelane_net::quic::QuicConfig;
use sparelane_net::quic::plain::{PlainController, PlainEvent, PlainStream};
use sparelane_net::virt::{Path, Virtual, address_of};
use std::time::Instant;

/// No run lasts longer.
const LIMIT: Time = Time::from_ps(600 * 1_000_000_000_000);

/// Sends so many bytes in one flow: from its opening to the last byte read, over an association of which the path is known.
pub fn ours(path: Path, config: NodeConfig, bytes: usize, seed: u64) -> Result<Dur, Failure> {
    let mut net = Virtual::new(path, config, seed)?;
    let association = net.connect()?;
    // Until the path is known: a handshake whose packets are lost takes some seconds.
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

/// The same by a plain stream of QUIC, from the connection on.
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
