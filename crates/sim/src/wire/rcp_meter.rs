//! RCP, the Rate Control Protocol, at a router: each output queue computes one rate R for all its flows.
//!
//! Source: Dukkipati, Kobayashi, Zhang-Shen, McKeown, "Processor Sharing Flows in the Internet", IWQoS 2005. Constants
//! are those of its ns-2 code and of RC3's simulations (NSDI 2014 section 5.1.4). At the end of every interval T =
//! min(interval, d0):
//!
//! ```text
//! R <- R (1 + (T / d0) (alpha (gamma C - y) - beta q / d0) / (gamma C)),  floor <= R <= gamma C
//! ```
//!
//! Here C is the link's rate, y the input rate over the interval (all arrivals, including acknowledgments and packets
//! that the queue then drops), and d0 the running average of the round-trip times that packets carry. The standing
//! queue q is the smallest backlog that an arrival of the interval found, zero without arrivals. ns-2 takes the queue
//! at one instant instead; the minimum leaves out bursts that the queue works off by itself.
//!
//! The average moves once per interval, before R does, towards the mean of the interval's round-trip times, weighted by
//! packet sizes. An interval without samples uses the mean of the last one that had some.
//!
//! A packet is counted when it arrives, and gets R when its transmission begins, as in the ns-2 code. R on arrival would
//! reach the senders later by the very backlog that it is meant to reduce, and the queue would not settle.
//!
//! The meter is part of a link's ingress, works with queues of any discipline, and needs no events: arrivals and
//! departures end the intervals that have passed. They must be passed in the order of their times.

use crate::config::RcpSpec;
use crate::wire::packet::Packet;
use sparelane_core::{Dur, Rate, Time};

/// The rate computation of one output queue.
#[derive(Clone, Debug)]
pub(crate) struct RcpMeter {
    spec: RcpSpec,
    /// C, bits per second.
    link_bps: f64,
    /// gamma C, bits per second.
    capacity_bps: f64,
    /// R, bits per second.
    rate_bps: f64,
    /// d0, seconds.
    average_rtt_s: f64,
    /// T, the length of the current interval.
    interval: Dur,
    interval_end: Time,
    /// Bytes that arrived in this interval.
    arrived_bytes: u64,
    /// The smallest backlog that an arrival of this interval found, if there was one.
    standing_bytes: Option<u64>,
    /// Sum of round-trip time times size over the packets of this interval, byte seconds.
    rtt_byte_s: f64,
    /// Sum of the sizes of these packets.
    rtt_bytes: u64,
    /// The mean round-trip time of the last interval with samples; zero before the first.
    mean_rtt_s: f64,
}

impl RcpMeter {
    pub(crate) fn new(spec: RcpSpec, link: Rate) -> RcpMeter {
        let link_bps = link.as_bps() as f64;
        let interval = spec.interval.min(spec.initial_rtt);
        RcpMeter {
            spec,
            link_bps,
            capacity_bps: spec.gamma * link_bps,
            rate_bps: bounded(spec.initial_rate * link_bps, &spec, spec.gamma * link_bps),
            average_rtt_s: spec.initial_rtt.as_secs_f64(),
            interval,
            interval_end: Time::ZERO + interval,
            arrived_bytes: 0,
            standing_bytes: None,
            rtt_byte_s: 0.0,
            rtt_bytes: 0,
            mean_rtt_s: 0.0,
        }
    }

    /// Counts a packet that arrives at the queue, in which `waiting_bytes` wait.
    pub(crate) fn handle_arrival(&mut self, now: Time, packet: &Packet, waiting_bytes: u64) {
        self.catch_up(now);
        let bytes = packet.wire_bytes();
        self.arrived_bytes += bytes;
        self.standing_bytes = Some(self.standing_bytes.map_or(waiting_bytes, |least| least.min(waiting_bytes)));
        if packet.requests_rate()
            && let Some(rtt) = packet.rtt_estimate()
        {
            self.rtt_byte_s += rtt.as_secs_f64() * bytes as f64;
            self.rtt_bytes += bytes;
        }
    }

    /// Lowers the rate that a packet requests to R. The transmission of the packet begins at `start`.
    pub(crate) fn handle_departure(&mut self, start: Time, packet: &mut Packet) {
        self.catch_up(start);
        if packet.requests_rate() {
            packet.lower_rate(self.rate());
        }
    }

    /// Changes the rate of the link at `now`. R stays, within its new bounds.
    pub(crate) fn handle_rate(&mut self, now: Time, link: Rate) {
        self.catch_up(now);
        self.link_bps = link.as_bps() as f64;
        self.capacity_bps = self.spec.gamma * self.link_bps;
        self.rate_bps = bounded(self.rate_bps, &self.spec, self.capacity_bps);
    }

