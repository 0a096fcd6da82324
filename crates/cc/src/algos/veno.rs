//! TCP Veno: NewReno that uses the packets in the queue to judge whether a loss meant congestion.
//!
//! Source: Fu and Liew, "TCP Veno: TCP Enhancement for Transmission Over Wireless Access Networks", IEEE JSAC 21(2),
//! 2003; in the form of Linux 2.6.32 (tcp_veno.c).
//!
//! With RTT the minimum round-trip time since the last acknowledgment that could grow the window, and BaseRTT the
//! minimum of the connection, the flow has N = cwnd (1 - BaseRTT / RTT) packets in queues. Below beta = 3 the path
//! counts as free: the window grows by a segment per round trip, and a loss, which is then probably random, takes a
//! fifth. From beta on the window grows by a segment every other round trip, and a loss takes half. Slow start is
//! NewReno's, as is all growth outside the open state and before the third sample of the connection. A round trip here
//! is as many acknowledged segments as the window has.
//!
//! Linux counts N in half packets, rounded up: with beta = 3, more than 2.5 packets are congestion. This law does the
//! same. Because RTT restarts with every acknowledgment, a single packet's delay decides. Differences: Linux 2.6.32
//! takes one acknowledgment more for a round trip. It resets BaseRTT when an idle connection resumes sending, and
//! counts an acknowledgment without a sample as a large delay; this law ignores it. Current Linux counts segments
//! instead of acknowledgments when the path is free. In the paper RTT is smoothed, and N is not rounded.
//!
//! ns-3 (TcpVeno) resets the number of samples with every acknowledgment, so that it almost never reaches three: its
//! window always grows as NewReno's. It rounds N up to whole packets (more than 2 are congestion), and cuts the volume
//! in flight.

use crate::contract::{Ack, Congestion, Cx, Phase};
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use crate::window::{
    GROWTH_LIMIT, INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START, SLOW_START_LIMIT, WINDOW_VALIDATION, Window, WindowLaw,
    windowed,
};
use sparelane_core::Dur;

const BETA: Param = Param {
    name: "beta",
    kind: Kind::Whole { min: 0, max: 1_000_000, unit: Unit::Segments },
    default: DefaultValue::Whole(3),
    meaning: "number of packets in the queue, minus one half, above which the path is congested",
    source: "Linux; Fu and Liew 2003",
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "veno",
    summary: "NewReno that treats a loss without a queue as random",
    source: "Fu and Liew, IEEE JSAC 2003; Linux 2.6.32",
    params: &[INITIAL_WINDOW, INITIAL_SSTHRESH, SLOW_START_LIMIT, GROWTH_LIMIT, SLOW_START, WINDOW_VALIDATION, BETA],
    wire: None,
    make: &|values, plan| {
        let law = Veno::new(values.whole(&BETA));
        Ok(windowed(law, values, plan))
    },
};

/// The number of samples that must be exceeded for an estimate.
const TOO_FEW_SAMPLES: u32 = 2;

/// The Veno window law.
#[derive(Clone, Debug)]
pub struct Veno {
    /// The threshold in half packets.
    beta_halves: u64,
    base_rtt: Dur,
    /// The minimum round-trip time since the last acknowledgment that could grow the window.
    least_rtt: Dur,
    samples: u32,
    /// Packets in queues, rounded up to half packets.
    queued_halves: u64,
    is_open: bool,
    /// Bytes acknowledged and not yet spent on an opportunity to grow.
    acked_bytes: u64,
    /// True if the next opportunity counts in spite of congestion.
    is_turn: bool,
}

impl Veno {
    /// Creates a law with this threshold in packets.
    pub fn new(beta: u64) -> Veno {
        Veno {
            beta_halves: 2 * beta,
            base_rtt: Dur::MAX,
            least_rtt: Dur::MAX,
            samples: 0,
            queued_halves: 0,
            is_open: true,
            acked_bytes: 0,
            is_turn: true,
        }
    }

    fn is_congested(&self) -> bool {
        self.queued_halves >= self.beta_halves
    }

    /// Estimates the packets in queues for a window of `segments` segments.
    fn count_queued(&mut self, segments: u64) {
        let rtt = self.least_rtt.as_ps().max(1);
        let path_halves = u128::from(2 * segments) * u128::from(self.base_rtt.as_ps()) / u128::from(rtt);
        self.queued_halves = 2 * segments - path_halves as u64;
    }
}

