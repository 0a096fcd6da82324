//! TCP RAPID: sends every packet after its own gap, as a probe of the available bandwidth, and adapts its rate to the
//! results.
//!
//! Source: Yin, Kaur, Smith, "TCP Rapid: From Theory to Practice", INFOCOM 2017: sections II (the protocol), IV-A
//! (window above, gaps below), IV-D (BASS) and IV-E (probing separated from adapting).
//!
//! There are two layers, as in the paper's Fig. 3. TCP has a fixed `window` far above the path's capacity, so it hands
//! segments down as soon as there is data. The [scheduler](crate::contract::CongestionControl::schedules_departures)
//! below it (E_S) queues them, groups them into p-streams and releases each after its gap. TCP sends retransmissions:
//! they queue behind the segments already handed down, and take a place and a gap in a p-stream like any packet. RAPID
//! needs receive times in acknowledgments ([`Needs::receive_time`]). Packets of several connections on one host leave
//! in order of their due times, like the paper's heap of heads. Two packets with the same due time queue in the
//! interface, as section IV-A3 expects.
//!
//! Each part has a file: `stream` (the gaps), `probes` (bookkeeping), `bass` and `estimator` (bandwidth from gaps),
//! `adaptor` (the rate).
//!
//! # Losses
//! RAPID does not react to losses itself. A loss costs throughput because TCP, with nothing acknowledged beyond the
//! first hole, fills its window and the receiver's buffer while the retransmission passes through the scheduler's
//! queue. The path then idles for a round trip, whatever the rate.
//!
//! A p-stream with a lost packet is skipped, as in the authors' logs. With `lossy_streams = "until-repaired"`, a
//! p-stream with up to `most_missing` lost packets is judged once all its acknowledgments have returned, as section II
//! says of any p-stream. Its estimate is its size over that time, so the reaction to losses follows from estimates
//! alone. The repair also counts as the duration l of the p-stream. It usually exceeds tau, so R_avg is updated at
//! once. With `most_missing` at 1 this reproduces the paper's throughput under random loss (Table III), whatever TCP's
//! recovery does. It ignores overflowing queues, which usually drop several packets of a p-stream (Table V). The
//! scenario `rapid-testbed` uses it; the value is a fit. Congestion marks cause no reaction either, because the paper
//! specifies none.
//!
//! # Points that the paper leaves open, and the choices made
//! - **Timeout**: R_avg restarts at `initial_rate`, the 100 kb/s of a new connection, because the path's bandwidth is
//!   no longer known.
//! - **Minimum of R_avg**: `min_rate`. The paper states none, but a rate of 0 would send no more probes.
//! - **l** of the filter, if gamma p-streams make an update, is the duration of the last one, "the just-acked
//!   p-stream" of section II. The rate then rises in gamma tau. With the duration of all of them it would rise in tau,
//!   and would lose 0.5 % next to constant-rate cross traffic, for which the paper's Table V has 0.000 %. An update is
//!   due after gamma p-streams, or as soon as they have lasted tau. So R_avg rises from 100 kb/s after one p-stream
//!   instead of three.
//! - **Gaps follow R_avg** packet by packet, because both layers share it (section IV-A2). So a p-stream at 100 kb/s
//!   does not continue for 46 s after the previous one has found more bandwidth.
//! - **The gain** is l / tau as printed, not capped at 1. 64 packets at 100 kb/s last about 46 s. With a gain of 1,
//!   R_avg would rise by a quarter per p-stream, for ten minutes. As printed, a p-stream raises R_avg by N P / tau
//!   times the share by which its highest rate exceeds its average: 16 packets per tau, whatever R_avg is.
//! - **Late senders**: gaps count from the previous packet's due time, not from its departure, so lateness does not
//!   accumulate. After more than `most_lateness`, for example because TCP had no data, a new p-stream starts and the
//!   interrupted one is discarded.
//! - **Spikes and excursions** are defined in `bass` and `estimator`.

mod adaptor;
mod bass;
mod config;
mod estimator;
mod probes;
mod stream;

use crate::contract::{Ack, Congestion, CongestionControl, Cx, Departure, Limits, Needs};
use crate::pace::PacketSize;
use crate::registry::Controller;
use crate::wire::WireDefaults;
use adaptor::Adaptor;
use config::Config;
use probes::{Judged, Lossy, Probes};
use sparelane_core::{Dur, Rate, Seq, Time};
use std::collections::VecDeque;

pub use bass::{Bass, Pair};
pub use estimator::{Estimator, Excursion, Sample};
pub use stream::Shape;

const WIRE: WireDefaults = WireDefaults { values: config::WIRE_VALUES, needs_line_rate: true, ..WireDefaults::NONE };

/// The entry in the registry.
pub const CONTROLLER: Controller = Controller {
    name: "rapid",
    summary: "every packet probes the available bandwidth by its gap",
    source: "Yin, Kaur, Smith, INFOCOM 2017",
    params: config::PARAMS,
    wire: Some(WIRE),
    make: &|values, plan| {
        let config = Config::of(values, plan)?;
        Ok(Box::new(Rapid::new(config, plan.packets(), plan.line_rate)))
    },
};

