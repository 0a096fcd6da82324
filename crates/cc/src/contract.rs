//! The contract between a controller and the transport that drives it.

use sparelane_core::{Dur, Rate, Seq, Stream, Time};
use std::any::Any;
use std::fmt::Debug;

/// What every call into a controller carries: the time, the path as measured so far, and the
/// controller's own random numbers.
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

/// Where loss recovery stands when news reaches a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No loss is being repaired.
    Open,
    /// Fast recovery: the window was cut for this episode, and holds until it ends.
    Recovery,
    /// Rebuilding after a retransmission timeout.
    Timeout,
}

/// What a controller wants to be told besides the plain news, which costs a transport more. Asked once per connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// News of single segments: [`CongestionControl::on_sent`], [`CongestionControl::on_lost`] and [`Ack::delivery`].
    pub segments: bool,
    /// [`Ack::one_way_delay`].
    pub one_way_delay: bool,
    /// [`Ack::received`]. An acknowledgment has room for this or for the one-way delay: no controller may ask for both.
    pub receive_time: bool,
    /// [`Ack::nic_backlog_bytes`].
    pub nic_backlog: bool,
    /// [`CongestionControl::on_timer`].
    pub timer: bool,
    /// [`CongestionControl::on_tail_delivered`].
    pub tail: bool,
    /// [`Ack::ecn_echo`] on the acknowledgments of marked data and on no others (RFC 8257 section 3.2), to which both ends
    /// must be set.
    pub exact_marks: bool,
}

/// What the arrival of a segment says of the path since it was sent: a rate sample
/// (draft-cheng-iccrg-delivery-rate-estimation-02). Counts are of class-0 payload, in full segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// When the segment was sent, for the last time.
    pub sent_at: Time,
    /// Bytes that had ever been delivered when it was sent: an acknowledgment of a segment that was sent when that many
    /// had been ends the round trip that began then.
    pub prior_delivered_bytes: u64,
    /// Bytes that have ever been delivered, with this one.
    pub total_delivered_bytes: u64,
    /// Bytes that have been presumed lost since it was sent.
    pub lost_bytes: u64,
    /// Bytes that were in flight just after it was sent.
    pub in_flight_bytes: u64,
    /// The time in which what was delivered since was sent, or was acknowledged, whichever took longer.
    pub interval: Dur,
    /// Whether the application, and not the window or the pace, limited the sender when it was sent.
    pub app_limited: bool,
}

impl Delivery {
    /// Bytes delivered since the segment was sent.
    pub const fn delivered_bytes(&self) -> u64 {
        self.total_delivered_bytes - self.prior_delivered_bytes
    }

    /// The rate of delivery over the interval, payload only; `None` for an interval shorter than the path's round trip,
    /// which acknowledgments that came together would give.
    pub fn rate(&self, min_rtt: Option<Dur>) -> Option<Rate> {
        let plausible = !self.interval.is_zero() && min_rtt.is_none_or(|min_rtt| self.interval >= min_rtt);
        plausible.then(|| Rate::of(self.delivered_bytes(), self.interval))
    }
}

/// When a segment arrived, as the receiver says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its number, counted from 0 at the start of the connection.
    pub segment: Seq,
    /// The receiver's clock at its arrival. The two ends' clocks may differ by a constant.
    pub at: Time,
}

/// A class-0 segment that was just sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its number, counted from 0 at the start of the connection.
    pub segment: Seq,
    /// Its payload.
    pub bytes: u64,
    /// Class-0 bytes in flight, with this segment.
    pub in_flight_bytes: u64,
    /// Whether it was sent before.
    pub is_retransmission: bool,
    /// Whether the application, and not the window or the pace, limited the sender until now.
    pub app_limited: bool,
}

/// A segment that has left the scheduler below TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Its number, counted from 0 at the start of the connection.
    pub segment: Seq,
    /// Whether it was sent before.
    pub is_retransmission: bool,
    /// Segments that wait behind it.
    pub waiting: u32,
}

/// A class-0 segment that is now presumed lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Its number, as in [`Sent::segment`].
    pub segment: Seq,
    /// Its payload, as a full segment.
    pub bytes: u64,
    /// When it was sent, for the last time.
    pub sent_at: Time,
    /// Class-0 bytes that were in flight just after it was sent.
    pub in_flight_bytes: u64,
    /// Bytes that have been presumed lost since it was sent, with this segment.
    pub lost_bytes: u64,
    /// Whether the application limited the sender when it was sent.
    pub app_limited: bool,
}

