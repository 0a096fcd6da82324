//! Transfers between two nodes in virtual time, with real folders.

use super::chunks::chunk_bytes;
use super::folder::Folder;
use super::message::{Kind, Message, Offer};
use super::name::Name;
use super::writer::{Answer, Attributes, FileWriter, Job};
use super::*;
use crate::carrier::AssociationId;
use crate::control::Coded;
use crate::disk::{Disk, Work};
use crate::node::{NodeConfig, NodeEvent};
use crate::scratch::Scratch;
use crate::virt::{Path, Virtual};
use sparelane_core::{Domain, Dur, Stream, Time};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

pub(super) fn content(bytes: usize, seed: u64) -> Vec<u8> {
    let mut rng = Stream::new(seed, Domain::Test, 0);
    (0..bytes).map(|_| rng.next_u64() as u8).collect()
}

pub(super) struct Run {
    pub(super) sent: Vec<Outcome>,
    pub(super) received: Vec<Received>,
    pub(super) errors: [Option<TransferError>; 2],
}

/// Sends `paths` to `folder`; the path fails after `cut_after`, if given.
fn run(paths: &[PathBuf], folder: &std::path::Path, path: Path, replaces: bool, cut_after: Option<Dur>) -> Run {
    let change = cut_after.map(|after| (after, Path { loss: 1.0, ..path }));
    run_on_changing_path(paths, folder, path, replaces, change)
}

/// Sends `paths` to `folder`; the path changes after some time, if `change` is given.
fn run_on_changing_path(
    paths: &[PathBuf],
    folder: &std::path::Path,
    path: Path,
    replaces: bool,
    change: Option<(Dur, Path)>,
) -> Run {
    run_with(Compare::Hash, paths, folder, path, replaces, change)
}

/// Sends like [`run_on_changing_path`], with this comparison with existing files.
fn run_with(
    compare: Compare,
    paths: &[PathBuf],
    folder: &std::path::Path,
    path: Path,
    replaces: bool,
    change: Option<(Dur, Path)>,
) -> Run {
    run_sources(compare, collect(paths).expect("sources").sources, folder, path, replaces, change)
}

pub(super) fn run_sources(
    compare: Compare,
    sources: Vec<Source>,
    folder: &std::path::Path,
    path: Path,
    replaces: bool,
    mut change: Option<(Dur, Path)>,
) -> Run {
    let config = NodeConfig { window_bytes: 1 << 20, ..NodeConfig::default() };
    let mut net = Virtual::new(path, config, 1).expect("settings that fit");
    net.connect().expect("a peer");
    let folder = Arc::new(Folder::open(folder).expect("a folder"));
    let mut sources = Some(sources);
    let (mut sender, mut receiver, mut active) = (None, None, ActiveNames::default());
    let mut run = Run { sent: vec![], received: vec![], errors: [None, None] };
    let (mut shown, mut opened) = (0, None);
    let mut limit = Time::ZERO + change.map_or(Dur::from_secs(300), |(after, _)| after);
    loop {
        let Some((at, event)) = net.next_event(limit) else {
            if let Some((_, changed)) = change.take() {
                *net.path_mut() = changed;
                limit = Time::ZERO + Dur::from_secs(300);
                continue;
            }
            break;
        };
        let now = net.now();
        if let NodeEvent::Opened { association, .. } = event {
            if at == 0 {
                opened = Some(association);
                let mut made =
                    SendTransfer::new(association, sources.take().expect("one association"), net.node(0), None);
                made.set_compare(compare);
                sender = Some(made);
            } else {
                receiver = Some(ReceiveTransfer::new(association, &folder, replaces, None));
            }
        }
        if at == 0
            && let Some(sender) = &mut sender
        {
            if let Err(error) = sender.handle_event(now, net.node(0), &event) {
                run.errors[0].get_or_insert(error);
            }
            run.sent.extend(std::iter::from_fn(|| sender.poll_outcome()));
            // The end of an association takes its flows with it.
            if opened.is_some_and(|association| net.node(0).peer(association).is_some()) && run.errors == [None, None] {
                let (bytes, total) = sender.progress(net.node(0));
                assert!(shown <= bytes && bytes <= total, "the progress goes from {shown} to {bytes} of {total}");
                shown = bytes;
            }
        }
        if at == 1
            && let Some(receiver) = &mut receiver
        {
            if let Err(error) = receiver.handle_event(net.node(1), &mut active, &event) {
                run.errors[1].get_or_insert(error);
            }
            run.received.extend(std::iter::from_fn(|| receiver.poll_received()));
        }
        let is_done =
            sender.as_ref().is_some_and(SendTransfer::is_done) && receiver.as_ref().is_some_and(|r| r.is_done());
        if is_done || run.errors.iter().all(Option::is_some) {
            break;
        }
    }
    assert!(active.is_empty() || run.errors[1].is_none(), "{active:?}");
    run
}

pub(super) fn errors<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Vec<(&'a str, Option<&'a str>)> {
    outcomes.into_iter().map(|outcome| (outcome.name.as_str(), outcome.error.as_deref())).collect()
}

