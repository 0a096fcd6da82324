//! A benchmark of the wire, compared with a plain stream of QUIC: `make bench-wire`, or
//!
//! ```text
//! cargo run --release -p sparelane-net --example wire -- virtual [SEEDS]
//! cargo run --release -p sparelane-net --example wire -- loopback [MEGABYTES] [NAME...]
//! cargo run --release -p sparelane-net --example wire -- namespaces SENDER RECEIVER ADDRESS BYTES NAME...
//! ```
//!
//! `virtual` measures the duration of transfers in virtual time. `loopback` measures the processor time per 1380 bytes.
//! A missed target is printed, and makes the program fail. NAME is `rc3`, `rc3/bbr`, any controller, `stream-cubic` or
//! `stream-bbr`. A suffix such as `/1` limits the datagrams of a batch. The suffix `+busy` makes the sender wait for
//! gaps without sleeping.
//!
//! `namespaces` sends between two network namespaces, which benches/wire.py creates. It prints a name and the seconds
//! per line and, for frames of this crate, the segments by class and the measured rate of the tail in bit/s. There,
//! `tcp-NAME` is the kernel's TCP under that congestion control, and the suffix `+insists` keeps the tail from yielding
//! to class 0.

mod kernel_tcp;
mod place;
mod sockets;
mod virtual_time;

use place::Setup;
use sparelane_cc::Registry;
use sparelane_core::Dur;
use sparelane_net::host::Waiting;
use sparelane_net::node::{ControllerChoice, NodeConfig};
use sparelane_net::quic::DEFAULT_BATCH;
use sparelane_net::quic::plain::PlainController;
use sparelane_net::virt::Path;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;

/// The allocator of the Python module, which users send with.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The error that ends a measurement early.
pub type Failure = Box<dyn Error>;

/// The names that are compared in virtual time.
const NAMES: [&str; 6] = ["rc3", "rc3/bbr", "cubic", "bbr", "stream-cubic", "stream-bbr"];

/// The bytes and the loss rate of each case.
const CASES: [(usize, f64); 4] = [(1_700_000, 0.0), (20_000_000, 0.0), (1_700_000, 0.01), (20_000_000, 0.01)];

/// The maximum duration of RC3 relative to a stream under CUBIC, by case.
const TARGETS: [f64; 4] = [0.55, 0.95, 0.15, 0.25];

/// A stream as the crate quinn sends it, with ten datagrams per system call: the limit for the processor time of this
/// crate's frames.
const QUINN: &str = "stream-cubic/10";

/// The number of rounds over all names.
const ROUNDS: usize = 5;

/// The minimum rate of one core over the loopback interface, Gb/s.
const MIN_GBPS: f64 = 2.5;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |default: u64| arguments.get(1).map_or(Ok(default), |text| text.parse());
    let missed = match arguments.first().map(String::as_str) {
        Some("virtual") => in_virtual_time(number(9)?)?,
        Some("loopback") => over_loopback(number(300)? as usize, arguments.get(2..).unwrap_or_default())?,
        Some("namespaces") => {
            between_namespaces(arguments.get(1..).unwrap_or_default())?;
            0
        }
        _ => return Err("say \"virtual\", \"loopback\" or \"namespaces\"".into()),
    };
    if missed == 0 { Ok(()) } else { Err(format!("{missed} targets are missed").into()) }
}

fn say(text: &str) -> Result<(), Failure> {
    Ok(writeln!(std::io::stdout(), "{text}")?)
}

/// Prints whether a target is met; returns 1 if it is not.
fn judge(what: &str, value: f64, most: f64) -> Result<u32, Failure> {
    let is_met = value <= most;
    say(&format!("  {what}: {value:.3}, at most {most:.3}: {}", if is_met { "met" } else { "MISSED" }))?;
    Ok(u32::from(!is_met))
}

fn choice(name: &str) -> Result<ControllerChoice, Failure> {
    let (name, inner) = name.split_once('/').unwrap_or((name, ""));
    let settings = if inner.is_empty() { vec![] } else { vec![("inner".to_owned(), inner.to_owned())] };
    Ok(ControllerChoice::parse(name, &settings, &Registry::built_in())?)
}

/// Splits a name into the name proper and the datagrams of a batch.
fn batch_of(name: &str) -> (&str, usize) {
    let of_number = name.rsplit_once('/').and_then(|(bare, number)| Some((bare, number.parse().ok()?)));
    of_number.unwrap_or((name, DEFAULT_BATCH))
}

fn plain(name: &str) -> Option<PlainController> {
    match name {
        "stream-cubic" => Some(PlainController::Cubic),
        "stream-bbr" => Some(PlainController::Bbr),
        _ => None,
    }
}

