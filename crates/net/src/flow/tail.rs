//! How fast the tail goes.
//!
//! RC3's tail is sent as fast as the interface takes it, and what the network has no room for is dropped at its lowest priorities.
//! On a real path most of a tail at the interface's rate would be dropped behind the first slower link, so the tail has a pace. It
//! begins at a rate that is given, and follows what arrives. Four times a round trip, what arrived in the last round trip is held
//! against what was sent in the one before: over less than that, a lost datagram of acknowledgments would look like a lost tail.
//! Where less than nine tenths arrived, the pace falls to the rate at which it did, and waits until the new pace has been heard
//! of; otherwise it rises by a sixteenth, up to the given rate. So it does where too little was sent to say anything.

use sparelane_core::{Dur, Rate, Time};

/// The slowest that a tail becomes by itself.
const LEAST_RATE: Rate = Rate::from_mbps(1);

/// The slowest that a tail becomes that yields.
const LEAST_YIELDING: Rate = Rate::from_bps(100_000);

/// A tail that yields does so where packets of class 0 wait for more than this, as LEDBAT++ does with a target of 60 ms; less, as
/// it is to be felt by nobody.
const MOST_QUEUEING: Dur = Dur::from_ms(5);

/// What goes at once after a pause.
const BURST: Dur = Dur::from_ms(1);

/// So many parts has a round trip.
const PARTS: usize = 4;

/// So much has to be sent in a part to say anything of the path, bytes.
const LEAST_SAMPLE_BYTES: u64 = 7_000;

/// What can be set about the tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailConfig {
    /// The rate at which it begins, and which it never exceeds, headers included; where it is measured, that of flows which begin
    /// before there is a measurement.
    pub rate: Rate,
    /// The rate is measured by a train of packets when an association begins.
    pub measured: bool,
    /// What is measured counts as no more.
    pub cap: Rate,
    /// It yields where packets of class 0 wait. A path that serves classes as meant has no room for it then; on one that does not, it
    /// is the tail that they wait for.
    pub yields: bool,
    /// It begins at an eighth of its rate, as on a path that does not keep marks.
    pub begins_low: bool,
    /// It follows what arrives; otherwise it keeps its rate.
    pub follows: bool,
}

impl Default for TailConfig {
    fn default() -> TailConfig {
        TailConfig {
            rate: Rate::from_mbps(100),
            measured: true,
            cap: Rate::from_gbps(10),
            yields: true,
            begins_low: false,
            follows: true,
        }
    }
}

/// The pace of one flow's tail.
#[derive(Clone, Debug)]
pub struct TailPace {
    config: TailConfig,
    rate: Rate,
    /// The next may go from here on.
    open_at: Time,
    part_ends: Time,
    /// In this part of a round trip and in those before, the latest first.
    sent_bytes: [u64; 2 * PARTS + 1],
    /// As `sent_bytes`.
    arrived_bytes: [u64; PARTS],
    /// So many parts pass before the pace may change again.
    parts_to_wait: usize,
}

impl TailPace {
    /// A pace that begins at the configured rate.
    pub fn new(config: TailConfig) -> TailPace {
        // What yields finds out carefully what is free.
        let rate = if config.begins_low { config.rate.scaled(0.125) } else { config.rate };
        TailPace {
            config,
            rate,
            open_at: Time::ZERO,
            part_ends: Time::ZERO,
            sent_bytes: [0; 2 * PARTS + 1],
            arrived_bytes: [0; PARTS],
            parts_to_wait: 0,
        }
    }

    /// From now on the tail has this rate, and never more: what was measured.
    pub fn set_rate(&mut self, rate: Rate) {
        (self.config.rate, self.rate) = (rate, rate);
    }

    /// When the next may go.
    pub fn open_at(&self) -> Time {
        self.open_at
    }

    /// The rate now.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// A segment of so many bytes on the wire goes.
    pub fn note_sent(&mut self, now: Time, wire_bytes: u64) {
        let oldest = Time::from_ps(now.as_ps().saturating_sub(BURST.as_ps()));
        self.open_at = self.open_at.max(oldest) + self.rate.time_for(wire_bytes);
        self.sent_bytes[0] += wire_bytes;
    }

    /// The peer says that it has one of so many bytes on the wire.
    pub fn note_arrived(&mut self, wire_bytes: u64) {
        self.arrived_bytes[0] += wire_bytes;
    }