/// One acknowledgment of class-0 data, after loss detection has run on it.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Bytes newly acknowledged in sequence.
    pub acked_bytes: u64,
    /// Bytes newly known to have arrived, in sequence or by SACK.
    pub delivered_bytes: u64,
    /// The round-trip time of the segment that caused this acknowledgment, where unambiguous.
    pub rtt: Option<Dur>,
    /// The round-trip time of the retransmission that caused this acknowledgment in its place, by timestamps in whole ticks of their
    /// clock, where the transport is set to tell it, as that of Linux.
    pub resent_rtt: Option<Dur>,
    /// Class-0 bytes still in flight after this acknowledgment.
    pub in_flight_bytes: u64,
    /// Whether the window, and not a lack of data, was what last stopped the sender.
    pub cwnd_limited: bool,
    /// Where loss recovery stands.
    pub phase: Phase,
    /// The receiver echoes congestion experienced (ECN).
    pub ecn_echo: bool,
    /// The least rate that the routers on the way allowed, as the receiver echoes it, for controllers that
    /// [ask for one](CongestionControl::desired_rate).
    pub explicit_rate: Option<Rate>,
    /// What the segment that caused this acknowledgment says of the path, where it is news that it arrived, for controllers
    /// that [need](Needs::segments) it.
    pub delivery: Option<Delivery>,
    /// How long that segment was under way, for controllers that [need](Needs::one_way_delay) it. The two clocks may
    /// differ by a constant.
    pub one_way_delay: Option<Dur>,
    /// Which segment that was and when it arrived, for controllers that [need](Needs::receive_time) it; `None` where it was
    /// sent more than once.
    pub received: Option<Received>,
    /// Bytes that wait in the queue of the sender's interface, for controllers that [need](Needs::nic_backlog) it;
    /// zero for others.
    pub nic_backlog_bytes: u64,
}

impl Ack {
    /// `bytes` acknowledged in sequence, with nothing out of the ordinary: what tests of laws begin with, here and elsewhere.
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
            explicit_rate: None,
            delivery: None,
            one_way_delay: None,
            received: None,
            nic_backlog_bytes: 0,
        }
    }
}

/// News of congestion. Each is delivered once per episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// Loss detection starts an episode of fast recovery.
    Loss {
        /// Sent and not cumulatively acknowledged (RFC 5681's FlightSize), bytes.
        flight_bytes: u64,
    },
    /// The retransmission timer fired.
    Timeout {
        /// Sent and not cumulatively acknowledged, bytes.
        flight_bytes: u64,
        /// Whether this is the first timeout for this data, and not a backed-off repetition.
        first: bool,
    },
    /// At most once a window: the receiver echoed a congestion mark (RFC 3168); or, where hosts work so, a segment that was
    /// to go found the queue of its own interface full, and waits there for room; or a tail loss probe has repaired a loss (RFC
    /// 8985 section 7.4). Nothing is left to repair.
    Marked {
        /// Sent and not cumulatively acknowledged, bytes.
        flight_bytes: u64,
    },
    /// The SYN or its answer was lost: the connection starts with a window of one segment (RFC 5681 section 3.1).
    LostSyn,
    /// The last [`Congestion::Loss`] or [`Congestion::Timeout`] was mistaken: the original segment arrived.
    Spurious,
}

/// How much a controller allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Class-0 bytes that may be in flight.
    pub cwnd_bytes: u64,
    /// The pace of class-0 segments, with 40 bytes of header each, whatever header they have on the wire; `None` sends as the
    /// window opens. A controller paces from the start of a connection to its end, or never.
    pub pacing: Option<Rate>,
}

/// The state of the far end of the send buffer, for controllers that send from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailOffer {
    /// Segments of the current write that were already sent from the tail.
    pub sent_in_write: u32,
}

/// What the transport could send now. At least one of the ends has something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Bytes of the next class-0 segment (a retransmission or new data), if recovery and pace allow one.
    pub head_bytes: Option<u64>,
    /// Whether that segment was sent before.
    pub head_is_resent: bool,
    /// The next segment from the tail, where one is left that neither end has sent.
    pub tail: Option<TailOffer>,
    /// Class-0 bytes in flight, as loss recovery counts them.
    pub in_flight_bytes: u64,
    /// Bytes that loss recovery lets the head exceed the controller's window by (limited transmit,
    /// NewReno's inflation).
    pub allowance_bytes: u64,
    /// Whether the host's network interface has nothing to send.
    pub nic_idle: bool,
}

/// Which end of the send buffer a segment is taken from.
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
    /// Which segment.
    pub end: WhichEnd,
}

/// A controller's answer to an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// Send this now.
    Send(Plan),
    /// Ask again at this instant.
    NotBefore(Time),
    /// Nothing until the next news.
    Blocked,
}

impl Permit {
    /// Send the next class-0 segment.
    pub const HEAD: Permit = Permit::Send(Plan { class: 0, end: WhichEnd::Head });
}

/// A congestion controller.
///
/// The transport calls [`on_ack`](Self::on_ack) once per class-0 acknowledgment,
/// [`on_congestion`](Self::on_congestion) once per episode, and reads [`limits`](Self::limits) after
/// each. The window never falls below one segment, and a pacing rate is above zero.
///
/// Every controller is [`Any`]: whoever drives a connection from outside, as a learning agent does, reaches a controller of a type
/// that it knows by a downcast of `&mut dyn CongestionControl` to `&mut dyn Any`.
pub trait CongestionControl: Any + Debug + Send {
    /// What this controller wants to be told.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// The rate that this connection asks the routers on its way for, headers included, if it works with
    /// explicit rates. Whether it does is asked once per connection, the rate for every packet.
    fn desired_rate(&self) -> Option<Rate> {
        None
    }

