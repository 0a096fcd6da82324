//! Measurements on request: the one-way delay of each data packet, and the bytes received after a given time.
//!
//! Delays go into one histogram per scheme and class of traffic, with bins less than 1 % wide, so that memory does not
//! grow with the number of packets. Each flow also keeps its own mean and maximum.

use super::{FlowView, Interest, Observer, Opened, PacketEvent, Step, View};
use crate::records::{DelayTable, Records};
use sparelane_core::Time;

/// Bins of delays in nanoseconds: one for each of the first 256 values, then 128 per power of two.
#[derive(Clone, Debug)]
struct Bins {
    /// The number of delays in each bin.
    counts: Box<[u64; Bins::NUMBER]>,
}

impl Bins {
    /// The logarithm to base 2 of the number of bins per power of two.
    const BITS: u32 = 7;
    const NUMBER: usize = ((u32::BITS - Self::BITS + 1) << Self::BITS) as usize;

    fn new() -> Bins {
        Bins { counts: Box::new([0; Self::NUMBER]) }
    }

    /// The bin of a delay: its exponent, and its leading bits within that power of two.
    #[inline(always)]
    fn of(delay_ns: u32) -> usize {
        let halvings = (delay_ns | 1 << Self::BITS).ilog2() - Self::BITS;
        ((halvings << Self::BITS) + (delay_ns >> halvings)) as usize
    }

    /// The middle of a bin, rounded up.
    fn middle_ns(bin: usize) -> u64 {
        let halvings = (bin >> Self::BITS).saturating_sub(1);
        let left = (bin - (halvings << Self::BITS)) as u64;
        (left << halvings) + ((1 << halvings) >> 1)
    }
}

/// The measurements to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelaysSpec {
    /// The end of the warm-up: packets sent and bytes received earlier do not count.
    pub from: Time,
    /// If true, measures the one-way delay of every data packet, from its host's interface to the receiving host.
    /// Delays above 4.29 s appear modulo 4.29 s.
    pub delays: bool,
}

/// The measurements of one flow.
#[derive(Clone, Copy, Debug, Default)]
struct FlowMeasure {
    /// The index of the flow's histogram.
    histogram: usize,
    /// The number of measured data packets, the sum of their delays, and the largest delay.
    packets: u64,
    sum_ns: u64,
    max_ns: u64,
    /// The bytes that the receiver held at the end of the warm-up.
    held_before_bytes: u64,
    /// The bytes that it has received since.
    measured_bytes: u64,
}

/// Measures delays of data packets and bytes received after the warm-up, for [`Records::delays`] and columns of
/// [`Records::flows`].
#[derive(Clone, Debug)]
pub struct Delays {
    spec: DelaysSpec,
    /// True once the warm-up is over.
    has_begun: bool,
    /// Delays count for packets sent at this time or later, nanoseconds.
    from_ns: u64,
    /// Indexed by flow number.
    flows: Vec<FlowMeasure>,
    histograms: Vec<DelayHistogram>,
}

/// The delays of one scheme and class of traffic.
#[derive(Clone, Debug)]
struct DelayHistogram {
    scheme: u16,
    traffic_class: Option<u16>,
    delays: Bins,
}

impl Delays {
    /// An observer without measurements yet.
    pub fn new(spec: DelaysSpec) -> Delays {
        let from_ns = spec.from.as_ps().div_ceil(1000);
        Delays { spec, has_begun: false, from_ns, flows: Vec::new(), histograms: Vec::new() }
    }

    /// The histograms as rows, ordered by scheme, class and delay. Those without a class come last.
    fn table(&mut self) -> DelayTable {
        let key = |histogram: &DelayHistogram| (histogram.scheme, histogram.traffic_class.unwrap_or(u16::MAX));
        self.histograms.sort_by_key(key);
        let mut table = DelayTable::default();
        for histogram in &self.histograms {
            let (scheme, traffic_class) = key(histogram);
            let recorded = (0..).zip(&histogram.delays.counts[..]).filter(|&(_, &packets)| packets > 0);
            for (bin, &packets) in recorded {
                table.scheme.push(scheme);
                table.traffic_class.push(traffic_class);
                table.delay_ns.push(Bins::middle_ns(bin));
                table.packets.push(packets);
            }
        }
        table
    }
}

impl Observer for Delays {
    fn interest(&self) -> Interest {
        Interest { first_sample: Some(self.spec.from), receipts: self.spec.delays, ..Interest::default() }
    }

    fn on_open(&mut self, flow: &Opened) {
        let known = |other: &DelayHistogram| (other.scheme, other.traffic_class) == (flow.scheme, flow.traffic_class);
        let histogram = self.histograms.iter().position(known).unwrap_or_else(|| {
            let (scheme, traffic_class) = (flow.scheme, flow.traffic_class);
            self.histograms.push(DelayHistogram { scheme, traffic_class, delays: Bins::new() });
            self.histograms.len() - 1
        });
        debug_assert_eq!(flow.flow as usize, self.flows.len(), "flows open in the order of their numbers");
        self.flows.push(FlowMeasure { histogram, ..FlowMeasure::default() });
    }