#[test]
fn a_tree_arrives_with_contents_permissions_and_times_despite_losses() {
    let scratch = Scratch::new("transfer-tree");
    let (from, to) = (scratch.path().join("tree"), scratch.path().join("to"));
    fs::create_dir_all(from.join("sub/empty")).expect("folders");
    fs::create_dir(&to).expect("a folder");
    let sizes = [("a", 0), ("b", 1), ("sub/large", 3_000_000), ("sub/odd name", 100_001), ("z", 70_000)];
    for (at, (name, size)) in sizes.iter().enumerate() {
        fs::write(from.join(name), content(*size, at as u64)).expect("a file");
    }
    fs::set_permissions(from.join("z"), fs::Permissions::from_mode(0o751)).expect("rights");
    let run = run(std::slice::from_ref(&from), &to, Path { loss: 0.02, ..Path::default() }, false, None);
    assert!(run.errors == [None, None] && run.sent.iter().all(|outcome| outcome.error.is_none()), "{:?}", run.sent);
    assert_eq!((run.sent.len(), run.received.len()), (8, 8));
    for (at, (name, size)) in sizes.iter().enumerate() {
        let there = to.join("tree").join(name);
        assert!(fs::read(&there).expect(name) == content(*size, at as u64), "{name}");
        let [was, is] = [from.join(name), there].map(|path| fs::metadata(path).expect("a file"));
        assert_eq!((was.mode(), was.mtime(), was.mtime_nsec()), (is.mode(), is.mtime(), is.mtime_nsec()), "{name}");
    }
    for name in ["", "sub", "sub/empty"] {
        let [was, is] = [from.join(name), to.join("tree").join(name)].map(|path| fs::metadata(path).expect("a folder"));
        assert_eq!((was.mode(), was.mtime(), was.mtime_nsec()), (is.mode(), is.mtime(), is.mtime_nsec()), "{name}");
    }
    assert!(fs::read_dir(to.join("tree")).expect("a folder").count() == 4, "nothing else is there");
}

#[test]
fn existing_files_are_kept_unless_replaced() {
    let scratch = Scratch::new("transfer-replace");
    let (from, to) = (scratch.path().join("file"), scratch.path().join("to"));
    fs::create_dir(&to).expect("a folder");
    fs::write(&from, "new").expect("a file");
    fs::write(to.join("file"), "old").expect("a file");
    let kept = run(std::slice::from_ref(&from), &to, Path::default(), false, None);
    assert_eq!(errors(&kept.sent), [("file", Some("it is there already, with other contents"))]);
    assert_eq!(errors(&kept.sent)[0].1, kept.received[0].error.as_deref());
    assert_eq!(fs::read_to_string(to.join("file")).expect("a file"), "old");
    fs::write(to.join("file"), "longer").expect("a file");
    let kept = run(std::slice::from_ref(&from), &to, Path::default(), false, None);
    assert_eq!(errors(&kept.sent), [("file", Some("it is there already"))]);
    fs::write(to.join("file"), "old").expect("a file");
    let replaced = run(&[from], &to, Path::default(), true, None);
    assert_eq!(errors(&replaced.sent), [("file", None)]);
    assert_eq!(fs::read_to_string(to.join("file")).expect("a file"), "new");
}

/// The path fails after part of a folder has arrived. Complete files are not sent again, and cause no error.
#[test]
fn an_interrupted_folder_is_completed_without_an_error() {
    let scratch = Scratch::new("transfer-again");
    let (from, to) = (scratch.path().join("tree"), scratch.path().join("to"));
    fs::create_dir_all(from.join("sub")).expect("folders");
    fs::create_dir(&to).expect("a folder");
    for (at, (name, size)) in [("a", 50_000), ("b", 3_000_000), ("sub/c", 0), ("z", 3_000_000)].into_iter().enumerate()
    {
        fs::write(from.join(name), content(size, at as u64)).expect("a file");
    }
    let cut = run(std::slice::from_ref(&from), &to, Path::default(), false, Some(Dur::from_ms(330)));
    assert!(cut.errors.iter().all(Option::is_some), "{:?}", cut.errors);
    assert!(to.join("tree/a").exists() && !to.join("tree/z").exists());
    let before = fs::metadata(to.join("tree/a")).expect("a file").ino();
    for replaces in [false, true] {
        let again = run(std::slice::from_ref(&from), &to, Path::default(), replaces, None);
        assert!(again.sent.iter().all(|outcome| outcome.error.is_none()), "{:?}", again.sent);
        assert!(again.received.iter().all(|received| received.error.is_none()), "{:?}", again.received);
        for outcome in again.sent.iter().filter(|outcome| outcome.name == "tree/a" || replaces) {
            assert_eq!(outcome.resumed, outcome.size, "{outcome:?} is there");
        }
    }
    assert_eq!(fs::metadata(to.join("tree/a")).expect("a file").ino(), before, "the file was not written again");
    for name in ["a", "b", "sub/c", "z"] {
        assert!(fs::read(from.join(name)).expect("a file") == fs::read(to.join("tree").join(name)).expect(name));
    }
}

