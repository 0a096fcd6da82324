//! Runs `shares.toml`, in which the custom controller shares a link with NewReno. Arguments are overrides: `cargo run
//! -p own-law -- scheme.own.keep=0.8`

use sparelane_scenario::{Scenario, Source};
use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let settings: Vec<String> = std::env::args().skip(1).collect();
    let source = Source { file: "shares.toml".to_owned(), folder: ".".into() };
    let scenario = Scenario::parse_with(&own_law::catalogue()?, include_str!("../shares.toml"), &source, &settings)?;
    let records = scenario.simulate()?.run()?;
    let mut out = std::io::stdout();
    for (flow, name) in ["aimd", "newreno"].into_iter().enumerate() {
        let mbps = records.flows.delivered_bytes[flow] as f64 * 8.0 / own_law::SECONDS / 1e6;
        writeln!(out, "{name}: {mbps:.2} Mb/s")?;
    }
    Ok(())
}