    fn on_sample(&mut self, view: &mut View<'_>) -> Time {
        self.has_begun = true;
        view.for_each_open_flow(&mut |flow| {
            self.flows[flow.id as usize].held_before_bytes = flow.held_bytes;
        });
        Time::NEVER
    }

    fn on_packet(&mut self, packet: &PacketEvent) {
        let Step::Received { delay } = packet.step else { return };
        let (now_ns, delay_ns) = (packet.now.as_ps() / 1000, delay.as_ps() / 1000);
        if now_ns.saturating_sub(delay_ns) < self.from_ns {
            return;
        }
        let flow = &mut self.flows[packet.flow as usize];
        flow.packets += 1;
        flow.sum_ns += delay_ns;
        flow.max_ns = flow.max_ns.max(delay_ns);
        self.histograms[flow.histogram].delays.counts[Bins::of(delay_ns as u32)] += 1;
    }

    fn on_close(&mut self, flow: &FlowView<'_>) {
        if self.has_begun {
            let measure = &mut self.flows[flow.id as usize];
            measure.measured_bytes = flow.held_bytes - measure.held_before_bytes;
        }
    }

    fn finish(mut self: Box<Self>, records: &mut Records) {
        let flows = &mut records.flows;
        flows.measured_bytes = self.flows.iter().map(|flow| flow.measured_bytes).collect();
        if self.spec.delays {
            flows.delay_packets = self.flows.iter().map(|flow| flow.packets).collect();
            flows.delay_sum_ns = self.flows.iter().map(|flow| flow.sum_ns).collect();
            flows.delay_max_ns = self.flows.iter().map(|flow| flow.max_ns).collect();
        }
        records.delays = self.table();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::Kind;
    use crate::routing::network::NodeId;
    use sparelane_core::Dur;

    const SECOND_NS: u64 = 1_000_000_000;

    fn delays(from: Time) -> Delays {
        Delays::new(DelaysSpec { from, delays: true })
    }

    fn open(delays: &mut Delays, scheme: u16, traffic_class: Option<u16>) -> u32 {
        let flow = delays.flows.len() as u32;
        let (src, dst) = (NodeId(0), NodeId(1));
        let (start, mss_bytes, header_bytes, uses_ecn) = (Time::ZERO, 1460, 40, false);
        let connection = flow;
        delays.on_open(&Opened {
            flow,
            connection,
            start,
            scheme,
            traffic_class,
            src,
            dst,
            mss_bytes,
            header_bytes,
            uses_ecn,
        });
        flow
    }

    fn take(delays: &mut Delays, flow: u32, now_ns: u64, delay_ns: u32) {
        delays.on_packet(&PacketEvent {
            now: Time::from_ns(now_ns),
            flow,
            connection: flow,
            kind: Kind::Data { segment: 0, is_retransmission: false, offset_bytes: 0 },
            wire_bytes: 1500,
            class: 0,
            is_marked: false,
            is_ecn_capable: false,
            is_l4s: false,
            has_ecn_answer: false,
            accurate_ecn: None,
            step: Step::Received { delay: Dur::from_ns(u64::from(delay_ns)) },
        });
    }

    #[test]
    fn every_delay_is_in_a_bin_whose_middle_is_within_one_percent() {
        for delay_ns in (0..200).chain((0..32).flat_map(|bit| [(1u32 << bit) - 1, 1 << bit, 3 << bit.min(30)])) {
            let mut delays = delays(Time::ZERO);
            let flow = open(&mut delays, 0, None);
            take(&mut delays, flow, 10 * SECOND_NS, delay_ns);
            let table = delays.table();
            assert_eq!(table.packets, [1]);
            let error = (table.delay_ns[0] as f64 - f64::from(delay_ns)).abs();
            assert!(error <= 0.01 * f64::from(delay_ns), "{delay_ns}: {}", table.delay_ns[0]);
        }
    }

    #[test]
    fn a_packet_sent_before_measuring_began_does_not_count() {
        let mut delays = delays(Time::ZERO + Dur::from_secs(1));
        let flow = open(&mut delays, 0, None);
        take(&mut delays, flow, SECOND_NS + 99, 100);
        assert_eq!(delays.flows[0].packets, 0);
        take(&mut delays, flow, SECOND_NS + 100, 100);
        take(&mut delays, flow, SECOND_NS + 400, 200);
        let measure = delays.flows[0];
        assert_eq!((measure.packets, measure.sum_ns, measure.max_ns), (2, 300, 200));
        assert_eq!(delays.table().packets, [1, 1]);
    }

    #[test]
    fn schemes_and_classes_have_histograms_of_their_own_in_order() {
        let mut delays = delays(Time::ZERO);
        for (scheme, traffic_class, delay_ns) in
            [(1, None, 5), (0, Some(1), 6), (1, Some(0), 7), (0, Some(1), 6), (0, Some(1), 3)]
        {
            let flow = open(&mut delays, scheme, traffic_class);
            take(&mut delays, flow, SECOND_NS, delay_ns);
        }
        let table = delays.table();
        assert_eq!(table.scheme, [0, 0, 1, 1]);
        assert_eq!(table.traffic_class, [1, 1, 0, u16::MAX]);
        assert_eq!((table.delay_ns, table.packets), (vec![3, 6, 7, 5], vec![1, 2, 1, 1]));
    }
}
