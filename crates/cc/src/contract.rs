//! The contract between a controller and the transport that drives it.

use sparelane_core::{Dur, Rate, Stream, Time};
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

/// One acknowledgment of class-0 data, after loss detection has run on it.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Bytes newly acknowledged in sequence.
    pub acked_bytes: u64,
    /// Bytes newly known to have arrived, in sequence or by SACK.
    pub delivered_bytes: u64,
    /// The round-trip time of the segment that caused this acknowledgment, where unambiguous.
    pub rtt: Option<Dur>,
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
}

#[cfg(test)]
impl Ack {
    /// `bytes` acknowledged in sequence, with nothing out of the ordinary: for tests of laws.
    pub(crate) const fn in_sequence(bytes: u64) -> Ack {
        Ack {
            acked_bytes: bytes,
            delivered_bytes: bytes,
            rtt: None,
            in_flight_bytes: 0,
            cwnd_limited: true,
            phase: Phase::Open,
            ecn_echo: false,
            explicit_rate: None,
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
    /// The receiver echoed a congestion mark (RFC 3168), at most once a window.
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
    /// The pace of class-0 segments on the wire, headers included; `None` sends as the window opens. A
    /// controller paces from the start of a connection to its end, or never.
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
pub trait CongestionControl: Debug + Send {
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

    /// News of congestion, before the first retransmission it causes.
    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>);

    /// What may be in flight, and how fast.
    fn limits(&self) -> Limits;

    /// Whether this controller decides segment by segment, in [`poll_send`](Self::poll_send). Otherwise
    /// the transport itself keeps to [`limits`](Self::limits), window and pace. Asked once per connection.
    fn owns_send_clock(&self) -> bool {
        false
    }

    /// Which segment may go now, for controllers that own the send clock and those inside them. The
    /// transport keeps to the pace of `limits` before it offers the head. The default is the window rule.
    #[inline]
    fn poll_send(&mut self, offer: &Offer, cx: &mut Cx<'_>) -> Permit {
        let _ = cx;
        permit_by_window(self.limits(), offer)
    }

    /// Whether this controller ever sends from the tail of the buffer. Asked once per connection.
    fn uses_tail(&self) -> bool {
        false
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
