//! A few random scenarios from a new seed. `make explore` runs any number.

#[path = "../../examples/explore/draw.rs"]
mod draw;
#[path = "../../examples/explore/trial.rs"]
mod trial;
#[path = "../../examples/explore/value.rs"]
mod value;

use sparelane_core::{Domain, Stream};
use std::hash::{BuildHasher, RandomState};
use trial::{Outcome, judge, trial};

/// The number of scenarios to run, without those that the parser refuses.
const COUNT: usize = 100;

#[test]
fn random_scenarios_keep_all_laws_repeat_to_the_bit_and_leave_no_flow_stuck() {
    let asked = std::env::var("EXPLORE_SEED").ok().and_then(|text| text.parse().ok());
    let seed = asked.unwrap_or_else(|| RandomState::new().hash_one("explore") >> 1);
    eprintln!("EXPLORE_SEED={seed}");
    let (mut held, mut packet_hops) = (0, 0);
    for index in 0.. {
        let (drawn, outcome) = trial(seed, index);
        match outcome {
            Outcome::Held(seen) => {
                held += 1;
                packet_hops += seen.packet_hops;
            }
            Outcome::Refused(_) => assert!(index < 20 * COUNT as u64, "nearly all scenarios are refused"),
            Outcome::Failed(why) => {
                panic!("scenario {index} of seed {seed}: {why}:\n{}", drawn.text(draw::Form::AsDrawn));
            }
        }
        if held == COUNT {
            break;
        }
    }
    assert!(packet_hops > 1_000, "{packet_hops} packet-hops in {COUNT} scenarios");
}

#[test]
fn some_random_scenarios_have_each_kind_of_change_and_effect_of_links_and_pass_the_parser() {
    let mut passed = String::new();
    for index in 0..150 {
        let (drawn, outcome) = trial(1, index);
        if matches!(outcome, Outcome::Held(_)) {
            passed += &drawn.network;
        }
    }
    let missing: Vec<_> = draw::COUNTED_KEYS.iter().filter(|key| !passed.contains(**key)).collect();
    assert!(missing.is_empty(), "no scenario has {missing:?}");
}

/// Six links lose a fifth of the packets each, so three of four handshakes fail, and timeouts back off to a minute. Flow
/// 0 delivers nothing for ten minutes, and then ends. With plain TCP, other packets are lost.
#[test]
fn a_flow_whose_packets_are_lost_for_minutes_is_not_stuck() {
    let network = "seed = 8\n[topology]\nkind = \"dumbbell\"\npairs = 1\naccess_rate = \"2Mbps\"\n\
                   [[link]]\nselect = \"all\"\nloss = 0.2\n\
                   [[workload]]\nkind = \"bulk\"\nflows = 4\nsize = \"20kB\"\n";
    let drawn = draw::Drawn {
        duration_us: 1_000_000,
        ends: true,
        network: network.to_owned(),
        schemes: vec![("x".to_owned(), "controller = \"constant\"\n".to_owned())],
        observers: String::new(),
        traces: Vec::new(),
    };
    let outcome = judge(&drawn, &mut Stream::new(1, Domain::Test, 0));
    assert!(matches!(outcome, Outcome::Held(seen) if seen.slow), "{outcome:?}");
}
