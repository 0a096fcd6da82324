//! The measured accuracy of gaps over the loopback interface.
#![cfg(target_os = "linux")]

use sparelane_core::Dur;
use sparelane_net::host::{Host, Waiting};
use sparelane_net::identity::{Identity, Trusted};
use sparelane_net::node::{ControllerChoice, GapAccuracy, NodeConfig, NodeEvent};
use sparelane_net::quic::QuicConfig;
use sparelane_net::udp::UdpConfig;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

const BYTES: usize = 600_000;

/// A transfer that takes this long hangs. No outcome depends on it, however slow the machine is.
const HANG: Duration = Duration::from_secs(300);

/// Runs a transfer with this kind of waiting, and returns the accuracy of its gaps.
fn accuracy(controller: &str, waits: Waiting) -> Option<GapAccuracy> {
    let (one, two) = (Identity::generate().expect("a key"), Identity::generate().expect("a key"));
    let trust = |peer: &Identity| Trusted::from_iter([peer.fingerprint()]);
    let client = QuicConfig { batch: 1, ..QuicConfig::new(one.clone(), trust(&two)) };
    let server = QuicConfig { batch: 1, listens: true, ..QuicConfig::new(two, trust(&one)) };
    let udp = UdpConfig { offload: false, ..UdpConfig::default() };
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let config = NodeConfig { controller: ControllerChoice::named(controller), ..NodeConfig::default() };
    let mut receiver = Host::bind(at, udp.clone(), server, config.clone()).expect("a host");
    let mut sender = Host::bind(at, udp, client, config).expect("a host");
    sender.set_waiting(waits);
    let to = receiver.socket().local_address();
    let receiving = std::thread::spawn(move || {
        let (began, mut got) = (Instant::now(), 0);
        while got < BYTES && began.elapsed() < HANG {
            if let Some(NodeEvent::Readable(flow)) = receiver.next_event(Duration::from_millis(20)).expect("a socket") {
                while let Some(bytes) = receiver.node_mut().read(flow) {
                    got += bytes.len();
                }
            }
        }
        receiver.flush(Duration::from_millis(100)).expect("a socket");
        got
    });
    let now = sender.now();
    let association = sender.node_mut().connect(now, to).expect("an address");
    while !receiving.is_finished() {
        if let Some(NodeEvent::Opened { .. }) = sender.next_event(Duration::from_millis(20)).expect("a socket") {
            let now = sender.now();
            let flow = sender.node_mut().open_flow(now, association, None).expect("a flow");
            sender.node_mut().write(flow, vec![7; BYTES].into());
            sender.node_mut().finish(flow);
        }
    }
    assert_eq!(receiving.join().expect("no panic"), BYTES);
    sender.node().gap_accuracy()
}

#[test]
fn gaps_are_measured_only_if_the_controller_schedules_departures() {
    assert_eq!(accuracy("cubic", Waiting::Sleep), None);
    let sleeping = accuracy("rapid", Waiting::Sleep).expect("gaps");
    let busy = accuracy("rapid", Waiting::Busy).expect("gaps");
    for accuracy in [sleeping, busy] {
        assert!(accuracy.gaps >= BYTES as u64 / 1450 - 1, "{accuracy:?}");
        assert!(accuracy.median_error <= accuracy.p99_error && accuracy.median_gap > Dur::ZERO, "{accuracy:?}");
    }
}
