//! The contract between a controller and the transport that drives it.
//!
//! The transport owns the connection: sequence numbers, loss detection, retransmission. It reports events to the
//! controller and obeys its [`Limits`] or its [`Permit`]s. All volumes are payload bytes of class 0 unless stated
//! otherwise.

use crate::param::Values;
use crate::registry::Blueprint;
use sparelane_core::{Dur, Rate, Seq, Stream, Time};
use std::any::Any;
use std::fmt::Debug;

/// The context of every call into a controller: the time, the path as measured so far, and the controller's own random
/// numbers.
#[derive(Debug)]
pub struct Cx<'a> {
    /// The current instant.
    pub now: Time,
    /// Payload bytes of a full segment.
    pub mss_bytes: u64,
    /// Smoothed round-trip time (RFC 6298), once there is a sample.
    pub srtt: Option<Dur>,
    /// The smallest round-trip time seen on this connection, once there is a sample.
    pub min_rtt: Option<Dur>,
    /// This flow's random numbers.
    pub rng: &'a mut Stream,
}

/// The state of loss recovery when an event reaches a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No loss is being repaired.
    Open,
    /// Fast recovery. The window was cut for this episode and does not change until the episode ends.
    Recovery,
    /// Recovery from a retransmission timeout.
    Timeout,
}

/// The optional signals that a controller requests. Each costs the transport extra work. Read once per connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Requests events of single segments: [`CongestionControl::on_sent`], [`CongestionControl::on_lost`] and
    /// [`Ack::delivery`].
    pub segments: bool,
    /// Requests [`Ack::one_way_delay`].
    pub one_way_delay: bool,
    /// Requests [`Ack::received`]. An acknowledgment has room for either this or the one-way delay, so a controller
    /// must not request both.
    pub receive_time: bool,
    /// Requests [`Ack::host_delay`]. An acknowledgment has room for one time only, so a controller must not request
    /// this together with the one-way delay or the receive time.
    pub host_delay: bool,
    /// Requests [`Ack::nic_backlog_bytes`].
    pub nic_backlog: bool,
    /// Requests [`CongestionControl::on_timer`].
    pub timer: bool,
    /// Requests [`CongestionControl::on_tail_delivered`].
    pub tail: bool,
    /// Requests exact [`Ack::ecn_echo`] and [`Ack::marked_bytes`] (RFC 8257 section 3.2, RFC 9768). Both ends must be
    /// configured for it.
    pub exact_marks: bool,
    /// Requests [`CongestionControl::on_telemetry`]. Data packets then carry in-band telemetry, which takes
    /// [`TELEMETRY_BYTES`] of every packet.
    pub telemetry: bool,
    /// The controller is scalable (RFC 9331 section 4): its rate falls with the reciprocal of the marked share. If both
    /// ends negotiate accurate ECN, its packets are ECT(1).
    pub scalable: bool,
}

/// The bytes that in-band telemetry takes in every packet: 2 bytes for the number of hops and the path, and 8 bytes for
/// each of 5 hops (HPCC, SIGCOMM 2019 section 4.1). `int-header.h` of the authors' simulator has the same layout. The 64
/// bits of a hop are 3 for the rate, 24 for the time, 20 for the bytes sent and 17 for the backlog. Every packet has
/// room for 5 hops, also on shorter paths.
pub const TELEMETRY_BYTES: u64 = 42;

/// The path from a sender to its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathFacts {
    /// The number of routers.
    pub routers: u32,
    /// The time for a full packet to the receiver and an acknowledgment back, while nothing else is on the path.
    pub base_rtt: Dur,
}

/// The state of an output port when a data packet left it, as in-band telemetry reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The number of the port, which no other port has.
    pub port: u32,
    /// The rate of its link.
    pub rate: Rate,
    /// The time at which the transmission of the packet began.
    pub at: Time,
    /// Bytes that waited at this time, without the packet.
    pub queue_bytes: u64,
    /// Bytes that the port had sent before the packet.
    pub sent_bytes: u64,
}

