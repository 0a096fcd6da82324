//! Sessions in virtual time: receivers are killed and started again, and paths fail.

use super::folder::Folder;
use super::session::{STUCK_MARGIN, Session};
use super::*;
use crate::attempts::Limits;
use crate::carrier::{AssociationId, Obstacle};
use crate::node::{FlowId, NodeConfig, NodeEvent};
use crate::scratch::Scratch;
use crate::virt::{Path, Virtual, address_of, random};
use sparelane_core::{Domain, Dur, Stream, Time};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

const LIMITS: Limits = Limits { connect_timeout: Dur::from_secs(10), retry: Dur::from_secs(60) };

fn content(bytes: usize, seed: u64) -> Vec<u8> {
    let mut rng = Stream::new(seed, Domain::Test, 0);
    (0..bytes).map(|_| rng.next_u64() as u8).collect()
}

/// A fault, at some time after the first connection.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// The receiver is killed, and its port is closed.
    Kill,
    /// It is started again; then it is reachable from both directions.
    Start,
    /// It is killed and started at once.
    Restart,
    /// All packets from this node are lost.
    Block(usize),
    /// Packets from this node arrive again.
    Unblock(usize),
    /// The sender's address changes.
    Move,
}

/// A receiver like [`FileReceiver`](crate::service::FileReceiver), in virtual time.
struct Receiver {
    folder: Arc<Folder>,
    transfers: BTreeMap<AssociationId, ReceiveTransfer>,
    active: ActiveNames,
}

impl Receiver {
    fn handle(&mut self, net: &mut Virtual, event: &NodeEvent) {
        let now = net.now();
        let id = match event {
            NodeEvent::Opened { association, .. } => {
                let transfer = ReceiveTransfer::new(*association, &self.folder, false, None);
                self.transfers.insert(*association, transfer);
                return;
            }
            NodeEvent::Control(association) | NodeEvent::Closed { association, .. } => *association,
            NodeEvent::Incoming(FlowId { association, .. }) | NodeEvent::Readable(FlowId { association, .. }) => {
                *association
            }
            _ => return,
        };
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        let mut handled = transfer.handle_event(net.node(1), &mut self.active, event);
        let mut has_replaced = false;
        while let Some(replaced) = self.active.poll_replaced() {
            net.node(1).close(now, replaced, CODE_REPLACED, "replaced");
            if let Some(mut transfer) = self.transfers.remove(&replaced) {
                transfer.release(&mut self.active);
            }
            has_replaced = true;
        }
        if let Some(transfer) = self.transfers.get_mut(&id).filter(|_| has_replaced) {
            transfer.resume();
            // Without a thread, nothing else reports that the answers are ready.
            handled = handled.and_then(|()| transfer.handle_answers(net.node(1), &mut self.active));
        }
        match handled {
            Ok(()) => {}
            Err(TransferError::Closed(_)) => drop(self.transfers.remove(&id)),
            Err(error) => panic!("{error}"),
        }
    }
}

struct Run {
    outcomes: Vec<Outcome>,
    error: Option<TransferError>,
    took: Dur,
    associations: u32,
    /// The longest silence that the sender noticed.
    silence: Dur,
}

/// Sends `files` while faults happen at their times.
fn run(files: &[PathBuf], to: &std::path::Path, path: Path, limits: Limits, faults: &[(Dur, Fault)], seed: u64) -> Run {
    run_sources(collect(files).expect("sources").sources, to, path, limits, faults, seed)
}