/// The median duration over several seeds, milliseconds.
fn median_ms(name: &str, bytes: usize, loss: f64, seeds: u64) -> Result<f64, Failure> {
    let path = Path { loss, ..Path::default() };
    let mut times = vec![];
    // Without loss, all seeds give the same run.
    for seed in 1..=if loss == 0.0 { 1 } else { seeds } {
        let took = match plain(name) {
            Some(controller) => virtual_time::stream(path, controller, bytes, seed)?,
            None => {
                let config = NodeConfig { controller: choice(name)?, ..NodeConfig::default() };
                virtual_time::ours(path, config, bytes, seed)?
            }
        };
        times.push(took.as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

fn in_virtual_time(seeds: u64) -> Result<u32, Failure> {
    say(&format!(
        "100 Mb/s, 40 ms, strict priority, in virtual time; under loss the median of {seeds} seeds; milliseconds"
    ))?;
    let mut all: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    say(&format!("{:>14}  {:>10} {:>10} {:>10} {:>10}", "", "1.7 MB", "20 MB", "1.7, 1 %", "20, 1 %"))?;
    for name in NAMES {
        let times: Result<Vec<f64>, Failure> =
            CASES.iter().map(|&(bytes, loss)| median_ms(name, bytes, loss, seeds)).collect();
        let times = times?;
        let cells: Vec<String> = times.iter().map(|ms| format!("{ms:10.1}")).collect();
        say(&format!("{name:>14}  {}", cells.join(" ")))?;
        all.insert(name, times);
    }
    let mut missed = 0;
    for (at, (bytes, loss)) in CASES.iter().enumerate() {
        let what = format!("{:.1} MB, loss {:.0} %", *bytes as f64 / 1e6, loss * 100.0);
        missed += judge(&format!("{what}: rc3 / stream-cubic"), all["rc3"][at] / all["stream-cubic"][at], TARGETS[at])?;
        let best = all["bbr"][at].min(all["stream-bbr"][at]);
        missed +=
            judge(&format!("{what}: rc3/bbr / the faster of bbr and stream-bbr"), all["rc3/bbr"][at] / best, 1.0)?;
    }
    Ok(missed)
}

fn between_namespaces(arguments: &[String]) -> Result<(), Failure> {
    let [sender, receiver, address, bytes, names @ ..] = arguments else {
        return Err("namespaces needs SENDER RECEIVER ADDRESS BYTES NAME...".into());
    };
    let (address, bytes) = (address.parse()?, bytes.parse()?);
    for name in names {
        let (bare, insists) = name.strip_suffix("+insists").map_or((name.as_str(), false), |bare| (bare, true));
        let (bare, batch) = batch_of(bare);
        // A stream and TCP have no controller of this crate.
        let is_ours = plain(bare).is_none() && !bare.starts_with("tcp-");
        let controller = if is_ours { choice(bare)? } else { ControllerChoice::named("rc3") };
        let mut setup = Setup::namespaces(sender, receiver, address, controller);
        setup.node.tail.yields = !insists;
        setup.batch = batch;
        let (seconds, more) = match (plain(bare), bare.strip_prefix("tcp-")) {
            (Some(controller), _) => (sockets::stream(&setup, controller, bytes)?.seconds, String::new()),
            (None, Some(of_kernel)) => (kernel_tcp::seconds(&setup, of_kernel, bytes)?, String::new()),
            (None, None) => {
                let measured = sockets::frames(&setup, bytes)?;
                let tail = measured.tail.map_or("-".to_owned(), |rate| rate.as_bps().to_string());
                let segments: Vec<String> = measured.segments.iter().map(u64::to_string).collect();
                (measured.seconds, format!(" {} {tail}", segments.join(",")))
            }
        };
        say(&format!("{name} {seconds:.6}{more}"))?;
    }
    Ok(())
}

fn over_loopback(megabytes: usize, names: &[String]) -> Result<u32, Failure> {
    let usual = ["cubic", "rc3", "rc3/bbr", "bbr", QUINN, "stream-cubic", "stream-bbr", "rc3/1", "stream-cubic/1"];
    let usual = usual.map(str::to_owned);
    let names = if names.is_empty() { &usual[..] } else { names };
    say(&format!("{megabytes} MB over the loopback interface; processor time of both ends"))?;
    // Keep the minimum of several interleaved rounds: other activity of the machine only adds time, and lasts a while.
    let mut least: BTreeMap<&str, sockets::Measured> = BTreeMap::new();
    for _ in 0..ROUNDS {
        for name in names {
            let (bare, waits) =
                name.strip_suffix("+busy").map_or((name.as_str(), Waiting::Sleep), |bare| (bare, Waiting::Busy));
            let (bare, batch) = batch_of(bare);
            let measured = match plain(bare) {
                Some(controller) => {
                    let setup = Setup::loopback(ControllerChoice::named("rc3"), batch);
                    sockets::stream(&setup, controller, megabytes * 1_000_000)?
                }
                None => {
                    let setup = Setup { waits, ..Setup::loopback(choice(bare)?, batch) };
                    sockets::frames(&setup, megabytes * 1_000_000)?
                }
            };
            if least.get(name.as_str()).is_none_or(|least| measured.us_each() < least.us_each()) {
                least.insert(name, measured);
            }
        }
    }
    for name in names {
        let Some(best) = least.get(name.as_str()) else { continue };
        let (sends, receives) = (best.calls[0].0, best.calls[1].1);
        say(&format!(
            "{name:>14}  {:6.2} us for 1380 bytes ({:.2} + {:.2}), {:5.2} Gb/s of a core, {:5.2} Gb/s; {sends} sends, {receives} receives",
            best.us_each(),
            best.us_of(0),
            best.us_of(1),
            best.gbps_a_core(),
            best.gbps()
        ))?;
        if let Some(gaps) = best.gaps {
            let us = |time: Dur| time.as_secs_f64() * 1e6;
            say(&format!(
                "{:>14}  {} gaps, half of them below {:.1} us; off by {:.1} us in the median, {:.1} us at the 99th percentile",
                "",
                gaps.gaps,
                us(gaps.median_gap),
                us(gaps.median_error),
                us(gaps.p99_error)
            ))?;
        }
    }
    let mut missed = 0;
    for name in ["cubic", "rc3"] {
        if let (Some(ours), Some(stream)) = (least.get(name), least.get(QUINN)) {
            missed += judge(&format!("{name} / {QUINN}"), ours.us_each() / stream.us_each(), 1.0)?;
            let share = MIN_GBPS / ours.gbps_a_core();
            missed += judge(&format!("{name}: {MIN_GBPS} Gb/s / what a core moves"), share, 1.0)?;
        }
    }
    Ok(missed)
}