/// The data left from an earlier attempt is wrong in two of six chunks; in one of them the file has zeros.
#[test]
fn a_wrong_chunk_costs_only_itself() {
    let chunk = chunk_bytes(6_000_000) as usize;
    let scratch = Scratch::new("transfer-chunks");
    let (from, to) = (scratch.path().join("file"), scratch.path().join("to"));
    fs::create_dir(&to).expect("a folder");
    let mut right = content(6_000_000, 1);
    right[3 * chunk..4 * chunk].fill(0);
    fs::write(&from, &right).expect("a file");
    for (left_bytes, spoilt, resumed) in [
        (6_000_000, vec![chunk + 5, 4 * chunk - 1], 6_000_000 - 2 * chunk),
        (4 * chunk + 77, vec![0], 3 * chunk + 77),
        (4 * chunk + 77, vec![4 * chunk + 1], 4 * chunk),
        (4 * chunk, vec![2 * chunk, 3 * chunk], 2 * chunk),
        (6_000_000, (0..6).map(|number| number * chunk).collect(), 0),
    ] {
        let mut left = right[..left_bytes].to_vec();
        spoilt.iter().for_each(|&at| left[at] ^= 1);
        fs::write(to.join(".file.sparelane-part"), &left).expect("a file");
        let run = run(std::slice::from_ref(&from), &to, Path { loss: 0.01, ..Path::default() }, true, None);
        assert_eq!((errors(&run.sent), run.sent[0].resumed), (vec![("file", None)], resumed as u64), "{spoilt:?}");
        assert_eq!(run.received[0].resumed, resumed as u64);
        assert!(fs::read(to.join("file")).expect("a file") == right, "{spoilt:?} of {left_bytes}");
        fs::remove_file(to.join("file")).expect("a file");
    }
}

/// The path fails at different times; each attempt continues where the last one stopped.
#[test]
fn an_interrupted_transfer_continues_where_it_stopped() {
    let scratch = Scratch::new("transfer-resume");
    let (from, to) = (scratch.path().join("file"), scratch.path().join("to"));
    fs::create_dir(&to).expect("a folder");
    fs::write(&from, content(12_000_000, 1)).expect("a file");
    let mut had = 0;
    for after_ms in [300, 400, 500] {
        let cut = run(std::slice::from_ref(&from), &to, Path::default(), false, Some(Dur::from_ms(after_ms)));
        assert!(cut.errors.iter().all(Option::is_some) && !to.join("file").exists(), "{:?}", cut.errors);
        let has = fs::metadata(to.join(".file.sparelane-part")).expect("the received part").len();
        assert!(has > had, "{has} after {had} bytes");
        had = has;
    }
    let whole = run(std::slice::from_ref(&from), &to, Path::default(), false, None);
    assert_eq!(errors(&whole.sent), [("file", None)]);
    assert_eq!((whole.sent[0].resumed, whole.received[0].resumed), (had, had));
    assert!(fs::read(to.join("file")).expect("a file") == content(12_000_000, 1));
}

#[test]
fn the_rest_of_another_file_is_not_used() {
    let scratch = Scratch::new("transfer-other");
    let (from, to) = (scratch.path().join("file"), scratch.path().join("to"));
    fs::create_dir(&to).expect("a folder");
    for left in [1000, 500_000, 600_000] {
        fs::write(&from, content(500_000, 1)).expect("a file");
        fs::write(to.join(".file.sparelane-part"), content(left, 2)).expect("a file");
        let _ = fs::remove_file(to.join("file"));
        let run = run(std::slice::from_ref(&from), &to, Path::default(), true, None);
        assert_eq!((errors(&run.sent), run.sent[0].resumed), (vec![("file", None)], 0));
        assert!(fs::read(to.join("file")).expect("a file") == content(500_000, 1), "{left}");
    }
}

/// Measurements of a path send such data.
#[test]
fn discarded_data_arrives_without_a_name_a_file_or_a_report() {
    let scratch = Scratch::new("transfer-discarded");
    let (from, to) = (scratch.path().join("file"), scratch.path().join("to"));
    fs::create_dir(&to).expect("a folder");
    for (size, cut_after) in [(3_000_000, None), (0, None), (30_000_000, Some(Dur::from_ms(500)))] {
        fs::write(&from, content(size, 1)).expect("a file");
        let sources = collect(std::slice::from_ref(&from)).expect("a file").sources;
        let sources = sources.into_iter().map(Source::discarded).collect();
        let change = cut_after.map(|after| (after, Path { loss: 1.0, ..Path::default() }));
        let run = run_sources(Compare::Hash, sources, &to, Path::default(), false, change);
        if cut_after.is_none() {
            assert_eq!((errors(&run.sent), run.errors), (vec![("file", None)], [None, None]));
        }
        assert!(run.received.is_empty() && fs::read_dir(&to).expect("a folder").count() == 0);
    }
}

/// The files of `/proc` have content, and their size is 0; those of `/sys` have less than their size.
#[test]
fn a_file_with_a_wrong_size_is_an_error_on_both_sides() {
    let scratch = Scratch::new("transfer-proc");
    let cases = [("/proc/version", "more"), ("/sys/kernel/mm/transparent_hugepage/enabled", "less")];
    for (path, what) in cases {
        // Nothing to test on a machine without such files.
        if !std::path::Path::new(path).exists() {
            continue;
        }
        let run = run(&[path.into()], scratch.path(), Path::default(), false, None);
        let [(_, Some(error))] = errors(&run.sent)[..] else { panic!("{:?}", run.sent) };
        assert!(error.starts_with(&format!("it has {what} content than its size says")), "{error}");
        assert_eq!(run.received.len(), 1);
        assert_eq!(run.received[0].error.as_deref(), Some(error));
    }
}

