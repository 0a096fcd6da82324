//! Two ends of a connection, a fixed delay apart, and a script that drops, delays or marks chosen packets.
//!
//! A packet takes no time to send, so that a window goes in an instant and rounds stay apart. Everything
//! that is sent is recorded with its time. Nothing is random but what a script draws from its own stream.

use sparelane_cc::Blueprint;
use sparelane_cc::{Ack, Congestion, CongestionControl, Cx, Limits, Offer, Permit, TailOffer, Value, Values, build};
use sparelane_core::{Domain, Dur, Rate, Stream, Time};
use sparelane_transport::{
    AckSegment, Acknowledgment, Extras, HEADER_BYTES, Receiver, SackBlock, Segment, Sender, Transmit, TransportConfig,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

pub const MSS: u64 = 1000;

/// One way; a round trip is 100 ms.
pub const ONE_WAY: Dur = Dur::from_ms(50);

/// The instant `ms` milliseconds after the start.
pub fn at_ms(ms: u64) -> Time {
    Time::ZERO + Dur::from_ms(ms)
}

/// TCP with SACK and segments of [`MSS`] bytes.
pub fn with_sack() -> TransportConfig {
    TransportConfig { mss_bytes: MSS, ..TransportConfig::default() }
}

/// TCP without SACK.
pub fn without_sack() -> TransportConfig {
    TransportConfig { sack: false, ..with_sack() }
}

/// A controller with these whole-number parameters; those of "rc3" go to the NewReno inside, and it pushes.
pub fn controller(name: &str, params: &[(&'static str, u64)]) -> Box<dyn CongestionControl> {
    let mut given = Values::default();
    for (param, value) in params {
        given.set(param, Value::Whole(*value));
    }
    let mut push = Values::default();
    push.set("feed", Value::Word("push".to_owned()));
    let none = Values::default();
    let (own, inner) = if name == "rc3" { (&push, &given) } else { (&given, &none) };
    build(name, own, &Blueprint::of_any(MSS, inner)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// NewReno with this initial window, in segments.
pub fn newreno(initial_window: u64) -> Box<dyn CongestionControl> {
    controller("newreno", &[("initial_window", initial_window)])
}

/// A window of so many segments that nothing changes.
pub fn constant(window: u64) -> Box<dyn CongestionControl> {
    controller("constant", &[("window", window)])
}

/// Something that one end sends to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    Syn,
    SynAck,
    Data(Segment),
    Ack(AckSegment),
    Probe,
    Reset,
}

/// A packet as it leaves, with the number of packets like it before: of the same segment, or of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    pub at: Time,
    pub item: Item,
    pub earlier: usize,
}

/// A packet under way.
struct OnTheWay {
    item: Item,
    marked: bool,
    blocks: Vec<SackBlock>,
    window: Option<u32>,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Arrive,
    /// Arrives so much later than others.
    Late(Dur),
    /// Arrives with a congestion mark.
    Marked,
    Lost,
}

pub type Script = Box<dyn FnMut(&Sent) -> Fate>;

/// Loses these segments, each as often as it is listed.
pub fn lose(segments: &[u64]) -> Script {
    let mut segments = segments.to_vec();
    Box::new(move |sent| match sent.item {
        Item::Data(segment) => match segments.iter().position(|&seq| seq == segment.seq) {
            Some(found) => {
                segments.swap_remove(found);
                Fate::Lost
            }
            None => Fate::Arrive,
        },
        _ => Fate::Arrive,
    })
}

/// A bottleneck of this rate with an endless queue.
pub fn bottleneck(rate: Rate) -> Script {
    let mut free_at = Time::ZERO;
    Box::new(move |sent| match sent.item {
        Item::Data(segment) => {
            free_at = free_at.max(sent.at) + rate.time_for(u64::from(segment.payload_bytes) + HEADER_BYTES);
            Fate::Late(free_at - sent.at)
        }
        _ => Fate::Arrive,
    })
}

/// The two ends and what is between them.
pub struct Wire {
    pub sender: Sender,
    pub receiver: Receiver,
    pub now: Time,
    pub sent: Vec<Sent>,
    /// The window after each event that changed it, in bytes.
    pub windows: Vec<(Time, u64)>,
    pub one_way: Dur,
    /// The interface is busy for so long with every packet; only tail segments wait for it.
    pub busy: Dur,
    busy_until: Time,
    /// How many packets the busy interface holds, where the sender waits for room and is told that there is none.
    pub holds: Option<u64>,
    awaits_room: bool,
    script: Script,
    on_the_way: BTreeMap<(Time, u64), OnTheWay>,
    order: u64,
    copies: BTreeMap<u64, usize>,
    /// What the routers on the way allow, where the controller asks them for a rate.
    pub explicit_rate: Option<Rate>,
    /// Whether a reset has arrived.
    pub was_reset: bool,
    /// The acknowledgment that the sender heard last.
    pub heard: Option<(AckSegment, Vec<SackBlock>)>,
    /// Whether acknowledgments advertise the receive window.
    pub advertises: bool,
    /// By how much the sender's timers are late.
    pub lateness: Dur,
    /// Whether the ends take what is plain by their short ways.
    pub shortens: bool,
    /// How often they did.
    pub shortened: [u64; 2],
}

impl Wire {
    pub fn new(config: TransportConfig, cc: Box<dyn CongestionControl>, script: Script) -> Wire {
        Wire {
            sender: Sender::new(config, cc, Stream::new(1, Domain::Controller, 0)),
            receiver: Receiver::new(&config),
            now: Time::ZERO,
            sent: Vec::new(),
            windows: Vec::new(),
            one_way: ONE_WAY,
            busy: Dur::ZERO,
            busy_until: Time::ZERO,
            holds: None,
            awaits_room: false,
            script,
            on_the_way: BTreeMap::new(),
            order: 0,
            copies: BTreeMap::new(),
            explicit_rate: None,
            was_reset: false,
            heard: None,
            advertises: false,
            lateness: Dur::ZERO,
            shortens: true,
            shortened: [0; 2],
        }
    }

    /// A connection that transfers so many full segments, run until the sender knows that they arrived.
    pub fn transfer(config: TransportConfig, cc: Box<dyn CongestionControl>, segments: u64, script: Script) -> Wire {
        let mut wire = Wire::new(config, cc, script);
        wire.write(segments);
        wire.run();
        wire
    }

    /// The application writes so many full segments now.
    pub fn write(&mut self, segments: u64) {
        self.write_bytes(segments * MSS);
    }

    pub fn write_bytes(&mut self, bytes: u64) {
        self.sender.write(bytes);
        self.pump();
    }

    /// How many class-0 segments like `pick` are on their way.
    pub fn class0_on_the_way(&self, pick: impl Fn(u64) -> bool) -> u64 {
        let is_one = |item: &Item| matches!(item, Item::Data(segment) if segment.class == 0 && pick(segment.seq));
        self.on_the_way.values().filter(|packet| is_one(&packet.item)).count() as u64
    }

    /// Runs until the sender knows that everything arrived.
    pub fn run(&mut self) {
        while !self.sender.is_done() {
            assert!(self.step(Time::NEVER), "stuck at {}: {:?}", self.now, self.sender);
        }
    }

    /// Runs until nothing happens before `end`.
    pub fn run_until(&mut self, end: Time) {
        while self.step(end) {}
        self.now = end;
    }

    /// The next thing before `end` happens; false where there is none.
    pub fn step(&mut self, end: Time) -> bool {
        let arrival = self.on_the_way.keys().next().map_or(Time::NEVER, |&(at, _)| at);
        let late = self.sender.next_timer().saturating_add(self.lateness);
        let timer = late.min(self.receiver.next_timer());
        let idle =
            if self.sender.tail_class().is_some() && self.busy > Dur::ZERO { self.busy_until } else { Time::NEVER };
        let room = if self.awaits_room { self.room_at() } else { Time::NEVER };
        let next = arrival.min(timer).min(idle).min(room);
        if next >= end {
            return false;
        }
        assert!(next >= self.now, "a timer at {next} is set in the past, at {}", self.now);
        self.now = next;
        if arrival == next
            && let Some((_, packet)) = self.on_the_way.pop_first()
        {
            self.arrive(&packet);
        } else if self.receiver.next_timer() <= next {
            if let Some(ack) = self.receiver.handle_timer(next) {
                self.send(Item::Ack(ack));
            }
        } else if late <= next {
            self.sender.handle_timer(next);
        }
        self.pump();
        true
    }

    fn arrive(&mut self, packet: &OnTheWay) {
        let OnTheWay { item, marked, blocks, window } = packet;
        let (item, marked) = (*item, *marked);
        match item {
            Item::Syn => self.send(Item::SynAck),
            Item::SynAck => self.sender.handle_syn_ack(self.now, self.explicit_rate),
            Item::Data(segment) => {
                let Segment { seq, payload_bytes, .. } = segment;
                let plain = Segment { seq, payload_bytes, class: 0, retransmission: false, window_reduced: false };
                let shortens = self.shortens && segment == plain && !marked && payload_bytes > 0;
                let ack = if shortens && self.receiver.take_next(seq as u32, payload_bytes) {
                    self.shortened[0] += 1;
                    Some(AckSegment::plain(self.receiver.next_expected(), seq))
                } else {
                    self.receiver.handle_data(self.now, segment, marked)
                };
                if let Some(ack) = ack {
                    self.send(Item::Ack(ack));
                }
            }
            Item::Ack(ack) => {
                let AckSegment { cumulative, trigger, .. } = ack;
                let is_plain = blocks.is_empty() && ack == AckSegment::plain(cumulative, trigger);
                let shortens = self.shortens && self.explicit_rate.is_none() && window.is_none() && is_plain;
                if shortens && self.sender.handle_plain_ack(self.now, cumulative as u32, trigger as u32) {
                    self.shortened[1] += 1;
                } else {
                    let extras =
                        Extras { explicit_rate: self.explicit_rate, window_segments: *window, ..Extras::default() };
                    let said = Acknowledgment { segment: ack, blocks, extras: Some(&extras) };
                    let heard = self.sender.handle_any_ack(self.now, &said);
                    let ended = self.sender.ending().is_some();
                    assert!(heard == Ok(()) || ended, "the receiver tells the truth: {heard:?}");
                }
                self.heard = Some((ack, blocks.clone()));
            }
            Item::Probe => self.send(Item::Ack(self.receiver.handle_probe())),
            Item::Reset => self.was_reset = true,
        }
    }

    /// When the interface has room for a packet.
    fn room_at(&self) -> Time {
        let Some(holds) = self.holds else { return Time::ZERO };
        Time::ZERO + (self.busy_until - Time::ZERO).saturating_sub(self.busy * holds)
    }

    /// The sender sends what it may and what there is room for.
    fn pump(&mut self) {
        self.awaits_room = false;
        self.send_all();
        let window = self.sender.controller().limits().cwnd_bytes;
        if self.windows.last().is_none_or(|&(_, last)| last != window) {
            self.windows.push((self.now, window));
        }
    }

    fn send_all(&mut self) {
        loop {
            if self.now < self.room_at() {
                self.awaits_room = true;
                self.sender.handle_full_interface(self.now);
                return;
            }
            let Some(transmit) = self.sender.poll_transmit(self.now, self.now >= self.busy_until) else { return };
            self.busy_until = self.busy_until.max(self.now) + self.busy;
            self.send(match transmit {
                Transmit::Syn => Item::Syn,
                Transmit::Data(segment) => Item::Data(segment),
                Transmit::Probe => Item::Probe,
                Transmit::Reset => Item::Reset,
            });
        }
    }

    fn send(&mut self, item: Item) {
        let copies = match item {
            Item::Data(segment) => self.copies.entry(segment.seq).or_default(),
            Item::Syn => self.copies.entry(u64::MAX).or_default(),
            Item::SynAck => self.copies.entry(u64::MAX - 1).or_default(),
            Item::Ack(_) => self.copies.entry(u64::MAX - 2).or_default(),
            Item::Probe => self.copies.entry(u64::MAX - 3).or_default(),
            Item::Reset => self.copies.entry(u64::MAX - 4).or_default(),
        };
        let sent = Sent { at: self.now, item, earlier: *copies };
        *copies += 1;
        self.sent.push(sent);
        let (late, marked) = match (self.script)(&sent) {
            Fate::Lost => return,
            Fate::Arrive => (Dur::ZERO, false),
            Fate::Marked => (Dur::ZERO, true),
            Fate::Late(by) => (by, false),
        };
        let is_ack = matches!(item, Item::Ack(_));
        let blocks = if is_ack { self.receiver.sack_blocks().to_vec() } else { Vec::new() };
        let window = (is_ack && self.advertises).then(|| self.receiver.window_segments() as u32);
        self.order += 1;
        self.on_the_way.insert((self.now + self.one_way + late, self.order), OnTheWay { item, marked, blocks, window });
    }

    /// When each packet like `pick` left, in milliseconds.
    pub fn times_ms(&self, pick: impl Fn(&Item) -> bool) -> Vec<u64> {
        self.sent.iter().filter(|sent| pick(&sent.item)).map(|sent| to_ms(sent.at)).collect()
    }

    /// The data segments sent, in order, with the millisecond of each.
    pub fn data(&self) -> Vec<(u64, Segment)> {
        let data = self.sent.iter().filter_map(|sent| match sent.item {
            Item::Data(segment) => Some((to_ms(sent.at), segment)),
            _ => None,
        });
        data.collect()
    }

    /// The class-0 segments sent in the millisecond `ms`, in order.
    pub fn sent_at(&self, ms: u64) -> Vec<u64> {
        let then = self.data().into_iter().filter(|(at, segment)| *at == ms && segment.class == 0);
        then.map(|(_, segment)| segment.seq).collect()
    }

    /// How many class-0 segments were sent in each round that sent any.
    pub fn rounds(&self) -> Vec<usize> {
        let mut rounds = BTreeMap::new();
        for (ms, _) in self.data().into_iter().filter(|(_, segment)| segment.class == 0) {
            *rounds.entry(ms / 100).or_insert(0) += 1;
        }
        rounds.into_values().collect()
    }

    /// The class-0 segments that were sent before, in order, with the millisecond of each.
    pub fn resent(&self) -> Vec<(u64, u64)> {
        let resent = self.data().into_iter().filter(|(_, segment)| segment.retransmission);
        resent.map(|(ms, segment)| (ms, segment.seq)).collect()
    }

    /// The segments sent from the tail, in order, with their class.
    pub fn low(&self) -> Vec<(u64, u8)> {
        let low = self.data().into_iter().filter(|(_, segment)| segment.class > 0);
        low.map(|(_, segment)| (segment.seq, segment.class)).collect()
    }

    /// The window in the millisecond `ms`, after all that happened then, in bytes.
    pub fn window_at(&self, ms: u64) -> u64 {
        let until = self.windows.iter().take_while(|(at, _)| to_ms(*at) <= ms);
        until.last().map_or(0, |&(_, window)| window)
    }
}

fn to_ms(time: Time) -> u64 {
    (time - Time::ZERO).as_ps() / Dur::from_ms(1).as_ps()
}

/// What a controller was told about congestion, and when in milliseconds.
pub type Log = Arc<Mutex<Vec<(u64, Congestion)>>>;

/// A controller that notes what it is told about congestion.
#[derive(Debug)]
pub struct Noting {
    inner: Box<dyn CongestionControl>,
    log: Log,
    delivered_bytes: Arc<Mutex<u64>>,
}

impl Noting {
    /// `inner` with a log of the congestion that it is told of, and the bytes that it is told were delivered.
    pub fn around(inner: Box<dyn CongestionControl>) -> (Box<dyn CongestionControl>, Log, Arc<Mutex<u64>>) {
        let (log, delivered_bytes) = (Log::default(), Arc::new(Mutex::new(0)));
        let noting = Noting { inner, log: log.clone(), delivered_bytes: delivered_bytes.clone() };
        (Box::new(noting), log, delivered_bytes)
    }
}

impl CongestionControl for Noting {
    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        *self.delivered_bytes.lock().expect("one thread") += ack.delivered_bytes;
        self.inner.on_ack(ack, cx);
    }

    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>) {
        self.log.lock().expect("one thread").push((to_ms(cx.now), event));
        self.inner.on_congestion(event, cx);
    }

    fn on_repaired(&mut self, resent_bytes: u64, cx: &mut Cx<'_>) {
        self.inner.on_repaired(resent_bytes, cx);
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn owns_send_clock(&self) -> bool {
        self.inner.owns_send_clock()
    }

    fn poll_send(&mut self, offer: &Offer, cx: &mut Cx<'_>) -> Permit {
        self.inner.poll_send(offer, cx)
    }

    fn uses_tail(&self) -> bool {
        self.inner.uses_tail()
    }

    fn lowest_class(&self) -> u8 {
        self.inner.lowest_class()
    }

    fn tail_class(&self, tail: &TailOffer) -> Option<u8> {
        self.inner.tail_class(tail)
    }
}
