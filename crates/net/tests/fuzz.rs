//! The fuzz target of whole nodes on random inputs: from a fresh seed, which is printed where one fails, or from `EXPLORE_SEED`.

#[path = "../../../fuzz/src/bytes.rs"]
#[allow(dead_code)]
mod input;
#[path = "../../../fuzz/src/node.rs"]
mod node;

use sparelane_core::{Domain, Stream};
use std::hash::{BuildHasher, RandomState};

#[test]
fn a_peer_that_says_anything_never_makes_a_node_panic_or_hold_too_much() {
    let asked = std::env::var("EXPLORE_SEED").ok().and_then(|text| text.parse().ok());
    let seed = asked.unwrap_or_else(|| RandomState::new().hash_one("fuzz") >> 1);
    eprintln!("EXPLORE_SEED={seed}");
    let mut rng = Stream::new(seed, Domain::Test, 0);
    let mut crossed = 0;
    for _ in 0..500 {
        let input: Vec<u8> = (0..2_000 + rng.below(20_000)).map(|_| rng.next_u64() as u8).collect();
        crossed += node::check(&input);
    }
    eprintln!("{crossed} frames");
    assert!(crossed > 50_000, "{crossed} frames in 500 conversations");
}