/// A sender that uses the protocol with bad intentions.
#[test]
fn a_hostile_sender_is_refused_and_writes_nothing() {
    let offer = |name: &[&str], size| {
        let name = name.iter().map(|part| (*part).to_owned()).collect();
        Message::Offer(Offer { item: 0, kind: Kind::File, size, mode: 0o7777, modified_ns: 0, name })
    };
    const NOT_BEGUN: &str = "the peer ends a stream that it has not begun, or not there";
    let stream = |size| {
        let name = vec!["x".to_owned()];
        Message::Offer(Offer { item: 0, kind: Kind::Stream, size, mode: 0o777, modified_ns: 0, name })
    };
    let result_of = |messages: &[Message]| {
        let scratch = Scratch::new("transfer-hostile");
        let mut net = Virtual::new(Path::default(), NodeConfig::default(), 1).expect("settings that fit");
        net.connect().expect("a peer");
        let folder = Arc::new(Folder::open(scratch.path()).expect("a folder"));
        let (mut receiver, mut active) = (None, ActiveNames::default());
        while let Some((at, event)) = net.next_event(Time::ZERO + Dur::from_secs(5)) {
            let now = net.now();
            if let NodeEvent::Opened { association, .. } = event {
                if at == 0 {
                    for message in messages {
                        net.node(0).write_control(association, message.encode()).expect("room");
                    }
                    let flow = net.node(0).open_flow(now, association, None).expect("a flow");
                    net.node(0).write(flow, content(5_000, 1).into());
                    net.node(0).finish(flow);
                } else {
                    receiver = Some(ReceiveTransfer::new(association, &folder, false, None));
                }
            }
            if at == 1
                && let Some(receiver) = &mut receiver
                && let Err(error) = receiver.handle_event(net.node(1), &mut active, &event)
            {
                return error.to_string();
            }
        }
        let left: Vec<_> =
            fs::read_dir(scratch.path()).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
        format!("{left:?}")
    };
    let begin = Message::Begin { item: 0, flow: 0, from: 0, again: vec![] };
    let cases = [
        (vec![offer(&["..", "x"], 5)], "[]"),
        (vec![offer(&["/etc/x"], 5)], "[]"),
        (vec![begin.clone()], "the peer begins an item that it may not begin, or not there"),
        (vec![offer(&["x"], 9), offer(&["y"], 9)], "the peer offers an item twice, too many, or after the end"),
        (vec![offer(&["x"], 4_999), begin.clone()], "the peer sends more of a file than it has offered"),
        (vec![Message::End, offer(&["x"], 9)], "the peer offers an item twice, too many, or after the end"),
        (vec![Message::Stored { item: 0 }], "the peer sends what only a receiver says"),
        (
            vec![offer(&["x"], 9), Message::Begin { item: 0, flow: 0, from: 5, again: vec![] }],
            "the peer begins an item that it may not begin, or not there",
        ),
        (
            vec![offer(&["x"], 9), Message::Begin { item: 0, flow: 0, from: 0, again: vec![0] }],
            "the peer begins an item that it may not begin, or not there",
        ),
        (
            vec![offer(&["x"], 5_000), begin.clone(), Message::Whole { item: 0, digest: [0; 32] }],
            "[\".x.sparelane-part\"]",
        ),
        (vec![stream(5)], "[]"),
        (
            vec![stream(0), begin.clone(), Message::Whole { item: 0, digest: [0; 32] }],
            "the peer ends a stream without its size",
        ),
        (
            vec![stream(0), begin.clone(), Message::Ended { item: 0, size: 4_999, digest: [0; 32] }],
            "the peer sends more of a file than it has offered",
        ),
        (vec![stream(0), Message::Ended { item: 0, size: 9, digest: [0; 32] }], NOT_BEGUN),
        (vec![offer(&["x"], 9), Message::Ended { item: 0, size: 9, digest: [0; 32] }], NOT_BEGUN),
        // A stream with a wrong digest leaves nothing.
        (vec![stream(0), begin.clone(), Message::Ended { item: 0, size: 5_000, digest: [0; 32] }], "[]"),
        // It does not fit on the disk, so the offer is refused.
        (vec![offer(&["x"], u64::MAX)], "[]"),
        (vec![offer(&["x"], u64::MAX), begin], "the peer begins an item that it may not begin, or not there"),
    ];
    for (messages, outcome) in cases {
        assert_eq!(result_of(&messages), outcome, "{messages:?}");
    }
}

#[test]
fn invalid_sources_are_reported_before_the_transfer() {
    let scratch = Scratch::new("transfer-sources");
    let at = |name: &str| scratch.path().join(name);
    fs::create_dir_all(at("one/same")).expect("folders");
    fs::write(at("one/file"), "").expect("a file");
    fs::create_dir(at("two")).expect("a folder");
    fs::write(at("two/file"), "").expect("a file");
    fs::create_dir(at("links")).expect("a folder");
    std::os::unix::fs::symlink("/etc", at("links/out")).expect("a link");
    fs::write(at("bad\n"), "").expect("a file");
    let outcome = |paths: &[PathBuf]| {
        let collected = collect(paths).map_err(|error| error.to_string())?;
        Ok::<_, String>((
            collected.sources.len(),
            collected.left_out.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ))
    };
    // Three items, a file, and the times of two folders.
    assert_eq!(outcome(&[at("one"), at("two/file")]), Ok((6, vec![])));
    for (paths, part) in [
        (vec![at("none")], "No such file"),
        (vec![at("one/file"), at("two/file")], "another item also has the name file"),
        (vec!["/dev/null".into()], "links, devices and sockets are not sent"),
        (vec![at("bad\n")], "a part has a control character"),
        (vec![at("none"), at("one"), "/dev/null".into()], "No such file or directory (os error 2)\n/dev/null: neither"),
    ] {
        let refused = outcome(&paths).expect_err(part);
        assert!(refused.contains(part), "{refused}");
    }
}

