//! Runs random scenarios. Each is run twice and must keep all invariants, give the same digest twice, and leave no flow
//! unfinished that plain TCP would finish. If its network can be divided, it runs again without observers, in one domain
//! and in random domains on several threads; both runs must give the same digest. A failing scenario is written to a file
//! that `sparelane run` repeats.
//!
//! `cargo run -p sparelane-scenario --example explore -- COUNT [SEED [FIRST]]`; `make explore N=COUNT SEED=SEED`.
//! Without a seed, a new one is chosen and printed.

mod draw;
mod trial;
mod value;

use draw::{COUNTED_KEYS, Drawn, Form, draw};
use std::collections::BTreeMap;
use std::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use trial::{Outcome, Seen, trial, write_traces};

/// The time after which a running scenario is named: a hundred times the usual time.
const SLOW_AFTER: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Result<Vec<u64>, _> = std::env::args().skip(1).map(|text| text.parse()).collect();
    let numbers = numbers.map_err(|error| format!("usage: explore COUNT [SEED [FIRST]]: {error}"))?;
    let count = numbers.first().copied().unwrap_or(1_000);
    let seed = numbers.get(1).copied().unwrap_or_else(|| RandomState::new().hash_one(count) >> 1);
    let mut index = numbers.get(2).copied().unwrap_or(0);
    eprintln!("{count} scenarios of seed {seed}");

    static UNDER_WAY: AtomicU64 = AtomicU64::new(u64::MAX);
    thread::spawn(move || watch(seed, &UNDER_WAY));
    let start = Instant::now();
    let (mut held, mut failed) = (Vec::<Seen>::new(), 0);
    let mut refused = BTreeMap::<String, u64>::new();
    let mut with_key = COUNTED_KEYS.map(|_| 0);
    while (held.len() as u64) + failed < count {
        UNDER_WAY.store(index, Ordering::Relaxed);
        let (drawn, outcome) = trial(seed, index);
        match outcome {
            Outcome::Held(seen) => {
                held.push(seen);
                for (key, count) in COUNTED_KEYS.iter().zip(&mut with_key) {
                    *count += u64::from(drawn.network.contains(key));
                }
            }
            Outcome::Refused(why) => *refused.entry(reason(&why)).or_default() += 1,
            Outcome::Failed(why) => {
                failed += 1;
                keep(seed, index, &drawn, &why)?;
            }
        }
        index += 1;
        if index.is_multiple_of(1_000) {
            eprintln!("{} held, {failed} failed, {:.0} s", held.len(), start.elapsed().as_secs_f64());
        }
    }
    report(&held, &refused);
    let with_key: Vec<_> =
        COUNTED_KEYS.iter().zip(with_key).map(|(key, count)| format!("{count} {}", key.trim_start())).collect();
    eprintln!("of the scenarios that held: {}", with_key.join(", "));
    eprintln!("{} held, {failed} failed of seed {seed}, {:.0} s", held.len(), start.elapsed().as_secs_f64());
    if failed > 0 { Err(format!("{failed} scenarios failed").into()) } else { Ok(()) }
}

/// Names the scenario that is running for too long: one that never ends could not be named afterwards.
fn watch(seed: u64, under_way: &AtomicU64) {
    let mut last = u64::MAX;
    loop {
        thread::sleep(SLOW_AFTER);
        let index = under_way.load(Ordering::Relaxed);
        if index == last {
            let kept = keep(seed, index, &draw(seed, index), "takes long");
            kept.unwrap_or_else(|error| eprintln!("scenario {index} takes long, and cannot be written: {error}"));
        }
        last = index;
    }
}

/// Writes a scenario that failed or was slow to a file.
fn keep(seed: u64, index: u64, drawn: &Drawn, why: &str) -> std::io::Result<()> {
    let folder = Path::new("out/explore");
    std::fs::create_dir_all(folder)?;
    let path = folder.join(format!("{seed}-{index}.toml"));
    std::fs::write(&path, drawn.text(Form::AsDrawn))?;
    write_traces(drawn, folder)?;
    eprintln!("scenario {index} of seed {seed}: {why}: {}", path.display());
    Ok(())
}

fn report(held: &[Seen], refused: &BTreeMap<String, u64>) {
    let count = |of: fn(&Seen) -> bool| held.iter().filter(|&seen| of(seen)).count();
    let sum = |of: fn(&Seen) -> u64| held.iter().map(of).sum::<u64>();
    eprintln!(
        "{} packet-hops, {} flows, of which {} ended in time; {} runs were cut short, {} were made longer, {} of them stayed slow",
        sum(|seen| seen.packet_hops),
        sum(|seen| seen.flows),
        sum(|seen| seen.finished_flows),
        count(|seen| seen.cut),
        count(|seen| seen.longer),
        count(|seen| seen.slow)
    );
    eprintln!(
        "{} runs were repeated in several domains, {} of them on three threads or more",
        count(|seen| seen.domains > 1),
        count(|seen| seen.domains > 1 && seen.threads > 2)
    );
    eprintln!("{} draws were refused by the parser:", refused.values().sum::<u64>());
    let mut reasons: Vec<_> = refused.iter().collect();
    reasons.sort_by_key(|(_, times)| std::cmp::Reverse(**times));
    for (why, times) in reasons.iter().take(12) {
        eprintln!("  {times:6}  {why}");
    }
}

/// A refusal without its numbers, so that equal refusals are counted together.
fn reason(message: &str) -> String {
    message.chars().filter(|letter| !letter.is_ascii_digit()).take(110).collect()
}
