//! LEDBAT: background transfers that aim at a fixed delay in the queue and yield to other traffic.
//!
//! Source: RFC 6817.
//!
//! LEDBAT needs one-way delays, whose clocks may differ by a constant. The queueing delay is the minimum of the last
//! few samples minus the minimum of the last ten minutes. Each acknowledgment changes the window by GAIN (1 - queuing /
//! TARGET) acked MSS / cwnd bytes (section 2.4.2): by a segment per round trip if the queue is empty, not at all at the
//! target, and downwards beyond. If a lack of data, rather than the window, limits the flow, its window is at most
//! ALLOWED_INCREASE segments above the volume in flight. The minimum window is MIN_CWND. A loss halves the window.
//! There is no slow start, not even after a timeout.
//!
//! Differences: the RFC applies ALLOWED_INCREASE to every flow. If data is sent in chunks, up to a chunk of the window
//! stays empty until there is room for all of it, and the limit would always remove the last growth. The limit is meant
//! for flows that are short of data, and here it applies only to them. The congestion timeout is the transport's
//! retransmission timeout. The window holds while a loss is repaired. A latecomer counts the queue of other flows as
//! part of the path, as the RFC notes.

use crate::contract::{Ack, Congestion, Cx, Needs, Phase};
use crate::delay::{BASE_HISTORY, CURRENT_FILTER, Delays};
use crate::param::{DefaultValue, Kind, Param, UNBOUNDED, Unit};
use crate::registry::Controller;
use crate::window::{INITIAL_WINDOW, Window, WindowConfig, WindowLaw, Windowed};
use sparelane_core::Dur;

const TARGET: Param = Param {
    name: "target",
    kind: Kind::Span { min: Dur::from_us(1), max: Dur::from_ms(100) },
    default: DefaultValue::Span(Dur::from_ms(100)),
    meaning: "target delay in the queue",
    source: "RFC 6817 section 2.5: 100 ms or less",
};

const GAIN: Param = Param {
    name: "gain",
    kind: Kind::Number { min: 0.001, max: 1.0, unit: Unit::One },
    default: DefaultValue::Number(1.0),
    meaning: "growth in segments per round trip with an empty queue",
    source: "RFC 6817 section 2.5: 1 or less",
};

const ALLOWED_INCREASE: Param = Param {
    name: "allowed_increase",
    kind: Kind::Number { min: 0.001, max: 1000.0, unit: Unit::Segments },
    default: DefaultValue::Number(1.0),
    meaning: "maximum by which the window exceeds the volume in flight",
    source: "RFC 6817 section 2.5",
};

const MIN_WINDOW: Param = Param {
    name: "min_window",
    kind: Kind::Whole { min: 1, max: 1_000_000, unit: Unit::Segments },
    default: DefaultValue::Whole(2),
    meaning: "minimum window while acknowledgments arrive; after a loss it is at least 2 segments",
    source: "RFC 6817 section 2.5 (MIN_CWND)",
};

/// The initial window of background transfers.
pub(super) const SMALL_INITIAL_WINDOW: Param =
    Param { default: DefaultValue::Whole(2), source: "RFC 6817 section 2.5 (INIT_CWND)", ..INITIAL_WINDOW };

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "ledbat",
    summary: "for background transfers: aims at a fixed delay in the queue",
    source: "RFC 6817",
    params: &[SMALL_INITIAL_WINDOW, TARGET, GAIN, BASE_HISTORY, CURRENT_FILTER, ALLOWED_INCREASE, MIN_WINDOW],
    wire: None,
    make: &|values, plan| {
        let law = Ledbat {
            target: values.span(&TARGET),
            gain: values.number(&GAIN),
            allowed_increase: values.number(&ALLOWED_INCREASE),
            min_window: values.whole(&MIN_WINDOW),
            delays: Delays::of(values),
            off_target: 0.0,
            most_bytes: u64::MAX,
            fraction: 0.0,
        };
        let initial_window = values.whole(&SMALL_INITIAL_WINDOW);
        let config = WindowConfig {
            initial_window,
            initial_ssthresh: 2,
            slow_start_limit: 1,
            growth_limit: UNBOUNDED,
            ..WindowConfig::default()
        };
        Ok(Box::new(Windowed::new(law, config, plan.mss_bytes)))
    },
};

/// The LEDBAT window law.
#[derive(Clone, Debug)]
pub struct Ledbat {
    target: Dur,
    gain: f64,
    /// ALLOWED_INCREASE in segments.
    allowed_increase: f64,
    /// The minimum window in segments.
    min_window: u64,
    delays: Delays,
    /// Relative distance of the queueing delay from the target: 1 for an empty queue, negative beyond the target.
    off_target: f64,
    /// The largest window that the volume in flight allows.
    most_bytes: u64,
    /// The remainder of earlier changes, less than a byte.
    fraction: f64,
}

impl Ledbat {
    /// Section 2.4.2: applies the change of one acknowledgment.
    fn change(&mut self, window: &mut Window, ack: &Ack, mss_bytes: u64) {
        let cwnd = window.cwnd as f64;
        let share = ack.acked_bytes as f64 / cwnd;
        let changed = cwnd + self.gain * self.off_target * share * mss_bytes as f64 + self.fraction;
        window.cwnd = (changed.max(0.0) as u64).min(self.most_bytes).max(self.min_window * mss_bytes);
        self.fraction = changed.max(0.0).fract();
    }
}

impl WindowLaw for Ledbat {
    fn needs(&self) -> Needs {
        Needs { one_way_delay: true, ..Needs::default() }
    }

