//! Traces: the service that a link gives over time, measured elsewhere or generated.
//!
//! There are two kinds. A trace of opportunities lists instants, at each of which 1500 bytes can leave. This is the
//! format of Mahimahi (Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015). A series of
//! rates lists a rate for each step of time. Both repeat at their end.
//!
//! An opportunity is used by packets that arrived before it. A packet that is larger than the rest of an opportunity
//! takes the rest and continues at the next one; small packets share one. Bytes that no packet uses are lost.

use sparelane_core::{Dur, Rate, Time};
use std::sync::Arc;
use thiserror::Error;

/// Bytes that can leave at one opportunity.
pub const OPPORTUNITY_BYTES: u64 = 1500;

/// The longest trace.
pub const MAX_PERIOD: Dur = Dur::from_secs(86_400);

/// The least mean rate of a trace, bits per second. A packet must leave within the range of the clock.
pub const MIN_MEAN_BPS: u64 = 1_000;

/// Bits per second times picoseconds in one byte.
pub(crate) const BYTE: u128 = 8 * PS_PER_S;
const PS_PER_S: u128 = 1_000_000_000_000;

/// A trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    service: Service,
    /// The time after which the trace repeats, above zero.
    period: Dur,
    /// The bits that can leave in a period, times 10^12.
    capacity: u128,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Service {
    /// The times of opportunities within a period, in order.
    Opportunities(Vec<Dur>),
    /// The start of each step within a period, the first at zero, and its rate.
    Rates(Vec<(Dur, Rate)>),
}

/// A reason why a list is no trace.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum TraceError {
    /// The list has no entry.
    #[error("the trace is empty")]
    Empty,
    /// A time is too early.
    #[error("times go back; allowed: times in order")]
    Order {
        /// The position of the entry, from 0.
        entry: usize,
    },
    /// The trace is too long or too short.
    #[error("the trace lasts {0}; allowed: more than 0 s, up to 24 hours")]
    Period(Dur),
    /// The mean rate is too low.
    #[error("the mean rate is {0} bit/s; allowed: at least {MIN_MEAN_BPS} bit/s")]
    Rate(u64),
}

