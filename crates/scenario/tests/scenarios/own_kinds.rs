//! A kind of queue, a topology, a workload and a controller that are not built in. Each is a declaration, and a line
//! that adds it to the catalogue.

use sparelane_catalogue::queue::QueueForm;
use sparelane_catalogue::schema::{Fallback, Form, Key, Kind};
use sparelane_catalogue::topology::TopologyForm;
use sparelane_catalogue::workload::{Demand, Workload, WorkloadError, WorkloadForm};
use sparelane_cc::{Controller, Registry};
use sparelane_core::{Dur, Rate, Time};
use sparelane_scenario::{Catalogue, Scenario, ScenarioError, Source, catalogue};
use sparelane_sim::qdisc::{ActiveLaw, ActiveSpec, Buffer, Fates, Packet, Place};
use sparelane_sim::{Discipline, FlowSource, FlowSpec, Network, NodeKind};
use std::any::Any;
use std::sync::Arc;

/// A FIFO that drops one of every `nth` packets.
static EVERY_NTH: QueueForm = Form {
    name: "every-nth",
    summary: "first in, first out; of the packets that come, every so many is dropped",
    source: "this test",
    keys: &[Key::new("nth", Kind::Whole { min: 2, max: 1_000 }, Fallback::Value("10"), "which packets are dropped")],
    read: |section, _| Ok(Discipline::of(EveryNth { nth: section.need("nth")?.whole()? })),
};

#[derive(Clone, Copy, Debug, PartialEq)]
struct EveryNth {
    nth: u64,
}

impl ActiveSpec for EveryNth {
    fn kind(&self) -> &'static str {
        EVERY_NTH.name
    }

    fn make(&self, _place: &Place) -> Box<dyn ActiveLaw> {
        Box::new(Counting { nth: self.nth, came: 0, buffer: Buffer::default() })
    }

    fn equals(&self, other: &dyn ActiveSpec) -> bool {
        (other as &dyn Any).downcast_ref() == Some(self)
    }
}

#[derive(Debug)]
struct Counting {
    nth: u64,
    came: u64,
    buffer: Buffer,
}

impl ActiveLaw for Counting {
    fn enqueue(&mut self, now: Time, packet: Packet, _idle_since: Option<Time>, fates: &mut Fates) {
        self.came += 1;
        if self.came.is_multiple_of(self.nth) { fates.drop(packet) } else { self.buffer.push(now, packet) }
    }

    fn dequeue(&mut self, _now: Time, _fates: &mut Fates) -> Option<Packet> {
        self.buffer.pop()
    }

    fn backlog(&self) -> (u64, u64) {
        (self.buffer.bytes(), self.buffer.packets())
    }
}

/// Two hosts on one router.
static PAIR: TopologyForm = Form {
    name: "pair",
    summary: "hosts a and b on one router, r",
    source: "this test",
    keys: &[Key::new("rate", Kind::Rate, Fallback::Required, "rate of both cables")],
    read: |section, _| {
        let rate = section.need("rate")?.rate()?;
        let mut network = Network::default();
        let router = network.add("r", NodeKind::Router);
        for (name, share) in [("a", 1), ("b", 2)] {
            let host = network.add(name, NodeKind::Host);
            network.connect(host, router, Rate::from_bps(rate.as_bps() / share), Dur::from_ms(2));
        }
        Ok(network)
    },
};

/// One flow after another, at regular intervals.
static METRONOME: WorkloadForm = Form {
    name: "metronome",
    summary: "flows from the first host to the second, at regular times",
    source: "this test",
    keys: &[
        Key::new("flows", Kind::Whole { min: 1, max: 1_000 }, Fallback::Required, "how many"),
        Key::new("gap", Kind::SPAN, Fallback::Value("100ms"), "from one start to the next"),
    ],
    read: &|reader| {
        let (flows, gap) = (reader.section.need("flows")?.whole()?, reader.section.need("gap")?.time()?);
        Ok(Arc::new(Metronome { flows, gap, scheme: reader.scheme }))
    },
};

#[derive(Clone, Debug)]
struct Metronome {
    flows: u64,
    gap: Dur,
    scheme: u16,
}

struct Beats(std::vec::IntoIter<FlowSpec>);

