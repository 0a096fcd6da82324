//! TCP Veno: NewReno that tells from the packets in the queue whether a loss meant congestion.
//!
//! Source: Fu and Liew, "TCP Veno: TCP Enhancement for Transmission Over Wireless Access Networks", IEEE JSAC 21(2),
//! 2003; in the form of Linux 2.6.32 (tcp_veno.c).
//!
//! With RTT the least round-trip time since the last acknowledgment that could grow the window, and BaseRTT the least
//! ever, the flow has N = cwnd (1 - BaseRTT / RTT) packets in queues. Below beta = 3 the path is taken to be free: the
//! window grows by a segment a round trip, and a loss, which is then likely random, takes a fifth. From there on it
//! grows by a segment every other round trip, and a loss takes half. Slow start is NewReno's, as is all growth outside
//! the open state and before the third sample of the connection. A round trip here is as many acknowledgments as the
//! window has segments.
//!
//! Linux counts N in half packets, rounded up: with beta = 3, more than 2.5 packets are congestion. That is kept. As
//! RTT begins anew with every acknowledgment, one packet's delay decides. Where we differ: Linux 2.6.32 takes one
//! acknowledgment more for a round trip; it forgets BaseRTT when an idle connection sends again, and takes an
//! acknowledgment without a sample for much delay, which we pass over. Today's Linux counts segments where the path is
//! free, in place of acknowledgments. In the paper RTT is smoothed, and N is not rounded.
//!
//! ns-3 (TcpVeno) forgets the number of samples with every acknowledgment, so that it hardly ever reaches the third:
//! its window grows as NewReno's throughout. It rounds N up to whole packets (more than 2 are congestion), and cuts
//! what is in flight.

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
    meaning: "so many packets in the queue, or half a packet less, are congestion",
    source: "Linux; Fu and Liew 2003",
};

/// What the catalogue says of it.
pub const CONTROLLER: Controller = Controller {
    name: "veno",
    summary: "NewReno that takes a loss for random where no queue was",
    source: "Fu and Liew, IEEE JSAC 2003; Linux 2.6.32",
    params: &[INITIAL_WINDOW, INITIAL_SSTHRESH, SLOW_START_LIMIT, GROWTH_LIMIT, SLOW_START, WINDOW_VALIDATION, BETA],
    make: &|values, plan| {
        let law = Veno::new(values.whole(&BETA));
        Ok(windowed(law, values, plan))
    },
};

/// With so many samples, or fewer, nothing is known.
const TOO_FEW_SAMPLES: u32 = 2;

/// The law.
#[derive(Clone, Debug)]
pub struct Veno {
    /// Half packets.
    beta_halves: u64,
    base_rtt: Dur,
    /// Since the last acknowledgment that could grow the window.
    least_rtt: Dur,
    samples: u32,
    /// Packets in queues, rounded up to half packets.
    queued_halves: u64,
    is_open: bool,
    /// What came since the window last had a chance to grow, less what that took.
    acked_bytes: u64,
    /// Whether the next chance counts in spite of congestion.
    is_turn: bool,
}

impl Veno {
    /// A law with this threshold, in packets.
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

    /// Counts the packets in queues for a window of so many segments.
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

    /// A connection beyond slow start, on a path of 100 ms.
    struct Life {
        controller: Windowed<Veno>,
        rng: Stream,
    }

    impl Life {
        fn new(initial_window: u64) -> Life {
            let config = WindowConfig {
                initial_window,
                initial_ssthresh: 2,
                slow_start_limit: 1,
                growth_limit: UNBOUNDED,
                ..WindowConfig::default()
            };
            let mut life =
                Life { controller: Windowed::new(Veno::new(3), config, MSS), rng: Stream::new(1, Domain::Test, 0) };
            // Recovery ends what the samples before it told of the queue.
            (0..3).for_each(|_| life.hear(100, Phase::Recovery, false));
            life
        }

        fn cx(&mut self) -> (&mut Windowed<Veno>, Cx<'_>) {
            let cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut self.rng };
            (&mut self.controller, cx)
        }

        fn hear(&mut self, rtt_ms: u64, phase: Phase, cwnd_limited: bool) {
            let (controller, mut cx) = self.cx();
            let rtt = Some(Dur::from_ms(rtt_ms));
            controller.on_ack(&Ack { rtt, phase, cwnd_limited, ..Ack::in_sequence(MSS) }, &mut cx);
        }

        /// The window after so many acknowledgments, segments.
        fn after(&mut self, acks: u64, rtt_ms: u64, phase: Phase) -> u64 {
            (0..acks).for_each(|_| self.hear(rtt_ms, phase, true));
            self.segments()
        }

        fn suffer(&mut self, event: Congestion) -> u64 {
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
            let mut life = Life::new(segments);
            assert_eq!(life.after(segments - 1, 100, Phase::Open), segments);
            assert_eq!(life.after(1, 100, Phase::Open), segments + 1);
            assert_eq!(life.after(segments + 1, 100, Phase::Open), segments + 2);
        }
    }

    /// Of 50 segments at 106 ms, 2.83 are in queues: 3 in half packets.
    #[test]
    fn a_queue_gives_a_segment_every_other_round_trip() {
        let mut life = Life::new(50);
        assert_eq!(life.after(50, 106, Phase::Open), 51, "the first chance counts");
        assert_eq!(life.after(51, 106, Phase::Open), 51);
        assert_eq!(life.after(51, 106, Phase::Open), 52);
        assert_eq!(life.after(52, 106, Phase::Open), 52);
        assert_eq!(life.after(52, 100, Phase::Open), 53, "free again");
        assert_eq!(life.after(53, 106, Phase::Open), 54, "and the next of every other one");
    }

    /// Of 50 segments at 105 ms 2.38 are in queues, which are 2.5; at 106 ms 2.83, which are 3.
    #[test]
    fn a_loss_takes_a_fifth_up_to_two_and_a_half_packets_and_half_above() {
        for (rtt_ms, queued, left) in [(100, 0.0, 40), (105, 2.5, 40), (106, 3.0, 25), (200, 25.0, 25)] {
            let mut life = Life::new(50);
            life.after(1, rtt_ms, Phase::Open);
            assert_eq!((life.queued(), life.suffer(LOSS)), (queued, left), "at {rtt_ms} ms");
        }
    }

    #[test]
    fn only_the_round_trip_of_the_last_acknowledgment_counts() {
        let mut life = Life::new(50);
        life.after(1, 100, Phase::Open);
        life.after(1, 200, Phase::Open);
        assert_eq!(life.queued(), 25.0);
        // Where nothing can grow, the least of several counts.
        life.hear(125, Phase::Open, false);
        life.after(1, 200, Phase::Open);
        assert_eq!(life.queued(), 10.0);
    }

    #[test]
    fn outside_the_open_state_it_grows_as_newreno_and_learns_nothing() {
        let mut life = Life::new(50);
        life.after(1, 106, Phase::Open);
        assert_eq!(life.after(49, 300, Phase::Timeout), 51);
        assert_eq!(life.after(51, 300, Phase::Timeout), 52);
        assert_eq!(life.queued(), 3.0);
        assert_eq!(life.after(100, 300, Phase::Recovery), 52);
        assert_eq!(life.suffer(LOSS), 26);
    }
}
