//! Sends a file over the loopback interface, with both sides in this process, and prints the duration.
//!
//! Usage: `cargo run --release -p sparelane-net --example loopback -- CONTROLLER MEGABYTES [TAIL_RATE]`. The processor
//! time that `time` reports is that of both sides.

use sparelane_cc::Registry;
use sparelane_net::identity::{Identity, Trusted};
use sparelane_net::node::ControllerChoice;
use sparelane_net::service::{FileReceiver, FileSender, ReceiverEvent, WireConfig};
use sparelane_net::transfer::collect;
use std::error::Error;
use std::io::Write;
use std::time::Duration;

const STEP: Duration = Duration::from_millis(100);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let controller = arguments.next().unwrap_or_else(|| "cubic".to_owned());
    let megabytes: usize = arguments.next().map_or(Ok(100), |text| text.parse())?;
    let (one, two) = (Identity::generate()?, Identity::generate()?);
    let mut sender = WireConfig::new(one.clone(), Trusted::from_iter([two.fingerprint()]));
    let receiver = WireConfig::new(two, Trusted::from_iter([one.fingerprint()]));
    sender.node.controller = ControllerChoice::parse(&controller, &[], &Registry::built_in())?;
    if let Some(rate) = arguments.next() {
        sender.apply(&[("tail_rate".to_owned(), rate)])?;
    }
    let folder = std::env::temp_dir().join(format!("sparelane-loopback-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("to"))?;
    let path = folder.join("file");
    std::fs::write(&path, vec![7; megabytes * 1_000_000])?;
    let mut receiver = FileReceiver::bind(&receiver, "127.0.0.1:0".parse()?, &folder.join("to"), false)?;
    let to = receiver.local_address();
    let receiving = std::thread::spawn(move || {
        loop {
            let events = receiver.step(STEP).unwrap_or_default();
            if events.iter().any(|event| matches!(event, ReceiverEvent::Disconnected { .. })) {
                return;
            }
        }
    });
    let mut sending = FileSender::begin(&sender, to, collect(&[path])?.sources)?;
    while !sending.progress().done {
        sending.step(STEP)?;
    }
    let progress = sending.progress();
    let seconds = progress.elapsed.as_secs_f64();
    let rate = progress.bytes as f64 * 8e-6 / seconds;
    writeln!(std::io::stdout(), "{controller}: {seconds:.3} s, {rate:.0} Mb/s, segments by class {:?}", progress.sent)?;
    std::fs::remove_dir_all(folder)?;
    receiving.join().map_err(|_| "the receiver panicked".into())
}