impl Workload for Metronome {
    fn flows(&self, network: &Network, _seed: u64) -> Result<Box<dyn FlowSource>, WorkloadError> {
        let [src, dst] = network.hosts()[..] else { return Err(WorkloadError::new("allowed: two hosts")) };
        let start = |beat: u64| Time::ZERO + self.gap.saturating_mul(beat);
        let flow = |beat| FlowSpec::new(start(beat), src, dst, Some(30_000), self.scheme);
        Ok(Box::new(Beats((0..self.flows).map(flow).collect::<Vec<_>>().into_iter())))
    }

    fn demand(&self, _network: &Network, _duration: Dur) -> Demand {
        Demand { flows: self.flows as f64, at_once: 1.0 }
    }
}

impl FlowSource for Beats {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        self.0.next()
    }
}

fn own() -> Catalogue {
    let plain = *Registry::built_in().find("newreno").expect("a built-in controller");
    let own = Controller { name: "own-reno", summary: "NewReno under another name", source: "this test", ..plain };
    let registry = Registry::clone(&Registry::built_in()).with(own).expect("a new name");
    let catalogue = Catalogue::built_in().with_controllers(registry);
    let catalogue = catalogue.with_queue(&EVERY_NTH).and_then(|catalogue| catalogue.with_topology(&PAIR));
    catalogue.and_then(|catalogue| catalogue.with_workload(&METRONOME)).expect("new names")
}

const TEXT: &str = "duration = \"60s\"\n[topology]\nkind = \"pair\"\nrate = \"20Mbps\"\n[queue]\nkind = \"every-nth\"\nnth = 7\n\
                    limit = \"1MB\"\n[scheme.s]\ncontroller = \"own-reno\"\n[[workload]]\nkind = \"metronome\"\nflows = 40\n";

fn parse(catalogue: &Catalogue, text: &str, settings: &[&str]) -> Result<Scenario, ScenarioError> {
    let source = Source { file: "x.toml".to_owned(), folder: ".".into() };
    let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
    Scenario::parse_with(catalogue, text, &source, &settings)
}

#[test]
fn one_of_each_kind_is_added_and_runs() {
    let scenario = parse(&own(), TEXT, &[]).unwrap_or_else(|error| panic!("{error}"));
    let records = scenario.simulate().expect("a network").run().expect("no law is broken");
    assert_eq!((records.totals.flows, records.totals.finished_flows), (40, 40));
    assert_eq!(records.flows.start_ps[3], 300_000_000_000);
    // The queue towards the second host drops one packet in seven, including SYNs and retransmissions.
    let place = (0..4).find(|&link| records.links.rate_bps[link] == 10_000_000 && records.links.from[link] == 0);
    let link = place.expect("the link from the router");
    let (came, dropped) = (records.links.arrived_packets[0][link], records.links.dropped_packets[0][link]);
    assert_eq!((dropped, came > 900), (came / 7, true), "{came} packets");
    assert!(records.flows.retransmissions.iter().sum::<u64>() > 50);
}

#[test]
fn own_keys_are_checked_and_listed_and_differ_from_others() {
    let error = |settings: &[&str]| parse(&own(), TEXT, settings).expect_err("a mistake").to_string();
    assert_eq!(error(&["queue.nth=1"]), "--set queue.nth = 1: out of range; allowed: a whole number from 2 to 1000");
    assert!(
        error(&["queue.kind=\"red\""]).contains("a red queue has no such setting"),
        "{}",
        error(&["queue.kind=\"red\""])
    );
    assert!(error(&["topology.rats=1"]).contains("did you mean \"rate\"?"));
    assert!(error(&["workload.kind=\"metronom\""]).contains("did you mean \"metronome\"?"));
    let unknown = parse(&Catalogue::built_in(), TEXT, &[]).expect_err("not built in").to_string();
    assert!(unknown.contains("kind = \"pair\": unknown; allowed: dumbbell"), "{unknown}");
    let names: Vec<_> = catalogue(&own()).into_iter().map(|entry| (entry.kind, entry.name)).collect();
    for (kind, name) in
        [("queue", "every-nth"), ("topology", "pair"), ("workload", "metronome"), ("controller", "own-reno")]
    {
        assert!(names.contains(&(kind, name.to_owned())), "{kind} {name}");
    }
}