/// The telemetry that a segment collected on its path, as its acknowledgment returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Telemetry<'a> {
    /// The segment's number, counted from 0 at the start of the connection.
    pub segment: Seq,
    /// The number of the next new segment (SND.NXT).
    pub next: Seq,
    /// The ports that wrote telemetry, in the order of the path.
    pub hops: &'a [Hop],
}

/// The rate sample that a delivered segment yields (draft-cheng-iccrg-delivery-rate-estimation-02). Volumes are class-0
/// payload, in full segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Time of the segment's last transmission.
    pub sent_at: Time,
    /// Total bytes delivered when the segment was sent. The acknowledgment of a segment sent at delivered count D ends
    /// the round trip that began at D.
    pub prior_delivered_bytes: u64,
    /// Total bytes delivered, including this segment.
    pub total_delivered_bytes: u64,
    /// Bytes presumed lost since the segment was sent.
    pub lost_bytes: u64,
    /// Bytes in flight just after the segment was sent.
    pub in_flight_bytes: u64,
    /// The longer of the send interval and the acknowledgment interval of the bytes delivered since the segment was
    /// sent.
    pub interval: Dur,
    /// True if the application, rather than the window or the pace, limited the sender when the segment was sent.
    pub app_limited: bool,
}

impl Delivery {
    /// Bytes delivered since the segment was sent.
    pub const fn delivered_bytes(&self) -> u64 {
        self.total_delivered_bytes - self.prior_delivered_bytes
    }

    /// Returns the delivery rate over the interval, payload only. Returns `None` if the interval is shorter than the
    /// path's round trip: compressed acknowledgments would overstate the rate.
    pub fn rate(&self, min_rtt: Option<Dur>) -> Option<Rate> {
        let plausible = !self.interval.is_zero() && min_rtt.is_none_or(|min_rtt| self.interval >= min_rtt);
        plausible.then(|| Rate::of(self.delivered_bytes(), self.interval))
    }
}

/// The arrival of a segment, as the receiver reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The segment's number, counted from 0 at the start of the connection.
    pub segment: Seq,
    /// The receiver's clock at the arrival. It may differ from the sender's clock by a constant.
    pub at: Time,
}

/// A class-0 segment that was just sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The segment's number, counted from 0 at the start of the connection.
    pub segment: Seq,
    /// Payload bytes.
    pub bytes: u64,
    /// Class-0 bytes in flight, including this segment.
    pub in_flight_bytes: u64,
    /// True if the segment was sent before.
    pub is_retransmission: bool,
    /// True if the application, rather than the window or the pace, limited the sender until now.
    pub app_limited: bool,
}

/// A segment that has left the pacing scheduler below TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The segment's number, counted from 0 at the start of the connection.
    pub segment: Seq,
    /// True if the segment was sent before.
    pub is_retransmission: bool,
    /// Number of segments still queued behind it.
    pub waiting: u32,
}

/// A class-0 segment that has just been presumed lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The segment's number, as in [`Sent::segment`].
    pub segment: Seq,
    /// Payload bytes; every segment counts as a full one.
    pub bytes: u64,
    /// Time of the segment's last transmission.
    pub sent_at: Time,
    /// Class-0 bytes in flight just after the segment was sent.
    pub in_flight_bytes: u64,
    /// Bytes presumed lost since the segment was sent, including it.
    pub lost_bytes: u64,
    /// True if the application limited the sender when the segment was sent.
    pub app_limited: bool,
}