fn run_sources(
    sources: Vec<Source>,
    to: &std::path::Path,
    path: Path,
    limits: Limits,
    faults: &[(Dur, Fault)],
    seed: u64,
) -> Run {
    let give_up_after = Dur::from_secs(30) + STUCK_MARGIN;
    let config = NodeConfig { window_bytes: 1 << 20, give_up_after, ..NodeConfig::default() };
    let mut net = Virtual::new(path, config, seed).expect("settings that fit");
    let mut session = Session::new(sources, vec![address_of(1)], limits, Dur::from_secs(300), net.now());
    let folder = Arc::new(Folder::open(to).expect("a folder"));
    let new_receiver =
        || Receiver { folder: Arc::clone(&folder), transfers: BTreeMap::new(), active: ActiveNames::default() };
    let mut receiver = new_receiver();
    let mut faults = faults.iter().copied().peekable();
    let mut run = Run { outcomes: vec![], error: None, took: Dur::ZERO, associations: 0, silence: Dur::ZERO };
    while !session.is_done() {
        let now = net.now();
        match session.poll(now, net.node(0)) {
            Ok(Some(to)) => session.begin(now, net.node(0), to).expect("room"),
            Ok(None) => {}
            Err(error) => {
                run.error = Some(error);
                break;
            }
        }
        // Before the first connection, a fault is an error after the connect timeout at the latest.
        let next_fault = session.opened().zip(faults.peek());
        let fault_at = next_fault.map_or(Time::NEVER, |(opened, &(at, _))| opened + at);
        let limit = fault_at.min(session.next_timer()).min(now + Dur::from_ms(100)).max(now);
        match net.next_event(limit) {
            Some((0, event)) => {
                let now = net.now();
                if let Err(error) = session.handle_event(now, net.node(0), &event, None) {
                    run.error = Some(error);
                    break;
                }
                run.outcomes.extend(std::iter::from_fn(|| session.poll_outcome()));
            }
            Some((_, event)) => receiver.handle(&mut net, &event),
            None => {
                let now = net.now();
                run.silence = session.silence(now, net.node(0)).unwrap_or(Dur::ZERO).max(run.silence);
                assert!(now < Time::ZERO + Dur::from_secs(2000), "it hangs: seed {seed}, {path:?}");
                if fault_at > now {
                    continue;
                }
                let Some((_, fault)) = faults.next() else { continue };
                match fault {
                    Fault::Kill => net.set_obstacle(1, Some(Obstacle::PortClosed)),
                    Fault::Move => net.move_client(),
                    Fault::Block(from) => net.set_blocked(from, true),
                    Fault::Unblock(from) => net.set_blocked(from, false),
                    Fault::Start | Fault::Restart => net.set_obstacle(1, None),
                }
                if matches!(fault, Fault::Kill | Fault::Restart) {
                    net.restart(1, seed ^ now.as_ps()).expect("settings that fit");
                    receiver = new_receiver();
                }
            }
        }
    }
    run.outcomes.extend(std::iter::from_fn(|| session.poll_outcome()));
    (run.took, run.associations) = (net.now() - Time::ZERO, session.count());
    run
}

/// Sends 12 MB, which take about two seconds, while faults happen.
fn send_large(name: &str, limits: Limits, faults: &[(Dur, Fault)]) -> (Run, bool) {
    let scratch = Scratch::new(name);
    let (file, to) = (scratch.path().join("file"), scratch.path().join("to"));
    fs::create_dir(&to).expect("a folder");
    fs::write(&file, content(12_000_000, 1)).expect("a file");
    let run = run(std::slice::from_ref(&file), &to, Path::default(), limits, faults, 1);
    let is_whole = fs::read(to.join("file")).is_ok_and(|bytes| bytes == content(12_000_000, 1));
    (run, is_whole)
}

#[test]
fn a_transfer_continues_at_once_after_the_receiver_has_restarted() {
    let (undisturbed, is_whole) = send_large("session-undisturbed", LIMITS, &[]);
    assert!(is_whole && undisturbed.associations == 1, "{:?}", undisturbed.error);
    let (run, is_whole) = send_large("session-restart", LIMITS, &[(Dur::from_ms(1_000), Fault::Restart)]);
    assert!(is_whole && run.error.is_none() && run.associations == 2, "{:?}", run.error);
    assert_eq!((run.outcomes.len(), &run.outcomes[0].error), (1, &None));
    assert!(run.outcomes[0].resumed > 1_000_000, "{:?}", run.outcomes);
    // Before, the sender noticed after 30 s.
    assert!(run.took < undisturbed.took + Dur::from_secs(1), "{} and {}", run.took, undisturbed.took);
}

