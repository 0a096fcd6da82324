//! RC3, recursively cautious congestion control: runs any controller at normal priority and sends segments from the
//! tail of the send buffer at lower priorities.
//!
//! Source: Mittal, Sherry, Ratnasamy, Shenker, "Recursively Cautious Congestion Control", NSDI 2014, section 2; "How
//! to improve your network performance by asking your provider for worse service", HotNets 2013.
//!
//! The inner controller receives only events of class 0 and decides about class 0 alone. Whenever it sends nothing,
//! the RLP loop ("recursive low priority") offers the last segment that neither loop has sent. The first 40 segments
//! from the tail of a write go at priority 1, the next 400 at 2, the next 4000 at 3, and the rest at 4. The papers say
//! "<= 40, <= 400". The authors' code counts cumulatively to 40, 440 and 4440, and so does this implementation. The
//! transport sends each tail segment once and ends the loop where it meets the head.
//!
//! Difference: the authors hand all tail segments to the interface's priority queue at once (`Feed::Push`). By
//! default, this implementation hands over one segment whenever the interface is idle (`Feed::Pull`). So no tail
//! segment waits in a queue while the head reaches it and sends it a second time.
//!
//! The papers do not limit the tail: it leaves at the interface's rate, and the path drops the excess. With
//! `tail_rate = "delivered"` it follows the delivery rate (`tail_rate.rs`). That rule is not from the papers.

mod tail_rate;

use crate::contract::{
    Ack, Congestion, CongestionControl, Cx, Limits, Lost, Needs, Offer, PathFacts, Permit, Plan, Restart, Sent,
    TailOffer, Telemetry, WhichEnd,
};
use crate::param::{DefaultValue, Kind, Param, Unit, Values};
use crate::registry::{Blueprint, BuildError, Controller, build};
use crate::wire::{WireDefaults, WireValue};
use sparelane_core::{Rate, Time};
pub use tail_rate::BoundedRc3;

/// The authors' cumulative limits of priorities 1, 2 and 3, in segments from the tail.
pub const DEFAULT_LEVELS: [u64; 3] = [40, 440, 4440];

/// The maximum number of levels in a configuration: they use classes 1 to 6, and the rest is sent in class 7.
pub const MAX_LEVELS: usize = 6;

const INNER: Param = Param {
    name: "inner",
    kind: Kind::Controller,
    default: DefaultValue::Word("newreno"),
    meaning: "controller of normal priority",
    source: "NSDI 2014 section 5.1",
};

const LEVELS: Param = Param {
    name: "levels",
    kind: Kind::Increasing { max_len: MAX_LEVELS },
    default: DefaultValue::List(&DEFAULT_LEVELS),
    meaning: "cumulative number of segments from the tail sent at priorities 1, 2, ...; the rest is sent one lower",
    source: "NSDI 2014 section 2.1; cumulative as in the authors' code",
};

const FEED: Param = Param {
    name: "feed",
    kind: Kind::Choice(&["pull", "push"]),
    default: DefaultValue::Word("pull"),
    meaning: "hand low-priority segments to the interface when it is idle (pull) or all at once (push)",
    source: "pull: sparelane; push: the authors' code",
};

const TAIL_RATE: Param = Param {
    name: "tail_rate",
    kind: Kind::Choice(&["unbounded", "delivered"]),
    default: DefaultValue::Word("unbounded"),
    meaning: "limit of the tail: the interface's rate only (unbounded), or the acknowledged deliveries after the \
               first round trip (delivered)",
    source: "unbounded: NSDI 2014 section 2.1; delivered: sparelane",
};

const TAIL_GAIN: Param = Param {
    name: "tail_gain",
    kind: Kind::Number { min: 0.1, max: 16.0, unit: Unit::One },
    default: DefaultValue::Number(tail_rate::DEFAULT_GAIN),
    meaning: "segments that the tail may send per delivered segment of any class, with tail_rate = \"delivered\"",
    source: "sparelane",
};

const TAIL_BURST: Param = Param {
    name: "tail_burst",
    kind: Kind::Whole { min: 1, max: 1_000_000, unit: Unit::Segments },
    default: DefaultValue::Whole(tail_rate::DEFAULT_BURST),
    meaning: "maximum credit of the tail in segments, with tail_rate = \"delivered\"",
    source: "sparelane",
};

