//! Two sites in virtual time, with applications at both ends that follow scripts.

use super::*;
use crate::carrier::AssociationId;
use crate::control::Coded;
use crate::node::{FlowId, NodeConfig, NodeEvent};
use crate::virt::{Path, Virtual};
use bytes::Bytes;
use message::Message;
use sparelane_core::{Domain, Dur, Stream, Time};
use std::collections::BTreeMap;

fn content(bytes: usize, seed: u64) -> Vec<u8> {
    let mut rng = Stream::new(seed, Domain::Test, 1);
    (0..bytes).map(|_| rng.next_u64() as u8).collect()
}

/// The behaviour of an application at one end.
#[derive(Clone, Debug, Default)]
struct Script {
    /// The bytes that it sends, and whether it waits for the other's end first.
    sends: Vec<u8>,
    answers: bool,
    /// The time before which it reads nothing.
    reads_from: Time,
}

#[derive(Clone, Debug, Default)]
struct Application {
    script: Script,
    sent: usize,
    has_ended: bool,
    got: Vec<u8>,
    got_end: bool,
    end: Option<String>,
}

struct Sites {
    net: Virtual,
    links: [Option<Link>; 2],
    applications: [BTreeMap<u32, Application>; 2],
    association: [Option<AssociationId>; 2],
    config: LinkConfig,
    refuses: bool,
    scripts: Vec<[Script; 2]>,
    /// The next connection to open; not all are open at once.
    next: usize,
    at_once: usize,
    /// The maximum number of bytes of a connection between the two applications.
    max_between: usize,
    /// True if the association may end, and requests without an answer then.
    may_restart: bool,
    unanswered: Vec<Unanswered>,
}

impl Sites {
    fn new(path: Path, node: NodeConfig, scripts: Vec<[Script; 2]>, at_once: usize, seed: u64) -> Sites {
        let config = LinkConfig { max_connections: 64, buffer_bytes: node.window_bytes };
        let held_bytes = node.window_bytes * 64;
        let node = NodeConfig { max_flows: 128, held_bytes, ..node };
        let mut net = Virtual::new(path, node, seed).expect("settings that fit");
        net.connect().expect("a peer");
        Sites {
            net,
            links: [None, None],
            applications: Default::default(),
            association: [None; 2],
            config,
            refuses: false,
            scripts,
            next: 0,
            at_once,
            max_between: 0,
            may_restart: false,
            unanswered: vec![],
        }
    }

    /// Runs until every connection has ended at both ends, or until `limit`.
    fn run(&mut self, limit: Dur) {
        let limit = Time::ZERO + limit;
        while let Some((at, event)) = self.net.next_event((self.net.now() + Dur::from_ms(50)).min(limit)) {
            self.handle(at, &event);
            self.pump();
            if self.is_over() {
                return;
            }
        }
        // Time passes for the applications, too.
        if self.net.now() < limit && !self.is_over() {
            self.pump();
            self.run(limit - Time::ZERO);
        }
    }

    fn is_over(&self) -> bool {
        let over = |at: usize| self.applications[at].values().filter(|one| one.end.is_some()).count();
        over(0) == self.scripts.len() && over(1) == self.applications[1].len()
    }

    fn handle(&mut self, at: usize, event: &NodeEvent) {
        let now = self.net.now();
        if let NodeEvent::Opened { association, .. } = *event {
            let link = if at == 0 { Link::dialing } else { Link::serving };
            self.links[at] = Some(link(association, self.config));
            self.association[at] = Some(association);
        }
        if let NodeEvent::Opened { .. } = *event
            && at == 0
        {
            let link = self.links[0].as_mut().expect("a link");
            for unanswered in std::mem::take(&mut self.unanswered) {
                let id = unanswered.connection;
                assert_eq!(link.reopen(now, self.net.node(0), unanswered), Ok(id), "in the same order");
            }
        }
        let Some(link) = &mut self.links[at] else { return };
        let handled = link.handle_event(now, self.net.node(at), event);
        if matches!(event, NodeEvent::Closed { .. }) && self.may_restart {
            self.unanswered = link.take_unanswered();
            self.act(at);
            self.links[at] = None;
            self.net.connect().expect("room");
        } else {
            handled.expect("an open association");
        }
    }

    /// Kills the serving site and starts it again.
    fn restart(&mut self) {
        self.net.restart(1, 99).expect("settings that fit");
        (self.links[1], self.may_restart) = (None, true);
        self.applications[1].clear();
    }