#[test]
fn holes_are_preserved() {
    use std::os::unix::fs::FileExt;
    let scratch = Scratch::new("transfer-holes");
    let to = scratch.path().join("to");
    fs::create_dir(&to).expect("a folder");
    let paths = ["mixed", "empty"].map(|name| scratch.path().join(name));
    let mixed = fs::File::create(&paths[0]).expect("a file");
    mixed.write_all_at(&content(10_000, 1), 0).expect("room");
    mixed.write_all_at(&content(10_000, 2), 3_000_000).expect("room");
    mixed.set_len(6_000_000).expect("room");
    fs::File::create(&paths[1]).and_then(|file| file.set_len(4_000_000)).expect("room");
    let run = run(&paths, &to, Path { loss: 0.01, ..Path::default() }, false, None);
    let mut sent = errors(&run.sent);
    sent.sort_unstable();
    assert_eq!(sent, [("empty", None), ("mixed", None)]);
    for (path, max_blocks) in paths.iter().zip([200, 8]) {
        let there = to.join(path.file_name().expect("a name"));
        assert!(fs::read(&there).expect("a file") == fs::read(path).expect("a file"), "{path:?}");
        // File systems without holes have all blocks in the source, too.
        let [was, is] = [path, &there].map(|path| fs::metadata(path).expect("a file").blocks());
        assert!(is <= max_blocks.max(was), "{is} blocks for {was} of {path:?}");
    }
}

#[test]
fn a_source_changed_since_the_interruption_arrives_in_its_new_state() {
    let scratch = Scratch::new("transfer-changed");
    let (from, to) = (scratch.path().join("file"), scratch.path().join("to"));
    fs::create_dir(&to).expect("a folder");
    fs::write(&from, content(5_000_000, 1)).expect("a file");
    let cut = run(std::slice::from_ref(&from), &to, Path::default(), false, Some(Dur::from_ms(300)));
    assert!(cut.errors.iter().all(Option::is_some) && !to.join("file").exists());
    let had = fs::metadata(to.join(".file.sparelane-part")).expect("the received part").len();
    assert!(had > 100_000, "{had} bytes");
    let mut changed = content(5_000_000, 1);
    changed[50_000] ^= 1;
    fs::write(&from, &changed).expect("a file");
    let again = run(&[from], &to, Path::default(), false, None);
    assert_eq!(errors(&again.sent), [("file", None)]);
    let chunk = chunk_bytes(5_000_000);
    assert_eq!(again.sent[0].resumed, had - chunk.min(had), "all chunks but the first are kept");
    assert!(fs::read(to.join("file")).expect("a file") == changed);
}

#[test]
fn a_file_arrives_over_a_path_with_many_faults() {
    for seed in 1..4 {
        let scratch = Scratch::new(&format!("transfer-bad-{seed}"));
        let (from, to) = (scratch.path().join("file"), scratch.path().join("to"));
        fs::create_dir(&to).expect("a folder");
        fs::write(&from, content(1_000_000, seed)).expect("a file");
        let path = Path {
            loss: 0.05,
            reordered: 0.1,
            reordered_by: Dur::from_ms(30),
            duplicated: 0.05,
            queue_packets: 100,
            ..Path::default()
        };
        let run = run(&[from], &to, path, false, None);
        assert_eq!(errors(&run.sent), [("file", None)]);
        assert!(fs::read(to.join("file")).expect("a file") == content(1_000_000, seed));
    }
}

/// The path starts to drop full packets.
#[test]
fn a_falling_mtu_is_reported_and_received_data_stays() {
    let scratch = Scratch::new("transfer-mtu");
    let (from, to) = (scratch.path().join("file"), scratch.path().join("to"));
    fs::create_dir(&to).expect("a folder");
    fs::write(&from, content(3_000_000, 1)).expect("a file");
    let small = Path { mtu_bytes: 1280, ..Path::default() };
    let change = Some((Dur::from_ms(200), small));
    let stuck = run_on_changing_path(std::slice::from_ref(&from), &to, Path::default(), false, change);
    assert_eq!(stuck.errors[0], Some(TransferError::Stuck), "{:?}", stuck.errors);
    assert!(!to.join("file").exists());
    let whole = run(&[from], &to, Path::default(), false, None);
    assert!(errors(&whole.sent) == [("file", None)] && whole.sent[0].resumed > 0);
}

/// Blocks the disk thread until it is released.
struct Gate(mpsc::Receiver<()>);

impl Work for Gate {
    type Job = ();
    type Answer = ();

    fn work(&mut self, (): (), _: &mut dyn FnMut(())) {
        self.0.recv().expect("the test goes on");
    }
}