    /// R at `now`, for time series. Does not change the meter.
    pub(crate) fn rate_at(&self, now: Time) -> Rate {
        let mut then = self.clone();
        then.catch_up(now);
        then.rate()
    }

    fn rate(&self) -> Rate {
        Rate::from_bps(self.rate_bps as u64)
    }

    /// Ends every interval that is over by `now`.
    fn catch_up(&mut self, now: Time) {
        while now >= self.interval_end {
            let before = (self.rate_bps, self.average_rtt_s);
            let idle = self.standing_bytes.is_none();
            self.end_interval();
            // Without arrivals, an interval that changed nothing shows that the following ones change nothing, either.
            if idle && before == (self.rate_bps, self.average_rtt_s) {
                self.skip_idle_intervals(now);
            }
        }
    }

    fn end_interval(&mut self) {
        self.average_in_the_interval();
        let arrived_bps = self.arrived_bytes as f64 * 8.0 / self.interval.as_secs_f64();
        let standing_bits = self.standing_bytes.unwrap_or(0) as f64 * 8.0;
        // The bracket of the formula above, divided by gamma C.
        let spare = (self.spec.alpha * (self.capacity_bps - arrived_bps)
            - self.spec.beta * standing_bits / self.average_rtt_s)
            / self.capacity_bps;
        let raised = self.rate_bps * (1.0 + self.interval_in_rtts() * spare);
        self.rate_bps = bounded(raised, &self.spec, self.capacity_bps);
        self.arrived_bytes = 0;
        self.standing_bytes = None;
        self.interval = self.spec.interval.min(Dur::from_secs_f64(self.average_rtt_s)).max(Dur::from_ps(1));
        self.interval_end += self.interval;
    }

    /// Skips the idle intervals until `now` at once.
    fn skip_idle_intervals(&mut self, now: Time) {
        if now >= self.interval_end {
            let intervals = (now - self.interval_end).as_ps() / self.interval.as_ps() + 1;
            self.interval_end += self.interval * intervals;
        }
    }

    /// T / d0, at most 1: the average may have fallen since the interval began.
    fn interval_in_rtts(&self) -> f64 {
        (self.interval.as_secs_f64() / self.average_rtt_s).min(1.0)
    }

    /// Updates the running average as ns-2 does. A mean above the average counts in full. A mean below it counts by the
    /// share of the traffic, because flows with short round trips send more packets per second.
    fn average_in_the_interval(&mut self) {
        if self.rtt_bytes > 0 {
            self.mean_rtt_s = self.rtt_byte_s / self.rtt_bytes as f64;
            (self.rtt_byte_s, self.rtt_bytes) = (0.0, 0);
        }
        let mut gain = self.interval_in_rtts();
        if self.mean_rtt_s < self.average_rtt_s {
            gain *= self.rate_bps / self.link_bps * (self.mean_rtt_s / self.average_rtt_s);
        }
        self.average_rtt_s += gain * (self.mean_rtt_s - self.average_rtt_s);
    }
}