/// The head competes with kernels whose default is CUBIC.
const WIRE: WireDefaults =
    WireDefaults { values: &[WireValue::new(INNER.name, DefaultValue::Word("cubic"))], ..WireDefaults::NONE };

/// The entry in the registry.
pub const CONTROLLER: Controller = Controller {
    name: "rc3",
    summary: "any controller, plus the tail of the buffer at lower priorities",
    source: "Mittal et al., NSDI 2014 section 2; HotNets 2013",
    params: &[INNER, LEVELS, FEED, TAIL_RATE, TAIL_GAIN, TAIL_BURST],
    wire: Some(WIRE),
    make: &|values, plan| {
        let name = values.word(&INNER);
        if name == "rc3" {
            return Err(BuildError::Nested { outer: "rc3", inner: name.to_owned() });
        }
        let inner = build(name, plan.inner, &Blueprint { inner: &Values::default(), ..*plan })?;
        if inner.schedules_departures() {
            // Tail segments would have to pass the scheduler of the inner controller.
            return Err(BuildError::Nested { outer: "rc3", inner: name.to_owned() });
        }
        let feed = if values.word(&FEED) == "push" { Feed::Push } else { Feed::Pull };
        let rc3 = Rc3::new(inner, values.list(&LEVELS), feed);
        if values.word(&TAIL_RATE) == "delivered" {
            let (gain, burst) = (values.number(&TAIL_GAIN), values.whole(&TAIL_BURST));
            return Ok(Box::new(BoundedRc3::new(rc3, gain, burst)));
        }
        Ok(Box::new(rc3))
    },
};

/// The time at which tail segments are handed to the network interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feed {
    /// All at once, into the interface's priority queue, as in the authors' code.
    Push,
    /// One at a time, when the interface is idle.
    Pull,
}

/// RC3 around an inner controller.
#[derive(Debug)]
pub struct Rc3 {
    inner: Box<dyn CongestionControl>,
    levels: Vec<u64>,
    feed: Feed,
}

impl Rc3 {
    /// Wraps `inner` with cumulative `levels` in segments; segments beyond the last level are sent one class lower.
    pub fn new(inner: Box<dyn CongestionControl>, levels: Vec<u64>, feed: Feed) -> Rc3 {
        Rc3 { inner, levels, feed }
    }

    /// Returns the priority of the next tail segment of a write, after `sent` others.
    fn level(&self, sent: u32) -> u8 {
        let above = self.levels.iter().take_while(|&&limit| u64::from(sent) >= limit).count();
        above as u8 + 1
    }
}

impl CongestionControl for Rc3 {
    fn needs_one_thread(&self) -> bool {
        self.inner.needs_one_thread()
    }

    fn needs(&self) -> Needs {
        self.inner.needs()
    }

    fn on_sent(&mut self, sent: &Sent, cx: &mut Cx<'_>) {
        self.inner.on_sent(sent, cx);
    }

    fn on_lost(&mut self, lost: &Lost, cx: &mut Cx<'_>) {
        self.inner.on_lost(lost, cx);
    }

    fn next_timer(&self) -> Time {
        self.inner.next_timer()
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>) {
        self.inner.on_timer(cx);
    }

    fn desired_rate(&self) -> Option<Rate> {
        self.inner.desired_rate()
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        self.inner.slow_start_threshold()
    }

    fn start_at_threshold(&mut self, bytes: u64) {
        self.inner.start_at_threshold(bytes);
    }

    fn on_path(&mut self, path: PathFacts) {
        self.inner.on_path(path);
    }

    fn on_telemetry(&mut self, telemetry: &Telemetry<'_>, cx: &mut Cx<'_>) {
        self.inner.on_telemetry(telemetry, cx);
    }

    fn repaces(&self) -> bool {
        self.inner.repaces()
    }

    fn reacts_to_marks(&self) -> bool {
        self.inner.reacts_to_marks()
    }

