//! The fuzz targets of the wire on random inputs. The seed is random and printed, or comes from `EXPLORE_SEED`.

#[path = "../../../fuzz/src/carrier.rs"]
mod carrier;
#[path = "../../../fuzz/src/fuzz_carrier.rs"]
mod fuzz_carrier;
#[path = "../../../fuzz/src/bytes.rs"]
#[allow(dead_code)]
mod input;
#[path = "../../../fuzz/src/messages.rs"]
mod messages;
#[path = "../../../fuzz/src/node.rs"]
mod node;
#[path = "../../../fuzz/src/transfer.rs"]
mod transfer;

use sparelane_core::{Domain, Stream};
use sparelane_net::control::Coded;
use sparelane_net::transfer::message::{Kind, Message, Offer};
use sparelane_net::tunnel::message::Message as TunnelMessage;
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

#[test]
fn a_random_network_opens_nothing_to_strangers_and_forges_nothing() {
    let (mut rng, mut opened) = (seeded(), 0);
    for _ in 0..100 {
        let input: Vec<u8> = (0..1_000 + rng.below(8_000)).map(|_| rng.next_u64() as u8).collect();
        opened += carrier::check(&input);
    }
    eprintln!("{opened} associations");
    assert!(opened > 50, "{opened} associations in 100 networks");
}

#[test]
fn mutated_messages_and_frames_decode_to_harmless_values_or_errors() {
    let mut rng = seeded();
    let name = |text: &str| text.split('/').map(str::to_owned).collect();
    let offer = |text: &str| {
        Message::Offer(Offer { item: 1, kind: Kind::File, size: 9, mode: 0o644, modified_ns: -5, name: name(text) })
    };
    let target = "example.org:22".parse().expect("a target");
    let streams: [(u8, Vec<u8>); 7] = [
        (0, vec![0x11, 0, 0, 0, 1, 0, 0, 0, 0, 9, 7, 7]),
        (0, [&[0x12, 0, 0, 0, 1, 0, 0, 0, 9, 0x69][..], &[0; 60]].concat()),
        (1, [offer("a/b").encode(), offer("naïve.txt").encode()].concat()),
        (1, Message::Refuse { item: 1, reason: "no space left".into() }.encode().to_vec()),
        (2, TunnelMessage::Open { connection: 0, flow: 1, target }.encode().to_vec()),
        (2, TunnelMessage::Reset { connection: 0, reason: "näher".into() }.encode().to_vec()),
        (3, "[fe80::1%lo]:7/\u{202e}a".as_bytes().to_vec()),
    ];
    let mut decoded = 0;
    for _ in 0..50_000 {
        let (kind, stream) = &streams[rng.below(streams.len() as u64) as usize];
        let mut input = [&[*kind][..], stream].concat();
        for _ in 0..rng.below(4) {
            let at = 1 + rng.below(stream.len() as u64) as usize;
            input[at] = rng.next_u64() as u8;
        }
        decoded += messages::check(&input);
    }
    assert!(decoded > 20_000, "{decoded} of 50,000");
}
