//! TCP RAPID: every packet is sent by its own gap and probes the available bandwidth; the rate follows what they find.
//!
//! Source: Yin, Kaur, Smith, "TCP Rapid: From Theory to Practice", INFOCOM 2017. Sections II (the protocol), IV-A (gaps),
//! IV-D (BASS), IV-E (probing apart from adapting).
//!
//! Needs receive times in acknowledgments ([`Needs::receive_time`]), news of single segments, and the send clock: acknowledgments
//! set no packet free; `window`, far above what the path holds, is all that bounds what is in flight. Packets of several
//! connections of one host go in the order in which they are due, since the events of their due times do: the paper's heap of
//! heads. Two that are due at the same time wait for each other in the interface, as its section IV-A3 expects.
//!
//! One file per part: `stream` (which gap), `probes` (the books), `bass` and `estimator` (what the gaps say), `adaptor` (which rate).
//!
//! # What the paper leaves open, and the choices taken
//! Start-up, losses and timeouts are calibrated to its Table III (random losses at 10 Gb/s) alone. Each choice is a parameter.
//! - **Start-up** (`startup_packets`, `startup_spread`): R_avg starts at 100 kb/s in the paper, where one p-stream of 64 packets of
//!   9000 bytes lasts 46 s. Here the first p-streams have as many packets as R_avg sends in a round trip, but one for each rate at
//!   least and N at most, with rates that each double the one before; R_avg starts with `startup_packets` in a round trip (and
//!   `initial_rate` at least), and becomes each estimate at once. Start-up is over when two p-streams in a row give less than their
//!   highest rates, or one gives the rate of the interface.
//! - **Loss** (`loss_cut`, `new_per_ack`): with the first loss of an episode R_avg is multiplied by `loss_cut`, and p-streams that
//!   were sent before tell nothing: they were of another rate, and would undo the cut within tau. While losses are repaired, next
//!   to nothing new is sent: Table III costs a flow at full rate some 30 to 40 ms for each loss, at 1e-5 as at 1e-4, which no cut
//!   of the rate gives. A packet for ten acknowledgments keeps acknowledgments coming: without them, a lost repair is a timeout.
//! - **Lost packets and retransmissions**: p-streams with either are skipped, as the authors' logs say.
//! - **Timeout**: start-up anew.
//! - **l** of the filter, with gamma p-streams per update, is the duration of the last one, as the words of section II have it: the
//!   rate rises in gamma tau. With the duration of them all it would overshoot, and fill shallow buffers.
//! - **A late sender**: gaps count from when the last packet was due, not from when it left, so that lateness does not add up;
//!   after more than `most_lateness`, or where the window or the application had nothing to send, a new p-stream begins.
//! - What is a spike and what is an excursion: in `bass` and `estimator`.

mod adaptor;
mod bass;
mod config;
mod estimator;
mod probes;
mod stream;

use crate::contract::{
    Ack, Congestion, CongestionControl, Cx, Limits, Lost, Needs, Offer, Permit, Phase, Sent, permit_by_window,
};
use crate::pace::HEADER_BYTES;
use crate::registry::Controller;
use adaptor::Adaptor;
use config::Config;
use probes::{Judged, Probes};
use sparelane_core::{Dur, Rate, Time};

pub use bass::{Bass, Pair};
pub use estimator::{Estimator, Excursion, Sample};
pub use stream::Shape;

/// What the catalogue says of it.
pub const CONTROLLER: Controller = Controller {
    name: "rapid",
    summary: "every packet probes the available bandwidth by its gap",
    source: "Yin, Kaur, Smith, INFOCOM 2017",
    params: config::PARAMS,
    make: |values, plan| {
        let config = Config::of(values, plan)?;
        Ok(Box::new(Rapid::new(config, plan.mss_bytes, plan.line_rate)))
    },
};

