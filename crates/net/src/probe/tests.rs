//! Measurements of known paths in virtual time.

use super::*;
use crate::node::NodeConfig;
use crate::virt::{Marks, Path, Virtual};

/// Drives node 0 of a virtual network.
struct InVirtualTime(Virtual);

#[derive(Debug)]
struct Failed(#[expect(dead_code, reason = "shown if a test fails")] String);

impl From<NodeError> for Failed {
    fn from(error: NodeError) -> Failed {
        Failed(error.to_string())
    }
}

impl From<ProbeError> for Failed {
    fn from(error: ProbeError) -> Failed {
        Failed(error.to_string())
    }
}

impl Driver for InVirtualTime {
    type Error = Failed;

    fn now(&self) -> Time {
        self.0.now()
    }

    fn node_mut(&mut self) -> &mut Node<Quic> {
        self.0.node(0)
    }

    fn next_event_until(&mut self, until: Time) -> Result<Option<NodeEvent>, Failed> {
        while let Some((node, event)) = self.0.next_event(until) {
            if node == 0 {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    fn header_bytes(&self) -> u64 {
        28
    }
}

fn measured(path: Path, plan: ProbePlan) -> PathReport {
    let mut net = InVirtualTime(Virtual::new(path, NodeConfig::default(), 1).expect("settings that fit"));
    let association = net.0.connect().expect("a peer");
    while !matches!(net.next_event_until(Time::NEVER), Ok(Some(NodeEvent::Opened { .. }))) {}
    measure(&mut net, association, 4, plan, &mut || true).expect("a report")
}

fn ms(span: Option<Dur>) -> f64 {
    span.map_or(f64::NAN, |span| span.as_secs_f64() * 1e3)
}

#[test]
fn a_path_with_strict_priorities_is_recognised_with_rate_and_delays() {
    let report = measured(Path::default(), ProbePlan::default());
    assert_eq!(report.marks, [Mark::Kept; 4]);
    assert_eq!(report.served, [Served::First, Served::Worse, Served::Worse, Served::Worse]);
    let rate = report.rate.expect("trains that arrive").as_bps() / 1_000_000;
    assert!((96..=100).contains(&rate), "{rate} Mb/s");
    assert!((40.0..41.0).contains(&ms(report.idle[0].percentile(0.0))), "{:?}", report.idle[0]);
    assert!(ms(report.loaded[0].percentile(0.99)) < 41.0, "class 0 is not delayed: {:?}", report.loaded[0]);
    assert_eq!((report.idle[3].loss(), report.loaded[0].loss(), report.mtu_bytes), (0.0, 0.0, 1480));
    let (sent, arrived) = report.load.expect("a load");
    assert!(arrived < sent && arrived.as_bps() > 90_000_000, "{report:?}");
}

#[test]
fn a_path_with_one_queue_treats_classes_alike() {
    for marks in [Marks::Kept, Marks::Cleared] {
        let report = measured(Path { priorities: false, marks, ..Path::default() }, ProbePlan::default());
        let mark = if marks == Marks::Kept { Mark::Kept } else { Mark::Changed(0) };
        assert_eq!(report.marks[1..], [mark; 3]);
        assert_eq!(report.served, [Served::Alike; 4]);
        assert!(ms(report.loaded[0].percentile(0.5)) > 50.0, "class 0 waits in the queue: {:?}", report.loaded[0]);
    }
}

#[test]
fn losses_are_measured_and_small_packets_answered() {
    let report = measured(Path { loss: 0.05, ..Path::default() }, ProbePlan::default());
    let lost: usize = report.idle.iter().map(|delays| delays.sent - delays.round_trips.len()).sum();
    assert!((6..=32).contains(&lost), "{lost} of 160, of which 10 % should be lost on one of both ways");
    assert_eq!(report.served[0], Served::First);
    let plan = ProbePlan { load: Dur::ZERO, ..ProbePlan::default() };
    let report = measured(Path { rate: Rate::from_mbps(8), ..Path::default() }, plan);
    assert_eq!((report.load, &report.served[..]), (None, &[Served::Unknown; 4][..]));
    assert!((7_500_000..=8_000_000).contains(&report.rate.expect("trains").as_bps()), "{:?}", report.rate);
}

/// Delays with `lost` of 250 packets lost, and the others answered after `taken_ms`.
fn delays(lost: usize, taken_ms: u64) -> Delays {
    Delays { sent: 250, round_trips: vec![Dur::from_ms(taken_ms); 250 - lost] }
}

#[test]
fn losses_distinguish_classes_only_if_class_0_has_few() {
    let idle = vec![delays(0, 1); 4];
    // Measured with one queue of the kernel.
    let one_queue = [delays(21, 80), delays(39, 80), delays(37, 80), delays(48, 80)];
    assert_eq!(compare(&idle, &one_queue), [Served::Alike; 4]);
    // A queue that drops by class and keeps the order.
    let by_loss = [delays(0, 80), delays(39, 80), delays(37, 80), delays(48, 80)];
    assert_eq!(compare(&idle, &by_loss), [Served::First, Served::Worse, Served::Worse, Served::Worse]);
    let by_delay = [delays(0, 1), delays(30, 80), delays(60, 90), delays(250, 0)];
    assert_eq!(compare(&idle, &by_delay), [Served::First, Served::Worse, Served::Worse, Served::Worse]);
}