#[test]
fn a_transfer_continues_when_the_receiver_is_back_within_the_connect_timeout() {
    let faults = [(Dur::from_ms(1_000), Fault::Restart), (Dur::from_ms(1_001), Fault::Kill)];
    let back = |after| [&faults[..], &[(Dur::from_secs(after), Fault::Start)]].concat();
    let (run, is_whole) = send_large("session-back", LIMITS, &back(6));
    assert!(is_whole && run.error.is_none() && run.took < Dur::from_secs(12), "{:?} after {}", run.error, run.took);
    let (run, _) = send_large("session-away", LIMITS, &back(100));
    let error = run.error.expect("the receiver is away").to_string();
    assert!(error.contains("refused the connection: no program receives at this port"), "{error}");
    assert!(run.took < Dur::from_secs(13), "{}", run.took);
}

#[test]
fn a_transfer_survives_a_failure_of_the_path_and_gives_up_after_the_retry_time() {
    for from in [0, 1] {
        let faults = [(Dur::from_ms(1_000), Fault::Block(from)), (Dur::from_secs(50), Fault::Unblock(from))];
        let (run, is_whole) = send_large(&format!("session-blocked-{from}"), LIMITS, &faults);
        assert!(is_whole && run.error.is_none(), "{:?}", run.error);
        assert!(run.silence > Dur::from_secs(25) || from == 0, "{}", run.silence);
        let (run, _) = send_large(&format!("session-cut-{from}"), LIMITS, &faults[..1]);
        let error = run.error.expect("the path has failed").to_string();
        assert!(error.starts_with("the connection was lost: "), "{error}");
        assert!(run.took > Dur::from_secs(80) && run.took < Dur::from_secs(95), "{}", run.took);
        let at_once = Limits { retry: Dur::ZERO, ..LIMITS };
        let (run, _) = send_large(&format!("session-once-{from}"), at_once, &faults[..1]);
        assert!(matches!(run.error, Some(TransferError::Closed(_))), "{:?}", run.error);
        // One direction blocked: before, one of the sides went on for up to 56 s.
        assert!(run.took < Dur::from_secs(32), "{}", run.took);
    }
}

/// The receiver restarts before any of the stream has arrived, or later.
#[test]
fn a_stream_begins_again_if_nothing_has_arrived_and_fails_otherwise() {
    for blocked in [true, false] {
        let scratch = Scratch::new(&format!("session-stream-{blocked}"));
        let (file, to) = (scratch.path().join("input"), scratch.path().join("to"));
        fs::create_dir(&to).expect("a folder");
        fs::write(&file, content(12_000_000, 1)).expect("a file");
        let source = Source::stream(Input::new(fs::File::open(&file).expect("a file")), "stream").expect("a name");
        // The first acknowledgments are lost.
        let block = [(Dur::from_ms(50), Fault::Block(1)), (Dur::from_ms(950), Fault::Unblock(1))];
        let faults = [&block[..if blocked { 2 } else { 0 }], &[(Dur::from_secs(1), Fault::Restart)]].concat();
        let run = run_sources(vec![source], &to, Path::default(), LIMITS, &faults, 1);
        if blocked {
            assert_eq!((run.error, run.associations), (None, 2));
            assert!(fs::read(to.join("stream")).expect("a file") == content(12_000_000, 1));
        } else {
            let error = run.error.expect("it cannot continue").to_string();
            assert!(error.ends_with("; a stream cannot continue in another connection"), "{error}");
            assert_eq!(run.outcomes, []);
            // The receiver was killed, so the incomplete file is still there, but under no final name.
            assert!(!to.join("stream").exists());
        }
    }
}

