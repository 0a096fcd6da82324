//! Two hosts in one process, over sockets of the loopback interface.

use super::receiver::REPLACED;
use super::*;
use crate::carrier::CloseReason;
use crate::control::Coded;
use crate::host::Host;
use crate::identity::{Identity, Trusted};
use crate::node::{ControllerChoice, NodeEvent};
use crate::scratch::Scratch;
use crate::transfer::message::{Kind, Message, Offer};
use crate::transfer::{CODE_STALLED, Outcome, Received, collect};
use crate::udp::UdpConfig;
use std::fs::{self, File};
use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

/// A test that takes this long hangs. No outcome depends on it, however slow the machine is.
const HANG: Duration = Duration::from_secs(300);

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn configs() -> [WireConfig; 2] {
    let [one, two] = std::array::from_fn(|_| Identity::generate().expect("a key"));
    let trust = |peer: &Identity| Trusted::from_iter([peer.fingerprint()]);
    [WireConfig::new(one.clone(), trust(&two)), WireConfig::new(two, trust(&one))]
}

/// Sends a file of `bytes`, each side in its own thread.
fn carried(sender: WireConfig, receiver: WireConfig, at: &str, bytes: usize) -> Result<Progress, String> {
    let scratch =
        Scratch::new(&format!("service-{at}-{bytes}-{}", sender.node.controller.name).replace(['[', ']', ':'], ""));
    let folder = scratch.path().join("to");
    fs::create_dir(&folder).expect("a folder");
    fs::write(scratch.path().join("file"), content(bytes)).expect("a file");
    let sources = collect(&[scratch.path().join("file")]).expect("a file").sources;
    let mut receiver =
        FileReceiver::bind(&receiver, at.parse().expect("an address"), &folder, false).expect("a receiver");
    let to = receiver.local_address();
    let receiving = std::thread::spawn(move || {
        let began = Instant::now();
        let mut events = vec![];
        while began.elapsed() < HANG {
            events.extend(receiver.step(Duration::from_millis(100)).expect("a socket"));
            if matches!(events.last(), Some(ReceiverEvent::Disconnected { .. })) {
                break;
            }
        }
        events
    });
    let mut sender = FileSender::begin(&sender, to, sources).map_err(|error| error.to_string())?;
    let mut outcomes = vec![];
    while !sender.progress().done {
        outcomes.extend(sender.step(Duration::from_millis(100)).map_err(|error| error.to_string())?);
    }
    let events = receiving.join().expect("a receiver");
    assert!(
        matches!(
            &events[..],
            [
                ReceiverEvent::Connected { .. },
                ReceiverEvent::Item { received: Received { error: None, .. }, .. },
                ReceiverEvent::Disconnected { error: None, .. },
            ]
        ),
        "{events:?}"
    );
    assert!(matches!(&outcomes[..], [Outcome { error: None, .. }]), "{outcomes:?}");
    assert!(fs::read(folder.join("file")).expect("a file") == content(bytes));
    Ok(sender.progress())
}

#[test]
fn a_file_arrives_over_loopback_with_and_without_batches() {
    for (offload, bytes) in [(true, 20_000_000), (false, 3_000_000)] {
        let [mut sender, mut receiver] = configs();
        (sender.udp.offload, receiver.udp.offload) = (offload, offload);
        let progress = carried(sender, receiver, "127.0.0.1:0", bytes).expect("a transfer");
        assert_eq!((progress.bytes, progress.total_bytes), (bytes as u64, bytes as u64));
    }
}

#[test]
fn a_file_arrives_under_other_controllers() {
    for name in ["cubic", "bbr", "ledbat"] {
        let [mut sender, receiver] = configs();
        sender.node.controller = ControllerChoice::named(name);
        carried(sender, receiver, "127.0.0.1:0", 1_000_000).expect(name);
    }
}