#[test]
fn a_stalled_disk_delays_its_transfer_in_bounded_memory() {
    const SIZE: usize = 30_000_000;
    let scratch = Scratch::new("transfer-stall");
    let (from, to) = (scratch.path().join("file"), scratch.path().join("to"));
    fs::create_dir(&to).expect("a folder");
    fs::write(&from, content(SIZE, 1)).expect("a file");
    let (folder, mut disk) = (Arc::new(Folder::open(&to).expect("a folder")), Disk::start().expect("a thread"));
    let (release, gate) = mpsc::channel();
    let mut gate = disk.queue(Gate(gate));
    let config = NodeConfig { window_bytes: 1 << 20, ..NodeConfig::default() };
    let mut net = Virtual::new(Path::default(), config, 1).expect("settings that fit");
    net.connect().expect("a peer");
    let (mut sender, mut receiver, mut active) = (None, None, ActiveNames::default());
    let (mut stalled_at, mut is_free, mut until) = (Time::NEVER, false, Time::ZERO);
    while !sender.as_ref().is_some_and(SendTransfer::is_done) {
        let event = net.next_event(until);
        let now = net.now();
        let (at, event) = match event {
            Some((at, event)) => (at, Some(event)),
            None => {
                until += Dur::from_ms(10);
                (1, None)
            }
        };
        match (at, &event) {
            (0, Some(NodeEvent::Opened { association, .. })) => {
                let sources = collect(std::slice::from_ref(&from)).expect("a file").sources;
                sender = Some(SendTransfer::new(*association, sources, net.node(0), None));
            }
            (1, Some(NodeEvent::Opened { association, .. })) => {
                receiver = Some(ReceiveTransfer::new(*association, &folder, false, Some(&disk)));
            }
            (_, Some(NodeEvent::Closed { reason, .. })) => panic!("{reason}"),
            _ => {}
        }
        if let (0, Some(sender), Some(event)) = (at, &mut sender, &event) {
            sender.handle_event(now, net.node(0), event).expect("it goes on");
        }
        let (1, Some(receiver)) = (at, &mut receiver) else { continue };
        if let Some(event) = &event {
            receiver.handle_event(net.node(1), &mut active, event).expect("it goes on");
        }
        if stalled_at == Time::NEVER && receiver.received_bytes() > 1_000_000 {
            gate.submit((), 0);
            stalled_at = now;
        }
        // Longer than the idle timeout of a connection.
        if now > stalled_at.saturating_add(Dur::from_secs(60)) && !is_free {
            assert!((9_000_000..12_000_000).contains(&receiver.received_bytes()), "{}", receiver.received_bytes());
            release.send(()).expect("it waits");
            is_free = true;
        }
        // While the gate is closed, time passes for the network only.
        if event.is_none() && (is_free || stalled_at == Time::NEVER) {
            std::thread::sleep(Duration::from_millis(1));
        }
        if disk.take_ready() {
            receiver.handle_answers(net.node(1), &mut active).expect("it goes on");
        }
    }
    assert!(is_free && fs::read(to.join("file")).expect("a file") == content(SIZE, 1));
}

/// The side that stops acting, although its connection is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdleSide {
    Sender,
    Receiver,
    Nobody,
}

/// Runs a transfer in which one side stops acting. Returns the other side's error, its time since then, and the close
/// reason that reaches the idle side.
fn run_with_idle_side(idle_side: IdleSide, timeout: Dur) -> (Option<TransferError>, Dur, Option<CloseReason>) {
    let scratch = Scratch::new(&format!("transfer-stalled-{idle_side:?}"));
    let (from, to) = (scratch.path().join("file"), scratch.path().join("to"));
    fs::create_dir(&to).expect("a folder");
    fs::write(&from, content(10_000_000, 1)).expect("a file");
    let folder = Arc::new(Folder::open(&to).expect("a folder"));
    let config = NodeConfig { window_bytes: 1 << 20, ..NodeConfig::default() };
    let mut net = Virtual::new(Path::default(), config, 1).expect("settings that fit");
    net.connect().expect("a peer");
    let mut sources = Some(collect(std::slice::from_ref(&from)).expect("a file").sources);
    let (mut sender, mut receiver, mut active) = (None, None, ActiveNames::default());
    let (mut idle_from, mut failed, mut reason_seen) = (None, (None, Dur::ZERO), None);
    let mut limit = Time::ZERO;
    let id = AssociationId(1);
    while reason_seen.is_none() && limit < Time::ZERO + Dur::from_secs(1000) {
        let event = net.next_event(limit);
        let now = net.now();
        let is_idle = idle_from.is_some();
        let Some((at, event)) = event else {
            limit += Dur::from_ms(100);
            // The caller checks the stall timers now and then.
            if let Some(sender) = sender.as_mut().filter(|_| !(is_idle && idle_side == IdleSide::Sender)) {
                let sender: &mut SendTransfer = sender;
                if let Err(error) = sender.check_stall(now, net.node(0)) {
                    net.node(0).close(now, id, error.code(), &error.to_string());
                    failed = (Some(error), now - idle_from.unwrap_or(now));
                }
            }
            if let Some(receiver) = receiver.as_mut().filter(|_| !(is_idle && idle_side == IdleSide::Receiver)) {
                let receiver: &mut ReceiveTransfer = receiver;
                if let Err(error) = receiver.check_stall(now) {
                    net.node(1).close(now, id, error.code(), &error.to_string());
                    failed = (Some(error), now - idle_from.unwrap_or(now));
                }
            }
            if sender.as_ref().is_some_and(SendTransfer::is_done) {
                break;
            }
            continue;
        };
        match &event {
            NodeEvent::Opened { association, .. } if at == 0 => {
                let sources = sources.take().expect("one association");
                let mut fresh = SendTransfer::new(*association, sources, net.node(0), None);
                fresh.set_stall_timeout(timeout);
                sender = Some(fresh);
            }
            NodeEvent::Opened { association, .. } => {
                let mut fresh = ReceiveTransfer::new(*association, &folder, false, None);
                fresh.set_stall_timeout(timeout);
                receiver = Some(fresh);
            }
            NodeEvent::Closed { reason, .. } if failed.0.is_some() && *reason != CloseReason::Here => {
                reason_seen = Some(reason.clone());
            }
            _ => {}
        }
        if let (0, Some(sender), false) = (at, &mut sender, is_idle && idle_side == IdleSide::Sender) {
            let _ = sender.handle_event(now, net.node(0), &event);
        }
        if let (1, Some(receiver), false) = (at, &mut receiver, is_idle && idle_side == IdleSide::Receiver) {
            let _ = receiver.handle_event(net.node(1), &mut active, &event);
            if idle_from.is_none() && idle_side != IdleSide::Nobody && receiver.received_bytes() > 2_000_000 {
                idle_from = Some(now);
            }
        }
    }
    (failed.0, failed.1, reason_seen)
}

