//! TCP RAPID from end to end: its gaps on the wire, several flows on one interface, and noisy hosts.

use sparelane_scenario::{Scenario, Source};
use sparelane_sim::Records;
use std::path::Path;

/// A path of 1 Gb/s and 10 ms; from 100 kb/s, start-up would take as long as 64 packets at that rate.
const PATH: &str = "duration = \"3s\"
[topology]
kind = \"dumbbell\"
pairs = 2
access_rate = \"1Gbps\"
access_delay = \"10us\"
bottleneck_rate = \"1Gbps\"
bottleneck_delay = \"4.98ms\"
[queue]
limit = \"200KB\"
[scheme.rapid]
controller = \"rapid\"
initial_rate = \"20Mbps\"
[measure]
from = \"1s\"
";

/// Runs flows between `pairs`, with further lines in the scheme and in the scenario.
fn run(pairs: &str, scheme: &str, more: &str) -> Records {
    let path = PATH.replace("controller = \"rapid\"\n", &format!("controller = \"rapid\"\n{scheme}"));
    let text = format!(
        "{path}{more}\n[workload]\nkind = \"bulk\"\nscheme = \"rapid\"\npairs = {pairs}\nsize = \"unlimited\"\n"
    );
    let source = Source { file: "rapid.toml".to_owned(), folder: Path::new(".").to_owned() };
    let scenario = Scenario::parse(&text, &source, &[]).unwrap_or_else(|error| panic!("{error}"));
    scenario.simulate().expect("a run").run().expect("lawful physics")
}

/// The goodput of each flow from the first second on, Mb/s.
fn mbps(records: &Records) -> Vec<f64> {
    records.flows.measured_bytes.iter().map(|&bytes| bytes as f64 * 8.0 / 2.0 / 1e6).collect()
}

#[test]
fn a_flow_fills_an_idle_path_without_loss() {
    let records = run("[[\"left0\", \"right0\"]]", "", "");
    let [rate] = mbps(&records)[..] else { panic!("one flow") };
    assert!((850.0..975.0).contains(&rate), "{rate} Mb/s");
    assert_eq!(records.flows.lost_packets, [0]);
}

/// The packets of both flows wait for one interface, in the order of their due times.
#[test]
fn two_flows_of_one_host_share_its_interface_fairly() {
    let records = run("[[\"left0\", \"right0\"], [\"left0\", \"right1\"]]", "", "");
    let [one, other] = mbps(&records)[..] else { panic!("two flows") };
    assert!(one + other > 750.0, "{one} and {other} Mb/s");
    assert!(one / other > 0.6 && one / other < 1.7, "{one} and {other} Mb/s");
}

/// Interrupts for several packets hide the information in the gaps. BASS recovers it; without BASS the rate is too
/// high.
#[test]
fn bass_finds_the_bandwidth_through_interrupts() {
    let noise = "[[host_at]]\nhosts = [\"right0\"]\ninterrupt_after = \"100us\"\ntimestamp_clock = \"1us\"\n\
                 [[cross_traffic]]\nkind = \"constant\"\nfrom = [\"left1\"]\nto = [\"right1\"]\nrate = \"300Mbps\"\n";
    let with = run("[[\"left0\", \"right0\"]]", "", noise);
    let [rate] = mbps(&with)[..] else { panic!("one flow") };
    assert!((500.0..690.0).contains(&rate), "{rate} Mb/s of 700");
    let without = run("[[\"left0\", \"right0\"]]", "bass_passes = 0\n", noise);
    let lost = |records: &Records| records.flows.lost_packets[0] as f64 / records.flows.sent_packets[0][0] as f64;
    assert!(lost(&without) > 10.0 * lost(&with), "{} without BASS, {} with it", lost(&without), lost(&with));
}