#[test]
fn a_sender_keeps_its_rate_limit() {
    let [mut sender, receiver] = configs();
    sender.apply(&[("rate".to_owned(), "40Mbps".to_owned())]).expect("a setting");
    let progress = carried(sender, receiver, "127.0.0.1:0", 1_000_000).expect("a transfer");
    // 8 Mb at 40 Mb/s take 0.2 s, less the credit of the limiter and what the handshake has sent.
    assert!(progress.elapsed >= Duration::from_millis(190), "{:?}", progress.elapsed);
}

#[test]
fn a_file_arrives_over_ipv6() {
    if UdpConfig::default().dscp.len() == 4 && UdpSocket::bind("[::1]:0").is_ok() {
        let [sender, receiver] = configs();
        carried(sender, receiver, "[::1]:0", 1_000_000).expect("a transfer");
    }
}

#[test]
fn a_silent_or_untrusted_peer_is_reported() {
    let scratch = Scratch::new("service-errors");
    fs::write(scratch.path().join("file"), "x").expect("a file");
    let sources = collect(&[scratch.path().join("file")]).expect("a file").sources;
    let [sender, receiver] = configs();
    let ends = |config: &WireConfig, to: SocketAddr, mut answers: Option<FileReceiver>| {
        let mut sender = FileSender::begin(config, to, sources.clone()).expect("a socket");
        loop {
            match sender.step(Duration::from_millis(5)) {
                Ok(_) => {}
                Err(error) => return error.to_string(),
            }
            if let Some(receiver) = &mut answers {
                receiver.step(Duration::from_millis(5)).expect("a socket");
            }
        }
    };
    // A socket that is never read.
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let to = silent.local_addr().expect("an address");
    let mut hasty = sender.clone();
    hasty.settings.connect_timeout = Duration::from_millis(300);
    assert_eq!(ends(&hasty, to, None), format!("{to} does not answer; gave up after 0.3 s"));
    drop(silent);
    let refused = format!("{to} refused the connection: no program receives at this port");
    assert_eq!(ends(&sender, to, None), refused);
    let bound = |config: &WireConfig| {
        let at = "127.0.0.1:0".parse().expect("an address");
        FileReceiver::bind(config, at, scratch.path(), false).expect("a receiver")
    };
    let other = Identity::generate().expect("a key");
    let stranger = WireConfig { identity: other.clone(), ..receiver.clone() };
    let answers = bound(&stranger);
    let reason = ends(&sender, answers.local_address(), Some(answers));
    assert_eq!(reason, format!("the peer's key is {}, which is not trusted", other.fingerprint()));
    let distrusts = WireConfig { trusted: Trusted::default(), ..receiver };
    let answers = bound(&distrusts);
    let reason = ends(&sender, answers.local_address(), Some(answers));
    assert_eq!(reason, format!("the peer does not trust this host's key, {}", sender.identity.fingerprint()));
}

/// A sender falls silent, and another one with the same key offers the same file at once.
#[test]
fn a_new_sender_of_the_same_key_replaces_a_silent_one() {
    let scratch = Scratch::new("service-again");
    let folder = scratch.path().join("to");
    fs::create_dir(&folder).expect("a folder");
    fs::write(scratch.path().join("file"), content(30_000_000)).expect("a file");
    let sources = collect(&[scratch.path().join("file")]).expect("a file").sources;
    let [sender, receiver] = configs();
    let at = "127.0.0.1:0".parse().expect("an address");
    let mut receiver = FileReceiver::bind(&receiver, at, &folder, false).expect("a receiver");
    let to = receiver.local_address();
    let step = Duration::from_millis(1);
    let mut first = FileSender::begin(&sender, to, sources.clone()).expect("a socket");
    while receiver.received_bytes() < 2_000_000 {
        first.step(step).expect("a peer");
        receiver.step(step).expect("a socket");
    }
    let mut second = FileSender::begin(&sender, to, sources).expect("a socket");
    let (mut outcomes, mut events, began) = (vec![], vec![], Instant::now());
    while !second.progress().done {
        outcomes.extend(second.step(step).expect("a peer"));
        events.extend(receiver.step(step).expect("a socket"));
        assert!(began.elapsed() < HANG, "{events:?}");
    }
    assert!(outcomes[0].error.is_none() && outcomes[0].resumed >= 2_000_000, "{outcomes:?}");
    assert!(fs::read(folder.join("file")).expect("a file") == content(30_000_000));
    let replaced = |event: &ReceiverEvent| match event {
        ReceiverEvent::Disconnected { error: Some(error), .. } => error == REPLACED,
        _ => false,
    };
    assert!(events.iter().any(replaced), "{events:?}");
    // If the first sender is still alive, it gets the reason.
    let reason = loop {
        receiver.step(step).expect("a socket");
        if let Err(error) = first.step(step) {
            break error.to_string();
        }
    };
    assert!(reason.contains(REPLACED), "{reason}");
}

