//! Two nodes with a tunnel between them, on a carrier that drops, repeats, swaps, changes and invents frames and messages: the
//! whole of what a peer can say once it is trusted.

use super::input::Bytes as Input;
use super::puppet::{ASSOCIATION, Puppet, cross, opened, turn};
use sparelane_core::{Dur, Time};
use sparelane_net::flow::ReceiveFlow;
use sparelane_net::node::{ControllerChoice, FlowId, Node, NodeConfig, NodeEvent};
use sparelane_net::tunnel::{Link, LinkConfig, LinkEvent, Taken};

/// Bytes that a node may hold of all flows, out of order or not read.
const HELD_BYTES: u64 = 100_000;

/// Turns of one conversation.
const MOST_TURNS: usize = 400;

const CONTROLLERS: [&str; 4] = ["rc3", "cubic", "bbr", "rapid"];

struct Site {
    node: Node<Puppet>,
    link: Link,
}

impl Site {
    fn new(config: &NodeConfig, serves: bool) -> Site {
        let node = opened(config);
        let of_link = LinkConfig { max_connections: 8, buffer_bytes: 50_000 };
        let link = if serves { Link::serving(ASSOCIATION, of_link) } else { Link::dialing(ASSOCIATION, of_link) };
        Site { node, link }
    }

    /// Takes in what came, and does what is due. Returns whether the association lives.
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
        // A carrier that has nothing to transmit has the flows send into itself.
        assert!(self.node.poll_transmit(now).is_none());
        let held = (0..64).filter_map(|flow| self.node.receiving(FlowId { association: ASSOCIATION, flow }));
        assert!(held.map(ReceiveFlow::held_bytes).sum::<u64>() <= 2 * HELD_BYTES);
        assert!(self.link.len() <= 9);
        true
    }

    /// An application does something with a connection.
    fn act(&mut self, now: Time, input: &mut Input<'_>, dials: bool) {
        let connection = u32::from(input.byte() % 4);
        match input.byte() % 8 {
            0 if dials => {
                if let Ok(target) = "host:1".parse() {
                    // What is refused at a limit is refused.
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
            _ => while let Taken::Bytes(_) = self.link.take(&mut self.node, connection) {},
        }
    }
}

/// Runs one conversation; returns how many frames crossed before it ended.
///
/// # Panics
/// A node panics, holds too much, or has more connections than its limit.
pub fn check(bytes: &[u8]) -> usize {
    let mut input = Input(bytes);
    let config = NodeConfig {
        controller: ControllerChoice::named(CONTROLLERS[usize::from(input.byte() % 4)]),
        classes: 1 + input.byte() % 4,
        window_bytes: 20_000 + u64::from(input.byte()) * 200,
        held_bytes: HELD_BYTES,
        max_flows: 16,
        ..NodeConfig::default()
    };
    let mut sites = [Site::new(&config, false), Site::new(&config, true)];
    let (mut now, mut crossed) = (Time::ZERO, 0);
    for _ in 0..MOST_TURNS {
        now += Dur::from_us(1 + (input.scaled() >> 46));
        for at in 0..2 {
            if !sites[at].turn(now) {
                return crossed;
            }
            sites[at].act(now, &mut input, at == 0);
            let [one, two] = &mut sites;
            let (from, to) = if at == 0 { (one, two) } else { (two, one) };
            crossed += cross(&mut input, now, from.node.carrier_mut(), to.node.carrier_mut());
        }
        if input.is_over() {
            break;
        }
    }
    crossed
}
