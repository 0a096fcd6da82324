//! Custom observers, runs in steps, and a controller that is steered from outside.

use sparelane_cc::{Ack, Congestion, CongestionControl, Controller, Cx, Limits, Registry};
use sparelane_core::{Dur, Time};
use sparelane_scenario::{Catalogue, Scenario, Source};
use sparelane_sim::observe::{
    FlowView, Flows, Interest, Kind, Observer, Opened, PacketEvent, QueuesInView, Step, View,
};
use sparelane_sim::{NodeId, RunConfig, Simulation};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const TEXT: &str = r#"
duration = "2s"
seed = 5
[topology]
kind = "dumbbell"
pairs = 3
bottleneck_rate = "20Mbps"
bottleneck_delay = "5ms"
[queue]
kind = "priority"
limit = "20packets"
[scheme.tcp]
controller = "newreno"
[scheme.rc3]
controller = "rc3"
[[workload]]
kind = "poisson"
scheme = "rc3"
load = 0.003
sizes = { kind = "fixed", size = "60packets" }
[[workload]]
kind = "bulk"
scheme = "tcp"
flows = 2
size = "900packets"
"#;

fn parse(catalogue: &Catalogue, text: &str) -> Scenario {
    let source = Source { file: "x.toml".to_owned(), folder: ".".into() };
    Scenario::parse_with(catalogue, text, &source, &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn config() -> RunConfig {
    parse(&Catalogue::built_in(), TEXT).build().expect("a run")
}

fn node(config: &RunConfig, name: &str) -> NodeId {
    let place = config.network.nodes.iter().position(|node| node.name == name);
    NodeId(place.expect("a node") as u32)
}

#[test]
fn a_run_in_steps_has_the_same_records() {
    let whole = Simulation::new(config()).expect("a run").run().expect("no law is broken");
    let mut steps = Simulation::new(config()).expect("a run");
    let mut until = Time::ZERO;
    loop {
        let progress = steps.advance_to(until).expect("no law is broken");
        assert_eq!(steps.view().now(), until.min(Time::ZERO + Dur::from_secs(2)));
        if progress.finished {
            break;
        }
        // A second call for the same time does nothing.
        assert!(!steps.advance_to(until).expect("no law is broken").finished);
        until += Dur::from_us(1_733);
    }
    let mut stepped = steps.finish().expect("no law is broken");
    assert!(stepped.totals.flows > 50, "{:?}", stepped.totals);
    stepped.totals.events = whole.totals.events;
    assert_eq!(stepped, whole);
}

#[test]
fn a_view_shows_flows_and_the_queues_that_were_named() {
    let mut config = config();
    let (west, east) = (node(&config, "west"), node(&config, "east"));
    config.observers.push(Box::new(QueuesInView { queues: vec![(west, east)] }));
    let mut run = Simulation::new(config).expect("a run");
    run.advance_to(Time::ZERO + Dur::from_ms(500)).expect("no law is broken");
    let mut view = run.view();
    let (mut open, mut named) = (0, false);
    view.for_each_open_flow(&mut |flow| {
        open += 1;
        named |= flow.id == 0;
        assert!(flow.start <= Time::ZERO + Dur::from_ms(500));
    });
    assert!(open >= 2 && named, "{open} flows");
    let flow = view.flow(0).expect("a bulk flow");
    assert!(flow.sender.in_flight_bytes() > 0 && flow.receiver.held_bytes() > 0);
    assert!(view.backlog_bytes(west, east).is_some_and(|bytes| bytes > 0), "the bottleneck has a queue");
    assert_eq!(view.backlog_bytes(east, west), None, "nobody named that queue");
    assert!(view.sent_bytes(west, east).is_some_and(|bytes| bytes > 500_000));
    assert_eq!(view.sent_bytes(east, NodeId(u32::MAX)), None);
    assert_eq!(view.offered_bytes(west, east), None, "its rate is constant");
}

#[test]
fn a_view_shows_what_a_link_with_a_varying_rate_could_have_sent() {
    let change = |keys: &str| format!("{TEXT}\n[[change]]\nat = \"100ms\"\nbetween = [\"west\", \"east\"]\n{keys}\n");
    let config = parse(&Catalogue::built_in(), &change("rate = \"4Mbps\"")).build().expect("a run");
    let (west, east) = (node(&config, "west"), node(&config, "east"));
    let mut run = Simulation::new(config).expect("a run");
    run.advance_to(Time::ZERO + Dur::from_ms(300)).expect("no law is broken");
    assert_eq!(run.view().offered_bytes(west, east), Some((20_000 * 100 + 4_000 * 200) / 8));
    // A change of the delay leaves the rate as it is.
    let config = parse(&Catalogue::built_in(), &change("delay = \"9ms\"")).build().expect("a run");
    assert_eq!(Simulation::new(config).expect("a run").view().offered_bytes(west, east), None);
}

/// The counts of the packets of every flow: sent, received, dropped.
#[derive(Debug, Default)]
struct Tally {
    opened: u64,
    closed: u64,
    steps: BTreeMap<(u32, bool), [u64; 3]>,
    least_delay: Option<Dur>,
    samples: Vec<Time>,
}

#[derive(Clone, Default)]
struct Counter(Arc<Mutex<Tally>>);

impl Observer for Counter {
    fn interest(&self) -> Interest {
        Interest { packets: Flows::All, first_sample: Some(Time::from_ns(7)), ..Interest::default() }
    }

    fn on_open(&mut self, _flow: &Opened) {
        self.0.lock().expect("one thread").opened += 1;
    }

    fn on_close(&mut self, _flow: &FlowView<'_>) {
        self.0.lock().expect("one thread").closed += 1;
    }

    fn on_packet(&mut self, packet: &PacketEvent) {
        let mut tally = self.0.lock().expect("one thread");
        let is_data = matches!(packet.kind, Kind::Data { .. });
        let counts = tally.steps.entry((packet.flow, is_data)).or_default();
        match packet.step {
            Step::Sent { .. } => counts[0] += 1,
            Step::Received { .. } => counts[1] += 1,
            Step::Dropped => counts[2] += 1,
            Step::Arrived { .. } | Step::Crossed { .. } => {}
        }
        if let (true, Step::Received { delay }) = (is_data, packet.step) {
            tally.least_delay = Some(tally.least_delay.map_or(delay, |least| least.min(delay)));
        }
    }

    fn on_sample(&mut self, view: &mut View<'_>) -> Time {
        self.0.lock().expect("one thread").samples.push(view.now());
        view.now() + Dur::from_ms(700)
    }
}

#[test]
fn an_observer_is_notified_of_every_packet_and_changes_nothing() {
    let without = Simulation::new(config()).expect("a run").run().expect("no law is broken");
    let counter = Counter::default();
    let mut config = config();
    config.observers.push(Box::new(counter.clone()));
    let mut with = Simulation::new(config).expect("a run").run().expect("no law is broken");
    with.totals.events = without.totals.events;
    assert_eq!(with, without);
    let tally = counter.0.lock().expect("one thread");
    assert_eq!((tally.opened, tally.closed), (without.totals.flows, without.totals.flows));
    assert_eq!(tally.samples, [7, 700_000_007, 1_400_000_007].map(Time::from_ns));
    let mut dropped = 0;
    for (row, &id) in without.flows.id.iter().enumerate() {
        let [sent, received, lost] = tally.steps.get(&(id, true)).copied().unwrap_or_default();
        let in_table: u64 = without.flows.sent_packets.iter().map(|class| class[row]).sum();
        assert_eq!((sent, lost), (in_table, without.flows.lost_packets[row]), "flow {id}");
        assert!(sent >= received + lost, "flow {id}: {sent} sent, {received} received, {lost} dropped");
        dropped += lost;
    }
    // A receiver acknowledges every segment here. A handshake has two packets, or more if one is lost.
    let sums = |is_data| {
        let counts = tally.steps.iter().filter(|((_, data), _)| *data == is_data).map(|(_, counts)| *counts);
        counts.fold([0; 3], |sums, counts| [0, 1, 2].map(|step| sums[step] + counts[step]))
    };
    let ([_, received, _], [answers, answered, unanswered]) = (sums(true), sums(false));
    assert!(answers >= received + tally.opened && answers <= received + 3 * tally.opened, "{answers} of {received}");
    assert!(answers >= answered + unanswered && answered > received * 9 / 10, "{answered} of {answers}");
    assert!(dropped > 10, "{dropped} dropped");
    // Propagation alone takes 5 ms.
    assert!(tally.least_delay.is_some_and(|least| least > Dur::from_ms(5)), "{:?}", tally.least_delay);
}

/// A controller whose window is set from outside.
#[derive(Debug)]
struct Steered {
    cwnd_bytes: u64,
}

impl CongestionControl for Steered {
    fn on_ack(&mut self, _ack: &Ack, _cx: &mut Cx<'_>) {}

    fn on_congestion(&mut self, _event: Congestion, _cx: &mut Cx<'_>) {}

    fn limits(&self) -> Limits {
        Limits { cwnd_bytes: self.cwnd_bytes, pacing: None }
    }
}

const STEERED: Controller = Controller {
    name: "steered",
    summary: "a window that is set from outside",
    source: "this test",
    params: &[],
    wire: None,
    make: &|_, plan| Ok(Box::new(Steered { cwnd_bytes: 2 * plan.mss_bytes })),
};

#[test]
fn the_controller_of_a_flow_is_steered_between_steps() {
    let registry = Registry::clone(&Registry::built_in()).with(STEERED).expect("a new name");
    let catalogue = Catalogue::built_in().with_controllers(registry);
    let text = r#"
        duration = "9s"
        seed = 1
        [topology]
        kind = "dumbbell"
        [scheme.s]
        controller = "steered"
        [[workload]]
        kind = "bulk"
        scheme = "s"
        flows = 1
        size = "unlimited"
    "#;
    let config = parse(&catalogue, text).build().expect("a run");
    let mut run = Simulation::new(config).expect("a run");
    let second = |s| Time::ZERO + Dur::from_secs(s);
    let held = |run: &mut Simulation| run.view().flow(0).map_or(0, |flow| flow.receiver.held_bytes());
    run.advance_to(second(1)).expect("no law is broken");
    let before = held(&mut run);
    run.advance_to(second(2)).expect("no law is broken");
    let slow = held(&mut run) - before;
    let is_open = run.steer(0, &mut |controller| {
        let controller: &mut dyn Any = controller;
        controller.downcast_mut::<Steered>().expect("the controller of this test").cwnd_bytes *= 5;
    });
    assert!(is_open && !run.steer(1, &mut |_| ()), "flow 0 is open, and there is no flow 1");
    run.advance_to(second(3)).expect("no law is broken");
    let before = held(&mut run);
    run.advance_to(second(4)).expect("no law is broken");
    let fast = held(&mut run) - before;
    let ratio = fast as f64 / slow as f64;
    assert!((4.8..5.2).contains(&ratio), "{slow} bytes in a second, then {fast}");
}

/// Counts the packets that leave one port, and stores their times.
#[derive(Clone)]
struct AtPort {
    port: (NodeId, NodeId),
    seen: Arc<Mutex<Vec<(Time, PacketEvent)>>>,
}

impl Observer for AtPort {
    fn interest(&self) -> Interest {
        Interest { packets: Flows::All, ports: vec![self.port], ..Interest::default() }
    }

    fn on_packet(&mut self, packet: &PacketEvent) {
        if matches!(packet.step, Step::Crossed { .. }) {
            self.seen.lock().expect("one thread").push((packet.now, *packet));
        }
    }
}

#[test]
fn packets_that_leave_a_port_are_reported_in_order_and_change_nothing() {
    let finite =
        TEXT.replace("duration = \"2s\"", "duration = \"60s\"").replace("kind = \"poisson\"", "kind = \"bulk\"");
    let finite =
        finite.replace("load = 0.003\nsizes = { kind = \"fixed\", size = \"60packets\" }", "size = \"300packets\"");
    let plain = finite.replace("kind = \"priority\"\n", "").replace("controller = \"rc3\"", "controller = \"cubic\"");
    let shared = format!("{finite}[switch]\nmemory = \"60kB\"\nshare = 1.0\n");
    let lossy = format!("{plain}[[link]]\nbetween = [\"west\", \"east\"]\nloss = 0.01\n");
    for (what, text) in [("priority", &finite), ("tandems", &plain), ("shared memory", &shared), ("loss", &lossy)] {
        let scenario = parse(&Catalogue::built_in(), text);
        let without = scenario.simulate().expect("a run").run().expect("no law is broken");
        for (from, to) in [("west", "east"), ("east", "west"), ("left0", "west")] {
            let mut config = scenario.build().expect("a run");
            let port = (node(&config, from), node(&config, to));
            let watcher = AtPort { port, seen: Arc::default() };
            config.observers.push(Box::new(watcher.clone()));
            let mut with = Simulation::new(config).expect("a run").run().expect("no law is broken");
            with.totals.events = without.totals.events;
            assert_eq!(with, without, "{what}");
            let seen = watcher.seen.lock().expect("one thread");
            assert!(seen.windows(2).all(|pair| pair[0].0 <= pair[1].0), "{what}: out of order");
            let ends = (with.links.from.iter().zip(&with.links.to)).position(|(a, b)| (NodeId(*a), NodeId(*b)) == port);
            let link = ends.expect("a link");
            let count = |column: &[Vec<u64>]| column.iter().map(|class| class[link]).sum::<u64>();
            let (came, dropped) = (count(&with.links.arrived_packets), count(&with.links.dropped_packets));
            // Packets that the wire loses have left the port.
            let (least, most) = if what == "loss" { (came - dropped, came) } else { (came - dropped, came - dropped) };
            let reported = seen.len() as u64;
            assert!(
                reported > 200 && (least..=most).contains(&reported),
                "{what} {from}: {reported}, {came} came, {dropped} dropped"
            );
        }
    }
}