impl Trace {
    /// A trace of opportunities, at times that do not decrease. It repeats after the last time.
    ///
    /// # Errors
    /// The list is empty or not in order, ends at zero, or lasts too long.
    pub fn opportunities(times: Vec<Dur>) -> Result<Trace, TraceError> {
        if let Some(place) = times.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(TraceError::Order { entry: place + 1 });
        }
        let period = *times.last().ok_or(TraceError::Empty)?;
        Trace { service: Service::Opportunities(times), period, capacity: 0 }.checked()
    }

    /// A series of rates, each from its time on. The first time must be zero, and times must increase. The trace repeats
    /// after `period`.
    ///
    /// # Errors
    /// The list is empty or not in order, its mean rate is too low, or it lasts too long.
    pub fn rates(steps: Vec<(Dur, Rate)>, period: Dur) -> Result<Trace, TraceError> {
        if steps.first().ok_or(TraceError::Empty)?.0 != Dur::ZERO {
            return Err(TraceError::Order { entry: 0 });
        }
        if let Some(place) = steps.windows(2).position(|pair| pair[1].0 <= pair[0].0) {
            return Err(TraceError::Order { entry: place + 1 });
        }
        if steps.last().is_some_and(|last| last.0 >= period) {
            return Err(TraceError::Period(period));
        }
        Trace { service: Service::Rates(steps), period, capacity: 0 }.checked()
    }

    fn checked(mut self) -> Result<Trace, TraceError> {
        if self.period.is_zero() || self.period > MAX_PERIOD {
            return Err(TraceError::Period(self.period));
        }
        self.capacity = self.capacity_of_period();
        let mean = self.mean().as_bps();
        if mean < MIN_MEAN_BPS { Err(TraceError::Rate(mean)) } else { Ok(self) }
    }

    /// The time after which the trace repeats.
    pub fn period(&self) -> Dur {
        self.period
    }

    /// The mean rate.
    pub fn mean(&self) -> Rate {
        let bps = self.capacity / u128::from(self.period.as_ps());
        Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
    }

    /// The highest rate; `None` if packets can leave at once.
    pub fn peak(&self) -> Option<Rate> {
        match &self.service {
            Service::Opportunities(_) => None,
            Service::Rates(steps) => steps.iter().map(|step| step.1).max(),
        }
    }

    /// The highest mean rate over a second within a period, or over the period if that is shorter.
    pub fn busiest_second(&self) -> Rate {
        let Service::Opportunities(times) = &self.service else { return self.peak().unwrap_or_default() };
        let (mut first, mut most) = (0, 0);
        for (place, &at) in times.iter().enumerate() {
            while at >= times[first] + Dur::from_secs(1) {
                first += 1;
            }
            most = most.max(place + 1 - first);
        }
        Rate::from_bps(most as u64 * OPPORTUNITY_BYTES * 8).max(self.mean())
    }

    /// The bits that can leave by `now`, times 10^12.
    pub(crate) fn capacity(&self, now: Time) -> u128 {
        let (passes, within) = self.position(now);
        match &self.service {
            Service::Opportunities(_) => u128::from(self.first_after(now)) * u128::from(OPPORTUNITY_BYTES) * BYTE,
            Service::Rates(_) => u128::from(passes) * self.capacity + self.capacity_within(within),
        }
    }

    fn capacity_of_period(&self) -> u128 {
        match &self.service {
            Service::Opportunities(times) => times.len() as u128 * u128::from(OPPORTUNITY_BYTES) * BYTE,
            Service::Rates(_) => self.capacity_within(self.period),
        }
    }

    /// The capacity of a series of rates from the start of a period to `end`.
    fn capacity_within(&self, end: Dur) -> u128 {
        let Service::Rates(steps) = &self.service else { return 0 };
        let begun = steps.iter().enumerate().take_while(|(_, step)| step.0 < end);
        begun.map(|(place, step)| product(step.1, self.end_of(steps, place).min(end).saturating_sub(step.0))).sum()
    }

    /// The end of a step within its period.
    fn end_of(&self, steps: &[(Dur, Rate)], place: usize) -> Dur {
        steps.get(place + 1).map_or(self.period, |next| next.0)
    }

    /// Complete periods by `now`, and the time since the last one ended.
    fn position(&self, now: Time) -> (u64, Dur) {
        let (now, period) = (now.as_ps(), self.period.as_ps());
        (now / period, Dur::from_ps(now % period))
    }

    /// The first opportunity after `start`, if `place` is not later: the start of its period, and its place there.
    fn pass_opportunities(&self, times: &[Dur], place: (Time, usize), start: Time) -> (Time, usize) {
        let (mut period_start, mut entry) = place;
        for _ in 0..NEAR {
            if period_start + times[entry] > start {
                return (period_start, entry);
            }
            entry += 1;
            if entry == times.len() {
                (period_start, entry) = (period_start + self.period, 0);
            }
        }
        if period_start + times[entry] > start {
            return (period_start, entry);
        }
        let (passes, within) = self.position(start);
        let period_start = Time::ZERO + self.period * passes;
        match times.partition_point(|&at| at <= within) {
            entry if entry < times.len() => (period_start, entry),
            _ => (period_start + self.period, 0),
        }
    }

    /// The number of the first opportunity after `now`, counted over all periods.
    fn first_after(&self, now: Time) -> u64 {
        let Service::Opportunities(times) = &self.service else { return 0 };
        let (passes, within) = self.position(now);
        passes * times.len() as u64 + times.partition_point(|&at| at <= within) as u64
    }
}

/// A rate times a time: bits times 10^12.
fn product(rate: Rate, span: Dur) -> u128 {
    u128::from(rate.as_bps()) * u128::from(span.as_ps())
}