    fn pump(&mut self) {
        let now = self.net.now();
        while let Some(link) = self.links[0].as_mut().filter(|link| link.len() < self.at_once) {
            let Some(scripts) = self.scripts.get(self.next) else { break };
            let target = "host:1".parse().expect("a target");
            let id = link.open(now, self.net.node(0), target).expect("room");
            assert_eq!(id as usize, self.next);
            let application = Application { script: scripts[0].clone(), ..Application::default() };
            self.applications[0].insert(id, application);
            self.next += 1;
        }
        if let Some(link) = &mut self.links[0] {
            link.check_silence(now, self.net.node(0));
        }
        for at in [0, 1, 0] {
            self.act(at);
            let open: Vec<u32> = self.applications[at].keys().copied().collect();
            for id in open {
                self.write(at, id);
                self.read(at, id);
            }
            self.act(at);
        }
    }

    fn act(&mut self, at: usize) {
        let now = self.net.now();
        while let Some(event) = self.links[at].as_mut().and_then(Link::poll_event) {
            let link = self.links[at].as_mut().expect("a link");
            match event {
                LinkEvent::Connect { connection, .. } if self.refuses => {
                    link.refuse(now, self.net.node(at), connection, "connection refused").expect("a peer");
                }
                LinkEvent::Connect { connection, .. } => {
                    link.handle_connected(now, self.net.node(at), connection).expect("a peer");
                    let script = self.scripts[connection as usize][1].clone();
                    let application = Application { script, ..Application::default() };
                    self.applications[1].insert(connection, application);
                }
                LinkEvent::Done(id) => self.end(at, id, "done"),
                LinkEvent::Refused { connection, reason } | LinkEvent::Reset { connection, reason } => {
                    self.end(at, connection, &reason);
                }
                LinkEvent::Opened(_) | LinkEvent::Readable(_) => {}
            }
        }
    }

    fn end(&mut self, at: usize, id: u32, end: &str) {
        if let Some(application) = self.applications[at].get_mut(&id) {
            assert_eq!(application.end.replace(end.to_owned()), None, "a connection ends once");
        }
    }

    fn write(&mut self, at: usize, id: u32) {
        let Some(link) = &mut self.links[at] else { return };
        let Some(application) = self.applications[at].get_mut(&id).filter(|one| one.end.is_none()) else { return };
        if application.has_ended || application.script.answers && !application.got_end {
            return;
        }
        let room = link.room(self.net.node(at), id) as usize;
        let rest = &application.script.sends[application.sent..];
        let bytes = &rest[..rest.len().min(room).min(30_000)];
        if !bytes.is_empty() {
            link.handle_bytes(self.net.node(at), id, Bytes::copy_from_slice(bytes));
        }
        application.sent += bytes.len();
        if application.sent == application.script.sends.len() {
            application.has_ended = true;
            link.handle_end(self.net.node(at), id);
        }
        let read = self.applications[1 - at].get(&id).map_or(0, |one| one.got.len());
        self.max_between = self.max_between.max(self.applications[at][&id].sent - read);
    }

    fn read(&mut self, at: usize, id: u32) {
        let now = self.net.now();
        let Some(link) = &mut self.links[at] else { return };
        let Some(application) = self.applications[at].get_mut(&id) else { return };
        if application.script.reads_from > now {
            return;
        }
        loop {
            match link.read(self.net.node(at), id) {
                Delivery::Bytes(bytes) => application.got.extend_from_slice(&bytes),
                Delivery::End => application.got_end = true,
                Delivery::Nothing => break,
            }
        }
    }

    /// Checks that everything has arrived at both ends, and that no state of any connection is left.
    fn check(&mut self, what: &str) {
        for (id, scripts) in self.scripts.iter().enumerate() {
            for at in 0..2 {
                let application = self.applications[at].get(&(id as u32)).expect("an application");
                assert!(application.got == scripts[1 - at].sends, "{what}, connection {id} at {at}");
                assert!(application.got_end && application.end.as_deref() == Some("done"), "{what}, {application:?}");
            }
        }
        self.check_nothing_is_left(what);
    }

    fn check_nothing_is_left(&mut self, what: &str) {
        for at in 0..2 {
            assert_eq!(self.links[at].as_ref().map(Link::len), Some(0), "{what}");
            let association = self.association[at].expect("an association");
            let (node, flows) = (self.net.node(at), 0..self.next as u32 + 1);
            let held = |flow| node.receiving(FlowId { association, flow }).map_or(0, |flow| flow.held_bytes());
            assert_eq!(flows.map(held).sum::<u64>(), 0, "{what}");
        }
    }
}

fn small() -> NodeConfig {
    NodeConfig { window_bytes: 100_000, ..NodeConfig::default() }
}