/// Whether the rate has been found yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    StartUp,
    Steady,
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Rapid {
    config: Config,
    wire_bytes: u64,
    line_rate: Rate,
    window_bytes: u64,
    shape: Shape,
    /// The form of the current p-stream, where start-up gives it another.
    startup_shape: Option<Shape>,
    stage: Stage,
    /// During start-up: the last p-stream gave less than its highest rate.
    has_seen_queue: bool,
    adaptor: Adaptor,
    estimator: Estimator,
    probes: Probes,
    /// When the next packet is due, and the gap before it.
    next_due: Time,
    next_gap: Dur,
    /// When the packet before it was due; `None` until the first is sent.
    last_due: Option<Time>,
    /// Which packet of its p-stream that is, and the p-stream's average rate.
    index: u32,
    average: Rate,
    /// Something other than the gap held the next packet back.
    is_interrupted: bool,
    /// Losses are being repaired.
    is_recovering: bool,
    /// New packets that acknowledgments have allowed meanwhile.
    credit: f64,
    rate_before_cut: f64,
    /// The last estimate, and how many p-streams gave one and did not.
    estimate: Rate,
    judged: u64,
    skipped: u64,
    samples: Vec<Sample>,
}

impl Rapid {
    fn new(config: Config, mss_bytes: u64, line_rate: Rate) -> Rapid {
        let shape = Shape::new(config.rates, config.packets_per_rate, config.spread);
        let adaptor = Adaptor::new(config.filter, config.initial_rate, line_rate);
        Rapid {
            wire_bytes: mss_bytes + HEADER_BYTES,
            line_rate,
            window_bytes: config.window * mss_bytes,
            estimator: Estimator::new(config.bass, config.excursion, shape.packets() as usize),
            average: adaptor.rate(),
            rate_before_cut: 0.0,
            shape,
            startup_shape: None,
            stage: Stage::StartUp,
            has_seen_queue: false,
            adaptor,
            probes: Probes::default(),
            next_due: Time::ZERO,
            next_gap: Dur::ZERO,
            last_due: None,
            index: 0,
            is_interrupted: false,
            is_recovering: false,
            credit: 0.0,
            estimate: Rate::default(),
            judged: 0,
            skipped: 0,
            samples: Vec::new(),
            config,
        }
    }

    /// Back to where a connection starts.
    fn start_up(&mut self, cx: &Cx<'_>) {
        (self.stage, self.has_seen_queue) = (Stage::StartUp, false);
        let round = cx.srtt.unwrap_or(Dur::from_secs(1)).max(Dur::from_us(1));
        let rate = Rate::of(self.config.startup_packets * self.wire_bytes, round);
        self.adaptor.set(rate.as_bps() as f64);
        self.probes.break_all();
        self.estimator.forget();
    }

    /// The packet that is sent next begins a p-stream.
    fn begin_stream(&mut self, cx: &Cx<'_>) {
        self.average = self.adaptor.rate();
        self.index = 0;
        self.startup_shape = match self.stage {
            Stage::Steady => None,
            Stage::StartUp => {
                let in_a_round = self.average.bytes_in(cx.srtt.unwrap_or_default()) / self.wire_bytes;
                let per_rate =
                    (in_a_round / u64::from(self.config.rates)).clamp(1, u64::from(self.config.packets_per_rate));
                Some(Shape::new(self.config.rates, per_rate as u32, self.config.startup_spread))
            }
        };
        self.probes.begin();
    }

    fn shape(&self) -> &Shape {
        self.startup_shape.as_ref().unwrap_or(&self.shape)
    }

    fn gap(&self) -> Dur {
        Shape::gap(self.wire_bytes, self.shape().rate(self.index, self.average))
    }

    /// All packets of a p-stream that lasted `duration` are with the receiver.
    fn learn(&mut self, duration: Dur) {
        let Some(estimate) = self.estimator.estimate(&self.samples) else { return };
        self.judged += 1;
        self.estimate = estimate;
        match self.stage {
            Stage::Steady => self.adaptor.take(estimate, duration),
            Stage::StartUp => {
                let highest = self.samples.iter().map(|sample| sample.rate).max();
                self.adaptor.set(estimate.as_bps() as f64);
                let sees_queue = highest != Some(estimate);
                if (sees_queue && self.has_seen_queue) || estimate >= self.line_rate {
                    self.stage = Stage::Steady;
                }
                self.has_seen_queue = sees_queue;
            }
        }
    }

