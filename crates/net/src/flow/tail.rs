//! The pace of RC3's tail.
//!
//! RC3 sends the tail at the rate of the interface and relies on priority queues to drop the excess. On a real path,
//! most of such a tail would be lost at the first slower link, so here the tail has a pace. It starts at a configured
//! or measured rate and follows the arrivals.
//!
//! Four times per round trip, the bytes that arrived in the last round trip are compared with those sent in the one
//! before. Shorter periods would mistake a lost datagram of acknowledgments for a lost tail. If less than nine tenths
//! arrived, the pace falls to the rate of arrival and stays there until its effect can be seen. Otherwise it rises by a
//! sixteenth, up to the initial rate; so it does if too little was sent to judge.

use sparelane_core::{Dur, Rate, Time};

/// The lowest rate to which losses reduce the tail.
const MIN_RATE: Rate = Rate::from_mbps(1);

/// The lowest rate to which a yielding tail goes.
const MIN_YIELDING_RATE: Rate = Rate::from_bps(100_000);

/// The queueing delay of class 0 above which a tail yields. LEDBAT++ does the same at 60 ms; the tail has a lower
/// limit, since other traffic should not notice it.
const MAX_QUEUEING: Dur = Dur::from_ms(5);

/// The burst that is allowed after a pause, as time at the current rate.
const BURST: Dur = Dur::from_ms(1);

/// The number of parts of a round trip.
const PARTS: usize = 4;

/// The minimum number of bytes in the compared parts, below which the arrivals are not judged.
const MIN_SAMPLE_BYTES: u64 = 7_000;

/// The bytes that may be missing from a sample without being judged: two packets, one that is lost at random and one
/// that arrives at the border of two parts. A slow tail sends few packets in a round trip. If each missing one counted,
/// it would stay slow: at 2 Mb/s, 20 MB took 21 s instead of 3 s.
const TOLERANCE_BYTES: u64 = 3_000;

/// Configuration of the tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailConfig {
    /// The initial and maximum rate, headers included. If the rate is `measured`, this one is for flows that start
    /// before the measurement ends.
    pub rate: Rate,
    /// Measures the rate by a packet train when an association starts.
    pub measured: bool,
    /// The maximum of a measured rate.
    pub cap: Rate,
    /// Makes the tail yield if packets of class 0 queue. On a path that honours priorities they never wait for the
    /// tail; if they do queue, the tail may be the cause.
    pub yields: bool,
    /// Starts the tail at an eighth of its rate, for paths that do not keep the marks of priority.
    pub begins_low: bool,
    /// Makes the pace follow the arrivals; otherwise it is constant.
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
    /// The time from which the next segment may be sent.
    open_at: Time,
    part_ends: Time,
    /// Bytes sent in the current part of a round trip and in earlier ones, latest first.
    sent_bytes: [u64; 2 * PARTS + 1],
    /// Bytes that arrived, likewise.
    arrived_bytes: [u64; PARTS],
    /// The number of parts before the pace may change again.
    parts_to_wait: usize,
}

