//! Fuzzes two nodes with a tunnel between them. The carrier drops, duplicates, reorders, changes and injects frames and
//! messages, which covers everything that a trusted peer can send.

use super::fuzz_carrier::{ASSOCIATION, FuzzCarrier, deliver, opened, turn};
use super::input::Bytes as Input;
use sparelane_core::{Dur, Time};
use sparelane_net::flow::ReceiveFlow;
use sparelane_net::node::{ControllerChoice, FlowId, Node, NodeConfig, NodeEvent};
use sparelane_net::tunnel::{Delivery, Link, LinkConfig, LinkEvent};

/// The limit of bytes that a node may hold over all flows, out of order or unread.
const HELD_BYTES: u64 = 100_000;

/// The limit of bytes that a node may hold, including the memory of flows.
const MEMORY_BYTES: u64 = 150_000;

/// The largest number of rounds per run.
const MAX_ROUNDS: usize = 400;

const CONTROLLERS: [&str; 4] = ["rc3", "cubic", "bbr", "rapid"];

struct Site {
    node: Node<FuzzCarrier>,
    link: Link,
}

impl Site {
    fn new(config: &NodeConfig, serves: bool) -> Site {
        let node = opened(config);
        let of_link = LinkConfig { max_connections: 8, buffer_bytes: 50_000 };
        let link = if serves { Link::serving(ASSOCIATION, of_link) } else { Link::dialing(ASSOCIATION, of_link) };
        Site { node, link }
    }

    /// Processes input and timers. Returns whether the association is alive.
    fn turn(&mut self, now: Time) -> bool {
        turn(&mut self.node, now);
        while let Some(event) = self.node.poll_event() {
            if self.link.handle_event(now, &mut self.node, &event).is_err() {
                return false;
            }
            if let NodeEvent::Incoming(flow) = event {
                assert!(self.node.receiving(flow).is_some() || flow.association == ASSOCIATION);
            }
        }
        while let Some(event) = self.link.poll_event() {
            if let LinkEvent::Connect { connection, .. } = event
                && self.link.handle_connected(now, &mut self.node, connection).is_err()
            {
                return false;
            }
        }
        // The carrier queues frames itself, so the node has nothing to transmit.
        assert!(self.node.poll_transmit(now).is_none());
        let held = (0..64).filter_map(|flow| self.node.receiving(FlowId { association: ASSOCIATION, flow }));
        assert!(held.map(ReceiveFlow::held_bytes).sum::<u64>() <= 2 * HELD_BYTES);
        assert!(self.node.held_bytes() <= MEMORY_BYTES, "{} bytes", self.node.held_bytes());
        assert!(self.link.len() <= 9);
        true
    }

    /// Performs a random action of an application on a connection.
    fn act(&mut self, now: Time, input: &mut Input<'_>, dials: bool) {
        let connection = u32::from(input.byte() % 4);
        match input.byte() % 8 {
            0 if dials => {
                if let Ok(target) = "host:1".parse() {
                    // Rejection at the limit of connections is expected.
                    let _ = self.link.open(now, &mut self.node, target);
                }
            }
            1 | 2 => {
                let room = self.link.room(&self.node, connection).min(u64::from(input.byte()) * 100);
                self.link.handle_bytes(&mut self.node, connection, vec![7; room as usize].into());
            }
            3 if input.byte() < 32 => self.link.handle_end(&mut self.node, connection),
            4 if input.byte() < 4 => {
                let _ = self.link.handle_broken(&mut self.node, connection, "broken");
            }
            _ => while let Delivery::Bytes(_) = self.link.read(&mut self.node, connection) {},
        }
    }
}

/// Runs one association and returns the number of frames delivered.
///
/// # Panics
/// If a node panics, holds too many bytes, or exceeds its limit of connections.
pub fn check(bytes: &[u8]) -> usize {
    let mut input = Input(bytes);
    let config = NodeConfig {
        controller: ControllerChoice::named(CONTROLLERS[usize::from(input.byte() % 4)]),
        classes: 1 + input.byte() % 4,
        window_bytes: 20_000 + u64::from(input.byte()) * 200,
        held_bytes: HELD_BYTES,
        // Half of it is for a single key.
        memory_bytes: 2 * MEMORY_BYTES,
        max_flows: 16,
        max_flows_per_key: 8 + usize::from(input.byte() % 16),
        ..NodeConfig::default()
    };
    let mut sites = [Site::new(&config, false), Site::new(&config, true)];
    let (mut now, mut delivered) = (Time::ZERO, 0);
    for _ in 0..MAX_ROUNDS {
        now += Dur::from_us(1 + (input.scaled() >> 46));
        for at in 0..2 {
            if !sites[at].turn(now) {
                return delivered;
            }
            sites[at].act(now, &mut input, at == 0);
            let [one, two] = &mut sites;
            let (from, to) = if at == 0 { (one, two) } else { (two, one) };
            delivered += deliver(&mut input, now, from.node.carrier_mut(), to.node.carrier_mut());
        }
        if input.is_over() {
            break;
        }
    }
    delivered
}