    fn cut(&mut self) {
        self.rate_before_cut = self.adaptor.rate().as_bps() as f64;
        self.adaptor.set(self.rate_before_cut * self.config.loss_cut);
        self.stage = Stage::Steady;
        self.probes.break_all();
        self.estimator.forget();
    }
}

impl CongestionControl for Rapid {
    fn needs(&self) -> Needs {
        Needs { segments: true, receive_time: true, ..Needs::default() }
    }

    fn on_established(&mut self, _explicit_rate: Option<Rate>, cx: &mut Cx<'_>) {
        self.next_due = cx.now;
        self.is_interrupted = true;
        self.start_up(cx);
    }

    fn on_ack(&mut self, ack: &Ack, _cx: &mut Cx<'_>) {
        self.is_recovering = ack.phase == Phase::Recovery;
        if self.is_recovering {
            self.credit += self.config.new_per_ack;
        }
        let Some(received) = ack.received else { return };
        self.probes.arrived(received);
        while let Some(judged) = self.probes.judge(&mut self.samples) {
            match judged {
                Judged::Whole { duration } => self.learn(duration),
                Judged::Broken => {
                    self.skipped += 1;
                    self.estimator.forget();
                }
            }
        }
    }

    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>) {
        match event {
            Congestion::Marked { .. } => self.cut(),
            Congestion::Loss { .. } => {
                self.is_recovering = true;
                self.credit = 0.0;
                self.cut();
            }
            Congestion::Timeout { first: true, .. } => {
                self.is_recovering = false;
                self.start_up(cx);
            }
            Congestion::Timeout { first: false, .. } | Congestion::LostSyn => {}
            Congestion::Spurious => self.adaptor.set(self.rate_before_cut.max(self.adaptor.rate().as_bps() as f64)),
        }
    }

    fn on_lost(&mut self, lost: &Lost, _cx: &mut Cx<'_>) {
        self.probes.lost(lost.segment);
    }

    fn on_sent(&mut self, sent: &Sent, cx: &mut Cx<'_>) {
        let is_late = cx.now.saturating_since(self.next_due) > self.config.most_lateness;
        if self.is_interrupted || is_late {
            self.probes.break_current();
            (self.next_due, self.is_interrupted) = (cx.now, false);
            self.begin_stream(cx);
            self.next_gap = self.gap();
        }
        self.last_due = Some(self.next_due);
        if sent.is_retransmission {
            self.probes.break_current();
            self.next_gap = Shape::gap(self.wire_bytes, self.average);
            self.next_due += self.next_gap;
            return;
        }
        if self.is_recovering {
            self.credit -= 1.0;
        }
        let is_last = self.index + 1 == self.shape().packets();
        let rate = self.shape().rate(self.index, self.average);
        self.probes.sent(sent.segment, self.next_due, self.next_gap, rate, is_last);
        self.index += 1;
        if is_last {
            self.begin_stream(cx);
        }
        self.next_gap = self.gap();
        self.next_due += self.next_gap;
    }

    fn limits(&self) -> Limits {
        Limits { cwnd_bytes: self.window_bytes, pacing: None }
    }

    fn owns_send_clock(&self) -> bool {
        true
    }

    fn poll_send(&mut self, offer: &Offer, cx: &mut Cx<'_>) -> Permit {
        if offer.head_bytes.is_some() && cx.now < self.next_due && !self.is_interrupted {
            return Permit::NotBefore(self.next_due);
        }
        let waits_for_repairs = self.is_recovering && !offer.head_is_resent && self.credit < 1.0;
        let permit = if waits_for_repairs { Permit::Blocked } else { permit_by_window(self.limits(), offer) };
        self.is_interrupted |= permit == Permit::Blocked;
        permit
    }

    fn last_due(&self) -> Option<Time> {
        self.last_due
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("rate_bps", self.adaptor.rate().as_bps() as f64);
        put("estimate_bps", self.estimate.as_bps() as f64);
        put("streams_judged", self.judged as f64);
        put("streams_skipped", self.skipped as f64);
    }
}

#[cfg(test)]
mod tests;
