//! A few random scenarios from a new seed. `make explore` runs any number.

#[path = "../../examples/explore/draw.rs"]
mod draw;
#[path = "../../examples/explore/trial.rs"]
mod trial;
#[path = "../../examples/explore/value.rs"]
mod value;

use std::hash::{BuildHasher, RandomState};
use trial::{Outcome, trial};

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
