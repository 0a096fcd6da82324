//! What the wire does, measured: `cargo run --release -p sparelane-net --example wire -- loopback [MEGABYTES] [NAME...]`.

mod loopback;
mod virtual_time;

use sparelane_cc::Registry;
use sparelane_net::node::{ControllerChoice, NodeConfig};
use sparelane_net::quic::plain::PlainController;
use sparelane_net::virt::Path;
use std::error::Error;
use std::io::Write;

/// Why a measurement ends early.
pub type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut out = std::io::stdout();
    if arguments.first().is_some_and(|word| word == "try") {
        return try_one(&arguments[1..]);
    }
    let megabytes: usize = arguments.get(1).map_or(Ok(300), |text| text.parse())?;
    let names = if arguments.len() > 2 { &arguments[2..] } else { &["cubic".to_owned()] };
    for name in names {
        let batch = if name.ends_with("/1") { 1 } else { 16 };
        let plain = name.trim_end_matches("/1");
        let measured = match plain {
            "stream-cubic" => loopback::stream(PlainController::Cubic, megabytes * 1_000_000, batch)?,
            "stream-bbr" => loopback::stream(PlainController::Bbr, megabytes * 1_000_000, batch)?,
            other => {
                let settings: Vec<(String, String)> =
                    if other == "rc3/bbr" { vec![("inner".to_owned(), "bbr".to_owned())] } else { vec![] };
                let other = other.split('/').next().unwrap_or(other);
                let choice = ControllerChoice::parse(other, &settings, &Registry::built_in())?;
                loopback::frames(&choice, megabytes * 1_000_000, batch)?
            }
        };
        writeln!(
            out,
            "{name:>14} {:6.2} us for 1380 bytes ({:.2} + {:.2} s), {:5.2} Gb/s of a core, {:5.2} Gb/s, calls {:?}",
            measured.us_each(),
            measured.cpu_s[0],
            measured.cpu_s[1],
            measured.gbps_a_core(),
            measured.gbps(),
            measured.calls
        )?;
    }
    Ok(())
}

/// `try MEGABYTES LOSS SEEDS RATE CONTROLLER key=value...`
fn try_one(arguments: &[String]) -> Result<(), Failure> {
    let mut out = std::io::stdout();
    let bytes = (arguments[0].parse::<f64>()? * 1e6) as usize;
    let path = Path { loss: arguments[1].parse()?, ..Path::default() };
    let seeds: u64 = arguments[2].parse()?;
    let tail = sparelane_net::node::choice::tail(&arguments[3])?;
    let mut config = NodeConfig { tail, ..NodeConfig::default() };
    config.tail.follows = std::env::var("KEEP").is_err();
    let name = &arguments[4];
    let mut took = vec![];
    for seed in std::env::var("SEED").map_or(1, |s| s.parse().unwrap_or(1))..=seeds {
        let carried = match name.as_str() {
            "stream-cubic" => virtual_time::stream(path, PlainController::Cubic, bytes, seed)?,
            "stream-bbr" => virtual_time::stream(path, PlainController::Bbr, bytes, seed)?,
            name => {
                let settings: Vec<(String, String)> = arguments[5..]
                    .iter()
                    .filter_map(|text| text.split_once('='))
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .collect();
                config.controller = ControllerChoice::parse(name, &settings, &Registry::built_in())?;
                virtual_time::ours(path, config.clone(), bytes, seed)?
            }
        };
        took.push((carried.took.as_secs_f64() * 1e3, carried.counts));
    }
    took.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (ms, counts) = &took[took.len() / 2];
    let all: Vec<_> = took.iter().map(|one| (one.0.round(), one.1.carried)).collect();
    writeln!(
        out,
        "{name}: {ms:.1} ms; {all:?}; carried {:?} dropped {:?} lost {}",
        counts.carried, counts.dropped, counts.lost
    )?;
    Ok(())
}
