//! The contract that every registered controller keeps, alone and inside RC3.

use sparelane_cc::{
    Ack, BuildError, Built, Congestion, CongestionControl, Controller, Cx, Delivery, Departure, Hop, Kind, Lost, Needs,
    Offer, Param, Permit, Phase, Received, Sent, TailOffer, Telemetry, Value, Values, WhichEnd, build,
};
use sparelane_cc::{Blueprint, Registry};
use sparelane_core::{Domain, Dur, Rate, Stream, Time};

const MSS: u64 = 1460;
const OPERATIONS: u32 = 100_000;

/// Returns true if a controller contains another.
fn is_wrapper(controller: &Controller) -> bool {
    controller.params.iter().any(|param| param.kind == Kind::Controller)
}

/// Creates a controller with these values.
fn with(name: &str, values: &Values) -> Built {
    build(name, values, &Blueprint::of_any(MSS, &Values::default()))
}

/// Creates a controller with its defaults, around `inner` if given.
fn built(name: &str, inner: Option<&str>) -> Box<dyn CongestionControl> {
    let mut values = Values::default();
    if let Some(inner) = inner {
        values.set("inner", Value::Word(inner.to_owned()));
    }
    with(name, &values).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Every controller, and every wrapper around every other controller.
fn every_composition() -> Vec<(&'static str, Option<&'static str>)> {
    let registry = Registry::built_in();
    let (wrappers, alone): (Vec<_>, Vec<&Controller>) =
        registry.all().iter().partition(|controller| is_wrapper(controller));
    let mut all: Vec<_> = alone.iter().map(|controller| (controller.name, None)).collect();
    for wrapper in wrappers {
        let inside = alone.iter().filter(|inner| !built(inner.name, None).schedules_departures());
        all.extend(inside.map(|inner| (wrapper.name, Some(inner.name))));
    }
    all
}

/// A connection that generates random events and checks the contract after each.
struct Connection {
    cc: Box<dyn CongestionControl>,
    name: String,
    now: Time,
    phase: Phase,
    events: Stream,
    rng: Stream,
    is_paced: bool,
    wants_rate: bool,
    needs: Needs,
    delivered_bytes: u64,
    sent_segments: u64,
    lost_bytes: u64,
}

impl Connection {
    fn new((name, inner): (&str, Option<&str>), seed: u64) -> Connection {
        let cc = built(name, inner);
        let (is_paced, wants_rate) = (cc.limits().pacing.is_some(), cc.desired_rate().is_some());
        let mut connection = Connection {
            cc,
            name: format!("{name} {}", inner.unwrap_or_default()),
            now: Time::ZERO,
            phase: Phase::Open,
            events: Stream::new(seed, Domain::Test, 0),
            rng: Stream::new(seed, Domain::Controller, 0),
            is_paced,
            wants_rate,
            needs: Needs::default(),
            delivered_bytes: 0,
            sent_segments: 0,
            lost_bytes: 0,
        };
        connection.needs = connection.cc.needs();
        let explicit_rate = wants_rate.then_some(Rate::from_mbps(3));
        let mut cx = Cx { now: connection.now, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut connection.rng };
        connection.cc.on_established(explicit_rate, &mut cx);
        connection
    }

    fn coin(&mut self) -> bool {
        self.events.below(2) == 0
    }

    /// A number up to `most`; small ones are more likely than large ones.
    fn some(&mut self, most: u64) -> u64 {
        let bound = 1 + self.events.below(most);
        self.events.below(bound)
    }

    fn step(&mut self) {
        let passed = Dur::from_ps(self.some(20_000_000_000));
        self.now += passed;
        if self.needs.timer && self.cc.next_timer() <= self.now {
            let rtt = Some(Dur::from_ms(30));
            let mut cx = Cx { now: self.now, mss_bytes: MSS, srtt: rtt, min_rtt: rtt, rng: &mut self.rng };
            self.cc.on_timer(&mut cx);
            assert!(self.cc.next_timer() > self.now, "{}: a timer in the past", self.name);
        }
        let window_before = self.cc.limits().cwnd_bytes;
        match self.events.below(100) {
            0..55 => self.acknowledge(),
            55..60 => self.lose(),
            60..95 => self.offer(),
            _ => {
                let event = self.congestion();
                let rtt = Some(Dur::from_ms(30));
                let mut cx = Cx { now: self.now, mss_bytes: MSS, srtt: rtt, min_rtt: rtt, rng: &mut self.rng };
                self.cc.on_congestion(event, &mut cx);
                let window = self.cc.limits().cwnd_bytes;
                assert!(
                    event == Congestion::Spurious || window <= window_before,
                    "{}: {event:?} raises the window from {window_before} to {window}",
                    self.name
                );
            }
        }
        let limits = self.cc.limits();
        // A controller that paces may have a window below one segment.
        let least_bytes = if self.is_paced { 1 } else { MSS };
        assert!(limits.cwnd_bytes >= least_bytes, "{}: a window of {} bytes", self.name, limits.cwnd_bytes);
        assert_ne!(limits.pacing, Some(Rate::from_bps(0)), "{}: a pace of zero", self.name);
        assert_eq!(limits.pacing.is_some(), self.is_paced, "{}: pacing changed during the connection", self.name);
    }

    fn acknowledge(&mut self) {
        let acked_bytes = self.some(100) * MSS;
        let marked_segments = if self.events.below(20) == 0 { 1 + self.some(acked_bytes / MSS + 1) } else { 0 };
        let rtt = self.coin().then(|| Dur::from_ps(1 + self.now.as_ps() % 500_000_000_000));
        let ack = Ack {
            acked_bytes,
            delivered_bytes: acked_bytes,
            rtt,
            resent_rtt: rtt.is_none().then(|| Dur::from_ms(1 + self.now.as_ps() % 100)),
            in_flight_bytes: self.some(10_000) * MSS,
            cwnd_limited: self.coin(),
            phase: self.phase,
            ecn_echo: marked_segments > 0 || self.events.below(50) == 0,
            marked_segments,
            marked_bytes: marked_segments * MSS,
            explicit_rate: (self.wants_rate && self.coin()).then(|| Rate::from_bps(self.some(1_000_000_000))),
            delivery: (self.needs.segments && self.coin()).then(|| self.delivery(acked_bytes)),
            one_way_delay: (self.needs.one_way_delay && self.coin())
                .then(|| Dur::from_ps(self.some(1_000_000_000_000))),
            received: (self.needs.receive_time && self.coin()).then(|| self.receipt()),
            host_delay: (self.needs.host_delay && self.coin()).then(|| Dur::from_ps(self.some(1_000_000_000_000))),
            nic_backlog_bytes: if self.needs.nic_backlog { self.some(1_000_000) } else { 0 },
        };
        let rtt = (self.now > Time::ZERO).then_some(Dur::from_ms(30));
        let mut cx = Cx { now: self.now, mss_bytes: MSS, srtt: rtt, min_rtt: rtt, rng: &mut self.rng };
        if self.needs.telemetry {
            let hops = [0, 1, 2].map(|port| Hop {
                port,
                rate: Rate::from_bps(1 + self.events.below(10_000_000_000)),
                at: Time::from_ps(self.now.as_ps() - self.events.below(self.now.as_ps() / 2 + 1)),
                queue_bytes: self.events.below(1_000_000),
                sent_bytes: self.events.below(1_000_000_000),
            });
            let (segment, next) = (self.sent_segments.saturating_sub(self.events.below(100)), self.sent_segments);
            let count = self.events.below(4) as usize;
            self.cc.on_telemetry(&Telemetry { segment, next, hops: &hops[..count] }, &mut cx);
        }
        self.cc.on_ack(&ack, &mut cx);
        if self.events.below(50) == 0 {
            self.phase = Phase::Open;
        }
    }

    /// A random time in the recent past.
    fn some_time_ago(&mut self) -> Time {
        Time::from_ps(self.now.as_ps() - self.some(self.now.as_ps() / 2 + 1))
    }

    /// The number of the segment that is sent now.
    fn number(&mut self, is_retransmission: bool) -> u64 {
        if is_retransmission {
            return self.sent_segments.saturating_sub(1 + self.some(100));
        }
        self.sent_segments += 1;
        self.sent_segments - 1
    }

    /// The arrival of some segment, mostly one of those just sent.
    fn receipt(&mut self) -> Received {
        let segment = self.sent_segments.saturating_sub(1 + self.some(100));
        Received { segment, at: self.some_time_ago() }
    }

    fn delivery(&mut self, acked_bytes: u64) -> Delivery {
        let prior_delivered_bytes = self.delivered_bytes - self.some(self.delivered_bytes + 1);
        self.delivered_bytes += acked_bytes;
        Delivery {
            sent_at: self.some_time_ago(),
            prior_delivered_bytes,
            total_delivered_bytes: self.delivered_bytes,
            lost_bytes: self.some(self.lost_bytes + 1),
            in_flight_bytes: MSS + self.some(1000) * MSS,
            interval: Dur::from_ps(self.some(1_000_000_000_000)),
            app_limited: self.coin(),
        }
    }

    fn lose(&mut self) {
        if !self.needs.segments {
            return;
        }
        self.lost_bytes += MSS;
        let lost = Lost {
            segment: self.sent_segments.saturating_sub(1 + self.some(100)),
            bytes: MSS,
            sent_at: self.some_time_ago(),
            in_flight_bytes: MSS + self.some(1000) * MSS,
            lost_bytes: MSS + self.some(self.lost_bytes),
            app_limited: self.coin(),
        };
        let mut cx = Cx { now: self.now, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut self.rng };
        self.cc.on_lost(&lost, &mut cx);
    }

    /// An event that the transport could report in this phase.
    fn congestion(&mut self) -> Congestion {
        let flight_bytes = self.some((2 * self.cc.limits().cwnd_bytes / MSS).max(1)) * MSS;
        match (self.events.below(5), self.phase) {
            (4, Phase::Open) => Congestion::LostSyn,
            (0, Phase::Open) => Congestion::Marked { flight_bytes, by_ecn: self.coin() },
            (1, Phase::Recovery | Phase::Timeout) => {
                self.phase = Phase::Open;
                Congestion::Spurious
            }
            (2, _) => {
                let first = self.phase != Phase::Timeout;
                self.phase = Phase::Timeout;
                Congestion::Timeout { flight_bytes, first }
            }
            (_, Phase::Open) => {
                self.phase = Phase::Recovery;
                Congestion::Loss { flight_bytes }
            }
            _ => Congestion::Timeout { flight_bytes, first: self.coin() },
        }
    }

    /// Lets a segment leave the scheduler when it is due or later.
    fn depart(&mut self) {
        let is_retransmission = self.coin();
        let segment = self.number(is_retransmission);
        let waiting = self.some(1000) as u32;
        let mut cx = Cx { now: self.now, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut self.rng };
        if self.cc.next_departure(&mut cx) <= self.now {
            self.cc.on_departure(&Departure { segment, is_retransmission, waiting }, &mut cx);
            let next = self.cc.next_departure(&mut cx);
            assert!(next + Dur::from_ms(1) > self.now, "{}: the next is due at {next}, at {}", self.name, self.now);
        }
    }

    fn offer(&mut self) {
        if self.cc.schedules_departures() {
            return self.depart();
        }
        let tail = self.coin().then(|| TailOffer { sent_in_write: self.some(10_000) as u32 });
        let offer = Offer {
            head_bytes: (tail.is_none() || self.coin()).then_some(MSS),
            head_is_resent: self.coin(),
            tail,
            in_flight_bytes: self.some(1000) * MSS,
            allowance_bytes: self.some(3) * MSS,
            nic_idle: self.coin(),
        };
        let mut cx = Cx { now: self.now, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut self.rng };
        match self.cc.poll_send(&offer, &mut cx) {
            Permit::Send(plan) => {
                assert!(plan.class <= self.cc.lowest_class(), "{}: class {}", self.name, plan.class);
                let has_it = match plan.end {
                    WhichEnd::Head => offer.head_bytes.is_some(),
                    WhichEnd::Tail => self.cc.uses_tail() && tail.is_some() && plan.class > 0,
                };
                assert!(has_it, "{}: {plan:?} of {offer:?}", self.name);
                if let (WhichEnd::Tail, Some(tail)) = (plan.end, &offer.tail) {
                    assert_eq!(self.cc.tail_class(tail), Some(plan.class), "{}", self.name);
                }
                if plan.end == WhichEnd::Head && self.needs.segments {
                    let in_flight_bytes = offer.in_flight_bytes + MSS;
                    let (is_retransmission, app_limited) = (self.coin(), self.coin());
                    let segment = self.number(is_retransmission);
                    let sent = Sent { segment, bytes: MSS, in_flight_bytes, is_retransmission, app_limited };
                    let mut cx = Cx { now: self.now, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut self.rng };
                    self.cc.on_sent(&sent, &mut cx);
                }
            }
            Permit::NotBefore(at) => {
                assert!(at > self.now, "{}: the departure allowed at {at} is not after {}", self.name, self.now)
            }
            Permit::Blocked => {}
        }
    }

    /// The values that the controller traces.
    fn trace(&self) -> Vec<(&'static str, u64)> {
        let mut trace = Vec::new();
        self.cc.trace(&mut |name, value| trace.push((name, value.to_bits())));
        trace
    }
}

#[test]
fn the_contract_holds_for_any_sequence_of_events() {
    for composition in every_composition() {
        let mut connection = Connection::new(composition, 11);
        for _ in 0..OPERATIONS {
            connection.step();
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for composition in every_composition() {
        let (mut one, mut other) = (Connection::new(composition, 12), Connection::new(composition, 12));
        for _ in 0..OPERATIONS / 10 {
            one.step();
            other.step();
            assert_eq!(one.trace(), other.trace(), "{}", one.name);
        }
    }
}

/// A transport checks once per connection whether its controller uses the tail.
#[test]
fn the_properties_of_a_controller_do_not_change_during_a_connection() {
    for composition in every_composition() {
        let mut connection = Connection::new(composition, 13);
        let properties = |cc: &dyn CongestionControl| {
            let sends_on_its_own = (cc.owns_send_clock(), cc.schedules_departures());
            (sends_on_its_own, cc.uses_tail(), cc.lowest_class(), cc.desired_rate().is_some(), cc.needs())
        };
        let before = properties(&*connection.cc);
        for _ in 0..1000 {
            connection.step();
        }
        assert_eq!(properties(&*connection.cc), before, "{}", connection.name);
        let sends_from_the_tail = connection.cc.tail_class(&TailOffer { sent_in_write: 0 }).is_some();
        assert!(connection.cc.uses_tail() || !sends_from_the_tail, "{}", connection.name);
    }
}

#[test]
fn every_declared_default_is_allowed_and_equals_an_absent_value() {
    for controller in Registry::built_in().all() {
        for param in controller.params {
            let default = Value::from(param.default);
            param.check(&default).unwrap_or_else(|error| panic!("{}: {error}", controller.name));
            let mut values = Values::default();
            values.set(param.name, default);
            let explicit = with(controller.name, &values).expect("a default");
            let absent = built(controller.name, None);
            assert_eq!(format!("{explicit:?}"), format!("{absent:?}"), "{} {}", controller.name, param.name);
        }
    }
}

#[test]
fn every_parameter_has_a_meaning_and_is_declared_once() {
    for controller in Registry::built_in().all() {
        let mut names: Vec<_> = controller.params.iter().map(|param| param.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{}: {names:?}", controller.name);
        let is_clean = |text: &str| !text.is_empty() && text.trim() == text && !text.contains("  ");
        let texts = controller.params.iter().flat_map(|param| [param.meaning, param.source]);
        let unclean: Vec<_> =
            texts.chain([controller.summary, controller.source]).filter(|text| !is_clean(text)).collect();
        assert!(unclean.is_empty(), "{}: {unclean:?}", controller.name);
    }
}

/// Values of the right type just outside the range.
fn out_of_range(param: &Param) -> Vec<Value> {
    match param.kind {
        Kind::Whole { min, max, .. } => {
            [min.checked_sub(1), max.checked_add(1)].into_iter().flatten().map(Value::Whole).collect()
        }
        Kind::Bound { min, .. } => min.checked_sub(1).map(Value::Whole).into_iter().collect(),
        Kind::Number { min, max, .. } => {
            let step = |x: f64| x.abs().max(1.0) * 1e-9;
            [min - step(min), max + step(max), f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(Value::Number).to_vec()
        }
        Kind::Flag => Vec::new(),
        Kind::Choice(_) | Kind::Controller => vec![Value::Word("nonsense".to_owned())],
        Kind::Span { min, max } => {
            let below = min.as_ps().checked_sub(1);
            let above = max.as_ps().checked_add(1);
            [below, above].into_iter().flatten().map(|ps| Value::Span(Dur::from_ps(ps))).collect()
        }
        Kind::OptionalRate => vec![Value::Rate(Some(Rate::from_bps(0)))],
        Kind::Rate { min, max } => {
            let bounds = [min.as_bps().checked_sub(1), max.as_bps().checked_add(1)];
            let outside = bounds.into_iter().flatten().map(|bps| Value::Rate(Some(Rate::from_bps(bps))));
            outside.chain([Value::Rate(None)]).collect()
        }
        Kind::Size { min, max } => {
            [min.checked_sub(1), max.checked_add(1)].into_iter().flatten().map(Value::Size).collect()
        }
        Kind::Weights => {
            [0.0, -1.0, f64::NAN, f64::INFINITY].map(|x| Value::Weights(vec![("a".to_owned(), x)])).to_vec()
        }
        Kind::Numbers => vec![Value::List(vec![])],
        Kind::Increasing { max_len } => {
            vec![Value::List(vec![3, 3]), Value::List(vec![3, 2]), Value::List((0..=max_len as u64).collect())]
        }
    }
}

/// One value of every type.
fn every_type() -> Vec<Value> {
    vec![
        Value::Whole(5),
        Value::Number(0.5),
        Value::Flag(true),
        Value::Word("pull".to_owned()),
        Value::Span(Dur::from_ms(1)),
        Value::Rate(None),
        Value::Size(5),
        Value::Weights(vec![("a".to_owned(), 1.0)]),
        Value::List(vec![1]),
    ]
}

#[test]
fn every_parameter_rejects_other_values() {
    for controller in Registry::built_in().all() {
        for param in controller.params {
            let default = Value::from(param.default);
            let other_types = every_type()
                .into_iter()
                .filter(|value| std::mem::discriminant(value) != std::mem::discriminant(&default));
            for value in out_of_range(param).into_iter().chain(other_types) {
                let mut values = Values::default();
                values.set(param.name, value.clone());
                match with(controller.name, &values) {
                    Err(BuildError::Param(error)) => assert_eq!(error.name, param.name),
                    Err(BuildError::Unknown { name }) => {
                        assert_eq!((param.kind, name.as_str()), (Kind::Controller, "nonsense"))
                    }
                    other => panic!("{}: {} = {value} gives {other:?}", controller.name, param.name),
                }
            }
        }
    }
}

#[test]
fn a_value_for_the_controller_inside_is_checked_as_well() {
    let mut inner = Values::default();
    inner.set("initial_window", Value::Whole(0));
    let error = build("rc3", &Values::default(), &Blueprint::of_any(MSS, &inner)).expect_err("a window of zero");
    assert!(matches!(&error, BuildError::Param(error) if error.name == "initial_window"), "{error}");
    let mut itself = Values::default();
    itself.set("inner", Value::Word("rc3".to_owned()));
    assert!(matches!(with("rc3", &itself), Err(BuildError::Nested { .. })));
    // The tail would have to pass the scheduler of the head.
    itself.set("inner", Value::Word("rapid".to_owned()));
    assert!(matches!(with("rc3", &itself), Err(BuildError::Nested { .. })));
}