    /// Time has passed, in which a part of a round trip of this length may have ended, of which so much was spent in queues.
    pub fn handle_time(&mut self, now: Time, round_trip: Option<Dur>, queueing: Dur) {
        let Some(round_trip) = round_trip.filter(|_| self.config.follows && now >= self.part_ends) else { return };
        let part = Dur::from_ps((round_trip.as_ps() / PARTS as u64).max(1));
        let before = &self.sent_bytes[PARTS..2 * PARTS];
        let sent_before: u64 = before.iter().sum();
        // In the first round trips, not all of these parts have been.
        let parts_before = before.iter().filter(|&&bytes| bytes > 0).count() as u64;
        let arrived: u64 = self.arrived_bytes.iter().sum();
        if self.parts_to_wait > 0 {
            self.parts_to_wait -= 1;
        } else if self.config.yields && queueing > MOST_QUEUEING {
            self.rate = self.rate.scaled(0.5).max(LEAST_YIELDING);
            self.parts_to_wait = PARTS;
        } else if sent_before >= LEAST_SAMPLE_BYTES && arrived * 10 < sent_before * 9 {
            // The last part may have been longer than a part, as nothing woke this host.
            let since = (now - self.part_ends) + part * parts_before;
            self.rate = Rate::of(arrived, since).max(LEAST_RATE).min(self.config.rate);
            self.parts_to_wait = 2 * PARTS;
        } else if sent_before > 0 {
            self.rate = self.rate.scaled(1.0625).min(self.config.rate);
        }
        self.sent_bytes.rotate_right(1);
        self.sent_bytes[0] = 0;
        self.arrived_bytes.rotate_right(1);
        self.arrived_bytes[0] = 0;
        self.part_ends = now + part;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: Dur = Dur::from_ms(40);

    /// Sends for some quarters of a round trip over a path of this rate, and gives the rates at their ends in Mb/s.
    fn rates(config: TailConfig, path: Rate, quarters: u64) -> Vec<u64> {
        let quarter = Dur::from_ps(ROUND.as_ps() / 4);
        let mut pace = TailPace::new(config);
        let (mut rates, mut sent) = (vec![], vec![]);
        for at in 0..quarters {
            let (begins, ends) = (Time::ZERO + quarter * at, Time::ZERO + quarter * (at + 1));
            pace.handle_time(begins, Some(ROUND), Dur::ZERO);
            let mut bytes = 0;
            while pace.open_at() < ends {
                pace.note_sent(pace.open_at().max(begins), 1450);
                bytes += 1450;
            }
            sent.push(path.bytes_in(quarter).min(bytes));
            let arrived = if at < 4 { 0 } else { sent[at as usize - 4] };
            pace.note_arrived(arrived);
            rates.push(pace.rate().as_bps() / 1_000_000);
        }
        rates
    }

    #[test]
    fn the_pace_falls_to_what_arrives_and_stays_near() {
        let config = TailConfig { rate: Rate::from_gbps(1), follows: true, ..TailConfig::default() };
        let rates = rates(config, Rate::from_mbps(100), 40);
        assert_eq!(rates[..5], [1000; 5], "nothing is known in the first round trip");
        assert!(rates[6..].iter().all(|rate| (90..=170).contains(rate)), "{rates:?}");
    }

    #[test]
    fn the_pace_never_exceeds_the_configured_rate_and_keeps_it_where_all_arrives() {
        let config = TailConfig { rate: Rate::from_mbps(50), follows: true, ..TailConfig::default() };
        assert!(rates(config, Rate::from_gbps(10), 10).iter().all(|&rate| rate == 50));
        let kept = TailConfig { rate: Rate::from_mbps(50), follows: false, ..TailConfig::default() };
        assert!(rates(kept, Rate::from_mbps(5), 10).iter().all(|&rate| rate == 50));
    }

    #[test]
    fn a_slow_pace_rises_again_where_all_arrives() {
        let mut pace = TailPace::new(TailConfig { rate: Rate::from_mbps(100), follows: true, ..TailConfig::default() });
        pace.rate = LEAST_RATE;
        let quarter = Dur::from_ps(ROUND.as_ps() / 4);
        let mut sent = vec![];
        for at in 0..100 {
            let (begins, ends) = (Time::ZERO + quarter * at, Time::ZERO + quarter * (at + 1));
            pace.handle_time(begins, Some(ROUND), Dur::ZERO);
            let mut bytes = 0;
            while pace.open_at() < ends {
                pace.note_sent(pace.open_at().max(begins), 1450);
                bytes += 1450;
            }
            sent.push(bytes);
            pace.note_arrived(if at < 4 { 0 } else { sent[at as usize - 4] });
        }
        assert!(pace.rate() > Rate::from_mbps(50), "{}", pace.rate());
    }

    #[test]
    fn a_pause_is_made_up_for_by_a_millisecond_at_most() {
        let mut pace = TailPace::new(TailConfig::default());
        let now = Time::ZERO + Dur::from_secs(10);
        let mut at_once = 0;
        while pace.open_at() <= now {
            pace.note_sent(now, 1250);
            at_once += 1;
        }
        assert_eq!(at_once, 11, "a millisecond at 100 Mb/s is ten packets, and one begins");
    }
}
