//! What the wire does, measured: `cargo run --release -p sparelane-net --example wire -- loopback [MEGABYTES] [NAME...]`.

mod loopback;

use sparelane_cc::Registry;
use sparelane_net::node::ControllerChoice;
use sparelane_net::quic::plain::PlainController;
use std::error::Error;
use std::io::Write;

/// Why a measurement ends early.
pub type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut out = std::io::stdout();
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