/// One acknowledgment of class-0 data, delivered after loss detection has processed it.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Bytes newly acknowledged in sequence.
    pub acked_bytes: u64,
    /// Bytes newly known to have arrived, in sequence or by SACK.
    pub delivered_bytes: u64,
    /// The round-trip time of the segment that caused this acknowledgment, if unambiguous.
    pub rtt: Option<Dur>,
    /// The round-trip time of the retransmission that caused this acknowledgment, from timestamps in whole ticks of
    /// their clock. Present only if the transport measures it, as Linux does.
    pub resent_rtt: Option<Dur>,
    /// Class-0 bytes still in flight after this acknowledgment.
    pub in_flight_bytes: u64,
    /// True if the window, rather than a lack of data, last stopped the sender.
    pub cwnd_limited: bool,
    /// The state of loss recovery.
    pub phase: Phase,
    /// True if the receiver echoes congestion experienced (ECN). With exact or accurate feedback it is set on the
    /// acknowledgments of marked data and on no others.
    pub ecn_echo: bool,
    /// The number of segments that this acknowledgment reports as marked for the first time. With exact feedback, these
    /// are all delivered segments of an acknowledgment with an echo; with classic ECN it is zero.
    pub marked_segments: u64,
    /// Payload bytes of these segments.
    pub marked_bytes: u64,
    /// The lowest rate that the routers on the path granted, as echoed by the receiver. Present for controllers that
    /// [request a rate](CongestionControl::desired_rate).
    pub explicit_rate: Option<Rate>,
    /// The rate sample of the segment that caused this acknowledgment, if this is its first acknowledgment. Present for
    /// controllers that [request](Needs::segments) it.
    pub delivery: Option<Delivery>,
    /// The one-way delay of that segment, for controllers that [request](Needs::one_way_delay) it. The two clocks may
    /// differ by a constant.
    pub one_way_delay: Option<Dur>,
    /// The number and arrival time of that segment, for controllers that [request](Needs::receive_time) them; `None` if
    /// the segment was sent more than once.
    pub received: Option<Received>,
    /// The part of the round-trip time that was spent inside the two hosts, for controllers that
    /// [request](Needs::host_delay) it: from the arrival of that segment at the receiver's interface to the departure
    /// of this acknowledgment, and from its arrival at the sender's interface to now. `None` on real networks.
    pub host_delay: Option<Dur>,
    /// Bytes queued at the sender's interface, for controllers that [request](Needs::nic_backlog) them; zero for
    /// others.
    pub nic_backlog_bytes: u64,
}

impl Ack {
    /// An acknowledgment of `bytes` in sequence with every other field at its neutral value. Tests of controllers start
    /// from it.
    pub const fn in_sequence(bytes: u64) -> Ack {
        Ack {
            acked_bytes: bytes,
            delivered_bytes: bytes,
            rtt: None,
            resent_rtt: None,
            in_flight_bytes: 0,
            cwnd_limited: true,
            phase: Phase::Open,
            ecn_echo: false,
            marked_segments: 0,
            marked_bytes: 0,
            explicit_rate: None,
            delivery: None,
            one_way_delay: None,
            received: None,
            host_delay: None,
            nic_backlog_bytes: 0,
        }
    }
}

/// A congestion event. Each is reported once per episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// Loss detection starts an episode of fast recovery.
    Loss {
        /// Bytes sent and not cumulatively acknowledged (RFC 5681's FlightSize).
        flight_bytes: u64,
    },
    /// The retransmission timer fired.
    Timeout {
        /// Bytes sent and not cumulatively acknowledged.
        flight_bytes: u64,
        /// True for the first timeout of this data, false for a backed-off repetition.
        first: bool,
    },
    /// Congestion without a loss left to repair, reported at most once per window. It has three causes:
    /// - the receiver echoed a congestion mark (RFC 3168);
    /// - on hosts that do so, a segment found its own interface's queue full and waits for room;
    /// - a tail loss probe repaired a loss (RFC 8985 section 7.4).
    Marked {
        /// Bytes sent and not cumulatively acknowledged.
        flight_bytes: u64,
        /// True if the receiver echoed a congestion mark.
        by_ecn: bool,
    },
    /// The SYN or the SYN-ACK was lost: the connection starts with a window of one segment (RFC 5681 section 3.1).
    LostSyn,
    /// The last [`Congestion::Loss`] or [`Congestion::Timeout`] was spurious: the original segment arrived.
    Spurious,
}

