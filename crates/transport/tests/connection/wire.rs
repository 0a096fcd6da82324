//! A sender and a receiver with a fixed delay between them, and a script that drops, delays or marks chosen packets.
//!
//! Transmission takes no time, so a window is sent at one instant and rounds do not overlap. All packets are recorded
//! with their send times. The only randomness is that of the scripts.

use sparelane_cc::Blueprint;
use sparelane_cc::{Ack, Congestion, CongestionControl, Cx, Limits, Offer, Permit, TailOffer, Value, Values, build};
use sparelane_core::{Domain, Dur, Rate, Stream, Time};
use sparelane_transport::{
    AccurateEcho, AckSegment, Acknowledgment, Ecn, EcnField, EcnFlags, Extras, HEADER_BYTES, Receiver, SackBlock,
    Segment, Sender, Transmit, TransportConfig,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

pub const MSS: u64 = 1000;

/// The one-way delay. A round trip is 100 ms.
pub const ONE_WAY: Dur = Dur::from_ms(50);

/// Returns the time `ms` milliseconds after the start.
pub fn at_ms(ms: u64) -> Time {
    Time::ZERO + Dur::from_ms(ms)
}

/// Returns the default settings with segments of [`MSS`] bytes.
pub fn with_sack() -> TransportConfig {
    TransportConfig { mss_bytes: MSS, ..TransportConfig::default() }
}

/// Returns [`with_sack`] with SACK disabled.
pub fn without_sack() -> TransportConfig {
    TransportConfig { sack: false, ..with_sack() }
}

/// Builds a controller with whole-number parameters. For `rc3`, `feed` is `push`, and the parameters are those of the
/// inner NewReno.
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

/// Builds NewReno with an initial window in segments.
pub fn newreno(initial_window: u64) -> Box<dyn CongestionControl> {
    controller("newreno", &[("initial_window", initial_window)])
}

/// Builds a controller with a constant window in segments.
pub fn constant(window: u64) -> Box<dyn CongestionControl> {
    controller("constant", &[("window", window)])
}

/// A packet that one end sends to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    Syn,
    SynAck,
    Data(Segment),
    Ack(AckSegment),
    Probe,
    Reset,
}

/// A packet at its transmission, with the number of earlier packets of the same segment or the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    pub at: Time,
    pub item: Item,
    pub earlier: usize,
}

/// A packet in flight.
struct InFlight {
    item: Item,
    marked: bool,
    blocks: Vec<SackBlock>,
    window: Option<u32>,
    accurate: Option<AccurateEcho>,
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Arrive,
    /// Arrives with this extra delay.
    Late(Dur),
    /// Arrives with a congestion mark.
    Marked,
    Lost,
}

pub type Script = Box<dyn FnMut(&Sent) -> Fate>;

/// Drops the listed segments, each as often as it is listed.
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

/// Simulates a bottleneck with an unlimited queue.
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