/// A host that keeps its connection alive, and does nothing else.
fn idle_host(config: &WireConfig, listens: bool) -> Host {
    config.bind("127.0.0.1:0".parse().expect("an address"), listens).expect("a socket")
}

fn close_reason(host: &mut Host, step: Duration) -> Option<CloseReason> {
    match host.next_event(step).expect("a socket") {
        Some(NodeEvent::Closed { reason, .. }) => Some(reason),
        _ => None,
    }
}

#[test]
fn an_idle_receiver_is_disconnected_with_a_reason() {
    let scratch = Scratch::new("service-idle-receiver");
    fs::write(scratch.path().join("file"), content(1000)).expect("a file");
    let sources = collect(&[scratch.path().join("file")]).expect("a file").sources;
    let [mut sender, receiver] = configs();
    sender.settings.stall_timeout = Duration::from_millis(300);
    let mut host = idle_host(&receiver, true);
    let mut sender = FileSender::begin(&sender, host.socket().local_address(), sources).expect("a socket");
    let (step, began, mut reason) = (Duration::from_millis(5), Instant::now(), None);
    let error = loop {
        if let Err(error) = sender.step(step) {
            break error.to_string();
        }
        reason = reason.or(close_reason(&mut host, step));
        assert!(began.elapsed() < HANG, "the sender never gives up");
    };
    assert_eq!(error, "the transfer has made no progress for 0.3 s, although the peer is connected (--stall-timeout)");
    while reason.is_none() {
        reason = close_reason(&mut host, step);
        assert!(began.elapsed() < HANG, "the receiver gets no reason");
    }
    assert!(matches!(reason, Some(CloseReason::Peer { code, .. }) if code == u64::from(CODE_STALLED)), "{reason:?}");
}

/// Connects a sender that offers files of 9 bytes and then sends nothing, to a receiver with a stall timeout of 0.3 s.
/// Asserts that the receiver disconnects it with a reason, and forgets the transfer.
fn idle_sender_is_disconnected(receiver: impl FnOnce(&WireConfig, SocketAddr) -> FileReceiver, files: u32) {
    let [sender, mut config] = configs();
    config.settings.stall_timeout = Duration::from_millis(300);
    let mut receiver = receiver(&config, "127.0.0.1:0".parse().expect("an address"));
    let mut host = idle_host(&sender, false);
    let now = host.now();
    host.node_mut().connect(now, receiver.local_address()).expect("room");
    let (step, began) = (Duration::from_millis(5), Instant::now());
    let (mut events, mut reason) = (vec![], None);
    while reason.is_none() {
        match host.next_event(step).expect("a socket") {
            Some(NodeEvent::Opened { association, .. }) => {
                for item in 0..files {
                    let name = vec![format!("file{item}")];
                    let offer = Offer { item, kind: Kind::File, size: 9, mode: 0o600, modified_ns: 0, name };
                    host.node_mut().write_control(association, Message::Offer(offer).encode()).expect("room");
                }
            }
            Some(NodeEvent::Closed { reason: why, .. }) => reason = Some(why),
            _ => {}
        }
        events.extend(receiver.step(step).expect("a socket"));
        assert!(began.elapsed() < HANG, "{events:?}");
    }
    assert!(matches!(reason, Some(CloseReason::Peer { code, .. }) if code == u64::from(CODE_STALLED)), "{reason:?}");
    let Some(ReceiverEvent::Disconnected { error: Some(error), offered, replaced: false, .. }) = events.last() else {
        panic!("{events:?}")
    };
    assert!(error.starts_with("the transfer has made no progress"), "{error}");
    assert_eq!(*offered, u64::from(files));
    assert!(receiver.active.is_empty() && receiver.running() == 0);
}

