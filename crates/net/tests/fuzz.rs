//! The fuzz targets of nodes and transfers on random inputs. The seed is random and printed, or comes from
//! `EXPLORE_SEED`.

#[path = "../../../fuzz/src/fuzz_carrier.rs"]
mod fuzz_carrier;
#[path = "../../../fuzz/src/bytes.rs"]
#[allow(dead_code)]
mod input;
#[path = "../../../fuzz/src/node.rs"]
mod node;
#[path = "../../../fuzz/src/transfer.rs"]
mod transfer;

use sparelane_core::{Domain, Stream};
use std::hash::{BuildHasher, RandomState};

/// A random seed, or that of the environment.
fn seeded() -> Stream {
    let asked = std::env::var("EXPLORE_SEED").ok().and_then(|text| text.parse().ok());
    let seed = asked.unwrap_or_else(|| RandomState::new().hash_one("fuzz") >> 1);
    eprintln!("EXPLORE_SEED={seed}");
    Stream::new(seed, Domain::Test, 0)
}

#[test]
fn a_random_peer_causes_no_panic_and_bounded_memory() {
    let (mut rng, mut crossed) = (seeded(), 0);
    for _ in 0..500 {
        let input: Vec<u8> = (0..2_000 + rng.below(20_000)).map(|_| rng.next_u64() as u8).collect();
        crossed += node::check(&input);
    }
    eprintln!("{crossed} frames");
    assert!(crossed > 50_000, "{crossed} frames in 500 conversations");
}

#[test]
fn a_random_peer_causes_no_wrong_file_name_or_content() {
    let (mut rng, mut stored) = (seeded(), 0);
    for _ in 0..400 {
        let input: Vec<u8> = (0..20_000 + rng.below(20_000)).map(|_| rng.next_u64() as u8).collect();
        stored += transfer::check(&input);
    }
    eprintln!("{stored} items");
    assert!(stored > 200, "{stored} items in 400 conversations");
}
