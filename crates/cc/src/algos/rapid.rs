//! TCP RAPID: every packet is sent by its own gap and probes the available bandwidth; the rate follows what they find.
//!
//! Source: Yin, Kaur, Smith, "TCP Rapid: From Theory to Practice", INFOCOM 2017. Sections II (the protocol), IV-A (the window above,
//! the gaps below), IV-D (BASS), IV-E (probing apart from adapting).
//!
//! Two layers, as in the paper's Fig. 3. TCP has a fixed `window`, far above what the path holds, and so hands segments down as soon
//! as there is data. Below it a [scheduler](crate::contract::CongestionControl::schedules_departures) (E_S) keeps them in one queue,
//! groups them into p-streams and lets each leave after its gap. Retransmissions are TCP's: they wait behind what was handed down
//! before, and have a place and a gap in a p-stream as any packet. Needs receive times in acknowledgments ([`Needs::receive_time`]).
//! Packets of several connections of one host go in the order in which they are due, since the events of their due times do: the
//! paper's heap of heads. Two that are due at the same time wait for each other in the interface, as its section IV-A3 expects.
//!
//! One file per part: `stream` (which gap), `probes` (the books), `bass` and `estimator` (what the gaps say), `adaptor` (which rate).
//!
//! # Losses
//! RAPID has no answer of its own to a loss. Losses cost throughput because TCP, with nothing acknowledged beyond the first hole,
//! runs out of window (and of the receiver's buffer) while the retransmission passes the queue of the scheduler: the path is idle
//! for a round trip, whatever the rate. P-streams with a lost packet say nothing, as the authors' logs have it; with `lossy_streams =
//! "until-repaired"` those with up to `most_missing` lost packets are judged when all of their acknowledgments have returned, as section
//! II says of any p-stream, and count as slow as that: a reaction to losses that follows from estimates alone. Such a p-stream has lasted
//! (l) until it was repaired, mostly for more than tau, and so R_avg is updated at once. With one lost packet this gives what the
//! paper has under random loss (Table III), whatever TCP does to repair, and leaves alone what full queues lose, which is mostly
//! several packets of a p-stream (Table V); the scenario `rapid-testbed` has it. It is a fit. Nor is there an answer to congestion
//! marks: the paper has none.
//!
//! # What the paper leaves open, and the choices taken
//! - **Timeout**: R_avg starts again from `initial_rate`, the 100 kb/s of a new connection: what the path gave is no longer known.
//! - **l** of the filter, with gamma p-streams per update, is the duration of the last one, "the just-acked p-stream" of section II: the
//!   rate rises in gamma tau. With the duration of them all it would rise in tau, and beside constant-rate cross traffic lose 0.5 %,
//!   where the paper's Table V has 0.000 %. An update is due after gamma p-streams, or as soon as they have lasted for tau, which lets
//!   R_avg rise from 100 kb/s after one p-stream and not after three.
//! - **Gaps follow R_avg** packet by packet, as of a value that both layers share (section IV-A2), so that a p-stream at 100 kb/s does
//!   not go on for 46 s when the one before it has told of more.
//! - **The gain** is l / tau as printed, without a bound of 1: 64 packets at 100 kb/s last some 46 s, and at a gain of 1 R_avg would rise by
//!   a quarter each time, for ten minutes. As printed a p-stream raises it by N P / tau times the share by which its highest
//!   rate exceeds its average, 16 packets per tau, whatever R_avg is.
//! - **A late sender**: gaps count from when the last packet was due, not from when it left, so that lateness does not add up;
//!   after more than `most_lateness`, as when TCP had nothing to hand down, a new p-stream begins, and the one that was cut short says nothing.
//! - What is a spike and what is an excursion: in `bass` and `estimator`.

mod adaptor;
mod bass;
mod config;
mod estimator;
mod probes;
mod stream;

use crate::contract::{Ack, Congestion, CongestionControl, Cx, Departure, Limits, Needs};
use crate::pace::PacketSize;
use crate::registry::Controller;
use adaptor::Adaptor;
use config::Config;
use probes::{Judged, Lossy, Probes};
use sparelane_core::{Dur, Rate, Seq, Time};
use std::collections::VecDeque;

pub use bass::{Bass, Pair};
pub use estimator::{Estimator, Excursion, Sample};
pub use stream::Shape;

/// What the catalogue says of it.
pub const CONTROLLER: Controller = Controller {
    name: "rapid",
    summary: "every packet probes the available bandwidth by its gap",
    source: "Yin, Kaur, Smith, INFOCOM 2017",
    params: config::PARAMS,
    make: &|values, plan| {
        let config = Config::of(values, plan)?;
        Ok(Box::new(Rapid::new(config, plan.packets(), plan.line_rate)))
    },
};

/// The controller.
#[derive(Clone, Debug)]
pub struct Rapid {
    config: Config,
    wire_bytes: u64,
    window_bytes: u64,
    shape: Shape,
    adaptor: Adaptor,
    estimator: Estimator,
    probes: Probes,
    /// When the next packet is due, the gap before it, and the rate that this probes.
    next_due: Time,
    next_gap: Dur,
    probed: Rate,
    /// When the packet before it was due; `None` until the first has left.
    last_due: Option<Time>,
    /// Which packet of its p-stream that is.
    index: u32,
    rate_before_timeout: Rate,
    /// The last estimate, and how many p-streams gave one and did not.
    estimate: Rate,
    judged: u64,
    skipped: u64,
    samples: Vec<Sample>,
    /// Segments that are acknowledged in sequence.
    acknowledged: Seq,
    /// P-streams with missing packets, in order, until all of theirs are acknowledged; where those are judged.
    unrepaired: VecDeque<Lossy>,
}

impl Rapid {
    fn new(config: Config, packets: PacketSize, line_rate: Rate) -> Rapid {
        let shape = Shape::new(config.rates, config.packets_per_rate, config.spread);
        let adaptor = Adaptor::new(config.filter, config.initial_rate, line_rate);
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

    /// The packet that leaves next begins a p-stream.
    fn begin_stream(&mut self) {
        self.index = 0;
        self.probes.begin();
    }

    /// P-streams whose missing packets have all been acknowledged: the path had their packets over all the time that this took, a round
    /// trip aside.
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
        if ack.acked_bytes == 0 {
            self.probes.missing_before(received.segment);
        }
        self.probes.arrived(received);
        while let Some(judged) = self.probes.judge(&mut self.samples) {
            let Judged::Whole { duration } = judged else {
                self.skipped += 1;
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
        if self.last_due.is_none() || is_late {
            self.probes.break_current();
            self.next_due = cx.now;
            self.begin_stream();
            self.set_gap();
        }
        self.last_due = Some(self.next_due);
        let is_last = self.index + 1 == self.shape.packets();
        if departure.is_retransmission {
            self.probes.sent_again(self.next_gap, is_last);
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