impl WindowLaw for Veno {
    fn observe(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        if let Some(rtt) = ack.rtt {
            self.base_rtt = self.base_rtt.min(rtt);
            self.least_rtt = self.least_rtt.min(rtt);
            self.samples = self.samples.saturating_add(1);
        }
        self.is_open = ack.phase == Phase::Open;
        // Outside the open state round-trip times are not comparable: the estimate restarts.
        if !self.is_open {
            self.least_rtt = Dur::MAX;
        } else if ack.cwnd_limited && ack.acked_bytes > 0 {
            if self.samples > TOO_FEW_SAMPLES && self.least_rtt < Dur::MAX {
                self.count_queued(window.cwnd / cx.mss_bytes);
            }
            self.least_rtt = Dur::MAX;
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        self.acked_bytes += ack.acked_bytes;
        let price = window.cwnd / cx.mss_bytes * cx.mss_bytes;
        if self.acked_bytes < price {
            return;
        }
        self.acked_bytes -= price;
        let holds = self.is_open && self.samples > TOO_FEW_SAMPLES && self.is_congested();
        if !holds || self.is_turn {
            window.cwnd += cx.mss_bytes;
        }
        if holds {
            self.is_turn = !self.is_turn;
        }
    }

    fn cut(&mut self, window: &Window, _flight_bytes: u64, _event: Congestion, cx: &mut Cx<'_>) -> u64 {
        self.acked_bytes = 0;
        let segments = window.cwnd / cx.mss_bytes;
        cx.mss_bytes * if self.is_congested() { segments / 2 } else { segments * 4 / 5 }
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("queued_packets", self.queued_halves as f64 / 2.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::CongestionControl;
    use crate::param::UNBOUNDED;
    use crate::window::{WindowConfig, Windowed};
    use sparelane_core::{Domain, Stream, Time};

    const MSS: u64 = 8948;
    const LOSS: Congestion = Congestion::Loss { flight_bytes: 0 };

    /// A connection beyond slow start on a path of 100 ms.
    struct Connection {
        controller: Windowed<Veno>,
        rng: Stream,
    }

    impl Connection {
        fn new(initial_window: u64) -> Connection {
            let config = WindowConfig {
                initial_window,
                initial_ssthresh: 2,
                slow_start_limit: 1,
                growth_limit: UNBOUNDED,
                ..WindowConfig::default()
            };
            let mut connection = Connection {
                controller: Windowed::new(Veno::new(3), config, MSS),
                rng: Stream::new(1, Domain::Test, 0),
            };
            // Recovery resets the estimate of the queue from the samples before it.
            (0..3).for_each(|_| connection.acknowledge(100, Phase::Recovery, false));
            connection
        }

        fn cx(&mut self) -> (&mut Windowed<Veno>, Cx<'_>) {
            let cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut self.rng };
            (&mut self.controller, cx)
        }

        fn acknowledge(&mut self, rtt_ms: u64, phase: Phase, cwnd_limited: bool) {
            let (controller, mut cx) = self.cx();
            let rtt = Some(Dur::from_ms(rtt_ms));
            controller.on_ack(&Ack { rtt, phase, cwnd_limited, ..Ack::in_sequence(MSS) }, &mut cx);
        }

        /// Returns the window in segments after `acks` acknowledgments.
        fn after(&mut self, acks: u64, rtt_ms: u64, phase: Phase) -> u64 {
            (0..acks).for_each(|_| self.acknowledge(rtt_ms, phase, true));
            self.segments()
        }

        fn congest(&mut self, event: Congestion) -> u64 {
            let (controller, mut cx) = self.cx();
            controller.on_congestion(event, &mut cx);
            self.segments()
        }

        fn segments(&self) -> u64 {
            self.controller.limits().cwnd_bytes / MSS
        }

        fn queued(&self) -> f64 {
            let mut queued = 0.0;
            self.controller.trace(&mut |name, value| {
                if name == "queued_packets" {
                    queued = value;
                }
            });
            queued
        }
    }

    #[test]
    fn a_free_path_gives_a_segment_a_round_trip_to_a_window_of_any_size() {
        for segments in [10, 999, 30_000] {
            let mut connection = Connection::new(segments);
            assert_eq!(connection.after(segments - 1, 100, Phase::Open), segments);
            assert_eq!(connection.after(1, 100, Phase::Open), segments + 1);
            assert_eq!(connection.after(segments + 1, 100, Phase::Open), segments + 2);
        }
    }

    /// At 106 ms, 2.83 of 50 segments are in queues, or 3 if rounded to half packets.
    #[test]
    fn a_queue_gives_a_segment_every_other_round_trip() {
        let mut connection = Connection::new(50);
        assert_eq!(connection.after(50, 106, Phase::Open), 51, "the first opportunity to grow counts");
        assert_eq!(connection.after(51, 106, Phase::Open), 51);
        assert_eq!(connection.after(51, 106, Phase::Open), 52);
        assert_eq!(connection.after(52, 106, Phase::Open), 52);
        assert_eq!(connection.after(52, 100, Phase::Open), 53, "without a queue, growth is normal");
        assert_eq!(connection.after(53, 106, Phase::Open), 54, "every other opportunity counts again");
    }

    /// At 105 ms, 2.38 of 50 segments are in queues, which counts as 2.5; at 106 ms, 2.83, which counts as 3.
    #[test]
    fn a_loss_takes_a_fifth_up_to_two_and_a_half_packets_and_half_above() {
        for (rtt_ms, queued, left) in [(100, 0.0, 40), (105, 2.5, 40), (106, 3.0, 25), (200, 25.0, 25)] {
            let mut connection = Connection::new(50);
            connection.after(1, rtt_ms, Phase::Open);
            assert_eq!((connection.queued(), connection.congest(LOSS)), (queued, left), "at {rtt_ms} ms");
        }
    }

    #[test]
    fn only_the_round_trip_of_the_last_acknowledgment_counts() {
        let mut connection = Connection::new(50);
        connection.after(1, 100, Phase::Open);
        connection.after(1, 200, Phase::Open);
        assert_eq!(connection.queued(), 25.0);
        // While nothing can grow, the minimum of several counts.
        connection.acknowledge(125, Phase::Open, false);
        connection.after(1, 200, Phase::Open);
        assert_eq!(connection.queued(), 10.0);
    }

    #[test]
    fn outside_the_open_state_it_grows_as_newreno_without_an_estimate() {
        let mut connection = Connection::new(50);
        connection.after(1, 106, Phase::Open);
        assert_eq!(connection.after(49, 300, Phase::Timeout), 51);
        assert_eq!(connection.after(51, 300, Phase::Timeout), 52);
        assert_eq!(connection.queued(), 3.0);
        assert_eq!(connection.after(100, 300, Phase::Recovery), 52);
        assert_eq!(connection.congest(LOSS), 26);
    }
}
