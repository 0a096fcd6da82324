//! Runs the fuzz targets on random inputs, from a new seed or from `EXPLORE_SEED`. The seed is printed on failure.

#[path = "../../../../fuzz/src/lib.rs"]
mod targets;

use sparelane_core::{Domain, Stream};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

/// The seed from the environment, or a new one.
fn seed() -> u64 {
    let asked = std::env::var("EXPLORE_SEED").ok().and_then(|text| text.parse().ok());
    let seed = asked.unwrap_or_else(|| RandomState::new().hash_one("fuzz") >> 1);
    eprintln!("EXPLORE_SEED={seed}");
    seed
}

/// The texts of all files with this ending in a folder.
fn texts(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    let chosen = paths.iter().filter(|path| path.extension().is_some_and(|found| found == ending));
    chosen.map(|path| fs::read(path).expect("a file")).collect()
}

/// Random bytes.
fn noise(rng: &mut Stream, most: u64) -> Vec<u8> {
    (0..rng.below(most)).map(|_| rng.next_u64() as u8).collect()
}

/// A text with a few changes: letters removed, doubled or replaced by special characters, and lines moved.
fn changed(rng: &mut Stream, text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    for _ in 0..=rng.below(4) {
        let at = rng.below(text.len() as u64 + 1) as usize;
        let to = (at + rng.below(12) as usize).min(text.len());
        match rng.below(5) {
            0 => drop(text.drain(at..to)),
            1 => {
                let part = text[at..to].to_vec();
                text.splice(at..at, part);
            }
            2 => {
                let letters = b"0123456789-+.eE\"'[]{}=,#\n<>/& \xc2\xb5\x00";
                text.insert(at, letters[rng.below(letters.len() as u64) as usize]);
            }
            3 => {
                let other = rng.below(text.len() as u64 + 1) as usize;
                let part = text[at..to].to_vec();
                text.splice(other..other, part);
            }
            _ => text.truncate(if rng.below(5) == 0 { at } else { text.len() }),
        }
    }
    text
}

#[test]
fn a_sender_survives_every_conversation() {
    let seed = seed();
    (0..3_000)
        .for_each(|index| targets::acknowledgments::check(&noise(&mut Stream::new(seed, Domain::Test, index), 4_000)));
}

#[test]
fn conversations_that_once_broke_a_sender_do_so_no_more() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/regressions/acknowledgments");
    let paths: Vec<_> = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    assert!(paths.len() >= 2);
    paths.iter().for_each(|path| targets::acknowledgments::check(&fs::read(path).expect("a file")));
}

#[test]
fn a_receiver_survives_every_conversation() {
    let seed = seed();
    (0..3_000).for_each(|index| targets::segments::check(&noise(&mut Stream::new(seed, Domain::Test, index), 1_000)));
}

#[test]
fn every_text_is_a_scenario_or_refused_with_words() {
    let rng = &mut Stream::new(seed(), Domain::Test, 0);
    let texts = texts("../../scenarios", "toml");
    // Networks of hundreds of hosts are left out, as they take a while.
    let small: Vec<_> = texts.iter().filter(|text| text.len() < 1_500).collect();
    assert!(small.len() > 5, "{}", small.len());
    for _ in 0..400 {
        let text = small[rng.below(small.len() as u64) as usize];
        targets::scenario::check(&changed(rng, text));
    }
}

#[test]
fn every_text_is_a_file_of_its_kind_or_refused_with_words() {
    let rng = &mut Stream::new(seed(), Domain::Test, 1);
    let endings = [
        "graphml",
        "topo",
        "flows",
        "csv",
        "gml",
        "xml",
        "hpcc",
        "htsim",
        "hpccflows",
        "cm",
        "brite",
        "inet",
        "intra",
        "pcap",
    ];
    for (kind, ending) in endings.into_iter().enumerate() {
        let texts = texts("tests/inputs", ending);
        for _ in 0..1_000 {
            let text = &texts[rng.below(texts.len() as u64) as usize];
            let text = changed(rng, text);
            targets::files::check(&[&[kind as u8], text.as_slice()].concat());
        }
    }
}

#[test]
fn every_override_holds_or_is_refused_with_words() {
    let rng = &mut Stream::new(seed(), Domain::Test, 2);
    let overrides = [
        "scheme.tcp.beta=0.5",
        "topology.pairs=3",
        "link[0].loss=1%",
        "workload[1].sizes={ kind = \"fixed\", size = \"1kB\" }",
        "transport.delayed_ack.every=3\nqueue.kind=red",
        "queue={ kind = \"codel\", limit = \"1bdp\" }",
    ];
    for _ in 0..1_000 {
        let text = overrides[rng.below(overrides.len() as u64) as usize];
        targets::overrides::check(&changed(rng, text.as_bytes()));
    }
}
