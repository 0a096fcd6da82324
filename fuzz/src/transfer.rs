//! Fuzzes both sides of a file transfer. The carrier drops, duplicates, changes and injects frames and messages, which
//! covers everything that a trusted peer can do to a sender or a receiver of files.

use super::fuzz_carrier::{ASSOCIATION, FuzzCarrier, deliver, opened, turn};
use super::input::Bytes as Input;
use sparelane_core::{Dur, Time};
use sparelane_net::carrier::CarrierEvent;
use sparelane_net::control::Coded;
use sparelane_net::node::{Node, NodeConfig, NodeEvent};
use sparelane_net::transfer::folder::Folder;
use sparelane_net::transfer::message::{Kind, Message, Offer};
use sparelane_net::transfer::{ActiveNames, ReceiveTransfer, SendTransfer, collect};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest number of rounds per run.
const MAX_ROUNDS: usize = 300;

/// The sizes of the files sent, in bytes.
const SIZES: [usize; 4] = [0, 1, 3_000, 40_000];

/// A file next to the receiving folder, which must never change.
const OUTSIDE: &str = "outside";

/// The temporary folders of one run.
struct Place(PathBuf);

impl Place {
    fn new() -> std::io::Result<Place> {
        let number = std::sync::atomic::AtomicU64::fetch_add(&NEXT, 1, std::sync::atomic::Ordering::Relaxed);
        let at = std::env::temp_dir().join(format!("sparelane-fuzz-{}-{number}", std::process::id()));
        let place = Place(at);
        fs::create_dir_all(place.0.join("from/sub"))?;
        fs::create_dir_all(place.0.join("to"))?;
        fs::write(place.0.join(OUTSIDE), OUTSIDE)?;
        for (number, size) in SIZES.into_iter().enumerate() {
            fs::write(place.0.join("from").join(["a", "b", "sub/c", "sub/d"][number]), vec![number as u8 + 1; size])?;
        }
        Ok(place)
    }
}

static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns a random, usually inappropriate message.
fn invented(input: &mut Input<'_>) -> Vec<u8> {
    let item = u32::from(input.byte() % 8);
    let number = |input: &mut Input<'_>| match input.byte() % 6 {
        0 => 0,
        1 => 1,
        2 => 1 << 20,
        3 => u64::MAX,
        4 => 40_000,
        _ => u64::from(input.byte()) << 12,
    };
    let names: [&[&str]; 6] = [&["x"], &["..", "x"], &["from", "a"], &["a", "b"], &["/etc", "x"], &["from"]];
    let message = match input.byte() % 12 {
        0 => {
            let kinds = [Kind::File, Kind::Folder, Kind::FolderTime, Kind::DatedFile, Kind::Stream];
            let kind = kinds[usize::from(input.byte() % 5)];
            let name = names[usize::from(input.byte()) % names.len()].iter().map(|part| (*part).to_owned()).collect();
            let (size, modified_ns) = (number(input), number(input) as i64);
            Message::Offer(Offer { item, kind, size, mode: u32::from(input.byte()) << 4, modified_ns, name })
        }
        1 => {
            let chunks = vec![[input.byte(); 32]; usize::from(input.byte() % 4)];
            Message::Accept { item, have: number(input), chunks }
        }
        2 => Message::Refuse { item, reason: "no".into() },
        3 => {
            let again = (0..input.byte() % 3).map(|_| u16::from(input.byte() % 4)).collect();
            Message::Begin { item, flow: u32::from(input.byte() % 4), from: number(input), again }
        }
        4 => Message::Whole { item, digest: [input.byte(); 32] },
        5 => Message::Abort { item, reason: "over".into() },
        6 => Message::Stored { item },
        7 => Message::Failed { item, reason: "failed".into() },
        8 => Message::Exists { item },
        9 => Message::Checked { item, bytes: number(input) },
        10 => Message::Ended { item, size: number(input), digest: [input.byte(); 32] },
        _ => Message::End,
    };
    message.encode().to_vec()
}

/// Closes the association after an error, and returns whether the side continues.
fn lives(node: &mut Node<FuzzCarrier>, now: Time, result: Result<(), impl ToString>) -> bool {
    if let Err(error) = &result {
        node.close(now, ASSOCIATION, 3, &error.to_string());
    }
    result.is_ok()
}