#[test]
fn an_idle_sender_is_disconnected_and_its_name_is_freed() {
    let scratch = Scratch::new("service-idle-sender");
    let folder = scratch.path().join("made");
    let bind = |config: &WireConfig, at| FileReceiver::bind(config, at, &folder, false).expect("the folder is created");
    idle_sender_is_disconnected(bind, 1);
}

/// The other files wait until the sender has completed the first one.
#[test]
fn an_idle_sender_is_disconnected_although_files_wait_for_their_turn_in_an_output() {
    let scratch = Scratch::new("service-idle-output");
    let output = File::create(scratch.path().join("output")).expect("a file");
    let bind = |config: &WireConfig, at| FileReceiver::bind_to_output(config, at, output).expect("a socket");
    idle_sender_is_disconnected(bind, 3);
}

/// Revokes the sender's key in the middle of a transfer. Returns the events of the receiver and the sender's error.
fn revoke_during_transfer(revocation: Revocation) -> (Vec<ReceiverEvent>, Option<String>) {
    let scratch = Scratch::new(&format!("service-revoked-{revocation:?}"));
    let folder = scratch.path().join("to");
    fs::create_dir(&folder).expect("a folder");
    fs::write(scratch.path().join("file"), content(20_000_000)).expect("a file");
    let sources = collect(&[scratch.path().join("file")]).expect("a file").sources;
    let [sender, receiver] = configs();
    let mut config = receiver;
    config.settings.revocation = revocation;
    let mut receiver =
        FileReceiver::bind(&config, "127.0.0.1:0".parse().expect("an address"), &folder, false).expect("a receiver");
    let to = receiver.local_address();
    let step = Duration::from_millis(1);
    let mut first = FileSender::begin(&sender, to, sources.clone()).expect("a socket");
    let (mut events, mut error, began) = (vec![], None, Instant::now());
    while receiver.received_bytes() < 2_000_000 {
        first.step(step).expect("a peer");
        events.extend(receiver.step(step).expect("a socket"));
    }
    receiver.set_trusted(Trusted::default());
    while error.is_none() && !first.progress().done {
        error = first.step(step).err().map(|error| error.to_string());
        events.extend(receiver.step(step).expect("a socket"));
        assert!(began.elapsed() < HANG, "{events:?}");
    }
    while !events.iter().any(|event| matches!(event, ReceiverEvent::Disconnected { .. })) {
        events.extend(receiver.step(step).expect("a socket"));
        assert!(began.elapsed() < HANG, "{events:?}");
    }
    // Nothing new begins in either case.
    let mut second = FileSender::begin(&sender, to, sources).expect("a socket");
    let refusal = loop {
        if let Err(error) = second.step(step) {
            break error.to_string();
        }
        receiver.step(step).expect("a socket");
    };
    assert!(refusal.starts_with("the peer does not trust this host's key"), "{refusal}");
    (events, error)
}

#[test]
fn a_revoked_peer_is_disconnected_at_once_with_the_reason() {
    let (events, error) = revoke_during_transfer(Revocation::End);
    assert_eq!(error.as_deref(), Some("closed by the peer: this key is not trusted any more (code 7)"));
    let Some(ReceiverEvent::Disconnected { error: Some(error), .. }) = events.last() else { panic!("{events:?}") };
    assert!(error.starts_with("the peer's key, ") && error.ends_with(", is not trusted any more"), "{error}");
}

#[test]
fn a_running_transfer_of_a_revoked_peer_finishes_if_that_is_configured() {
    let (events, error) = revoke_during_transfer(Revocation::Finish);
    assert_eq!(error, None);
    let [.., ReceiverEvent::Item { received, .. }, ReceiverEvent::Disconnected { error: None, .. }] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((&received.error, received.size), (&None, 20_000_000));
}
