//! Streams, and outputs of which nothing can be taken back.

use super::message::Kind;
use super::name::Name;
use super::output::{Output, OutputWriter};
use super::tests::{Run, content, errors, run_sources};
use super::writer::{Answer, Attributes, Job, Opening};
use super::*;
use crate::disk::Work;
use crate::scratch::Scratch;
use crate::virt::Path;
use bytes::Bytes;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

/// Sends a stream with this content.
fn send(scratch: &Scratch, bytes: &[u8], replaces: bool, path: Path, cut_after: Option<Dur>) -> Run {
    let (from, to) = (scratch.path().join("input"), scratch.path().join("to"));
    fs::write(&from, bytes).expect("a file");
    let source = Source::stream(Input::new(File::open(&from).expect("a file")), "backup.tar").expect("a name");
    run_sources(Compare::Time, vec![source], &to, path, replaces, cut_after.map(|at| (at, Path { loss: 1.0, ..path })))
}

fn names(folder: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_stream_of_any_size_arrives_under_its_name() {
    for (at, bytes) in [0, 1, 300_000, 3_000_001].into_iter().enumerate() {
        let scratch = Scratch::new("stream-sizes");
        let to = scratch.path().join("to");
        fs::create_dir(&to).expect("a folder");
        let bytes = content(bytes, at as u64);
        let path = Path { loss: 0.01, reordered: 0.02, duplicated: 0.01, ..Path::default() };
        let run = send(&scratch, &bytes, false, path, None);
        assert_eq!((&run.errors, errors(&run.sent)), (&[None, None], vec![("backup.tar", None)]));
        assert!(fs::read(to.join("backup.tar")).expect("a file") == bytes);
        assert_eq!((run.sent[0].size, run.received[0].size), (bytes.len() as u64, bytes.len() as u64));
        assert!(!run.sent[0].unchanged && run.sent[0].resumed == 0 && names(&to).len() == 1);
        assert_eq!(fs::metadata(to.join("backup.tar")).expect("a file").mode() & 0o111, 0);
    }
}

#[test]
fn a_stream_replaces_a_file_only_if_files_are_replaced() {
    let scratch = Scratch::new("stream-replaces");
    let to = scratch.path().join("to");
    fs::create_dir(&to).expect("a folder");
    fs::write(to.join("backup.tar"), "old").expect("a file");
    // The incomplete file of an earlier attempt is not used.
    fs::write(to.join(".backup.tar.sparelane-part"), content(5_000, 9)).expect("a file");
    let run = send(&scratch, &content(4_000, 1), false, Path::default(), None);
    assert_eq!(errors(&run.sent), [("backup.tar", Some("it is there already"))]);
    let run = send(&scratch, &content(4_000, 1), true, Path::default(), None);
    assert_eq!(errors(&run.sent), [("backup.tar", None)]);
    assert!(fs::read(to.join("backup.tar")).expect("a file") == content(4_000, 1) && names(&to).len() == 1);
}

#[test]
fn an_interrupted_stream_leaves_nothing_and_is_an_error_on_both_sides() {
    let scratch = Scratch::new("stream-cut");
    let to = scratch.path().join("to");
    fs::create_dir(&to).expect("a folder");
    let run = send(&scratch, &content(9_000_000, 1), false, Path::default(), Some(Dur::from_ms(400)));
    assert!(run.errors.iter().all(Option::is_some) && run.sent.is_empty(), "{:?}", run.errors);
    let [Received { error: Some(error), size, .. }] = &run.received[..] else { panic!("{:?}", run.received) };
    assert_eq!(error, "the connection ended before the stream; the received part does not stay");
    assert!(*size > 100_000 && names(&to).is_empty(), "{size} and {:?}", names(&to));
}

/// A writer of an output, with its answers as texts.
struct Outlet(OutputWriter);

impl Outlet {
    fn new(output: &Arc<Output>) -> Outlet {
        Outlet(OutputWriter::new(Arc::clone(output)))
    }

    fn work(&mut self, job: Job) -> Vec<String> {
        let mut answers = vec![];
        self.0.work(job, &mut |answer| {
            answers.push(match answer {
                Answer::Opened { opening, result: Ok((have, chunks)) } => {
                    format!("{opening} from {have} with {}", chunks.len())
                }
                Answer::Opened { opening, result: Err(reason) } | Answer::Failed { opening, reason } => {
                    format!("{opening}: {reason}")
                }
                Answer::Stored { opening, result } => format!("{opening} stored: {result:?}"),
                other => format!("{other:?}"),
            });
        });
        answers
    }

    fn open(&mut self, opening: Opening, name: &str, size: u64) -> Vec<String> {
        let name = Name::new(vec![name.to_owned()]).expect("a name");
        self.work(match size {
            0 => Job::OpenStream { opening, name },
            size => Job::Open { opening, name, size, known: None },
        })
    }

    fn write(&mut self, opening: Opening, bytes: &[u8]) -> Vec<String> {
        self.work(Job::Write { opening, pieces: vec![Bytes::copy_from_slice(bytes)] })
    }

    fn finish(&mut self, opening: Opening, whole: &[u8]) -> Vec<String> {
        let (digest, attributes) = (*blake3::hash(whole).as_bytes(), Attributes { mode: 0, modified_ns: 0 });
        self.work(Job::Finish { opening, digest, size: whole.len() as u64, attributes })
    }
}

fn begin(opening: Opening, from: u64) -> Job {
    Job::Begin { opening, from, again: vec![] }
}

#[test]
fn an_output_takes_the_files_of_one_transfer_one_after_another() {
    let scratch = Scratch::new("output-order");
    let path = scratch.path().join("output");
    let output = Arc::new(Output::new(File::create(&path).expect("a file")));
    let [mut one, mut other] = [0, 1].map(|_| Outlet::new(&output));
    assert_eq!(one.open(1, "a", 3), ["1 from 0 with 0"]);
    assert_eq!((one.open(2, "b", 0), one.open(3, "c", 2)), (vec![], vec![]), "they wait");
    assert_eq!(other.open(1, "x", 3), ["1: another transfer is being written to the output"]);
    assert_eq!(one.work(begin(1, 0)), Vec::<String>::new());
    assert_eq!(one.write(1, b"aaa"), ["Written"]);
    assert_eq!(one.finish(1, b"aaa"), ["1 stored: Ok(())", "2 from 0 with 0"]);
    assert_eq!(one.work(begin(2, 0)), Vec::<String>::new());
    assert_eq!((one.write(2, b"st"), one.write(2, b"ream")), (vec!["Written".to_owned()], vec!["Written".to_owned()]));
    let differs = "2 stored: Err(\"the received content differs from the sent one, and is written\")";
    assert_eq!(one.finish(2, b"streak"), [differs, "3 from 0 with 0"]);
    // The end of the last file makes the output free.
    assert_eq!(one.work(Job::Close { opening: 3 }), Vec::<String>::new());
    assert_eq!(other.open(2, "x", 3), ["2 from 0 with 0"]);
    assert_eq!(fs::read(&path).expect("a file"), b"aaastream");
}

#[test]
fn a_file_continues_in_an_output_after_the_loss_of_its_connection_and_a_stream_does_not() {
    for size in [6, 0] {
        let scratch = Scratch::new("output-lost");
        let path = scratch.path().join("output");
        let output = Arc::new(Output::new(File::create(&path).expect("a file")));
        let [mut one, mut other] = [0, 1].map(|_| Outlet::new(&output));
        one.open(1, "a", size);
        one.open(2, "b", 4);
        one.work(begin(1, 0));
        one.write(1, b"abc");
        assert_eq!(one.work(Job::Close { opening: 1 }), ["2: the file before it is not complete"]);
        assert_eq!(other.open(1, "b", 4), ["1: the output ends with a part of a"]);
        if size == 0 {
            assert_eq!(other.open(2, "a", 0), ["2: the output ends with a part of a"]);
            continue;
        }
        assert_eq!(other.open(2, "a", size), ["2 from 3 with 1"]);
        other.work(begin(2, 3));
        other.write(2, b"def");
        assert_eq!(other.finish(2, b"abcdef"), ["2 stored: Ok(())"]);
        let mut written = String::new();
        File::open(&path).expect("a file").read_to_string(&mut written).expect("a text");
        assert_eq!(written, "abcdef");
        // A file that has changed cannot continue.
        other.open(3, "a", size);
        other.work(begin(3, 0));
        other.write(3, b"abc");
        other.work(Job::Close { opening: 3 });
        other.open(4, "a", size);
        assert_eq!(other.work(begin(4, 0)), ["4: its first part is written, and has changed since"]);
    }
}

#[test]
fn names_of_streams_are_checked_like_others() {
    let scratch = Scratch::new("stream-names");
    let path = scratch.path().join("backup.tar");
    fs::write(&path, "x").expect("a file");
    let input = || Input::new(File::open(&path).expect("a file"));
    assert!(Source::stream(input(), "a/b").is_err() && Source::stream(input(), "..").is_err());
    let mut collected = collect(&[scratch.path().to_owned()]).expect("a folder");
    collected.add_stream(input(), "backup.tar").expect("the other one is in a folder");
    let twice = collected.add_stream(input(), "backup.tar").expect_err("twice");
    assert_eq!(twice.to_string(), "-: another item also has the name backup.tar");
    // The times of folders stay last.
    assert_eq!(collected.sources.last().map(|source| source.kind), Some(Kind::FolderTime));
}