/// The end of an idle period: the connection is about to send, has nothing in flight, and has sent nothing for longer
/// than its retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restart {
    /// The time since the last transmission.
    pub idle: Dur,
    /// The retransmission timeout.
    pub rto: Dur,
    /// The rule for the window.
    pub rule: RestartRule,
}

/// The rule for the window after an idle period. Both rules end at the restart window: the initial window or the
/// present one, whichever is smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartRule {
    /// RFC 5681 section 4.1: the restart window. The slow-start threshold stays.
    Rfc5681,
    /// RFC 2861 section 3.1, as Linux does it: the window is halved once per retransmission timeout of idleness, down
    /// to the restart window. Slow start may regain three quarters of the old window.
    Linux,
}

/// The window and the pace that a controller allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Congestion window: class-0 bytes that may be in flight. A window below one segment lets one segment out while
    /// nothing is in flight. Only a controller that paces may report such a window; its pace then sets the rate.
    pub cwnd_bytes: u64,
    /// Pacing rate of class-0 segments, counted with 40 bytes of header each, whatever their header on the wire. With
    /// `None`, segments leave as soon as the window opens. A controller either paces for the whole connection or never.
    pub pacing: Option<Rate>,
}

/// The state of the tail of the send buffer, for controllers that send from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailOffer {
    /// Number of segments of the current write already sent from the tail.
    pub sent_in_write: u32,
}

/// The segments that the transport could send now. At least one of the two ends has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Bytes of the next class-0 segment (a retransmission or new data), if recovery and the pace allow one.
    pub head_bytes: Option<u64>,
    /// True if that segment was sent before.
    pub head_is_resent: bool,
    /// The next segment from the tail, if one is left that neither end has sent.
    pub tail: Option<TailOffer>,
    /// Class-0 bytes in flight, as loss recovery counts them.
    pub in_flight_bytes: u64,
    /// Bytes by which loss recovery lets the head exceed the controller's window (limited transmit, NewReno's window
    /// inflation).
    pub allowance_bytes: u64,
    /// True if the host's network interface has nothing to send.
    pub nic_idle: bool,
}

/// The end of the send buffer that a segment is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhichEnd {
    /// The next class-0 segment.
    Head,
    /// The last segment that neither end has sent.
    Tail,
}

/// One segment to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Priority class, 0 the highest.
    pub class: u8,
    /// The end of the send buffer.
    pub end: WhichEnd,
}

/// A controller's answer to an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// Send this segment now.
    Send(Plan),
    /// Ask again at this time.
    NotBefore(Time),
    /// Send nothing until the next event.
    Blocked,
}

impl Permit {
    /// Send the next class-0 segment.
    pub const HEAD: Permit = Permit::Send(Plan { class: 0, end: WhichEnd::Head });
}

/// A congestion controller.
///
/// The transport calls [`on_ack`](Self::on_ack) once per class-0 acknowledgment and
/// [`on_congestion`](Self::on_congestion) once per episode, and reads [`limits`](Self::limits) after each. The window
/// of a controller that does not pace never falls below one segment. Other windows, and pacing rates, are above zero.
///
/// Every controller is [`Any`]: downcast `&mut dyn CongestionControl` to `&mut dyn Any` to reach the concrete type, as
/// a learning agent does that drives a connection from outside.
pub trait CongestionControl: Any + Debug + Send {
    /// Returns true if controllers of this kind share state, so that all of a run must run on one thread, in order.
    fn needs_one_thread(&self) -> bool {
        false
    }

    /// Returns the optional signals that this controller requests.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Returns the rate, headers included, that this connection requests from the routers on its path, or `None` if it
    /// does not use explicit rates. Whether a rate is requested is read once per connection, the rate itself for every
    /// packet.
    fn desired_rate(&self) -> Option<Rate> {
        None
    }