/// Clamps `rate_bps` between the floor and gamma C.
fn bounded(rate_bps: f64, spec: &RcpSpec, capacity_bps: f64) -> f64 {
    rate_bps.max(spec.floor.as_bps() as f64).min(capacity_bps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::packet::{Fields, Flags, NO_BLOCKS};

    const LINK: Rate = Rate::from_mbps(100);

    /// Passes one packet of `bytes` that requests the highest rate, with a round-trip time of `rtt`, and that leaves at
    /// once. Returns the rate that it gets, kb/s.
    fn pass(meter: &mut RcpMeter, at: Dur, bytes: u16, rtt: Option<Dur>, waiting_bytes: u64) -> u32 {
        let (flow, seq, trigger, route, class) = (0, 0, 0, 0, 0);
        let fields =
            Fields { flow, seq, trigger, route, blocks: NO_BLOCKS, wire_bytes: bytes, flags: Flags::DATA, class };
        let mut packet = Packet::new(fields);
        packet.request_rate(Rate::from_bps(u64::MAX), rtt);
        meter.handle_arrival(Time::ZERO + at, &packet, waiting_bytes);
        meter.handle_departure(Time::ZERO + at, &mut packet);
        packet.trigger()
    }

    fn meter() -> RcpMeter {
        RcpMeter::new(RcpSpec::default(), LINK)
    }

    /// With T = 10 ms, d0 = 200 ms and 50 kB in the interval, y = 40 Mb/s: R grows by (0.05)(0.4)(0.6) = 1.2%; a
    /// standing queue of 100 kB takes (0.05)(0.4)(4 Mb/s / 100 Mb/s) = 0.08% of that.
    #[test]
    fn the_rate_follows_the_equation_by_hand() {
        for (waiting, kbps) in [(0, 5_060), (100_000, 5_056)] {
            let mut meter = meter();
            assert_eq!(pass(&mut meter, Dur::ZERO, 25_000, None, waiting), 5_000);
            assert_eq!(pass(&mut meter, Dur::from_ms(9), 25_000, None, waiting + 7), 5_000);
            assert_eq!(pass(&mut meter, Dur::from_ms(10), 40, None, 0), kbps);
        }
    }

    #[test]
    fn overload_brings_the_rate_down_to_the_floor_and_idleness_up_to_the_link() {
        let mut meter = meter();
        let mut at = Dur::ZERO;
        for _ in 0..20_000 {
            pass(&mut meter, at, 60_000, Some(Dur::from_ms(200)), 1_000_000);
            at += Dur::from_us(1_000);
        }
        assert_eq!(pass(&mut meter, at, 40, None, 0), 128);
        assert_eq!(pass(&mut meter, at + Dur::from_secs(1_000_000), 40, None, 0), 100_000);
    }

    #[test]
    fn gamma_keeps_a_share_of_the_link_free() {
        let mut meter = RcpMeter::new(RcpSpec { gamma: 0.9, ..RcpSpec::default() }, LINK);
        assert_eq!(pass(&mut meter, Dur::from_secs(1000), 40, None, 0), 90_000);
    }

    /// A mean above the average counts with T / d0 = 5 %; one below with (R / C)(mean / d0)(T / d0) = 5 % * 50 % * 5 %.
    #[test]
    fn long_round_trips_count_more_than_short_ones() {
        for (rtt_ms, average_s) in [(300, 0.205), (100, 0.2 - 0.05 * 0.5 * 0.05 * 0.1)] {
            let mut meter = meter();
            pass(&mut meter, Dur::ZERO, 1500, Some(Dur::from_ms(rtt_ms)), 0);
            assert_eq!(meter.average_rtt_s, 0.2);
            meter.catch_up(Time::ZERO + Dur::from_ms(10));
            assert!((meter.average_rtt_s - average_s).abs() < 1e-12, "{}", meter.average_rtt_s);
        }
    }

    /// 1500 B at 400 ms and 500 B at 200 ms have a mean of 350 ms; an interval without packets uses this mean again.
    #[test]
    fn the_mean_of_an_interval_weights_packets_by_their_bytes() {
        let mut meter = meter();
        pass(&mut meter, Dur::ZERO, 1500, Some(Dur::from_ms(400)), 0);
        pass(&mut meter, Dur::from_ms(1), 500, Some(Dur::from_ms(200)), 0);
        pass(&mut meter, Dur::from_ms(2), 9000, None, 0);
        meter.catch_up(Time::ZERO + Dur::from_ms(10));
        let once = 0.2 + 0.05 * 0.15;
        assert!((meter.average_rtt_s - once).abs() < 1e-12, "{}", meter.average_rtt_s);
        meter.catch_up(Time::ZERO + Dur::from_ms(20));
        let twice = once + 0.01 / once * (0.35 - once);
        assert!((meter.average_rtt_s - twice).abs() < 1e-12, "{}", meter.average_rtt_s);
    }

    /// Short round trips shorten the interval, and T never exceeds the average.
    #[test]
    fn the_interval_is_no_longer_than_the_average_round_trip() {
        let mut meter = meter();
        let mut at = Dur::ZERO;
        for _ in 0..800_000 {
            pass(&mut meter, at, 1_000, Some(Dur::from_us(500)), 0);
            at += Dur::from_us(100);
        }
        assert!((meter.average_rtt_s - 500e-6).abs() < 1e-6, "{}", meter.average_rtt_s);
        assert!(meter.interval.abs_diff(Dur::from_us(500)) < Dur::from_us(1), "{}", meter.interval);
    }

    /// Ending intervals one by one or all at once gives the same state.
    #[test]
    fn a_long_rest_is_as_many_short_ones() {
        let (mut once, mut often) = (meter(), meter());
        for ms in (0..300).step_by(10) {
            often.catch_up(Time::ZERO + Dur::from_ms(ms));
        }
        once.catch_up(Time::ZERO + Dur::from_ms(290));
        assert_eq!(once.rate_bps, often.rate_bps);
        assert!((once.rate_bps / (5e6 * 1.02f64.powi(29)) - 1.0).abs() < 1e-9, "{}", once.rate_bps);
        assert_eq!(once.interval_end, often.interval_end);
        assert_eq!(often.rate_at(Time::ZERO + Dur::from_secs(1_000_000)), LINK);
        assert!(often.rate_bps < 10e6);
    }
}