#[test]
fn an_idle_peer_is_disconnected_after_the_stall_timeout() {
    for (idle_side, seconds) in [(IdleSide::Sender, 40), (IdleSide::Receiver, 40), (IdleSide::Receiver, 100)] {
        let timeout = Dur::from_secs(seconds);
        let (error, took, reason_seen) = run_with_idle_side(idle_side, timeout);
        assert_eq!(error, Some(TransferError::Stalled(timeout)), "{idle_side:?}");
        assert!(took >= timeout && took < timeout + Dur::from_secs(5), "{took} for {timeout}, {idle_side:?}");
        let Some(CloseReason::Peer { code, reason }) = reason_seen else { panic!("{reason_seen:?}") };
        assert_eq!(code, u64::from(CODE_STALLED));
        assert_eq!(
            reason.as_str(),
            format!(
                "the transfer has made no progress for {seconds} s, although the peer is connected (--stall-timeout)"
            )
        );
    }
    assert_eq!(run_with_idle_side(IdleSide::Nobody, Dur::from_secs(1)).0, None, "a transfer with progress continues");
}

#[test]
fn a_peer_that_offers_nothing_is_disconnected_after_two_minutes() {
    let scratch = Scratch::new("transfer-nothing");
    let folder = Arc::new(Folder::open(scratch.path()).expect("a folder"));
    let mut receiver = ReceiveTransfer::new(AssociationId(1), &folder, false, None);
    let after = |seconds| Time::ZERO + Dur::from_secs(seconds);
    assert_eq!((receiver.check_stall(after(5)), receiver.check_stall(after(124))), (Ok(()), Ok(())));
    let error = receiver.check_stall(after(125)).expect_err("nothing was offered");
    assert_eq!((error.code(), error.to_string()), (CODE_STALLED, "the peer has offered nothing for 120 s".to_owned()));
}

#[test]
fn offers_that_never_begin_use_no_descriptors() {
    let scratch = Scratch::new("transfer-offers");
    let folder = Arc::new(Folder::open(scratch.path()).expect("a folder"));
    let mut writer = FileWriter::new(folder, false);
    let mut accepted = 0;
    let descriptors = || fs::read_dir("/proc/self/fd").expect("a folder").count();
    let before = descriptors();
    for opening in 0..200 {
        let name = Name::new(vec![opening.to_string()]).expect("a name");
        writer.work(Job::Open { opening, name, size: 1000, known: None }, &mut |answer| {
            accepted += usize::from(matches!(answer, Answer::Opened { result: Ok((0, _)), .. }));
        });
    }
    // Other tests of this process use some at the same time.
    assert!(descriptors() < before + 150, "{before} and {}", descriptors());
    assert_eq!(accepted, 200);
    assert_eq!(fs::read_dir(scratch.path()).expect("a folder").count(), 0, "no file exists before its sender begins");
    let begin = |writer: &mut FileWriter, opening| {
        writer.work(Job::Begin { opening, from: 0, again: vec![] }, &mut |answer| panic!("{answer:?}"));
    };
    begin(&mut writer, 7);
    assert!(scratch.path().join(".7.sparelane-part").exists());
}

#[test]
fn files_of_equal_size_and_time_count_as_sent_without_being_read() {
    let scratch = Scratch::new("transfer-compare");
    let (from, to) = (scratch.path().join("tree"), scratch.path().join("to"));
    fs::create_dir(&from).expect("a folder");
    fs::create_dir(&to).expect("a folder");
    for (at, name) in ["a", "b", "c"].iter().enumerate() {
        fs::write(from.join(name), content(70_000, at as u64)).expect("a file");
    }
    let paths = std::slice::from_ref(&from);
    let send = |compare, replaces| {
        let run = run_with(compare, paths, &to, Path::default(), replaces, None);
        assert!(run.errors == [None, None], "{:?}", run.errors);
        assert_eq!(run.received.iter().map(|one| one.error.is_some()).collect::<Vec<_>>(), [false; 4]);
        // Files that are not sent have their result earlier.
        let mut files: Vec<_> = run.sent.iter().filter(|outcome| !outcome.is_folder).collect();
        files.sort_by(|one, other| one.name.cmp(&other.name));
        files.iter().map(|outcome| (outcome.unchanged, outcome.resumed, outcome.error.is_none())).collect()
    };
    let (new, same) = ((false, 0, true), (true, 70_000, true));
    let sent: Vec<_> = send(Compare::Time, false);
    assert_eq!(sent, [new; 3], "nothing is there yet");
    // A file with the same size and time but another content shows that files are not read.
    let there = fs::File::options().write(true).open(to.join("tree/b")).expect("a file");
    let time = there.metadata().and_then(|was| was.modified()).expect("a time");
    fs::write(to.join("tree/b"), content(70_000, 9)).expect("a file");
    there.set_modified(time).expect("a time");
    // A file with the same content but another time is compared by its hash.
    let touched = fs::File::options().write(true).open(from.join("c")).expect("a file");
    touched.set_modified(time - Duration::from_secs(5)).expect("a time");
    fs::set_permissions(from.join("a"), fs::Permissions::from_mode(0o640)).expect("rights");
    let sent: Vec<_> = send(Compare::Time, true);
    assert_eq!(sent, [same; 3]);
    assert!(fs::read(to.join("tree/b")).expect("a file") == content(70_000, 9));
    assert_eq!(fs::metadata(to.join("tree/a")).expect("a file").mode() & 0o777, 0o640);
    let sent: Vec<_> = send(Compare::Hash, true);
    assert_eq!(sent, [same, new, same]);
    assert!(fs::read(to.join("tree/b")).expect("a file") == content(70_000, 1));
}

