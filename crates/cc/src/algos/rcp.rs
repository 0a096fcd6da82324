//! RCP, the Rate Control Protocol, at the host: sends at the rate that the routers on the path grant.
//!
//! Source: Dukkipati, Kobayashi, Zhang-Shen, McKeown, "Processor Sharing Flows in the Internet", IWQoS 2005; the host
//! as in the RC3 authors' simulations (NSDI 2014 section 5.1.4). The routers' part is in the simulator's queues.
//!
//! RCP needs routers that compute rates. Every packet towards the receiver carries the desired rate, and every router
//! lowers it to its own. The receiver echoes the result in the SYN-ACK and in each acknowledgment. From the first data
//! segment on, segments are paced at this rate, headers included, and the window holds rate * RTT / (MSS + header)
//! segments, with the smoothed RTT, rounded up. The window limits the volume in flight if the path becomes longer, and
//! otherwise leaves the rate to the pace.
//!
//! Differences: RCP leaves losses to the transport. A loss is repaired (by SACK) at the same rate, because the routers
//! report the rate that the path can carry. After a retransmission timeout one segment is sent, and its acknowledgment
//! reports the rate. Before the first sample the RTT counts as one second, as in RFC 6298. The authors' low-rate probes
//! ("REF packets") are left out.

use crate::contract::{Ack, Congestion, CongestionControl, Cx, Limits};
use crate::pace::{MAX_WINDOW_SEGMENTS, PacketSize};
use crate::param::{DefaultValue, Kind, Param};
use crate::registry::Controller;
use sparelane_core::{Dur, Rate};

const DESIRED_RATE: Param = Param {
    name: "desired_rate",
    kind: Kind::OptionalRate,
    default: DefaultValue::Rate(None),
    meaning: "rate requested from the routers, headers included; none requests the rate of the host's interface",
    source: "the RC3 authors' code",
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "rcp",
    summary: "paced at the rate that the routers grant; needs [queue.rcp]",
    source: "Dukkipati et al., IWQoS 2005; NSDI 2014 section 5.1.4",
    params: &[DESIRED_RATE],
    wire: None,
    make: &|values, plan| Ok(Box::new(Rcp::new(values.rate(&DESIRED_RATE), plan.packets()))),
};

/// The assumed round-trip time before the first sample.
const UNKNOWN_RTT: Dur = Dur::from_secs(1);

/// The desired rate if none is given.
const UNBOUNDED_RATE: Rate = Rate::from_bps(u64::MAX);

/// The RCP controller.
#[derive(Clone, Copy, Debug)]
pub struct Rcp {
    desired: Rate,
    rate: Rate,
    /// Bytes of a full packet with its header.
    wire_bytes: u64,
    cwnd_bytes: u64,
}

impl Rcp {
    /// Creates a controller that requests `desired`, or the highest rate available, for these packet sizes.
    pub fn new(desired: Option<Rate>, packets: PacketSize) -> Rcp {
        let desired = desired.unwrap_or(UNBOUNDED_RATE);
        Rcp { desired, rate: desired, wire_bytes: packets.wire_bytes(), cwnd_bytes: packets.mss_bytes }
    }

    /// Adopts the rate that the routers grant and sizes the window to it.
    fn adopt(&mut self, explicit_rate: Option<Rate>, cx: &Cx<'_>) {
        self.rate = explicit_rate.unwrap_or(self.rate).max(Rate::from_bps(1));
        let bytes = self.rate.bytes_in(cx.srtt.unwrap_or(UNKNOWN_RTT));
        let segments = bytes.div_ceil(self.wire_bytes);
        self.cwnd_bytes = segments.clamp(1, MAX_WINDOW_SEGMENTS) * cx.mss_bytes;
    }
}

impl CongestionControl for Rcp {
    fn desired_rate(&self) -> Option<Rate> {
        Some(self.desired)
    }

    fn on_established(&mut self, explicit_rate: Option<Rate>, cx: &mut Cx<'_>) {
        self.adopt(explicit_rate, cx);
    }

    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        self.adopt(ack.explicit_rate, cx);
    }

    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>) {
        if let Congestion::Timeout { .. } = event {
            self.cwnd_bytes = cx.mss_bytes;
        }
    }

    fn reacts_to_marks(&self) -> bool {
        false
    }

    fn limits(&self) -> Limits {
        Limits { cwnd_bytes: self.cwnd_bytes, pacing: Some(self.rate) }
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("cwnd_bytes", self.cwnd_bytes as f64);
        if self.rate != UNBOUNDED_RATE {
            put("rate_bps", self.rate.as_bps() as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::{Domain, Stream, Time};

    const MSS: u64 = 1460;

    fn with_cx<T>(srtt: Option<Dur>, call: impl FnOnce(&mut Cx<'_>) -> T) -> T {
        let mut rng = Stream::new(1, Domain::Test, 0);
        call(&mut Cx { now: Time::ZERO, mss_bytes: MSS, srtt, min_rtt: srtt, rng: &mut rng })
    }

    fn established(mbps: u64, srtt: Option<Dur>) -> Rcp {
        let mut rcp = Rcp::new(None, PacketSize::of(MSS));
        with_cx(srtt, |cx| rcp.on_established(Some(Rate::from_mbps(mbps)), cx));
        rcp
    }

    fn acknowledge(rcp: &mut Rcp, explicit_rate: Option<Rate>) {
        let ack = Ack { explicit_rate, ..Ack::in_sequence(MSS) };
        with_cx(Some(Dur::from_ms(30)), |cx| rcp.on_ack(&ack, cx));
    }

    #[test]
    fn the_window_is_the_volume_of_a_round_trip_at_the_rate_rounded_up() {
        // 12 Mb/s * 30 ms = 45,000 bytes = 30 packets of 1500; at 12.2 Mb/s, 30.5.
        let mut rcp = established(12, Some(Dur::from_ms(30)));
        assert_eq!(rcp.limits(), Limits { cwnd_bytes: 30 * MSS, pacing: Some(Rate::from_mbps(12)) });
        acknowledge(&mut rcp, Some(Rate::from_bps(12_200_000)));
        assert_eq!(rcp.limits(), Limits { cwnd_bytes: 31 * MSS, pacing: Some(Rate::from_bps(12_200_000)) });
        acknowledge(&mut rcp, Some(Rate::from_bps(16_000)));
        assert_eq!(rcp.limits(), Limits { cwnd_bytes: MSS, pacing: Some(Rate::from_bps(16_000)) });
        acknowledge(&mut rcp, None);
        assert_eq!(rcp.limits().pacing, Some(Rate::from_bps(16_000)));
        assert_eq!(established(12, None).limits().cwnd_bytes, 1000 * MSS);
    }

    #[test]
    fn a_loss_changes_nothing_and_a_timeout_waits_for_an_acknowledgment() {
        let mut rcp = established(12, Some(Dur::from_ms(30)));
        let before = rcp.limits();
        let flight_bytes = 20 * MSS;
        with_cx(None, |cx| rcp.on_congestion(Congestion::Loss { flight_bytes }, cx));
        assert_eq!(rcp.limits(), before);
        with_cx(None, |cx| rcp.on_congestion(Congestion::Timeout { flight_bytes, first: true }, cx));
        assert_eq!(rcp.limits(), Limits { cwnd_bytes: MSS, ..before });
        acknowledge(&mut rcp, Some(Rate::from_mbps(12)));
        assert_eq!(rcp.limits(), before);
    }
}