/// The transmitter of a link that follows a trace.
#[derive(Clone, Debug)]
pub(crate) struct Follower {
    trace: Arc<Trace>,
    /// The next opportunity: the start of its period, and its place there. Transmissions begin in order of time, so the
    /// search for the next one starts here.
    next: (Time, usize),
    /// The step of a series of rates in which the last transmission ended.
    step: Step,
    /// Unused bytes of the last opportunity.
    left: u64,
    /// The last transmission ended with its opportunity, and not later because of a slow processor.
    is_in_step: bool,
}

/// The present step of a series of rates. Nearly all packets end in the step in which they begin.
#[derive(Clone, Copy, Debug)]
struct Step {
    begins: Time,
    ends: Time,
    rate: Rate,
    /// The size of the last packet, and the time that such a packet takes at the rate.
    bytes: u64,
    time: Dur,
}

/// Entries of a trace that are passed one by one before a search of the whole trace is cheaper.
const NEAR: usize = 8;

impl Follower {
    pub(crate) fn new(trace: &Arc<Trace>) -> Follower {
        let step = Step { begins: Time::ZERO, ends: Time::ZERO, rate: Rate::from_bps(0), bytes: 0, time: Dur::ZERO };
        let trace = Arc::clone(trace);
        Follower { trace, next: (Time::ZERO, 0), step, left: 0, is_in_step: false }
    }

    /// The highest rate; `None` if packets can leave at once.
    pub(crate) fn peak(&self) -> Option<Rate> {
        self.trace.peak()
    }

    /// The end of a transmission of `bytes`, at most 65,535, that begins at `start` and lasts `min_time` or more.
    /// `has_waited` is true if the packet arrived before then, so that it can use the rest of an opportunity.
    #[inline]
    pub(crate) fn end(&mut self, start: Time, has_waited: bool, bytes: u64, min_time: Dur) -> Time {
        let end = match &self.trace.service {
            Service::Opportunities(_) => self.end_at_opportunity(start, has_waited && self.is_in_step, bytes),
            Service::Rates(_) => self.end_at_rate(start, bytes),
        };
        let least = start + min_time;
        self.is_in_step = end >= least;
        end.max(least)
    }

    fn end_at_opportunity(&mut self, start: Time, has_waited: bool, bytes: u64) -> Time {
        let Service::Opportunities(times) = &self.trace.service else { return start };
        let period = self.trace.period;
        let mut place = self.next;
        if !has_waited {
            // The opportunities since the last packet are lost.
            self.left = 0;
            place = self.trace.pass_opportunities(times, place, start);
        }
        let (mut end, mut missing) = (start, bytes);
        while missing > self.left {
            missing -= self.left;
            end = place.0 + times[place.1];
            self.left = OPPORTUNITY_BYTES;
            place.1 += 1;
            if place.1 == times.len() {
                place = (place.0 + period, 0);
            }
        }
        self.left -= missing;
        self.next = place;
        end
    }

    #[inline]
    fn end_at_rate(&mut self, start: Time, bytes: u64) -> Time {
        let step = &mut self.step;
        if step.begins <= start && start < step.ends {
            if step.bytes != bytes {
                step.set_size(bytes);
            }
            let end = start.saturating_add(step.time);
            if end <= step.ends {
                return end;
            }
        }
        self.end_over_steps(start, bytes)
    }