/// The RAPID controller of one connection.
#[derive(Clone, Debug)]
pub struct Rapid {
    config: Config,
    wire_bytes: u64,
    window_bytes: u64,
    shape: Shape,
    adaptor: Adaptor,
    estimator: Estimator,
    probes: Probes,
    /// The due time of the next packet, the gap before it, and the rate that the gap probes.
    next_due: Time,
    next_gap: Dur,
    probed: Rate,
    /// The due time of the previous packet; `None` until the first has left.
    last_due: Option<Time>,
    /// The index of the next packet in its p-stream.
    index: u32,
    rate_before_timeout: Rate,
    /// The latest estimate, and the numbers of p-streams with and without one.
    estimate: Rate,
    judged: u64,
    skipped: u64,
    samples: Vec<Sample>,
    /// The number of segments acknowledged in sequence.
    acknowledged: Seq,
    /// P-streams with missing packets that are to be judged once all their packets are acknowledged, in order.
    unrepaired: VecDeque<Lossy>,
}

impl Rapid {
    fn new(config: Config, packets: PacketSize, line_rate: Rate) -> Rapid {
        let shape = Shape::new(config.rates, config.packets_per_rate, config.spread);
        let adaptor = Adaptor::new(config.filter, config.initial_rate, config.min_rate, line_rate);
        Rapid {
            wire_bytes: packets.wire_bytes(),
            window_bytes: config.window * packets.mss_bytes,
            estimator: Estimator::new(config.bass, config.excursion, shape.packets() as usize),
            rate_before_timeout: adaptor.rate(),
            shape,
            adaptor,
            probes: Probes::default(),
            next_due: Time::ZERO,
            next_gap: Dur::ZERO,
            probed: Rate::default(),
            last_due: None,
            index: 0,
            estimate: Rate::default(),
            judged: 0,
            skipped: 0,
            samples: Vec::new(),
            acknowledged: 0,
            unrepaired: VecDeque::new(),
            config,
        }
    }

    /// Starts a p-stream with the next packet to leave.
    fn begin_stream(&mut self) {
        self.index = 0;
        self.probes.begin();
    }

    /// Judges the p-streams whose missing packets have all been acknowledged. The estimate is their size over the time
    /// until the repair, less one round trip.
    fn judge_repaired(&mut self, cx: &Cx<'_>) {
        while let Some(&lossy) = self.unrepaired.front()
            && lossy.end <= self.acknowledged
        {
            self.unrepaired.pop_front();
            let since_sent = cx.now.saturating_since(lossy.due);
            let took = since_sent.saturating_sub(cx.min_rtt.unwrap_or_default()).max(lossy.duration);
            let bits = (lossy.packets * self.wire_bytes * 8) as f64;
            self.adaptor.take(Rate::from_bps((bits / took.as_secs_f64().max(1e-9)) as u64), took);
        }
    }

    /// Sets the gap before the next packet.
    fn set_gap(&mut self) {
        self.probed = self.shape.rate(self.index, self.adaptor.rate());
        self.next_gap = Shape::gap(self.wire_bytes, self.probed);
    }
}

impl CongestionControl for Rapid {
    fn needs(&self) -> Needs {
        Needs { receive_time: true, ..Needs::default() }
    }

    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        self.acknowledged += ack.acked_bytes / cx.mss_bytes;
        self.judge_repaired(cx);
        let Some(received) = ack.received else { return };
        // An acknowledgment that does not advance was caused by a later segment: those before it are missing.
        if ack.acked_bytes == 0 {
            self.probes.missing_before(received.segment);
        }
        self.probes.arrived(received);
        while let Some(judged) = self.probes.judge(&mut self.samples) {
            let Judged::Whole { duration } = judged else {
                self.skipped += 1;
                // A gap that cannot be judged also ends an incomplete event carried over by BASS.
                self.estimator.forget();
                if let Judged::Lossy(lossy) = judged
                    && lossy.missing <= self.config.judged_missing
                {
                    self.unrepaired.push_back(lossy);
                }
                continue;
            };
            if let Some(estimate) = self.estimator.estimate(&self.samples) {
                self.judged += 1;
                self.estimate = estimate;
                self.adaptor.take(estimate, duration);
            }
        }
    }

    fn on_congestion(&mut self, event: Congestion, _cx: &mut Cx<'_>) {
        match event {
            Congestion::Timeout { first: true, .. } if self.config.starts_after_timeout => {
                self.rate_before_timeout = self.adaptor.rate();
                self.adaptor.set(self.config.initial_rate);
                self.probes.break_all();
                self.unrepaired.clear();
                self.estimator.forget();
            }
            Congestion::Spurious => self.adaptor.set(self.rate_before_timeout.max(self.adaptor.rate())),
            Congestion::Timeout { .. } | Congestion::Loss { .. } | Congestion::Marked { .. } | Congestion::LostSyn => {}
        }
    }

    fn reacts_to_marks(&self) -> bool {
        false
    }

    fn limits(&self) -> Limits {
        Limits { cwnd_bytes: self.window_bytes, pacing: None }
    }

    fn schedules_departures(&self) -> bool {
        true
    }

    fn next_departure(&mut self, _cx: &mut Cx<'_>) -> Time {
        self.next_due
    }

    fn on_departure(&mut self, departure: &Departure, cx: &mut Cx<'_>) {
        let is_late = cx.now.saturating_since(self.next_due) > self.config.most_lateness;
        // After a pause, gaps to the previous packet would measure the pause: start a new p-stream.
        if self.last_due.is_none() || is_late {
            self.probes.break_current();
            self.next_due = cx.now;
            self.begin_stream();
            self.set_gap();
        }
        self.last_due = Some(self.next_due);
        let is_last = self.index + 1 == self.shape.packets();
        if departure.is_retransmission {
            self.probes.retransmitted(self.next_gap, is_last);
        } else {
            self.probes.sent(departure.segment, self.next_due, self.next_gap, self.probed, is_last);
        }
        self.index += 1;
        if is_last {
            self.begin_stream();
        }
        self.set_gap();
        self.next_due += self.next_gap;
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