/// Runs one transfer and returns the number of files stored.
///
/// # Panics
/// If a side panics, if anything outside of the folder changes, or if a stored file differs from the file sent.
pub fn check(bytes: &[u8]) -> usize {
    let Ok(place) = Place::new() else { return 0 };
    let mut input = Input(bytes);
    let config = NodeConfig {
        window_bytes: 30_000,
        held_bytes: 100_000,
        max_flows: 16,
        classes: 1 + input.byte() % 4,
        ..NodeConfig::default()
    };
    let replaces = input.byte() % 2 == 0;
    if input.byte() % 2 == 0 {
        // Files left by an earlier attempt.
        let left = usize::from(input.byte()) * 200;
        let _ = fs::create_dir_all(place.0.join("to/from/sub"));
        let _ = fs::write(place.0.join("to/from/sub/.d.sparelane-part"), vec![4; left]);
        let _ = fs::write(place.0.join("to/from/b"), [2 + input.byte() % 2]);
    }
    // The rate of injected messages, low enough that most transfers make progress.
    let injection_rate = input.byte() % 24;
    let mut nodes = [opened(&config), opened(&config)];
    let sources = collect(&[place.0.join("from")]).expect("files that are there").sources;
    let folder = Arc::new(Folder::open(&place.0.join("to")).expect("a folder"));
    let mut sender = SendTransfer::new(ASSOCIATION, sources, &nodes[0], None);
    let mut receiver = ReceiveTransfer::new(ASSOCIATION, &folder, replaces, None);
    let before_bytes = folder_bytes(&place.0.join("to"));
    let [max_size_bytes, quota_bytes] =
        [0, 1].map(|_| Some(u64::from(input.byte()) * 300).filter(|bytes| bytes % 7 > 3));
    let mut names = ActiveNames::with_limits(max_size_bytes, quota_bytes);
    let (mut now, mut stored, mut live) = (Time::ZERO, 0, [true; 2]);
    for _ in 0..MAX_ROUNDS {
        now += Dur::from_us(1 + (input.scaled() >> 46));
        for at in 0..2 {
            turn(&mut nodes[at], now);
            while let Some(event) = nodes[at].poll_event() {
                let result = match (at, live[at]) {
                    (_, false) => continue,
                    (0, _) => sender.handle_event(now, &mut nodes[0], &event),
                    _ => receiver.handle_event(&mut nodes[1], &mut names, &event),
                };
                live[at] = lives(&mut nodes[at], now, result) && !matches!(event, NodeEvent::Closed { .. });
            }
            if live[0] && at == 0 {
                let checked = sender.check_stall(now, &nodes[0]);
                live[0] = lives(&mut nodes[0], now, checked);
            }
            if live[1] && at == 1 {
                let checked = receiver.check_stall(now);
                live[1] = lives(&mut nodes[1], now, checked);
                assert!(names.poll_replaced().is_none(), "there is no other transfer");
            }
            assert!(nodes[at].poll_transmit(now).is_none());
            let [one, two] = &mut nodes;
            let (from, to) = if at == 0 { (one, two) } else { (two, one) };
            deliver(&mut input, now, from.carrier_mut(), to.carrier_mut());
            if input.byte() < injection_rate {
                to.carrier_mut().received_control.push_back(invented(&mut input).into());
                to.carrier_mut().events.push_back(CarrierEvent::Control { association: ASSOCIATION });
            }
        }
        while let Some(received) = receiver.poll_received() {
            stored += usize::from(received.error.is_none());
        }
        while sender.poll_outcome().is_some() {}
        if live == [false; 2] || sender.is_done() || input.is_over() {
            break;
        }
    }
    receiver.release(&mut names);
    assert!(names.is_empty(), "{names:?}");
    let received_bytes = folder_bytes(&place.0.join("to")).saturating_sub(before_bytes);
    assert!(quota_bytes.is_none_or(|quota| received_bytes <= quota), "{received_bytes} bytes of {quota_bytes:?}");
    check_place(&place.0, injection_rate == 0);
    stored
}

/// The total size of the files in a folder and those below it.
fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let bytes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => folder_bytes(&entry.path()),
        found => found.map_or(0, |found| found.len()),
    });
    bytes.sum()
}

/// Checks that nothing outside of the folder changed and, without injected messages, that stored files equal the files
/// sent.
fn check_place(place: &Path, is_honest: bool) {
    let entries = fs::read_dir(place).expect("a folder").flatten().count();
    assert_eq!(entries, 3, "a file was created outside of the folder");
    assert_eq!(fs::read(place.join(OUTSIDE)).expect("a file"), OUTSIDE.as_bytes());
    for name in ["a", "sub/c", "sub/d"].into_iter().filter(|_| is_honest) {
        if let Ok(there) = fs::read(place.join("to/from").join(name)) {
            assert!(
                there == fs::read(place.join("from").join(name)).expect("a file"),
                "{name} differs from the file sent"
            );
        }
    }
}