    /// The end of a transmission that need not begin and end in the present step.
    #[cold]
    #[inline(never)]
    fn end_over_steps(&mut self, start: Time, bytes: u64) -> Time {
        let (trace, period) = (&self.trace, self.trace.period);
        let Service::Rates(steps) = &trace.service else { return start };
        let (passes, within) = trace.position(start);
        let mut period_start = Time::ZERO + period * passes;
        let mut entry = steps.partition_point(|step| step.0 <= within) - 1;
        let mut missing = u128::from(bytes) * BYTE;
        // Whole periods are skipped at once.
        let whole = if missing > trace.capacity { (missing - 1) / trace.capacity } else { 0 };
        missing -= whole * trace.capacity;
        period_start += period * whole as u64;
        let mut from = within;
        loop {
            let (rate, end) = (steps[entry].1, trace.end_of(steps, entry));
            let capacity = product(rate, end.saturating_sub(from));
            if capacity >= missing {
                let last = missing.div_ceil(u128::from(rate.as_bps())) as u64;
                self.step = Step {
                    begins: period_start + steps[entry].0,
                    ends: period_start + end,
                    rate,
                    bytes: 0,
                    time: Dur::ZERO,
                };
                return period_start + from + Dur::from_ps(last);
            }
            missing -= capacity;
            (entry, from) = (entry + 1, end);
            if entry == steps.len() {
                (period_start, entry, from) = (period_start + period, 0, Dur::ZERO);
            }
        }
    }
}