/// A sender, a receiver and the path between them.
pub struct Wire {
    pub sender: Sender,
    pub receiver: Receiver,
    pub now: Time,
    pub sent: Vec<Sent>,
    /// The window after each event that changed it, in bytes.
    pub windows: Vec<(Time, u64)>,
    pub one_way: Dur,
    /// The transmission time of a packet at the sender's interface. Only segments from the tail wait for the interface.
    pub busy: Dur,
    busy_until: Time,
    /// The capacity of the interface's queue in packets. If it is full, the sender is notified and waits.
    pub queue_limit: Option<u64>,
    awaits_room: bool,
    script: Script,
    in_flight: BTreeMap<(Time, u64), InFlight>,
    order: u64,
    copies: BTreeMap<u64, usize>,
    /// The rate granted by the routers, if the controller requests one.
    pub explicit_rate: Option<Rate>,
    /// A reset has arrived.
    pub was_reset: bool,
    /// The last acknowledgment that arrived at the sender.
    pub last_ack: Option<(AckSegment, Vec<SackBlock>)>,
    /// Acknowledgments advertise the receive window.
    pub advertises: bool,
    /// Both ends negotiate accurate ECN.
    accurate: bool,
    /// The flags AE, CWR and ECE of the SYN and of the SYN-ACK.
    pub handshake_flags: [EcnFlags; 2],
    /// The accurate ECN feedback of each acknowledgment that arrived at the sender.
    pub feedback: Vec<AccurateEcho>,
    /// The delay of the sender's timers.
    pub lateness: Dur,
    /// Both ends try their fast paths first.
    pub fast_paths: bool,
    /// The number of data segments and acknowledgments processed on the fast paths.
    pub fast_path_counts: [u64; 3],
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
            queue_limit: None,
            awaits_room: false,
            script,
            in_flight: BTreeMap::new(),
            order: 0,
            copies: BTreeMap::new(),
            explicit_rate: None,
            was_reset: false,
            last_ack: None,
            advertises: false,
            accurate: config.ecn == Ecn::Accurate,
            handshake_flags: [0; 2],
            feedback: Vec::new(),
            lateness: Dur::ZERO,
            fast_paths: true,
            fast_path_counts: [0; 3],
        }
    }

    /// Transfers `segments` full segments and runs until all are acknowledged.
    pub fn transfer(config: TransportConfig, cc: Box<dyn CongestionControl>, segments: u64, script: Script) -> Wire {
        let mut wire = Wire::new(config, cc, script);
        wire.write(segments);
        wire.run();
        wire
    }

    /// Writes `segments` full segments now.
    pub fn write(&mut self, segments: u64) {
        self.write_bytes(segments * MSS);
    }

    pub fn write_bytes(&mut self, bytes: u64) {
        self.sender.write(bytes);
        self.pump();
    }

    /// Returns the number of class-0 segments in flight that `pick` selects.
    pub fn class0_in_flight(&self, pick: impl Fn(u64) -> bool) -> u64 {
        let is_one = |item: &Item| matches!(item, Item::Data(segment) if segment.class == 0 && pick(segment.seq));
        self.in_flight.values().filter(|packet| is_one(&packet.item)).count() as u64
    }

    /// Runs until all data is acknowledged.
    pub fn run(&mut self) {
        while !self.sender.is_done() {
            assert!(self.step(Time::NEVER), "stuck at {}: {:?}", self.now, self.sender);
        }
    }

    /// Processes all events before `end`.
    pub fn run_until(&mut self, end: Time) {
        while self.step(end) {}
        self.now = end;
    }

    /// Processes the next event before `end`. Returns `false` if no event is left before `end`.
    pub fn step(&mut self, end: Time) -> bool {
        let arrival = self.in_flight.keys().next().map_or(Time::NEVER, |&(at, _)| at);
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
            && let Some((_, packet)) = self.in_flight.pop_first()
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

    fn arrive(&mut self, packet: &InFlight) {
        let InFlight { item, marked, blocks, window, accurate } = packet;
        let (item, marked) = (*item, *marked);
        match item {
            Item::Syn => {
                if self.accurate {
                    let syn = self.sender.syn_flags();
                    self.handshake_flags = [syn, self.receiver.handle_syn(syn)];
                }
                self.send(Item::SynAck);
            }
            Item::SynAck => {
                self.sender.handle_syn_ack_flags(self.handshake_flags[1]);
                self.sender.handle_syn_ack(self.now, self.explicit_rate);
            }
            Item::Data(segment) => {
                let Segment { seq, payload_bytes, .. } = segment;
                let plain = Segment { seq, payload_bytes, class: 0, retransmission: false, window_reduced: false };
                let fast_paths = self.fast_paths && segment == plain && !marked && payload_bytes > 0;
                let ack = if self.accurate {
                    let field = if marked { EcnField::Ce } else { EcnField::Ect1 };
                    self.receiver.handle_counted_data(self.now, segment, field)
                } else if fast_paths && self.receiver.handle_data_fast(seq as u32, payload_bytes) {
                    self.fast_path_counts[0] += 1;
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
                let has_extras = self.explicit_rate.is_some() || window.is_some() || accurate.is_some();
                let fast_paths = self.fast_paths && !has_extras;
                if fast_paths && is_plain && self.sender.handle_ack_fast(self.now, cumulative as u32, trigger as u32) {
                    self.fast_path_counts[1] += 1;
                } else if fast_paths && self.sender.handle_sack_fast(self.now, &ack, blocks) {
                    self.fast_path_counts[2] += 1;
                } else {
                    self.feedback.extend(accurate);
                    let (explicit_rate, window_segments) = (self.explicit_rate, *window);
                    let extras =
                        Extras { explicit_rate, window_segments, accurate_ecn: *accurate, ..Extras::default() };
                    let acknowledgment = Acknowledgment { segment: ack, blocks, extras: Some(&extras) };
                    let result = self.sender.handle_ack_slow(self.now, &acknowledgment);
                    let ended = self.sender.ending().is_some();
                    assert!(result == Ok(()) || ended, "invalid acknowledgment: {result:?}");
                }
                self.last_ack = Some((ack, blocks.clone()));
            }
            Item::Probe => self.send(Item::Ack(self.receiver.handle_probe())),
            Item::Reset => self.was_reset = true,
        }
    }

    /// Returns the time at which the interface's queue has room for a packet.
    fn room_at(&self) -> Time {
        let Some(queue_limit) = self.queue_limit else { return Time::ZERO };
        Time::ZERO + (self.busy_until - Time::ZERO).saturating_sub(self.busy * queue_limit)
    }

    /// Sends all segments that the sender and the interface allow.
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
        let accurate = if is_ack { self.receiver.accurate_echo() } else { None };
        let packet = InFlight { item, marked, blocks, window, accurate };
        self.order += 1;
        self.in_flight.insert((self.now + self.one_way + late, self.order), packet);
    }

    /// Returns the send times in milliseconds of the packets that `pick` selects.
    pub fn times_ms(&self, pick: impl Fn(&Item) -> bool) -> Vec<u64> {
        self.sent.iter().filter(|sent| pick(&sent.item)).map(|sent| to_ms(sent.at)).collect()
    }

    /// Returns the data segments sent, with their send times in milliseconds.
    pub fn data(&self) -> Vec<(u64, Segment)> {
        let data = self.sent.iter().filter_map(|sent| match sent.item {
            Item::Data(segment) => Some((to_ms(sent.at), segment)),
            _ => None,
        });
        data.collect()
    }

    /// Returns the class-0 segments sent in the millisecond `ms`, in sending order.
    pub fn sent_at(&self, ms: u64) -> Vec<u64> {
        let then = self.data().into_iter().filter(|(at, segment)| *at == ms && segment.class == 0);
        then.map(|(_, segment)| segment.seq).collect()
    }

    /// Returns the number of class-0 segments sent in each round, without empty rounds.
    pub fn rounds(&self) -> Vec<usize> {
        let mut rounds = BTreeMap::new();
        for (ms, _) in self.data().into_iter().filter(|(_, segment)| segment.class == 0) {
            *rounds.entry(ms / 100).or_insert(0) += 1;
        }
        rounds.into_values().collect()
    }

    /// Returns the retransmissions, with their send times in milliseconds.
    pub fn resent(&self) -> Vec<(u64, u64)> {
        let resent = self.data().into_iter().filter(|(_, segment)| segment.retransmission);
        resent.map(|(ms, segment)| (ms, segment.seq)).collect()
    }

    /// Returns the segments sent from the tail, with their classes.
    pub fn low(&self) -> Vec<(u64, u8)> {
        let low = self.data().into_iter().filter(|(_, segment)| segment.class > 0);
        low.map(|(_, segment)| (segment.seq, segment.class)).collect()
    }

    /// Returns the window in bytes at the end of the millisecond `ms`.
    pub fn window_at(&self, ms: u64) -> u64 {
        let until = self.windows.iter().take_while(|(at, _)| to_ms(*at) <= ms);
        until.last().map_or(0, |&(_, window)| window)
    }
}

pub fn to_ms(time: Time) -> u64 {
    (time - Time::ZERO).as_ps() / Dur::from_ms(1).as_ps()
}

/// The congestion events of a controller, with their times in milliseconds.
pub type Log = Arc<Mutex<Vec<(u64, Congestion)>>>;

/// A wrapper that records the congestion events and the delivered bytes of a controller.
#[derive(Debug)]
pub struct Recorder {
    inner: Box<dyn CongestionControl>,
    log: Log,
    delivered_bytes: Arc<Mutex<u64>>,
}

impl Recorder {
    /// Wraps `inner`, and returns the wrapper, its log of congestion events and its count of delivered bytes.
    pub fn around(inner: Box<dyn CongestionControl>) -> (Box<dyn CongestionControl>, Log, Arc<Mutex<u64>>) {
        let (log, delivered_bytes) = (Log::default(), Arc::new(Mutex::new(0)));
        let recorder = Recorder { inner, log: log.clone(), delivered_bytes: delivered_bytes.clone() };
        (Box::new(recorder), log, delivered_bytes)
    }
}

impl CongestionControl for Recorder {
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