#[test]
fn many_connections_with_half_closes_survive_network_faults() {
    for seed in 0..12 {
        let mut rng = Stream::new(seed, Domain::Test, 2);
        let script = |rng: &mut Stream, seed| Script {
            sends: content([0, 1, 3_000, 150_000][rng.below(4) as usize] + rng.below(2_000) as usize * 7, seed),
            answers: false,
            reads_from: Time::ZERO + Dur::from_ms(rng.below(800)),
        };
        let scripts = (0..30)
            .map(|at| {
                let mut pair = [script(&mut rng, at), script(&mut rng, at + 1000)];
                // Half of the targets answer only after the half-close.
                pair[1].answers = at % 2 == 0;
                pair
            })
            .collect();
        let path = Path {
            loss: rng.unit() * 0.05,
            reordered: rng.unit() * 0.05,
            duplicated: rng.unit() * 0.05,
            priorities: seed % 2 == 0,
            ..Path::default()
        };
        let mut sites = Sites::new(path, small(), scripts, 20, seed);
        sites.run(Dur::from_secs(120));
        sites.check(&format!("seed {seed}"));
    }
}

/// More connections in sequence than flows may be open, over a path that loses the frames that end flows.
#[test]
fn ended_connections_leave_no_state() {
    let script = |size, seed| Script { sends: content(size, seed), ..Script::default() };
    let scripts = (0..400).map(|at| [script(500, at), script(700, at + 1000)]).collect();
    let path = Path { loss: 0.1, delay: Dur::from_ms(2), ..Path::default() };
    let mut sites = Sites::new(path, small(), scripts, 30, 3);
    sites.run(Dur::from_secs(600));
    sites.check("400 connections");
}

/// The target of one connection reads nothing for ten seconds.
#[test]
fn a_stalled_reader_slows_only_its_own_sender() {
    let stalls = Script { reads_from: Time::ZERO + Dur::from_secs(10), ..Script::default() };
    let sends = |size, seed| Script { sends: content(size, seed), ..Script::default() };
    let mut scripts = vec![[sends(1_500_000, 1), stalls]];
    scripts.extend((0..5).map(|at| [sends(200_000, at + 10), sends(200_000, at + 20)]));
    let mut sites = Sites::new(Path { loss: 0.01, ..Path::default() }, small(), scripts, 30, 1);
    sites.run(Dur::from_secs(9));
    for id in 1..6 {
        assert_eq!(sites.applications[0][&id].end.as_deref(), Some("done"), "connection {id}");
    }
    let taken = sites.applications[0][&0].sent;
    assert!((100_000..=210_000).contains(&taken), "{taken} bytes");
    sites.run(Dur::from_secs(60));
    sites.check("a stalled reader");
    // Between the applications are one side's buffer and the other side's window.
    assert!(sites.max_between <= 210_000, "{} bytes", sites.max_between);
}

#[test]
fn a_broken_socket_resets_the_other_one_despite_losses() {
    for (seed, breaks_at) in [(1, 0), (2, 1), (3, 0), (4, 1)] {
        let sends = |seed| Script { sends: content(2_000_000, seed), ..Script::default() };
        let path = Path { loss: 0.1, ..Path::default() };
        let mut sites = Sites::new(path, small(), vec![[sends(1), sends(2)]], 30, seed);
        let mut until = Dur::ZERO;
        while !sites.applications[1].contains_key(&0) {
            until += Dur::from_ms(100);
            assert!(until < Dur::from_secs(20), "seed {seed}");
            sites.run(until);
        }
        let link = sites.links[breaks_at].as_mut().expect("a link");
        link.handle_broken(sites.net.node(breaks_at), 0, "connection reset by peer").expect("a peer");
        sites.end(breaks_at, 0, "broken here");
        sites.run(Dur::from_secs(60));
        let end = sites.applications[1 - breaks_at][&0].end.clone();
        assert_eq!(end.as_deref(), Some("the peer has reset it: connection reset by peer"), "seed {seed}");
        sites.run(Dur::from_secs(90));
        sites.check_nothing_is_left("a broken socket");
    }
}

/// The serving site restarts while requests are on their way.
#[test]
fn requests_without_an_answer_are_repeated_after_a_restart_of_the_serving_site() {
    let sends = |size, seed| Script { sends: content(size, seed), ..Script::default() };
    let scripts = (0..20).map(|at| [sends(30_000, at), sends(20_000, at + 100)]).collect();
    let mut sites = Sites::new(Path::default(), small(), scripts, 30, 1);
    while sites.next == 0 {
        sites.run(sites.net.now() - Time::ZERO + Dur::from_ms(5));
    }
    sites.restart();
    sites.run(Dur::from_secs(40));
    sites.check("a restart");
    assert!(sites.net.now() < Time::ZERO + Dur::from_secs(1), "{}", sites.net.now());
}

