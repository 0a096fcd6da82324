//! Path properties that nodes discover, and their effect on flows.

use super::*;
use crate::node::ControllerChoice;
use crate::node::path::{Mark, Unmarked};

fn rc3() -> NodeConfig {
    NodeConfig { controller: ControllerChoice::named("rc3"), ..NodeConfig::default() }
}

struct Outcome {
    took: Dur,
    marks: [Mark; 4],
    tail_mbps: Option<u64>,
    counts: DirectionCounts,
}

/// Waits for `before`, then sends a flow of `bytes`.
fn transfer(path: Path, config: NodeConfig, before: Dur, bytes: usize) -> Outcome {
    let mut net = Virtual::new(path, config, 1).expect("settings that fit");
    let association = net.connect().expect("a peer");
    while net.next_event(Time::ZERO + before).is_some() {}
    let began = net.now();
    let flow = net.node(0).open_flow(began, association, Some(bytes as u64)).expect("a flow");
    net.node(0).write(flow, vec![7; bytes].into());
    net.node(0).finish(flow);
    let mut read = 0;
    while let Some((_, event)) = net.next_event(Time::ZERO + Dur::from_secs(200)) {
        if let NodeEvent::Readable(flow) = event {
            while let Some(bytes) = net.node(1).read(flow) {
                read += bytes.len();
            }
            if net.node(1).is_read(flow) {
                break;
            }
        }
    }
    assert_eq!(read, bytes, "{path:?}");
    let known = net.nodes[0].path(association).expect("an open association");
    Outcome {
        took: net.now() - began,
        marks: [0, 1, 2, 3].map(|class| known.mark(class)),
        tail_mbps: known.tail_rate().map(|rate| rate.as_bps() / 1_000_000),
        counts: net.counts(0),
    }
}

const LATER: Dur = Dur::from_ms(300);

#[test]
fn the_tail_starts_at_the_rate_measured_by_a_train() {
    for mbps in [10, 50, 200, 1000] {
        let path = Path { rate: Rate::from_mbps(mbps), ..Path::default() };
        let outcome = transfer(path, rc3(), LATER, 1_700_000);
        let measured = outcome.tail_mbps.expect("a train has arrived");
        assert!((mbps * 92 / 100..=mbps).contains(&measured), "{measured} of {mbps} Mb/s");
        let [_, lower @ ..] = outcome.counts.dropped;
        assert!(lower.iter().sum::<u64>() <= 20, "{:?} at {mbps} Mb/s", outcome.counts);
    }
}

#[test]
fn a_measured_tail_is_capped_and_a_configured_one_is_not_measured() {
    let path = Path { rate: Rate::from_mbps(200), ..Path::default() };
    let with = |change: &dyn Fn(&mut NodeConfig)| {
        let mut config = rc3();
        change(&mut config);
        transfer(path, config, LATER, 1_700_000)
    };
    let free = with(&|_| {});
    let capped = with(&|config| config.tail.cap = Rate::from_mbps(20));
    let set = with(&|config| (config.tail.measured, config.tail.rate) = (false, Rate::from_mbps(20)));
    assert_eq!(set.tail_mbps, None);
    assert!(free.took.scaled(1.3) < capped.took && free.took.scaled(1.3) < set.took, "{} {}", free.took, capped.took);
}

#[test]
fn kept_marks_allow_the_tail_in_the_first_round_trip() {
    let outcome = transfer(Path::default(), rc3(), Dur::from_ms(90), 1_000_000);
    assert_eq!(outcome.marks, [Mark::Kept; 4]);
    assert!(
        outcome.counts.carried[3] > 100 && outcome.took < Dur::from_ms(120),
        "{} {:?}",
        outcome.took,
        outcome.counts
    );
}

#[test]
fn cleared_marks_disable_the_tail_unless_configured() {
    let path = Path { marks: Marks::Cleared, ..Path::default() };
    let sent = |unmarked| {
        let outcome = transfer(path, NodeConfig { unmarked, ..rc3() }, LATER, 1_000_000);
        assert_eq!(outcome.marks[..3], [Mark::Kept, Mark::Changed(0), Mark::Changed(0)]);
        // The network puts everything into class 0: head, handshakes, probes and tail.
        outcome.counts.carried[0]
    };
    let [none, scavenger, ignore] = [Unmarked::NoTail, Unmarked::Scavenger, Unmarked::Ignore].map(sent);
    assert!(none < 850 && scavenger < 900 && ignore < 1500, "{none}, {scavenger} and {ignore}");
    let took = |unmarked| transfer(path, NodeConfig { unmarked, ..rc3() }, LATER, 1_000_000).took;
    let [none, scavenger, ignore] = [Unmarked::NoTail, Unmarked::Scavenger, Unmarked::Ignore].map(took);
    assert!(ignore < scavenger && scavenger <= none, "{ignore}, {scavenger} and {none}");
}

#[test]
fn the_tail_uses_the_only_class_whose_mark_is_kept() {
    let path = Path { marks: Marks::WithoutPrecedence, ..Path::default() };
    let outcome = transfer(path, rc3(), LATER, 1_000_000);
    assert_eq!(outcome.marks, [Mark::Kept, Mark::Kept, Mark::Changed(3), Mark::Changed(3)]);
    assert!(outcome.counts.carried[1] > 300, "{:?}", outcome.counts);
}

/// Handshakes use full packets; if the path's MTU falls afterwards, the probes find it out.
#[test]
fn packets_shrink_to_the_mtu_of_the_path() {
    for (mtu_bytes, frame_bytes) in [(1480, 1414), (1440, 1362), (1280, 1194)] {
        let mut net = Virtual::new(Path::default(), rc3(), 1).expect("settings that fit");
        net.connect().expect("a peer");
        let (mut began, mut received, mut known) = (false, 0, 0);
        while let Some((node, event)) = net.next_event(Time::ZERO + Dur::from_secs(2)) {
            match (node, event) {
                (0, NodeEvent::Opened { .. }) => net.path_mut().mtu_bytes = mtu_bytes,
                (0, NodeEvent::Path(association)) if !began => {
                    let now = net.now();
                    if net.nodes[0].path(association).map(|known| known.mark(0)) != Some(Mark::Kept) {
                        continue;
                    }
                    began = true;
                    known = net.nodes[0].path(association).expect("an open association").frame_bytes();
                    let flow = net.node(0).open_flow(now, association, None).expect("a flow");
                    net.node(0).write(flow, vec![7; 300_000].into());
                }
                (1, NodeEvent::Readable(flow)) => {
                    while let Some(bytes) = net.node(1).read(flow) {
                        received += bytes.len();
                    }
                }
                _ => {}
            }
        }
        assert_eq!((known, received), (frame_bytes, 300_000), "at an MTU of {mtu_bytes}");
    }
}

#[test]
fn lost_probes_are_repeated() {
    for seed in 0..20 {
        let path = Path { loss: 0.2, ..Path::default() };
        let mut net = Virtual::new(path, rc3(), seed).expect("settings that fit");
        let association = net.connect().expect("a peer");
        while net.next_event(Time::ZERO + Dur::from_secs(25)).is_some() {}
        if let Some(known) = net.nodes[0].path(association) {
            let open = [0, 1, 2, 3].map(|class| known.mark(class));
            assert!(open.iter().filter(|&&mark| mark == Mark::Kept).count() >= 3, "{open:?} with seed {seed}");
        }
    }
}