#[test]
fn patterns_select_files_and_the_folders_that_hold_them() {
    let scratch = Scratch::new("transfer-selection");
    for name in ["tree/a.log", "tree/b.txt", "tree/build/c.txt", "tree/sub/d.txt", "tree/empty/e.log"] {
        let path = scratch.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, "x").expect("a file");
    }
    std::os::unix::fs::symlink("/nowhere", scratch.path().join("tree/link.log")).expect("a link");
    let select = |include: &[&str], exclude: &[&str]| {
        let parse = |texts: &[&str]| texts.iter().map(|text| text.parse().expect("a pattern")).collect();
        let selection = selection::Selection { include: parse(include), exclude: parse(exclude) };
        collect_selected(&[scratch.path().join("tree")], &selection).map(|collected| {
            let items = collected.sources.iter().filter(|source| source.kind != Kind::FolderTime);
            (items.map(|source| source.name.to_string()).collect::<Vec<_>>(), collected.left_out.len())
        })
    };
    let (all, left_out) = select(&[], &[]).expect("files");
    assert_eq!((all.len(), left_out), (9, 1), "{all:?}");
    let kept = select(&[], &["*.log", "build"]).expect("files");
    let names = ["tree", "tree/b.txt", "tree/empty", "tree/sub", "tree/sub/d.txt"];
    assert_eq!(kept, (names.map(str::to_owned).to_vec(), 0));
    // Folders without an included file are not sent.
    let kept = select(&["*.txt"], &["tree/build"]).expect("files");
    assert_eq!(kept, (["tree", "tree/b.txt", "tree/sub", "tree/sub/d.txt"].map(str::to_owned).to_vec(), 0));
    let kept = select(&["tree/sub"], &[]).expect("files");
    assert_eq!(kept, (["tree", "tree/sub", "tree/sub/d.txt"].map(str::to_owned).to_vec(), 0));
    let error = select(&["*.pdf"], &[]).expect_err("no file");
    assert_eq!(error.to_string(), "no file is left to send: --include and --exclude leave all of them out");
}

#[test]
fn offers_of_existing_and_incomplete_files_use_no_descriptors() {
    let scratch = Scratch::new("transfer-left");
    let folder = Arc::new(Folder::open(scratch.path()).expect("a folder"));
    let mut writer = FileWriter::new(folder, true);
    let descriptors = || fs::read_dir("/proc/self/fd").expect("a folder").count();
    let (before, mut existing, mut resumed) = (descriptors(), 0, 0);
    for opening in 0..200 {
        let file = if opening % 2 == 0 { opening.to_string() } else { format!(".{opening}.sparelane-part") };
        fs::write(scratch.path().join(file), "left").expect("a file");
        let name = Name::new(vec![opening.to_string()]).expect("a name");
        writer.work(
            Job::Open { opening, name, size: if opening % 2 == 0 { 4 } else { 1000 }, known: None },
            &mut |answer| {
                existing += usize::from(matches!(answer, Answer::Exists { .. }));
                resumed += usize::from(matches!(answer, Answer::Opened { result: Ok((4, _)), .. }));
            },
        );
    }
    // Other tests of this process use some at the same time.
    assert!(descriptors() < before + 150, "{before} and {}", descriptors());
    assert_eq!((existing, resumed), (100, 100));
    let mut answers = vec![];
    let mut work = |job| writer.work(job, &mut |answer| answers.push(format!("{answer:?}")));
    let begin = |opening| Job::Begin { opening, from: 4, again: vec![] };
    work(begin(1));
    fs::write(scratch.path().join(".3.sparelane-part"), "changed").expect("a file");
    work(begin(3));
    let (digest, attributes) = (*blake3::hash(b"left").as_bytes(), Attributes { mode: 0o600, modified_ns: 0 });
    let compare = |opening| Job::Compare { opening, digest, attributes };
    work(compare(0));
    fs::write(scratch.path().join("2"), "changed").expect("a file");
    work(compare(2));
    let changed = "\"another program has changed it in the meantime\"";
    assert_eq!(
        answers,
        [
            format!("Failed {{ opening: 3, reason: {changed} }}"),
            "Stored { opening: 0, result: Ok(()) }".to_owned(),
            format!("Opened {{ opening: 2, result: Err({changed}) }}"),
        ]
    );
}