impl TailPace {
    /// Creates a pace that starts at the configured rate.
    pub fn new(config: TailConfig) -> TailPace {
        // A tail on a path without marks has to find the free capacity carefully.
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

    /// Sets the rate, and the maximum, to a measured one.
    pub fn set_rate(&mut self, rate: Rate) {
        (self.config.rate, self.rate) = (rate, rate);
    }

    /// The time from which the next segment may be sent.
    pub fn open_at(&self) -> Time {
        self.open_at
    }

    /// The current rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Records that a segment of `wire_bytes` is sent.
    pub fn note_sent(&mut self, now: Time, wire_bytes: u64) {
        let oldest = Time::from_ps(now.as_ps().saturating_sub(BURST.as_ps()));
        self.open_at = self.open_at.max(oldest) + self.rate.time_for(wire_bytes);
        self.sent_bytes[0] += wire_bytes;
    }

    /// Records that the peer has received a segment of `wire_bytes`.
    pub fn note_arrived(&mut self, wire_bytes: u64) {
        self.arrived_bytes[0] += wire_bytes;
    }

    /// Updates the pace if a part of a round trip has ended. `queueing` is the part of `round_trip` spent in queues.
    pub fn handle_time(&mut self, now: Time, round_trip: Option<Dur>, queueing: Dur) {
        let Some(round_trip) = round_trip.filter(|_| self.config.follows && now >= self.part_ends) else { return };
        let part = Dur::from_ps((round_trip.as_ps() / PARTS as u64).max(1));
        let before = &self.sent_bytes[PARTS..2 * PARTS];
        let sent_before: u64 = before.iter().sum();
        // In the first two round trips, some of these parts do not exist yet.
        let parts_before = before.iter().filter(|&&bytes| bytes > 0).count() as u64;
        let arrived: u64 = self.arrived_bytes.iter().sum();
        if self.parts_to_wait > 0 {
            self.parts_to_wait -= 1;
        // Packets of class 0 wait: halve the pace, and give the queue a round trip to drain.
        } else if self.config.yields && queueing > MAX_QUEUEING {
            self.rate = self.rate.scaled(0.5).max(MIN_YIELDING_RATE);
            self.parts_to_wait = PARTS;
        } else if sent_before >= MIN_SAMPLE_BYTES && (arrived + TOLERANCE_BYTES) * 10 < sent_before * 9 {
            // The last part may have been longer than planned, because nothing woke this host.
            let since = (now - self.part_ends) + part * parts_before;
            self.rate = Rate::of(arrived, since).max(MIN_RATE).min(self.config.rate);
            // The new pace shows in the arrivals two round trips later.
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

    /// Sends for some quarters of a round trip over a path of rate `path`; returns the pace after each quarter, Mb/s.
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
    fn the_pace_falls_to_the_rate_of_arrival_and_stays_near() {
        let config = TailConfig { rate: Rate::from_gbps(1), follows: true, ..TailConfig::default() };
        let rates = rates(config, Rate::from_mbps(100), 40);
        assert_eq!(rates[..5], [1000; 5], "nothing is known in the first round trip");
        assert!(rates[6..].iter().all(|rate| (90..=170).contains(rate)), "{rates:?}");
    }

    #[test]
    fn the_pace_never_exceeds_its_maximum_and_keeps_it_without_losses() {
        let config = TailConfig { rate: Rate::from_mbps(50), follows: true, ..TailConfig::default() };
        assert!(rates(config, Rate::from_gbps(10), 10).iter().all(|&rate| rate == 50));
        let kept = TailConfig { rate: Rate::from_mbps(50), follows: false, ..TailConfig::default() };
        assert!(rates(kept, Rate::from_mbps(5), 10).iter().all(|&rate| rate == 50));
    }

    #[test]
    fn a_slow_pace_rises_again_without_losses() {
        let mut pace = TailPace::new(TailConfig { rate: Rate::from_mbps(100), follows: true, ..TailConfig::default() });
        pace.rate = MIN_RATE;
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

    /// One packet of each round trip is lost.
    #[test]
    fn a_slow_pace_rises_although_single_packets_are_lost() {
        let mut pace = TailPace::new(TailConfig { rate: Rate::from_mbps(100), follows: true, ..TailConfig::default() });
        pace.rate = Rate::from_mbps(2);
        let quarter = Dur::from_ps(ROUND.as_ps() / 4);
        let mut sent = vec![];
        for at in 0..100 {
            let (begins, ends) = (Time::ZERO + quarter * at, Time::ZERO + quarter * (at + 1));
            pace.handle_time(begins, Some(ROUND), Dur::ZERO);
            let mut bytes: u64 = 0;
            while pace.open_at() < ends {
                pace.note_sent(pace.open_at().max(begins), 1450);
                bytes += 1450;
            }
            sent.push(bytes.saturating_sub(if at % 4 == 0 { 1450 } else { 0 }));
            pace.note_arrived(if at < 4 { 0 } else { sent[at as usize - 4] });
        }
        assert!(pace.rate() > Rate::from_mbps(50), "{}", pace.rate());
    }

    #[test]
    fn the_burst_after_a_pause_is_at_most_a_millisecond() {
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