/// The dialing site only receives, so that it has nothing to send.
#[test]
fn a_download_ends_within_seconds_after_a_restart_of_the_serving_site() {
    let downloads =
        [Script { answers: true, ..Script::default() }, Script { sends: content(5_000_000, 1), ..Script::default() }];
    let mut sites = Sites::new(Path::default(), small(), vec![downloads], 30, 1);
    sites.run(Dur::from_secs(1));
    assert!(sites.applications[0][&0].got.len() > 100_000 && sites.applications[0][&0].end.is_none());
    sites.restart();
    while sites.applications[0][&0].end.is_none() {
        sites.run(sites.net.now() - Time::ZERO + Dur::from_ms(50));
    }
    let end = sites.applications[0][&0].end.clone();
    assert_eq!(end, Some(CloseReason::Restarted.to_string()));
    assert!(sites.net.now() < Time::ZERO + Dur::from_ms(3_300), "{}", sites.net.now());
}

#[test]
fn a_refusal_of_the_target_reaches_the_application() {
    let sends = Script { sends: content(50_000, 1), ..Script::default() };
    let mut sites = Sites::new(Path::default(), small(), vec![[sends, Script::default()]], 30, 1);
    sites.refuses = true;
    sites.run(Dur::from_secs(20));
    assert_eq!(sites.applications[0][&0].end.as_deref(), Some("connection refused"));
    sites.check_nothing_is_left("a refusal");
}

#[test]
fn a_site_that_violates_the_rules_is_refused() {
    let target = || "host:1".parse::<Target>().expect("a target");
    let open = |connection, flow| Message::Open { connection, flow, target: target() };
    let result_of = |from: usize, messages: &[Message]| {
        let mut net = Virtual::new(Path::default(), small(), 1).expect("settings that fit");
        net.connect().expect("a peer");
        let mut link = None;
        while let Some((at, event)) = net.next_event(Time::ZERO + Dur::from_secs(5)) {
            let now = net.now();
            if let NodeEvent::Opened { association, .. } = event {
                let config = LinkConfig { max_connections: 2, buffer_bytes: 1000 };
                if at == from {
                    for message in messages {
                        net.node(at).write_control(association, message.encode()).expect("room");
                    }
                } else if at == 0 {
                    link = Some(Link::dialing(association, config));
                } else {
                    link = Some(Link::serving(association, config));
                }
            }
            if at != from
                && let Some(link) = &mut link
                && let Err(error) = link.handle_event(now, net.node(at), &event)
            {
                return error.to_string();
            }
        }
        link.map_or("no link".to_owned(), |link| format!("{} connections", link.len()))
    };
    let reset = || Message::Reset { connection: 9, reason: "x".into() };
    let cases: [(usize, Vec<Message>, &str); 8] = [
        (0, vec![open(0, 0), open(1, 1)], "2 connections"),
        (0, vec![open(0, 0), open(1, 1), open(2, 2), open(3, u32::MAX)], "2 connections"),
        (0, vec![open(0, 0), open(0, 1)], "the peer opens a connection twice or out of order"),
        (0, vec![open(7, 0)], "the peer opens a connection twice or out of order"),
        (0, vec![open(0, 0), open(1, 0)], "the peer opens a connection twice or out of order"),
        (0, vec![Message::Opened { connection: 0, flow: 0 }], "the peer sends a message of the other side"),
        (
            1,
            vec![Message::Opened { connection: 0, flow: 0 }],
            "the peer has opened a connection that was not requested",
        ),
        (1, vec![reset(), open(0, 0)], "the peer sends a message of the other side"),
    ];
    for (from, messages, outcome) in cases {
        assert_eq!(result_of(from, &messages), outcome, "{messages:?}");
    }
}

#[test]
fn targets_are_parsed_and_printed() {
    for (text, printed) in
        [("Host.example:22", "host.example:22"), ("[::1]:80", "[::1]:80"), ("10.0.0.1:1", "10.0.0.1:1")]
    {
        assert_eq!(text.parse::<Target>().map(|target| target.to_string()), Ok(printed.to_owned()));
    }
    for wrong in ["", "host", "host:", ":22", "host:0", "host:65536", "a b:1", "host:-1", "[]:1"] {
        assert!(wrong.parse::<Target>().is_err(), "{wrong}");
    }
}