impl Step {
    #[cold]
    #[inline(never)]
    fn set_size(&mut self, bytes: u64) {
        let time = (u128::from(bytes) * BYTE).div_ceil(u128::from(self.rate.as_bps()));
        (self.bytes, self.time) = (bytes, Dur::from_ps(time as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::{Domain, Stream};

    fn ms(ms: u64) -> Time {
        Time::ZERO + Dur::from_ms(ms)
    }

    fn opportunities(times: &[u64]) -> Follower {
        let times = times.iter().map(|&at| Dur::from_ms(at)).collect();
        Follower::new(&Arc::new(Trace::opportunities(times).expect("a trace")))
    }

    fn rates(steps: &[(u64, u64)], period: u64) -> Follower {
        let steps = steps.iter().map(|&(at, mbps)| (Dur::from_ms(at), Rate::from_mbps(mbps))).collect();
        Follower::new(&Arc::new(Trace::rates(steps, Dur::from_ms(period)).expect("a trace")))
    }

    #[test]
    fn a_packet_leaves_at_the_first_opportunity_after_it_and_the_trace_repeats() {
        let mut link = opportunities(&[1, 1, 2, 4, 4, 4, 7, 10]);
        let mut now = Time::ZERO;
        let ends = (0..10).map(|place| {
            now = link.end(now, place > 0, 1500, Dur::ZERO);
            (now - Time::ZERO).as_ps() / 1_000_000_000
        });
        assert_eq!(ends.collect::<Vec<_>>(), [1, 1, 2, 4, 4, 4, 7, 10, 11, 11]);
        // An opportunity at the instant of an arrival is missed, and those of idle times are lost.
        assert_eq!(link.end(ms(14), false, 40, Dur::ZERO), ms(17));
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_take_several() {
        let mut link = opportunities(&[1, 5, 9]);
        assert_eq!(link.end(Time::ZERO, false, 700, Dur::ZERO), ms(1));
        assert_eq!(link.end(ms(1), true, 800, Dur::ZERO), ms(1));
        assert_eq!(link.end(ms(1), true, 1, Dur::ZERO), ms(5));
        assert_eq!(link.end(ms(5), true, 1500, Dur::ZERO), ms(9));
        // The rest of the opportunity at 9 ms is one byte less than the packet.
        assert_eq!(link.end(ms(9), true, 1500, Dur::ZERO), ms(10));
        assert_eq!(link.end(ms(10), false, 3001, Dur::ZERO), ms(19));
    }

    #[test]
    fn a_slow_processor_misses_opportunities() {
        let mut link = opportunities(&[1, 2, 3, 4]);
        let slow = Dur::from_us(1_500);
        assert_eq!(link.end(Time::ZERO, false, 40, slow), Time::from_ns(1_500_000));
        assert_eq!(link.end(Time::from_ns(1_500_000), true, 40, slow), ms(3));
        assert_eq!(link.end(ms(3), true, 40, Dur::ZERO), ms(4));
    }

    #[test]
    fn a_packet_is_sent_at_the_rates_of_the_times_that_it_spans() {
        // 8 Mb/s send 1000 bytes per millisecond.
        let mut link = rates(&[(0, 8), (2, 0), (5, 16)], 6);
        assert_eq!(link.end(ms(0), false, 1000, Dur::ZERO), ms(1));
        assert_eq!(link.end(ms(1), true, 1000, Dur::ZERO), ms(2));
        assert_eq!(link.end(ms(2), true, 1000, Dur::ZERO), Time::from_ns(5_500_000));
        assert_eq!(link.end(ms(1), false, 4000, Dur::ZERO), ms(7));
        // A period has room for 4000 bytes.
        assert_eq!(link.end(ms(3), false, 41_000, Dur::ZERO), ms(3 + 60) + Dur::from_ps(2_500_000_000));
    }

    #[test]
    fn the_capacity_is_what_packets_without_gaps_carry() {
        for seed in 0..50 {
            let mut rng = Stream::new(seed, Domain::Test, 1);
            let mut follower = if seed % 2 == 0 {
                let mut times: Vec<_> = (0..=rng.below(30)).map(|_| rng.below(40)).collect();
                times.push(40);
                times.sort_unstable();
                opportunities(&times)
            } else {
                let steps: Vec<_> = (0..=rng.below(9)).map(|place| (place * 3, 1 + rng.below(20))).collect();
                rates(&steps, 3 * steps.len() as u64)
            };
            let (mut now, mut sent) = (Time::ZERO, 0);
            for place in 0..500 {
                let bytes = 1 + rng.below(4_000);
                now = follower.end(now, place > 0, bytes, Dur::ZERO);
                sent += bytes;
            }
            let capacity = (follower.trace.capacity(now) / BYTE) as u64;
            // Rounding up takes less than a byte per packet; several opportunities can be at one instant.
            assert!((sent..sent + 40 * OPPORTUNITY_BYTES).contains(&capacity), "seed {seed}: {sent} of {capacity}");
        }
    }

    #[test]
    fn lists_that_are_no_traces_are_refused() {
        let times = |times: &[u64]| Trace::opportunities(times.iter().map(|&at| Dur::from_ms(at)).collect());
        assert_eq!(times(&[]), Err(TraceError::Empty));
        assert_eq!(times(&[1, 3, 2]), Err(TraceError::Order { entry: 2 }));
        assert_eq!(times(&[0, 0]), Err(TraceError::Period(Dur::ZERO)));
        assert_eq!(times(&[86_400_001]), Err(TraceError::Period(Dur::from_ms(86_400_001))));
        assert_eq!(times(&[80_000_000]), Err(TraceError::Rate(0)));
        let rates = |steps: &[(u64, u64)], period| {
            let steps = steps.iter().map(|&(at, mbps)| (Dur::from_ms(at), Rate::from_mbps(mbps))).collect();
            Trace::rates(steps, Dur::from_ms(period))
        };
        assert_eq!(rates(&[], 1), Err(TraceError::Empty));
        assert_eq!(rates(&[(0, 1), (1, 1), (1, 2)], 5), Err(TraceError::Order { entry: 2 }));
        assert_eq!(rates(&[(1, 1)], 5), Err(TraceError::Order { entry: 0 }));
        assert_eq!(rates(&[(0, 1), (5, 1)], 5), Err(TraceError::Period(Dur::from_ms(5))));
        assert_eq!(rates(&[(0, 0), (1, 0)], 5), Err(TraceError::Rate(0)));
    }

    #[test]
    fn the_mean_and_the_busiest_second_count_opportunities() {
        let trace = Trace::opportunities([1, 1, 2, 4, 4, 4, 7, 10].map(Dur::from_ms).to_vec()).expect("a trace");
        assert_eq!(trace.mean(), Rate::from_bps(9_600_000));
        let burst = Trace::opportunities([1, 2, 3, 5_000].map(Dur::from_ms).to_vec()).expect("a trace");
        assert_eq!(burst.busiest_second(), Rate::from_bps(3 * 12_000));
        assert_eq!((burst.mean(), burst.peak()), (Rate::from_bps(9_600), None));
    }
}
