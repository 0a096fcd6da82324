//! Software timers: a segment that waits for its time, by pace or by the controller's own clock, leaves late by a random time.
//!
//! The lateness is exponential; what is due by then leaves back to back, and a pace goes on from where it would be had the
//! timer been exact, so that its rate holds. A retransmission timer is never late.

use super::Sender;
use sparelane_core::{Dur, Stream, Time};

/// The timer of one sender.
#[derive(Debug)]
pub(super) struct LateTimer {
    mean: Dur,
    rng: Stream,
    /// What it was last set to, and when it fires.
    due: Time,
    fires: Time,
}

impl LateTimer {
    /// When it fires, if set to `at`. Setting it to the same instant again changes nothing.
    pub(super) fn set(&mut self, at: Time) -> Time {
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
        self.late = Some(Box::new(LateTimer { mean, rng, due: Time::ZERO, fires: Time::ZERO }));
        self.refresh();
    }

    /// Until when a head that may go now has to wait for a late timer.
    pub(super) fn late_until(&self, now: Time) -> Option<Time> {
        self.late.as_ref()?.late_until(now)
    }

    /// Whether a late timer fires now: what it kept does not count from now.
    pub(super) fn is_catching_up(&self, now: Time) -> bool {
        self.late.as_ref().is_some_and(|timer| timer.fires == now)
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
        let fires = sender.pace_at;
        assert!(fires > due, "{fires}");
        for at in [Time::ZERO + Dur::from_secs(5), due, Time::from_ps(fires.as_ps() - 1)] {
            assert_eq!((sender.poll_transmit(at, true), sender.pace_at), (None, fires));
        }
        assert!(matches!(sender.poll_transmit(fires, true), Some(Transmit::Data(segment)) if segment.seq == 1));
    }
}
