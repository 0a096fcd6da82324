//! Detection of paths that have started to drop full packets without any report, for example after a change of route
//! (RFC 4821 section 7.7, RFC 8899 section 4.3).
//!
//! If nothing of a transfer is acknowledged for a while, small and full echo frames are sent. A path that answers only
//! the small ones is a black hole for full packets.

use crate::carrier::{AssociationId, Carrier};
use crate::frame::PROBE_BYTES;
use crate::node::{Node, NodeError};
use sparelane_core::{Dur, Time};

/// The time without acknowledgments after which the path is probed.
const PROBE_DELAY: Dur = Dur::from_secs(2);

/// The interval between probes, and the time to wait for their answers; longer than any round trip on Earth.
const PROBE_INTERVAL: Dur = Dur::from_ms(700);

/// The minimum number of answered small frames, with no full one answered, to detect a black hole.
const MIN_ANSWERS: u32 = 5;

/// The maximum probability that random losses explain the missing answers.
const MAX_CHANCE: f64 = 0.01;

/// Bytes of a small frame, whose answer only shows that the peer is alive.
const SMALL_FRAME_BYTES: usize = 2 * PROBE_BYTES;

/// The state of the detection for a transfer.
#[derive(Debug)]
pub struct BlackHole {
    acknowledged_bytes: u64,
    /// The time of the last progress, or the last time at which nothing was outstanding.
    progress_at: Time,
    probe_at: Time,
    /// Number of small frames sent, which equals that of full ones, and number of answered small ones.
    probes: u32,
    small_answers: u32,
    full_bytes: usize,
    found: bool,
}

impl BlackHole {
    /// Creates the initial state.
    pub fn new(now: Time) -> BlackHole {
        BlackHole {
            acknowledged_bytes: 0,
            progress_at: now,
            probe_at: Time::NEVER,
            probes: 0,
            small_answers: 0,
            full_bytes: 0,
            found: false,
        }
    }

    /// The probability that no full frame is answered, given the loss rate of small ones.
    fn chance(&self) -> f64 {
        let lost = f64::from(self.probes.saturating_sub(self.small_answers)) / f64::from(self.probes.max(1));
        (0..self.probes).fold(1.0, |chance, _| chance * lost)
    }

    /// The time at which [`poll`](Self::poll) should be called at the latest.
    pub fn next_timer(&self) -> Time {
        self.probe_at.min(self.progress_at + PROBE_DELAY)
    }

    /// Updates the state and sends probes if they are due. `is_waiting` is true if unacknowledged data is outstanding.
    /// Returns true if the path drops full packets and carries small ones.
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
        if now < self.progress_at + PROBE_DELAY {
            return Ok(false);
        }
        let path = node.path_mut(association).ok_or(NodeError::NotOpen)?;
        let frame_bytes = path.frame_bytes();
        while let Some(answer) = path.poll_answer() {
            if self.full_bytes > 0 && answer.bytes >= self.full_bytes {
                // Full frames arrive, so the lack of progress has another reason.
                *self = BlackHole { acknowledged_bytes, ..BlackHole::new(now) };
                return Ok(false);
            }
            self.small_answers += u32::from(self.full_bytes > 0 && answer.bytes == SMALL_FRAME_BYTES);
        }
        if self.probe_at == Time::NEVER || now >= self.probe_at {
            self.found = self.small_answers >= MIN_ANSWERS && self.chance() <= MAX_CHANCE;
            self.probes += 1;
            self.full_bytes = frame_bytes;
            node.echo(now, association, 0, frame_bytes)?;
            node.echo(now, association, 0, SMALL_FRAME_BYTES)?;
            self.probe_at = now + PROBE_INTERVAL;
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

    /// Returns the time from the change of the path to the detection, if there is one.
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
    fn a_path_that_starts_to_drop_full_packets_is_detected_within_seconds() {
        let took = found(Path { mtu_bytes: 1280, ..Path::default() }, 5).expect("it is detected");
        assert!(took > PROBE_DELAY && took < Dur::from_secs(6), "{took}");
        let lossy = Path { mtu_bytes: 1280, loss: 0.1, reordered: 0.1, duplicated: 0.05, ..Path::default() };
        assert!((1..=5).all(|seed| found(lossy, seed).is_some()));
    }

    #[test]
    fn a_lossy_or_broken_path_is_not_taken_for_a_black_hole() {
        for loss in [0.05, 0.4, 1.0] {
            for seed in 1..=5 {
                assert_eq!(found(Path { loss, ..Path::default() }, seed), None, "{loss}, seed {seed}");
            }
        }
    }
}