    /// The handshake is complete, and nothing is sent yet. `explicit_rate` is as in [`Ack::explicit_rate`].
    fn on_established(&mut self, explicit_rate: Option<Rate>, cx: &mut Cx<'_>) {
        let _ = (explicit_rate, cx);
    }

    /// News of an acknowledgment, after loss detection.
    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>);

    /// As [`on_ack`](Self::on_ack) and then [`limits`](Self::limits) in one call: the window then, bytes.
    fn window_after(&mut self, ack: &Ack, cx: &mut Cx<'_>) -> u64 {
        self.on_ack(ack, cx);
        self.limits().cwnd_bytes
    }

    /// News of congestion, before the first retransmission it causes.
    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>);

    /// What was presumed lost has been repaired: the episode that began with [`Congestion::Loss`] or [`Congestion::Timeout`] is over,
    /// in which `resent_bytes` were sent again.
    fn on_repaired(&mut self, resent_bytes: u64, cx: &mut Cx<'_>) {
        let _ = (resent_bytes, cx);
    }

    /// A class-0 segment was sent. Only where [`Needs::segments`] asks for it.
    fn on_sent(&mut self, sent: &Sent, cx: &mut Cx<'_>) {
        let _ = (sent, cx);
    }

    /// A class-0 segment is presumed lost: before the [`Congestion`] that this may be, and before the acknowledgment that
    /// tells of it. Only where [`Needs::segments`] asks for it.
    fn on_lost(&mut self, lost: &Lost, cx: &mut Cx<'_>) {
        let _ = (lost, cx);
    }

    /// When [`on_timer`](Self::on_timer) wants to be called, after now. Only where [`Needs::timer`] asks for it.
    fn next_timer(&self) -> Time {
        Time::NEVER
    }

    /// The instant that [`next_timer`](Self::next_timer) named has come.
    fn on_timer(&mut self, cx: &mut Cx<'_>) {
        let _ = cx;
    }

    /// What may be in flight, and how fast.
    fn limits(&self) -> Limits;

    /// Whether this controller decides segment by segment, in [`poll_send`](Self::poll_send). Otherwise
    /// the transport itself keeps to [`limits`](Self::limits), window and pace. Asked once per connection.
    fn owns_send_clock(&self) -> bool {
        false
    }

    /// Which segment may go now, for controllers that own the send clock and those inside them. The
    /// transport keeps to the pace of `limits` before it offers the head, and may ask without sending. The default is the
    /// window rule.
    #[inline]
    fn poll_send(&mut self, offer: &Offer, cx: &mut Cx<'_>) -> Permit {
        let _ = cx;
        permit_by_window(self.limits(), offer)
    }

    /// Whether a scheduler below TCP keeps the segments of this connection, in the order in which TCP hands them down, until this
    /// controller lets them go. TCP itself then keeps to the window alone. Asked once per connection.
    fn schedules_departures(&self) -> bool {
        false
    }

    /// When the first segment in the scheduler is due; an instant that is past means now.
    fn next_departure(&mut self, cx: &mut Cx<'_>) -> Time {
        cx.now
    }

    /// A segment has left the scheduler.
    fn on_departure(&mut self, departure: &Departure, cx: &mut Cx<'_>) {
        let _ = (departure, cx);
    }

    /// Whether this controller ever sends from the tail of the buffer. Asked once per connection.
    fn uses_tail(&self) -> bool {
        false
    }

    /// The receiver has told in a low class that so many segments arrived: those that the acknowledgment reports first, and at
    /// least the one that caused it. Only where [`Needs::tail`] asks for it.
    fn on_tail_delivered(&mut self, segments: u32, cx: &mut Cx<'_>) {
        let _ = (segments, cx);
    }

    /// Returns true if segments can wait for a pace or a schedule of this controller, and so for timers of the host.
    fn paces(&self) -> bool {
        true
    }

    /// The highest class number that this controller sends in. Asked once per connection.
    fn lowest_class(&self) -> u8 {
        0
    }

    /// The class of a tail segment, were it sent now; `None` if this controller would not send it
    /// even on an idle interface. A host uses it to choose among flows that share its interface.
    fn tail_class(&self, tail: &TailOffer) -> Option<u8> {
        let _ = tail;
        None
    }

    /// When the segment that was sent last was due, by the clock of a controller that owns it; for logs of packets.
    fn last_due(&self) -> Option<Time> {
        None
    }

    /// Reports named internal quantities, for traces.
    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("cwnd_bytes", self.limits().cwnd_bytes as f64);
    }
}

/// The plain window rule: a class-0 segment may go while it fits below the window.
#[inline(always)]
pub fn permit_by_window(limits: Limits, offer: &Offer) -> Permit {
    match offer.head_bytes {
        Some(bytes) if offer.in_flight_bytes + bytes <= limits.cwnd_bytes + offer.allowance_bytes => Permit::HEAD,
        _ => Permit::Blocked,
    }
}

/// What a controller tells of one of its quantities when it is traced; NaN where it has none of that name.
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