/// Not all files are offered at once, so that the sender has something to say when the association ends.
#[test]
fn many_small_files_arrive_although_the_receiver_restarts() {
    for seed in 1..=8 {
        let scratch = Scratch::new(&format!("session-many-{seed}"));
        let (tree, to) = (scratch.path().join("tree"), scratch.path().join("to"));
        fs::create_dir(&tree).expect("a folder");
        fs::create_dir(&to).expect("a folder");
        for at in 0..400 {
            fs::write(tree.join(at.to_string()), content(3_000, at)).expect("a file");
        }
        let restarts: Vec<_> = (1..4).map(|at| (Dur::from_ms(at * 150 + seed * 7), Fault::Restart)).collect();
        let run = run(std::slice::from_ref(&tree), &to, Path::default(), LIMITS, &restarts, seed);
        assert_eq!((run.error, run.outcomes.len(), run.associations > 1), (None, 401, true), "seed {seed}");
        assert!(
            (0..400).all(|at| fs::read(to.join("tree").join(at.to_string())).is_ok_and(|it| it == content(3_000, at)))
        );
    }
}

/// Everything is drawn from each seed.
#[test]
fn files_arrive_whole_over_random_networks_with_restarts_and_failures() {
    let seeds = random::seeds(30);
    let count = seeds.end - seeds.start;
    let mut reconnected = 0;
    for seed in seeds {
        let mut rng = Stream::new(seed, Domain::Test, 8);
        let path = random::path(&mut rng, 2..22);
        let mut faults = vec![];
        for _ in 0..1 + rng.below(4) {
            let at = Dur::from_ms(rng.below(2_000));
            let later = at + Dur::from_ms(rng.below(8_000));
            match rng.below(5) {
                0 | 1 => faults.push((at, Fault::Restart)),
                2 => faults.extend([(at, Fault::Kill), (later, Fault::Start)]),
                3 => {
                    let from = rng.below(2) as usize;
                    let longer = at + Dur::from_ms(rng.below(45_000));
                    faults.extend([(at, Fault::Block(from)), (longer, Fault::Unblock(from))]);
                }
                _ => faults.push((at, Fault::Move)),
            }
        }
        faults.sort_by_key(|(at, _)| *at);
        let scratch = Scratch::new(&format!("session-random-{seed}"));
        let to = scratch.path().join("to");
        fs::create_dir(&to).expect("a folder");
        let sizes: Vec<usize> = (0..1 + rng.below(4)).map(|_| rng.below(300_000) as usize).collect();
        let files: Vec<PathBuf> = (0..sizes.len()).map(|at| scratch.path().join(at.to_string())).collect();
        for (at, file) in files.iter().enumerate() {
            fs::write(file, content(sizes[at], seed + at as u64)).expect("a file");
        }
        let limits = Limits { retry: Dur::from_secs(120), ..LIMITS };
        let run = run(&files, &to, path, limits, &faults, seed);
        let what = || format!("seed {seed}, {faults:?}, {path:?}");
        assert_eq!(run.error, None, "after {}: {}", run.took, what());
        assert!(run.outcomes.iter().all(|outcome| outcome.error.is_none()), "{:?}: {}", run.outcomes, what());
        assert_eq!(run.outcomes.len(), sizes.len(), "one outcome for each file: {}", what());
        for (at, &size) in sizes.iter().enumerate() {
            let got = fs::read(to.join(at.to_string())).expect("a file");
            assert!(got == content(size, seed + at as u64), "file {at}: {}", what());
        }
        assert_eq!(fs::read_dir(&to).expect("a folder").count(), sizes.len(), "nothing else: {}", what());
        reconnected += u32::from(run.associations > 1);
    }
    assert!(reconnected > 0 || count < 10);
}
