//! Timers that are late, and what a pace makes up for.
//!
//! A simulated software timer: a segment that waits for its time, by pace or by the controller's own clock, leaves late by a random
//! time. The lateness is exponential; what is due by then leaves back to back, and a pace goes on from where it would be had the
//! timer been exact, so that its rate holds. A retransmission timer is never late.
//!
//! A real timer is late by what nobody has drawn: the sender is asked later than it wanted. A pace that went on from
//! then would be slower than meant, by far where a segment takes less time than the lateness. With a
//! [bound](crate::TransportConfig::pacing_catch_up) it goes on from when it should have, though from no earlier than that long ago, so that
//! a silence earns a burst of that length at most.

use super::Sender;
use sparelane_core::{Dur, Stream, Time};

/// Where the pace of a connection stands.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Pace {
    /// It allows the next segment from here on.
    pub(super) paced_until: Time,
    /// When the last paced segment was due.
    pub(super) last_due: Time,
    /// The head may have to wait for its time.
    pub(super) holds_back: bool,
    /// What is to be known of late timers, where any are or are made up for.
    pub(super) late: Option<Box<Lateness>>,
}

impl Pace {
    /// That of a new connection, which makes up for so much lateness.
    pub(super) fn of(catch_up: Dur) -> Pace {
        Pace { paced_until: Time::ZERO, last_due: Time::ZERO, holds_back: false, late: Lateness::of(catch_up) }
    }
}

/// What is set about lateness.
#[derive(Debug)]
pub(super) struct Lateness {
    /// The simulated timer, where it is not exact.
    timer: Option<LateTimer>,
    /// How much lateness a pace makes up for.
    catch_up: Dur,
}

impl Lateness {
    /// That of an exact timer; `None` where the pace makes up for nothing.
    fn of(catch_up: Dur) -> Option<Box<Lateness>> {
        (!catch_up.is_zero()).then(|| Box::new(Lateness { timer: None, catch_up }))
    }

    /// When the timer fires, if set to `at`.
    pub(super) fn set(&mut self, at: Time) -> Time {
        self.timer.as_mut().map_or(at, |timer| timer.set(at))
    }
}

/// The simulated timer of one sender.
#[derive(Debug)]
struct LateTimer {
    mean: Dur,
    rng: Stream,
    /// What it was last set to, and when it fires.
    due: Time,
    fires: Time,
}

impl LateTimer {
    /// When it fires, if set to `at`. Setting it to the same instant again changes nothing.
    fn set(&mut self, at: Time) -> Time {
        if at != self.due {
            let lateness = self.mean.scaled(-libm::log(self.rng.unit_above_zero()));
            (self.due, self.fires) = (at, at + lateness);
        }
        self.fires
    }

    /// When it fires, if it is late now.
    fn late_until(&self, now: Time) -> Option<Time> {
        (self.due <= now && now < self.fires).then_some(self.fires)
    }
}

impl Sender {
    /// Makes timers of paced segments late by a random time of this mean.
    pub fn set_timer_error(&mut self, mean: Dur, rng: Stream) {
        let timer = Some(LateTimer { mean, rng, due: Time::ZERO, fires: Time::ZERO });
        self.pace.late = Some(Box::new(Lateness { timer, catch_up: self.config.pacing_catch_up }));
        self.refresh();
    }

    /// Until when a head that may go now has to wait for a late timer.
    pub(super) fn late_until(&self, now: Time) -> Option<Time> {
        self.pace.late.as_ref()?.timer.as_ref()?.late_until(now)
    }

    /// The instant from which the pace goes on, with a segment that leaves now.
    #[inline(always)]
    pub(super) fn paced_from(&self, now: Time) -> Time {
        match &self.pace.late {
            None => self.pace.paced_until.max(now),
            Some(late) => self.paced_from_earlier(now, late),
        }
    }

    #[inline(never)]
    fn paced_from_earlier(&self, now: Time, late: &Lateness) -> Time {
        // What a simulated timer kept does not count from now.
        if late.timer.as_ref().is_some_and(|timer| timer.fires == now) {
            return self.pace.paced_until;
        }
        let earliest = Time::ZERO + now.saturating_since(Time::ZERO + late.catch_up);
        self.pace.paced_until.max(earliest)
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

    /// A sender of two segments, 10 s apart, whose connection opens at once, and the time of its first timer.
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

    /// Whatever else wakes the sender meanwhile.
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

    /// The sender of a pace of 1 Gb/s, with an open connection and no end of data, which makes up for `catch_up`.
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

    /// The share of its pace that a sender reaches in 20 ms whose timers are all late by 60 us.
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
    fn a_pace_makes_up_for_late_timers_within_its_bound() {
        let share = share_with_late_timers(Dur::from_us(100));
        assert!((0.97..=1.03).contains(&share), "{share}");
        let lost = share_with_late_timers(Dur::ZERO);
        assert!(lost < 0.2, "{lost}: without a bound the test shows nothing");
    }

    #[test]
    fn a_silence_earns_no_more_than_the_bound() {
        let mut sender = paced(Dur::from_us(120));
        sends(&mut sender, Time::ZERO);
        // 120 us are ten segments of 12 us, and one is due now.
        assert_eq!(sends(&mut sender, Time::ZERO + Dur::from_ms(100)), 11);
    }

    #[test]
    fn what_is_early_earns_nothing() {
        let mut sender = paced(Dur::from_us(120));
        assert_eq!(sends(&mut sender, Time::ZERO), 1);
        assert_eq!(sends(&mut sender, Time::ZERO + Dur::from_us(11)), 0);
        assert_eq!(sends(&mut sender, Time::ZERO + Dur::from_us(12)), 1);
    }
}
