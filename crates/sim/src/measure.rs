//! What a run measures on request: how long each data packet was under way, and how much came after a given time.
//!
//! Delays go into one histogram for each scheme and class of traffic, whose bins are less than 1 % wide, so that a run's
//! memory does not grow with its packets; each flow keeps its own mean and maximum besides.

use crate::config::MeasureSpec;
use crate::records::DelayTable;

/// The bins of delays in nanoseconds: one for each of the first 256, then 128 for each doubling.
#[derive(Clone, Debug)]
struct Bins {
    /// Delays by bin.
    counts: Box<[u64; Bins::NUMBER]>,
}

impl Bins {
    /// Of a doubling, as a power of two.
    const BITS: u32 = 7;
    const NUMBER: usize = ((u32::BITS - Self::BITS + 1) << Self::BITS) as usize;

    fn new() -> Bins {
        Bins { counts: Box::new([0; Self::NUMBER]) }
    }

    /// The bin of a delay: how often it is halved to fit in the bins of a doubling, and what is left then.
    #[inline(always)]
    fn of(delay_ns: u32) -> usize {
        let halvings = (delay_ns | 1 << Self::BITS).ilog2() - Self::BITS;
        ((halvings << Self::BITS) + (delay_ns >> halvings)) as usize
    }

    /// The delay in the middle of a bin, rounded up.
    fn middle_ns(bin: usize) -> u64 {
        let halvings = (bin >> Self::BITS).saturating_sub(1);
        let left = (bin - (halvings << Self::BITS)) as u64;
        (left << halvings) + ((1 << halvings) >> 1)
    }
}

/// What is measured about one flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowMeasure {
    /// The flow's histogram.
    histogram: usize,
    /// Data packets measured, the sum of their delays, and the largest.
    pub(crate) packets: u64,
    pub(crate) sum_ns: u64,
    pub(crate) max_ns: u64,
    /// What the receiver held when measuring began.
    pub(crate) held_before_bytes: u64,
}

/// What is measured in a run.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    pub(crate) spec: MeasureSpec,
    /// Whether the time from which on it measures has come.
    pub(crate) has_begun: bool,
    /// Delays of packets count that were sent from here on, nanoseconds.
    delays_from_ns: u64,
    histograms: Vec<DelayHistogram>,
}

/// The delays of one scheme and class of traffic.
#[derive(Clone, Debug)]
struct DelayHistogram {
    scheme: u16,
    traffic_class: Option<u16>,
    delays: Bins,
}

impl Meter {
    pub(crate) fn new(spec: MeasureSpec) -> Meter {
        let delays_from_ns = if spec.delays { spec.from.as_ps().div_ceil(1000) } else { u64::MAX };
        Meter { spec, has_begun: false, delays_from_ns, histograms: Vec::new() }
    }

    /// What is measured about a new flow of this scheme and class.
    pub(crate) fn open(&mut self, scheme: u16, traffic_class: Option<u16>) -> FlowMeasure {
        let known = |other: &DelayHistogram| (other.scheme, other.traffic_class) == (scheme, traffic_class);
        let histogram = self.histograms.iter().position(known).unwrap_or_else(|| {
            self.histograms.push(DelayHistogram { scheme, traffic_class, delays: Bins::new() });
            self.histograms.len() - 1
        });
        FlowMeasure { histogram, ..FlowMeasure::default() }
    }

    /// A packet of `flow` arrived at `now_ns`, `delay_ns` after it was sent.
    #[inline(always)]
    pub(crate) fn take(&mut self, flow: &mut FlowMeasure, now_ns: u64, delay_ns: u32) {
        let sent_ns = now_ns.saturating_sub(u64::from(delay_ns));
        if sent_ns < self.delays_from_ns {
            return;
        }
        flow.packets += 1;
        flow.sum_ns += u64::from(delay_ns);
        flow.max_ns = flow.max_ns.max(u64::from(delay_ns));
        self.histograms[flow.histogram].delays.counts[Bins::of(delay_ns)] += 1;
    }

    /// The histograms as rows: by scheme, class and delay, those without a class last.
    pub(crate) fn into_delays(mut self) -> DelayTable {
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

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::{Dur, Time};

    const SECOND_NS: u64 = 1_000_000_000;

    fn meter(from: Time) -> Meter {
        Meter::new(MeasureSpec { from, delays: true })
    }

    #[test]
    fn every_delay_is_in_a_bin_whose_middle_is_within_one_percent() {
        for delay_ns in (0..200).chain((0..32).flat_map(|bit| [(1u32 << bit) - 1, 1 << bit, 3 << bit.min(30)])) {
            let mut meter = meter(Time::ZERO);
            let mut flow = meter.open(0, None);
            meter.take(&mut flow, 10 * SECOND_NS, delay_ns);
            let table = meter.into_delays();
            assert_eq!(table.packets, [1]);
            let error = (table.delay_ns[0] as f64 - f64::from(delay_ns)).abs();
            assert!(error <= 0.01 * f64::from(delay_ns), "{delay_ns}: {}", table.delay_ns[0]);
        }
    }

    #[test]
    fn a_packet_sent_before_measuring_began_does_not_count() {
        let mut meter = meter(Time::ZERO + Dur::from_secs(1));
        let mut flow = meter.open(0, None);
        meter.take(&mut flow, SECOND_NS + 99, 100);
        assert_eq!(flow.packets, 0);
        meter.take(&mut flow, SECOND_NS + 100, 100);
        meter.take(&mut flow, SECOND_NS + 400, 200);
        assert_eq!((flow.packets, flow.sum_ns, flow.max_ns), (2, 300, 200));
        assert_eq!(meter.into_delays().packets, [1, 1]);
    }

    #[test]
    fn schemes_and_classes_have_histograms_of_their_own_in_order() {
        let mut meter = meter(Time::ZERO);
        for (scheme, traffic_class, delay_ns) in
            [(1, None, 5), (0, Some(1), 6), (1, Some(0), 7), (0, Some(1), 6), (0, Some(1), 3)]
        {
            let mut flow = meter.open(scheme, traffic_class);
            meter.take(&mut flow, SECOND_NS, delay_ns);
        }
        let table = meter.into_delays();
        assert_eq!(table.scheme, [0, 0, 1, 1]);
        assert_eq!(table.traffic_class, [1, 1, 0, u16::MAX]);
        assert_eq!((table.delay_ns, table.packets), (vec![3, 6, 7, 5], vec![1, 2, 1, 1]));
    }
}
