//! The pacing state, with late timers.
//!
//! A simulated software timer delays each scheduled departure by a random time with exponential distribution. Segments
//! that are due by then are sent back to back. Pacing continues from the exact times, so the rate is kept.
//! Retransmission timers are never late.
//!
//! A real timer polls the sender later than requested. Pacing from the time of the poll would lower the rate, and by a
//! large factor if a segment takes less time than the delay. With
//! [`pacing_catch_up`](crate::TransportConfig::pacing_catch_up), pacing continues from the scheduled time, but at most
//! that duration in the past. An idle period therefore allows a burst of at most that duration.

use super::Sender;
use sparelane_core::{Dur, Stream, Time};

/// The pacing state of a connection.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Pacing {
    /// The earliest departure time of the next segment.
    pub(super) paced_until: Time,
    /// The scheduled departure time of the last paced segment.
    pub(super) last_due: Time,
    /// Class-0 segments may have to wait for their departure times.
    pub(super) may_delay_head: bool,
    /// Late timers, if they are simulated or made up for.
    pub(super) late: Option<Box<LateTimers>>,
}

impl Pacing {
    /// Creates the state of a new connection that makes up for delays of at most `catch_up`.
    pub(super) fn of(catch_up: Dur) -> Pacing {
        Pacing { paced_until: Time::ZERO, last_due: Time::ZERO, may_delay_head: false, late: LateTimers::of(catch_up) }
    }
}

/// The settings and the state of late timers.
#[derive(Debug)]
pub(super) struct LateTimers {
    /// The simulated timer, if it is not exact.
    timer: Option<SimulatedTimer>,
    /// The largest delay that pacing makes up for.
    catch_up: Dur,
}

impl LateTimers {
    /// Creates the state with an exact timer, or returns `None` if `catch_up` is zero.
    fn of(catch_up: Dur) -> Option<Box<LateTimers>> {
        (!catch_up.is_zero()).then(|| Box::new(LateTimers { timer: None, catch_up }))
    }

    /// Sets the timer to `at` and returns the time at which it fires.
    pub(super) fn set(&mut self, at: Time) -> Time {
        self.timer.as_mut().map_or(at, |timer| timer.set(at))
    }
}

/// The simulated timer of one sender.
#[derive(Debug)]
struct SimulatedTimer {
    mean: Dur,
    rng: Stream,
    /// The time to which it was last set, and the time at which it fires.
    due: Time,
    fires: Time,
}

impl SimulatedTimer {
    /// Sets the timer to `at` and returns the time at which it fires. Setting it to the same time again draws no new
    /// delay.
    fn set(&mut self, at: Time) -> Time {
        if at != self.due {
            let lateness = self.mean.scaled(-libm::log(self.rng.unit_above_zero()));
            (self.due, self.fires) = (at, at + lateness);
        }
        self.fires
    }

    /// Returns the time at which the timer fires, if it is overdue at `now`.
    fn late_until(&self, now: Time) -> Option<Time> {
        (self.due <= now && now < self.fires).then_some(self.fires)
    }
}

impl Sender {
    /// Delays the timers of scheduled departures by random times with exponential distribution and the given mean.
    pub fn set_timer_error(&mut self, mean: Dur, rng: Stream) {
        let timer = Some(SimulatedTimer { mean, rng, due: Time::ZERO, fires: Time::ZERO });
        self.pacing.late = Some(Box::new(LateTimers { timer, catch_up: self.config.pacing_catch_up }));
        self.refresh();
    }

    /// Returns the time until which class 0 waits for an overdue timer, if it does.
    pub(super) fn late_until(&self, now: Time) -> Option<Time> {
        self.pacing.late.as_ref()?.timer.as_ref()?.late_until(now)
    }

    /// Returns the time from which pacing continues, for a segment that departs now.
    #[inline(always)]
    pub(super) fn paced_from(&self, now: Time) -> Time {
        match &self.pacing.late {
            None => self.pacing.paced_until.max(now),
            Some(late) => self.paced_from_earlier(now, late),
        }
    }

    /// Moves the departure of the next segment to the current pace, counted from the departure of the last one.
    /// Segments count as full ones.
    #[inline(never)]
    pub(super) fn repace(&mut self) {
        if let Some(rate) = self.limits.pacing
            && self.pacing.last_due > Time::ZERO
        {
            self.pacing.paced_until = self.pacing.last_due + rate.time_for(self.config.packet_bytes());
        }
    }