    fn on_established(&mut self, explicit_rate: Option<Rate>, cx: &mut Cx<'_>) {
        self.inner.on_established(explicit_rate, cx);
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        self.inner.on_ack(ack, cx);
    }

    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>) {
        self.inner.on_congestion(event, cx);
    }

    fn on_repaired(&mut self, resent_bytes: u64, cx: &mut Cx<'_>) {
        self.inner.on_repaired(resent_bytes, cx);
    }

    fn on_restart(&mut self, restart: &Restart, cx: &mut Cx<'_>) {
        self.inner.on_restart(restart, cx);
    }

    fn on_next_flow(&mut self, _values: &Values, plan: &Blueprint<'_>) {
        self.inner.on_next_flow(plan.inner, &Blueprint { inner: &Values::default(), ..*plan });
    }

    #[inline]
    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    #[inline]
    fn poll_send(&mut self, offer: &Offer, cx: &mut Cx<'_>) -> Permit {
        let inner = if offer.head_bytes.is_some() { self.inner.poll_send(offer, cx) } else { Permit::Blocked };
        match offer.tail {
            // The tail gets a turn only while the inner controller has nothing to send.
            Some(tail) if !matches!(inner, Permit::Send(_)) && (self.feed == Feed::Push || offer.nic_idle) => {
                Permit::Send(Plan { class: self.level(tail.sent_in_write), end: WhichEnd::Tail })
            }
            _ => inner,
        }
    }

    fn owns_send_clock(&self) -> bool {
        true
    }

    fn uses_tail(&self) -> bool {
        true
    }

    fn lowest_class(&self) -> u8 {
        self.levels.len() as u8 + 1
    }

    #[inline]
    fn tail_class(&self, tail: &TailOffer) -> Option<u8> {
        Some(self.level(tail.sent_in_write))
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        self.inner.trace(put);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algos::constant::Constant;
    use crate::contract::RestartRule;
    use crate::param::Value;
    use crate::window::INITIAL_WINDOW;
    use sparelane_core::{Domain, Dur, Stream, Time};
    use std::sync::{Arc, Mutex};

    fn rc3(feed: Feed) -> Rc3 {
        Rc3::new(Box::new(Constant::new(4000, None)), DEFAULT_LEVELS.to_vec(), feed)
    }

    fn poll(rc3: &mut Rc3, in_flight_bytes: u64, sent_in_write: u32, nic_idle: bool) -> Permit {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: 1000, srtt: None, min_rtt: None, rng: &mut rng };
        let tail = Some(TailOffer { sent_in_write });
        let offer = Offer {
            head_bytes: Some(1000),
            head_is_resent: false,
            tail,
            in_flight_bytes,
            allowance_bytes: 0,
            nic_idle,
        };
        rc3.poll_send(&offer, &mut cx)
    }

    /// NSDI 2014 section 2.1, with the cumulative limits of the authors' code.
    #[test]
    fn priorities_hold_40_400_and_4000_segments_and_the_rest() {
        let rc3 = rc3(Feed::Push);
        let levels = [0, 39, 40, 439, 440, 4439, 4440, 1_000_000].map(|sent| rc3.level(sent));
        assert_eq!(levels, [1, 1, 2, 2, 3, 3, 4, 4]);
        assert_eq!(rc3.lowest_class(), 4);
    }

    #[test]
    fn the_head_is_sent_before_the_tail() {
        let mut rc3 = rc3(Feed::Push);
        assert_eq!(poll(&mut rc3, 3000, 0, true), Permit::HEAD);
        assert_eq!(poll(&mut rc3, 4000, 0, true), Permit::Send(Plan { class: 1, end: WhichEnd::Tail }));
    }

    #[test]
    fn pulling_waits_for_an_idle_interface_and_pushing_does_not() {
        assert_eq!(poll(&mut rc3(Feed::Pull), 4000, 50, false), Permit::Blocked);
        let tail = Permit::Send(Plan { class: 2, end: WhichEnd::Tail });
        assert_eq!(poll(&mut rc3(Feed::Pull), 4000, 50, true), tail);
        assert_eq!(poll(&mut rc3(Feed::Push), 4000, 50, false), tail);
    }

    /// A controller that records which of its methods are called.
    #[derive(Debug)]
    struct Recorder(Arc<Mutex<Vec<&'static str>>>);

    impl Recorder {
        fn record(&self, what: &'static str) {
            self.0.lock().expect("one thread").push(what);
        }
    }

    impl CongestionControl for Recorder {
        fn needs(&self) -> Needs {
            Needs { timer: true, ..Needs::default() }
        }

        fn on_sent(&mut self, _: &Sent, _: &mut Cx<'_>) {
            self.record("sent");
        }

        fn on_lost(&mut self, _: &Lost, _: &mut Cx<'_>) {
            self.record("lost");
        }

        fn next_timer(&self) -> Time {
            Time::from_ns(7)
        }

        fn on_timer(&mut self, _: &mut Cx<'_>) {
            self.record("timer");
        }

        fn desired_rate(&self) -> Option<Rate> {
            Some(Rate::from_mbps(7))
        }

        fn on_established(&mut self, _: Option<Rate>, _: &mut Cx<'_>) {
            self.record("established");
        }

        fn on_telemetry(&mut self, _: &Telemetry<'_>, _: &mut Cx<'_>) {
            self.record("telemetry");
        }

        fn on_ack(&mut self, _: &Ack, _: &mut Cx<'_>) {
            self.record("ack");
        }

        fn on_congestion(&mut self, _: Congestion, _: &mut Cx<'_>) {
            self.record("congestion");
        }

        fn on_repaired(&mut self, _: u64, _: &mut Cx<'_>) {
            self.record("repaired");
        }

        fn on_restart(&mut self, _: &Restart, _: &mut Cx<'_>) {
            self.record("restart");
        }

        fn on_next_flow(&mut self, values: &Values, plan: &Blueprint<'_>) {
            assert_eq!((values.whole(&INITIAL_WINDOW), plan.flow_bytes), (7, Some(99)));
            self.record("next flow");
        }

        fn limits(&self) -> Limits {
            Limits { cwnd_bytes: 7000, pacing: Some(Rate::from_mbps(70)) }
        }

        fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
            put("noted", 1.0);
        }
    }

    /// Section 4.1 of the paper: the control loop of TCP is unchanged.
    #[test]
    fn events_and_queries_about_the_head_are_forwarded_to_the_inner_controller() {
        let log = Arc::default();
        let mut rc3 = Rc3::new(Box::new(Recorder(Arc::clone(&log))), DEFAULT_LEVELS.to_vec(), Feed::Pull);
        let mut rng = Stream::new(1, Domain::Test, 0);
        let cx = &mut Cx { now: Time::ZERO, mss_bytes: 1000, srtt: None, min_rtt: None, rng: &mut rng };
        let sent =
            Sent { segment: 0, bytes: 1000, in_flight_bytes: 1000, is_retransmission: false, app_limited: false };
        let lost = Lost {
            segment: 0,
            bytes: 1000,
            sent_at: Time::ZERO,
            in_flight_bytes: 1000,
            lost_bytes: 1000,
            app_limited: false,
        };
        rc3.on_established(None, cx);
        rc3.on_sent(&sent, cx);
        rc3.on_telemetry(&Telemetry { segment: 0, next: 1, hops: &[] }, cx);
        rc3.on_ack(&Ack::in_sequence(1000), cx);
        rc3.on_lost(&lost, cx);
        rc3.on_congestion(Congestion::LostSyn, cx);
        rc3.on_repaired(1000, cx);
        rc3.on_timer(cx);
        rc3.on_restart(&Restart { idle: Dur::from_secs(2), rto: Dur::from_secs(1), rule: RestartRule::Rfc5681 }, cx);
        // The inner controller gets its own values.
        let mut inner = Values::default();
        inner.set(INITIAL_WINDOW.name, Value::Whole(7));
        let plan = Blueprint { flow_bytes: Some(99), ..Blueprint::of_any(1000, &inner) };
        rc3.on_next_flow(&Values::default(), &plan);
        let events = [
            "established",
            "sent",
            "telemetry",
            "ack",
            "lost",
            "congestion",
            "repaired",
            "timer",
            "restart",
            "next flow",
        ];
        assert_eq!(*log.lock().expect("one thread"), events);
        assert!(rc3.needs().timer && rc3.owns_send_clock() && rc3.uses_tail());
        assert_eq!(rc3.next_timer(), Time::from_ns(7));
        assert_eq!(rc3.desired_rate(), Some(Rate::from_mbps(7)));
        assert_eq!((rc3.limits().cwnd_bytes, rc3.limits().pacing), (7000, Some(Rate::from_mbps(70))));
        let mut traced = vec![];
        rc3.trace(&mut |name, value| traced.push((name, value)));
        assert_eq!(traced, [("noted", 1.0)]);
    }
}