    fn observe(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        if let Some(delay) = ack.one_way_delay {
            self.delays.update(cx.now, delay);
        }
        // Without a delay sample the window keeps its size.
        let queuing = self.delays.queuing().unwrap_or(self.target);
        self.off_target = 1.0 - queuing.as_secs_f64() / self.target.as_secs_f64();
        if ack.phase == Phase::Recovery || ack.acked_bytes == 0 {
            return;
        }
        let increase = (self.allowed_increase * cx.mss_bytes as f64) as u64;
        let flight_bytes = ack.in_flight_bytes + ack.delivered_bytes;
        // ALLOWED_INCREASE is for flows that are short of data.
        self.most_bytes = if ack.cwnd_limited { u64::MAX } else { flight_bytes + increase };
        window.cwnd = window.cwnd.min(self.most_bytes).max(self.min_window * cx.mss_bytes);
        if self.off_target < 0.0 {
            self.change(window, ack, cx.mss_bytes);
        }
    }

    fn slow_start(&mut self, window: &mut Window, ack: &Ack, _counted_bytes: u64, cx: &mut Cx<'_>) {
        self.grow(window, ack, cx);
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        if self.off_target > 0.0 {
            self.change(window, ack, cx.mss_bytes);
        }
    }

    fn cut(&mut self, window: &Window, _flight_bytes: u64, _event: Congestion, cx: &mut Cx<'_>) -> u64 {
        (window.cwnd / 2).max(self.min_window * cx.mss_bytes).min(window.cwnd)
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("off_target", self.off_target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::CongestionControl;
    use crate::param::{Value, Values};
    use crate::registry::{Blueprint, build};
    use sparelane_core::{Domain, Stream, Time};

    const MSS: u64 = 1000;

    /// A connection with an initial window of 20 segments that has seen an empty path of 30 ms.
    struct Connection {
        controller: Box<dyn CongestionControl>,
        rng: Stream,
    }

    impl Connection {
        fn new() -> Connection {
            let mut values = Values::default();
            values.set("initial_window", Value::Whole(20));
            values.set("current_filter", Value::Whole(1));
            let controller =
                build("ledbat", &values, &Blueprint::of_any(MSS, &Values::default())).expect("a controller");
            Connection { controller, rng: Stream::new(1, Domain::Test, 0) }
        }

        fn cx<T>(&mut self, call: impl FnOnce(&mut dyn CongestionControl, &mut Cx<'_>) -> T) -> T {
            let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut self.rng };
            call(&mut *self.controller, &mut cx)
        }

        /// Acknowledges a window of 20 segments with this delay, leaving `in_flight_bytes` in flight. Returns the new
        /// window.
        fn round(&mut self, delay_ms: u64, in_flight_bytes: u64) -> u64 {
            (0..20).for_each(|_| self.acknowledge(delay_ms, in_flight_bytes, true));
            self.controller.limits().cwnd_bytes
        }

        fn acknowledge(&mut self, delay_ms: u64, in_flight_bytes: u64, cwnd_limited: bool) {
            let one_way_delay = Some(Dur::from_ms(delay_ms));
            let ack = Ack { one_way_delay, in_flight_bytes, cwnd_limited, ..Ack::in_sequence(MSS) };
            self.cx(|cc, cx| cc.on_ack(&ack, cx));
        }
    }

    #[test]
    fn a_round_trip_moves_the_window_by_a_segment_times_the_distance_from_the_target() {
        let after = |delay_ms| {
            let mut connection = Connection::new();
            let empty = connection.round(30, 100 * MSS);
            // 20 acknowledgments of a window that grows from 20 to 21 segments.
            assert!((20_970..=21_000).contains(&empty), "{empty}");
            connection.round(delay_ms, 100 * MSS) as i64 - empty as i64
        };
        // 50 ms in the queue is half of the target, 100 ms all of it, and 200 ms twice as much.
        assert!((450..=480).contains(&after(80)), "{}", after(80));
        assert_eq!(after(130), 0);
        assert!((-1000..=-950).contains(&after(230)), "{}", after(230));
    }

    #[test]
    fn the_window_of_a_flow_short_of_data_is_at_most_a_segment_above_the_volume_in_flight() {
        let mut connection = Connection::new();
        let mut after = |in_flight_bytes| {
            connection.acknowledge(30, in_flight_bytes, false);
            connection.controller.limits().cwnd_bytes
        };
        assert_eq!(after(6 * MSS), 8 * MSS, "6 in flight, the acknowledged one and one more");
        assert_eq!(after(0), 2 * MSS);
    }

    /// A chunk of six segments waits for room while 14 segments of a window of 20 are in flight.
    #[test]
    fn the_window_grows_while_a_chunk_waits_for_room() {
        let window = Connection::new().round(30, 14 * MSS);
        assert!((20_970..=21_000).contains(&window), "{window}");
    }

    #[test]
    fn a_loss_halves_the_window_and_no_slow_start_follows_a_timeout() {
        let mut connection = Connection::new();
        connection.cx(|cc, cx| cc.on_congestion(Congestion::Loss { flight_bytes: 0 }, cx));
        assert_eq!(connection.controller.limits().cwnd_bytes, 10 * MSS);
        connection.cx(|cc, cx| cc.on_congestion(Congestion::Timeout { flight_bytes: 0, first: true }, cx));
        assert_eq!(connection.controller.limits().cwnd_bytes, MSS);
        // Growth from the minimum window is a segment per round trip: 20 acknowledgments of 2 to 6 segments.
        let window = connection.round(30, 100 * MSS);
        assert!((6 * MSS..7 * MSS).contains(&window), "{window}");
    }
}