    #[inline(never)]
    fn paced_from_earlier(&self, now: Time, late: &LateTimers) -> Time {
        // A simulated delay does not lower the rate: continue from the exact time.
        if late.timer.as_ref().is_some_and(|timer| timer.fires == now) {
            return self.pacing.paced_until;
        }
        let earliest = Time::ZERO + now.saturating_since(Time::ZERO + late.catch_up);
        self.pacing.paced_until.max(earliest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TransportConfig;
    use crate::segment::Transmit;
    use sparelane_cc::Blueprint;
    use sparelane_cc::{Value, Values, build};
    use sparelane_core::{Domain, Rate};

    /// Returns a sender of two segments, paced 10 s apart, on an open connection, and its first timer deadline.
    fn sender(mean: Option<Dur>) -> (Sender, Time) {
        let mut values = Values::default();
        values.set("pace", Value::Rate(Some(Rate::from_bps(1_200))));
        let cc = build("constant", &values, &Blueprint::of_any(1460, &Values::default())).expect("a controller");
        let mut sender = Sender::new(TransportConfig::default(), cc, Stream::new(1, Domain::Test, 0));
        if let Some(mean) = mean {
            sender.set_timer_error(mean, Stream::new(1, Domain::Test, 1));
        }
        sender.write(2 * 1460);
        assert_eq!(sender.poll_transmit(Time::ZERO, true), Some(Transmit::Syn));
        let first_timer = sender.next_timer();
        sender.handle_syn_ack(Time::ZERO, None);
        (sender, first_timer)
    }

    #[test]
    fn retransmission_timers_are_never_late() {
        let timers = [None, Some(Dur::from_secs(100))].map(|mean| {
            let (mut sender, first_timer) = sender(mean);
            assert!(
                sender.poll_transmit(Time::ZERO, true).is_some() && sender.poll_transmit(Time::ZERO, true).is_none()
            );
            (first_timer, sender.next_timer())
        });
        assert_eq!(timers[0], timers[1]);
        assert!(timers[0].1 < Time::ZERO + Dur::from_secs(2), "{timers:?}");
    }

    /// Polls before the timer fires do not release the segment.
    #[test]
    fn a_segment_waits_for_its_late_timer() {
        let (mut sender, _) = sender(Some(Dur::from_secs(1)));
        let due = Time::ZERO + Dur::from_secs(10);
        assert!(sender.poll_transmit(Time::ZERO, true).is_some() && sender.poll_transmit(Time::ZERO, true).is_none());
        let fires = sender.timers.pace_at;
        assert!(fires > due, "{fires}");
        for at in [Time::ZERO + Dur::from_secs(5), due, Time::from_ps(fires.as_ps() - 1)] {
            assert_eq!((sender.poll_transmit(at, true), sender.timers.pace_at), (None, fires));
        }
        assert!(matches!(sender.poll_transmit(fires, true), Some(Transmit::Data(segment)) if segment.seq == 1));
    }

    const RATE: Rate = Rate::from_gbps(1);

    /// Returns a sender with unlimited data, paced at 1 Gb/s, that makes up for delays of at most `catch_up`.
    fn paced(catch_up: Dur) -> Sender {
        let mut values = Values::default();
        values.set("pace", Value::Rate(Some(RATE)));
        values.set("window", Value::Whole(1_000_000));
        let cc = build("constant", &values, &Blueprint::of_any(1460, &Values::default())).expect("a controller");
        let config = TransportConfig { pacing_catch_up: catch_up, ..TransportConfig::default() };
        let mut sender = Sender::new(config, cc, Stream::new(1, Domain::Test, 0));
        sender.write_without_end();
        assert_eq!(sender.poll_transmit(Time::ZERO, true), Some(Transmit::Syn));
        sender.handle_syn_ack(Time::ZERO, None);
        sender
    }

    fn sends(sender: &mut Sender, now: Time) -> u64 {
        std::iter::from_fn(|| sender.poll_transmit(now, true)).count() as u64
    }

    /// Returns the achieved fraction of the pacing rate over 20 ms, if all timers are late by 60 us.
    fn share_with_late_timers(catch_up: Dur) -> f64 {
        let mut sender = paced(catch_up);
        let (mut now, mut sent, length) = (Time::ZERO, 0, Dur::from_ms(20));
        while now < Time::ZERO + length {
            sent += sends(&mut sender, now);
            now = sender.next_timer() + Dur::from_us(60);
            sender.handle_timer(now);
        }
        (RATE.time_for(1500) * sent).as_secs_f64() / length.as_secs_f64()
    }

    #[test]
    fn pacing_makes_up_for_late_timers_within_its_bound() {
        let share = share_with_late_timers(Dur::from_us(100));
        assert!((0.97..=1.03).contains(&share), "{share}");
        let lost = share_with_late_timers(Dur::ZERO);
        assert!(lost < 0.2, "{lost}: late timers must matter if they are not made up for");
    }

    #[test]
    fn an_idle_period_allows_no_burst_beyond_the_bound() {
        let mut sender = paced(Dur::from_us(120));
        sends(&mut sender, Time::ZERO);
        // Ten segments of 12 us within the bound, and one that is due now.
        assert_eq!(sends(&mut sender, Time::ZERO + Dur::from_ms(100)), 11);
    }

    #[test]
    fn an_early_poll_sends_nothing() {
        let mut sender = paced(Dur::from_us(120));
        assert_eq!(sends(&mut sender, Time::ZERO), 1);
        assert_eq!(sends(&mut sender, Time::ZERO + Dur::from_us(11)), 0);
        assert_eq!(sends(&mut sender, Time::ZERO + Dur::from_us(12)), 1);
    }
}
