use super::*;
use crate::carrier::CloseReason;
use crate::flow::TailConfig;
use crate::node::ControllerChoice;
use bytes::Bytes;

fn content(bytes: usize) -> Bytes {
    (0..bytes).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect::<Vec<_>>().into()
}

fn config(controller: ControllerChoice) -> NodeConfig {
    NodeConfig { controller, ..NodeConfig::default() }
}

struct Outcome {
    /// From the association's opening until everything was read.
    took: Dur,
    read: Vec<u8>,
    digest: String,
    counts: [WayCounts; 2],
}

/// Sends so many bytes from node 0 to node 1, in a flow each of the given sizes.
fn transfer(path: Path, config: NodeConfig, sizes: &[usize], seed: u64) -> Outcome {
    let mut net = Virtual::new(path, config, seed).expect("settings that fit");
    net.connect().expect("a peer");
    let limit = Time::ZERO + Dur::from_secs(600);
    let (mut opened, mut ended, mut read) = (Time::ZERO, Time::ZERO, BTreeMap::<u32, Vec<u8>>::new());
    let (mut sent, mut finished) = (0, 0);
    while sent < sizes.len() || finished < sizes.len() {
        let Some((node, event)) = net.next_event(limit) else {
            panic!("{sent} sent and {finished} read of {sizes:?} at {}: seed {seed}, {path:?}", net.now())
        };
        let now = net.now();
        match (node, event) {
            (0, NodeEvent::Opened { association, .. }) => {
                opened = now;
                for &size in sizes {
                    let flow = net.node(0).open_flow(now, association, Some(size as u64)).expect("a flow");
                    net.node(0).write(flow, content(size));
                    net.node(0).finish(flow);
                }
            }
            (1, NodeEvent::Readable(flow)) => {
                let got = read.entry(flow.flow).or_default();
                while let Some(bytes) = net.node(1).read(flow) {
                    got.extend_from_slice(&bytes);
                }
                if net.node(1).is_read(flow) {
                    finished += 1;
                    ended = now;
                }
            }
            (0, NodeEvent::Sent(_)) => sent += 1,
            (_, NodeEvent::Closed { reason, .. }) => panic!("closed: {reason}: seed {seed}, {path:?}"),
            (_, NodeEvent::SendFailed(_) | NodeEvent::ReceiveFailed(_)) => panic!("a flow failed"),
            _ => {}
        }
    }
    for (flow, &size) in sizes.iter().enumerate() {
        assert!(
            read.get(&(flow as u32)).map_or(&[][..], |read| read) == content(size),
            "flow {flow}: seed {seed}, {path:?}"
        );
    }
    let read = read.remove(&0).unwrap_or_default();
    Outcome { took: ended - opened, read, digest: net.digest(), counts: [net.counts(0), net.counts(1)] }
}

fn ms(span: Dur) -> f64 {
    span.as_secs_f64() * 1e3
}

#[test]
fn rc3_halves_the_time_of_a_short_transfer_behind_strict_priorities() {
    let took = |name: &str| {
        let outcome = transfer(Path::default(), config(ControllerChoice::named(name)), &[1_700_000], 1);
        assert_eq!(outcome.read.len(), 1_700_000);
        ms(outcome.took)
    };
    let (cubic, rc3) = (took("cubic"), took("rc3"));
    assert!((140.0..=200.0).contains(&rc3) && (290.0..=380.0).contains(&cubic), "{rc3} and {cubic} ms");
    assert!(rc3 <= 0.55 * cubic, "{rc3} and {cubic} ms");
}
