//! Finds out whether a path has begun to drop full packets, as where its MTU has fallen and nobody says so (RFC 4821 section 7.7,
//! RFC 8899 section 4.3): where nothing of a transfer is acknowledged for a while, small and full frames ask the peer for an answer,
//! and small ones alone get it.

use crate::carrier::{AssociationId, Carrier};
use crate::frame::PROBE_BYTES;
use crate::node::{Node, NodeError};
use sparelane_core::{Dur, Time};

/// A transfer of which nothing is acknowledged for so long is asked about.
const PATIENCE: Dur = Dur::from_secs(2);

/// The time between questions, and until their answer: longer than what a round trip takes on Earth.
const PAUSE: Dur = Dur::from_ms(700);

/// So many small frames are answered, and no full one, before the path is taken for one that drops these.
const LEAST_ANSWERS: u32 = 5;

/// And a path that loses as many full frames as small ones would do so by chance in no more than this share of cases.
const MOST_CHANCE: f64 = 0.01;

/// Bytes of a small frame, whose answer says that the peer is there, and nothing of packet sizes.
const SMALL_FRAME_BYTES: usize = 2 * PROBE_BYTES;

/// What is known of one transfer.
#[derive(Debug)]
pub struct BlackHole {
    acknowledged_bytes: u64,
    /// When more than that was acknowledged last, or nothing was to be.
    progress_at: Time,
    ask_at: Time,
    /// Small frames that were sent, as many as full ones, and those that were answered.
    asked: u32,
    small_answers: u32,
    full_bytes: usize,
    found: bool,
}

impl BlackHole {
    /// Nothing is known yet.
    pub fn new(now: Time) -> BlackHole {
        BlackHole {
            acknowledged_bytes: 0,
            progress_at: now,
            ask_at: Time::NEVER,
            asked: 0,
            small_answers: 0,
            full_bytes: 0,
            found: false,
        }
    }

    /// How likely no full frame would have been answered, were they lost as small ones are.
    fn chance(&self) -> f64 {
        let lost = f64::from(self.asked.saturating_sub(self.small_answers)) / f64::from(self.asked.max(1));
        (0..self.asked).fold(1.0, |chance, _| chance * lost)
    }

    /// When [`poll`](Self::poll) wants to be called, at the latest.
    pub fn next_timer(&self) -> Time {
        self.ask_at.min(self.progress_at + PATIENCE)
    }

    /// So many bytes are acknowledged now, and others are on their way or not. Asks the peer where that is due. Returns whether the
    /// path drops full packets, and carries small ones.
    ///
    /// # Errors
    /// The association is not open.
    pub fn poll<C: Carrier>(
        &mut self,
        now: Time,
        node: &mut Node<C>,
        association: AssociationId,
        acknowledged_bytes: u64,
        is_waiting: bool,
    ) -> Result<bool, NodeError> {
        if acknowledged_bytes != self.acknowledged_bytes || !is_waiting {
            *self = BlackHole { acknowledged_bytes, ..BlackHole::new(now) };
        }
        if now < self.progress_at + PATIENCE {
            return Ok(false);
        }
        let path = node.path_mut(association).ok_or(NodeError::NotOpen)?;
        let frame_bytes = path.frame_bytes();
        while let Some(answer) = path.poll_answer() {
            if self.full_bytes > 0 && answer.bytes >= self.full_bytes {
                // Full frames arrive: what is missing has another reason.
                *self = BlackHole { acknowledged_bytes, ..BlackHole::new(now) };
                return Ok(false);
            }
            self.small_answers += u32::from(self.full_bytes > 0 && answer.bytes == SMALL_FRAME_BYTES);
        }
        if self.ask_at == Time::NEVER || now >= self.ask_at {
            self.found = self.small_answers >= LEAST_ANSWERS && self.chance() <= MOST_CHANCE;
            self.asked += 1;
            self.full_bytes = frame_bytes;
            node.echo(now, association, 0, frame_bytes)?;
            node.echo(now, association, 0, SMALL_FRAME_BYTES)?;
            self.ask_at = now + PAUSE;
        }
        Ok(self.found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{NodeConfig, NodeEvent};
    use crate::virt::{Path, Virtual};
    use bytes::Bytes;

    /// When a transfer on a path that becomes another one after 200 ms is taken for stuck, if it is.
    fn found(changed: Path, seed: u64) -> Option<Dur> {
        let mut net = Virtual::new(Path::default(), NodeConfig::default(), seed).expect("settings that fit");
        let association = net.connect().expect("a peer");
        let (mut hole, mut flow) = (BlackHole::new(Time::ZERO), None);
        let (mut until, change_at) = (Time::ZERO + Dur::from_ms(10), Time::ZERO + Dur::from_ms(300));
        while net.now() < Time::ZERO + Dur::from_secs(25) {
            match net.next_event(until) {
                Some((0, NodeEvent::Opened { .. })) => {
                    let now = net.now();
                    let opened = net.node(0).open_flow(now, association, None).expect("a flow");
                    net.node(0).write(opened, Bytes::from(vec![7; 20_000_000]));
                    flow = Some(opened);
                }
                Some((1, NodeEvent::Readable(flow))) => while net.node(1).read(flow).is_some() {},
                Some((_, NodeEvent::Closed { .. })) => return None,
                Some(_) => continue,
                None => until += Dur::from_ms(10),
            }
            if net.now() >= change_at {
                *net.path_mut() = changed;
            }
            let Some(flow) = flow else { continue };
            let now = net.now();
            let node = net.node(0);
            let acknowledged = node.sending(flow).map_or(0, |flow| flow.acknowledged_bytes());
            let is_waiting = node.sending(flow).is_some_and(|flow| flow.buffered_bytes() > 0);
            if hole.poll(now, node, association, acknowledged, is_waiting).expect("open") {
                return Some(now - change_at);
            }
        }
        None
    }

    #[test]
    fn a_path_that_begins_to_drop_full_packets_is_found_within_seconds() {
        let took = found(Path { mtu_bytes: 1280, ..Path::default() }, 5).expect("it is found");
        assert!(took > PATIENCE && took < Dur::from_secs(6), "{took}");
        let lossy = Path { mtu_bytes: 1280, loss: 0.1, held: 0.1, repeated: 0.05, ..Path::default() };
        assert!((1..=5).all(|seed| found(lossy, seed).is_some()));
    }

    #[test]
    fn a_path_that_loses_or_that_is_away_is_not_taken_for_one() {
        for loss in [0.05, 0.4, 1.0] {
            for seed in 1..=5 {
                assert_eq!(found(Path { loss, ..Path::default() }, seed), None, "{loss}, seed {seed}");
            }
        }
    }
}