    /// Returns the slow-start threshold in bytes, [`u64::MAX`] in the first slow start, or `None` for a controller
    /// without one.
    fn slow_start_threshold(&self) -> Option<u64> {
        None
    }

    /// Starts the connection with a slow-start threshold of `bytes`, instead of the one of its settings. Called before
    /// [`on_established`](Self::on_established), if at all. Controllers without a threshold ignore it.
    fn start_at_threshold(&mut self, bytes: u64) {
        let _ = bytes;
    }

    /// Reports the path to the receiver, before [`on_established`](Self::on_established). Real networks do not report
    /// it.
    fn on_path(&mut self, path: PathFacts) {
        let _ = path;
    }

    /// Reports that the handshake is complete. Nothing has been sent yet. `explicit_rate` is as in
    /// [`Ack::explicit_rate`].
    fn on_established(&mut self, explicit_rate: Option<Rate>, cx: &mut Cx<'_>) {
        let _ = (explicit_rate, cx);
    }

    /// Reports the telemetry that the next acknowledgment of class 0 returns, before [`on_ack`](Self::on_ack). Called
    /// only if [`Needs::telemetry`] is set.
    fn on_telemetry(&mut self, telemetry: &Telemetry<'_>, cx: &mut Cx<'_>) {
        let _ = (telemetry, cx);
    }

    /// Reports an acknowledgment, after loss detection.
    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>);

    /// Calls [`on_ack`](Self::on_ack) and returns the resulting window in bytes. Saves the transport a second dynamic
    /// call.
    fn window_after(&mut self, ack: &Ack, cx: &mut Cx<'_>) -> u64 {
        self.on_ack(ack, cx);
        self.limits().cwnd_bytes
    }

    /// Reports congestion, before the first retransmission that it causes.
    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>);

    /// Reports the end of the episode that began with [`Congestion::Loss`] or [`Congestion::Timeout`]: every loss is
    /// repaired. `resent_bytes` were retransmitted in it.
    fn on_repaired(&mut self, resent_bytes: u64, cx: &mut Cx<'_>) {
        let _ = (resent_bytes, cx);
    }

    /// Reports the end of an idle period, before the first segment after it. Called only if the transport is configured
    /// for it. Controllers that pace, or that measure bandwidth, ignore it, as BBR does in Linux.
    fn on_restart(&mut self, restart: &Restart, cx: &mut Cx<'_>) {
        let _ = (restart, cx);
    }

    /// Reports that the application starts a further flow on this connection, whose earlier flows are complete.
    /// `values` are those that the controller was built from, and `plan` describes the new flow. Nothing has been
    /// written yet.
    fn on_next_flow(&mut self, values: &Values, plan: &Blueprint<'_>) {
        let _ = (values, plan);
    }

    /// Reports a class-0 segment that was sent. Called only if [`Needs::segments`] is set.
    fn on_sent(&mut self, sent: &Sent, cx: &mut Cx<'_>) {
        let _ = (sent, cx);
    }

    /// Reports a class-0 segment that is presumed lost. The call precedes the [`Congestion`] event that the loss may
    /// cause and the acknowledgment that revealed it. Called only if [`Needs::segments`] is set.
    fn on_lost(&mut self, lost: &Lost, cx: &mut Cx<'_>) {
        let _ = (lost, cx);
    }

    /// Returns the next time at which to call [`on_timer`](Self::on_timer), later than now. Read only if
    /// [`Needs::timer`] is set.
    fn next_timer(&self) -> Time {
        Time::NEVER
    }

    /// Reports that the time returned by [`next_timer`](Self::next_timer) has come.
    fn on_timer(&mut self, cx: &mut Cx<'_>) {
        let _ = cx;
    }

    /// Returns the current window and pacing rate.
    fn limits(&self) -> Limits;

    /// Returns true if a change of the pace also moves the departure of the next segment. Otherwise a segment keeps the
    /// departure time that followed from the pace when the segment before it was sent. Controllers whose pace may leave
    /// many round trips between two segments need this. Read once per connection.
    fn repaces(&self) -> bool {
        false
    }

    /// Returns false if ECN marks change nothing. Senders whose packets are ECN-capable must react (RFC 3168 section 5).
    fn reacts_to_marks(&self) -> bool {
        true
    }

    /// Returns true if this controller decides about each segment in [`poll_send`](Self::poll_send). Otherwise the
    /// transport itself enforces the window and the pace of [`limits`](Self::limits). Read once per connection.
    fn owns_send_clock(&self) -> bool {
        false
    }

    /// Decides which segment may be sent now. Called for controllers that own the send clock and for the controllers
    /// inside them. The transport applies the pace of `limits` before it offers the head, and may ask without sending
    /// afterwards. The default is the window rule.
    #[inline]
    fn poll_send(&mut self, offer: &Offer, cx: &mut Cx<'_>) -> Permit {
        let _ = cx;
        permit_by_window(self.limits(), offer)
    }

    /// Returns true if a scheduler below TCP holds this connection's segments, in the order in which TCP hands them
    /// down, until this controller releases them. TCP itself then enforces the window alone. Read once per connection.
    fn schedules_departures(&self) -> bool {
        false
    }

    /// Returns the release time of the first segment in the scheduler; a time in the past means now.
    fn next_departure(&mut self, cx: &mut Cx<'_>) -> Time {
        cx.now
    }

    /// Reports that a segment has left the scheduler.
    fn on_departure(&mut self, departure: &Departure, cx: &mut Cx<'_>) {
        let _ = (departure, cx);
    }

    /// Returns true if this controller ever sends from the tail of the buffer. Read once per connection.
    fn uses_tail(&self) -> bool {
        false
    }

    /// Reports that the receiver acknowledged `segments` segments in a low class: those that the acknowledgment reports
    /// for the first time, and at least the one that caused it. Called only if [`Needs::tail`] is set.
    fn on_tail_delivered(&mut self, segments: u32, cx: &mut Cx<'_>) {
        let _ = (segments, cx);
    }

    /// Returns true if segments may wait for a pace or a schedule of this controller, and hence for timers of the host.
    fn paces(&self) -> bool {
        true
    }

    /// Returns the highest class number that this controller sends in. Read once per connection.
    fn lowest_class(&self) -> u8 {
        0
    }

    /// Returns the class that a tail segment would have if sent now, or `None` if this controller would not send it
    /// even on an idle interface. A host uses the class to choose among flows that share its interface.
    fn tail_class(&self, tail: &TailOffer) -> Option<u8> {
        let _ = tail;
        None
    }

    /// Returns the scheduled time of the segment sent last, by the clock of a controller that owns its send clock. Used
    /// in packet logs.
    fn last_due(&self) -> Option<Time> {
        None
    }

    /// Reports internal quantities by name, for traces.
    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("cwnd_bytes", self.limits().cwnd_bytes as f64);
    }
}

/// The plain window rule: a class-0 segment may be sent if it fits into the window.
#[inline(always)]
pub fn permit_by_window(limits: Limits, offer: &Offer) -> Permit {
    match offer.head_bytes {
        Some(bytes) if offer.in_flight_bytes + bytes <= limits.cwnd_bytes.max(bytes) + offer.allowance_bytes => {
            Permit::HEAD
        }
        _ => Permit::Blocked,
    }
}

/// Returns the value that a controller traces under a name; NaN if it traces none of that name.
#[cfg(test)]
pub(crate) fn traced(controller: &dyn CongestionControl, wanted: &str) -> f64 {
    let mut found = f64::NAN;
    controller.trace(&mut |name, value| {
        if name == wanted {
            found = value;
        }
    });
    found
}
