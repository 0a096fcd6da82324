//! TCP with the settings of a known implementation: full links on which only a queue's overflow is lost, no collapse
//! behind RED, and no endless growth of timeouts.

use sparelane_scenario::{Scenario, Source};
use sparelane_sim::Records;
use std::path::Path;

/// One flow of `controller` over a bottleneck, with the given further tables.
fn run(controller: &str, bottleneck: &str, transport: &str, size: &str, tables: &str, seconds: u64) -> Records {
    let text = format!(
        "duration = \"{seconds}s\"\n[topology]\nkind = \"dumbbell\"\npairs = 1\naccess_rate = \"10Gbps\"\n\
         access_delay = \"1us\"\n{bottleneck}\n[transport]\n{transport}\n[scheme.x]\ncontroller = \"{controller}\"\n\
         [workload]\nkind = \"bulk\"\nsize = \"{size}\"\n{tables}"
    );
    let scenario = Scenario::parse(&text, &Source::at(Path::new("test.toml")), &[]).unwrap_or_else(|e| panic!("{e}"));
    scenario.simulate().expect("a run").run().expect("lawful physics")
}

/// The completion time of the only flow in seconds; infinite if it did not complete.
fn completion(records: &Records) -> f64 {
    let finish = records.flows.finish_ps[0];
    if finish == u64::MAX { f64::INFINITY } else { finish as f64 / 1e12 }
}

/// Controllers of Linux that react to loss and use the slow start of RFC 5681. Hybla and Westwood have a test of their
/// own.
const LOSS_BASED: [&str; 12] = [
    "newreno",
    "cubic",
    "bic",
    "highspeed",
    "scalable",
    "h-tcp",
    "illinois",
    "veno",
    "yeah",
    "lp",
    "compound",
    "vegas",
];
const GIGABIT: &str =
    "bottleneck_rate = \"1Gbps\"\nbottleneck_delay = \"10ms\"\n[queue]\nkind = \"fifo\"\nlimit = \"1000packets\"";
/// The completion time of 250 MB on a gigabit, computed round by round.
const GIGABIT_SECONDS: f64 = 2.26;

/// Only the overflow of the queue at the end of slow start is lost, half of a window, and the link is never idle
/// because of it. 10 MB take 0.836 s of a full link; the handshake and slow start take the rest, computed round by
/// round.
#[test]
fn loss_based_controllers_of_linux_keep_a_link_full_while_they_repair_the_losses_of_slow_start() {
    let path =
        "bottleneck_rate = \"100Mbps\"\nbottleneck_delay = \"5ms\"\n[queue]\nkind = \"fifo\"\nlimit = \"150packets\"";
    for controller in LOSS_BASED {
        let records = run(controller, path, "preset = \"linux\"", "10MB", "", 10);
        let seconds = completion(&records);
        assert!((seconds / 0.88 - 1.0).abs() < 0.03, "{controller}: {seconds} s");
        assert!(records.flows.retransmissions[0] > 0, "{controller}: nothing was lost, so that nothing is shown");
    }
}

/// The same with 25 times the data, over a path with twenty times the bandwidth-delay product.
#[test]
fn loss_based_controllers_of_linux_keep_a_gigabit_full_for_250_megabytes() {
    let ecn = [("dctcp", "preset = \"linux\"\necn = \"dctcp\"")];
    for (controller, transport) in
        LOSS_BASED.map(|controller| (controller, "preset = \"linux\"")).into_iter().chain(ecn)
    {
        let records = run(controller, GIGABIT, transport, "250MB", "", 30);
        let seconds = completion(&records);
        assert!((seconds / GIGABIT_SECONDS - 1.0).abs() < 0.03, "{controller}: {seconds} s");
        assert!(records.flows.retransmissions[0] > 0, "{controller}: nothing was lost, so that nothing is shown");
    }
}

/// Hybla's slow start counts acknowledgments, each of which covers two segments, and so takes some eight rounds more.
/// With one acknowledgment per segment it is as fast as the others. Westwood's window after the loss is its estimate of
/// the bandwidth, from two filters that keep 7/8 of the old value and samples of 50 ms. After a slow start of 0.25 s
/// the estimate is a twentieth of the link (89 segments of 1726), and the window grows by a segment in two rounds.
/// Without a loss it fills the link.
#[test]
fn hybla_and_westwood_of_linux_are_late_for_their_own_reasons() {
    let seconds = |controller: &str, path: &str, transport: &str| {
        completion(&run(controller, path, transport, "250MB", "", 30)) / GIGABIT_SECONDS
    };
    let linux = "preset = \"linux\"";
    let hybla =
        [linux, "preset = \"linux\"\ndelayed_ack = false"].map(|transport| seconds("hybla", GIGABIT, transport));
    assert!(hybla[0] > 1.05 && (hybla[1] - 1.0).abs() < 0.03, "{hybla:?}");
    let without_loss = GIGABIT.replace("1000packets", "100000packets");
    let westwood = [GIGABIT, &without_loss].map(|path| seconds("westwood", path, linux));
    assert!(westwood[0] > 4.0 && (westwood[1] - 1.0).abs() < 0.03, "{westwood:?}");
}

/// The same with the defaults, without proportional rate reduction: the second half of the flight is sent at twice the
/// path's rate.
#[test]
fn without_a_reduction_in_proportion_the_repair_takes_longer() {
    let path =
        "bottleneck_rate = \"1Gbps\"\nbottleneck_delay = \"10ms\"\n[queue]\nkind = \"fifo\"\nlimit = \"1000packets\"";
    let seconds = |transport: &str| completion(&run("newreno", path, transport, "50MB", "", 20));
    let [with, without] = ["preset = \"linux\"", "preset = \"linux\"\nprr = false\nrack_tlp = false"].map(seconds);
    assert!(with * 1.01 < without, "{with} s with, {without} s without");
}

/// RED drops several segments of a window, including repairs. Windows are cut from their size at that time, and not
/// from all data outstanding since.
#[test]
fn behind_red_a_flow_has_three_quarters_of_the_link() {
    let red = |more: &str| {
        format!(
            "bottleneck_rate = \"100Mbps\"\nbottleneck_delay = \"20ms\"\n[queue]\nkind = \"red\"\nlimit = \"500packets\"\n\
             min = \"50packets\"\nmax = \"150packets\"\n{more}"
        )
    };
    let share = |controller: &str, queue: &str, transport: &str| {
        let records = run(controller, queue, transport, "unlimited", "", 30);
        (records.flows.delivered_bytes[0] as f64 * 8.0 / 30.0 / 100e6, records.flows.timeouts[0])
    };
    for (controller, more, transport) in [("newreno", "", ""), ("dctcp", "ecn = true", "ecn = \"dctcp\"")] {
        for preset in ["", "preset = \"linux\"\n"] {
            let (used, timeouts) = share(controller, &red(more), &format!("{preset}{transport}"));
            assert!(used > 0.75 && timeouts <= 2, "{controller} {preset}: {used}, {timeouts} timeouts");
        }
        let to_the_letter = "flight_size = \"outstanding\"\ntimestamps = false\n";
        let (used, timeouts) = share(controller, &red(more), &format!("{to_the_letter}{transport}"));
        assert!(used < 0.6 && timeouts > 20, "{controller}, RFC 5681 to the letter: {used}, {timeouts} timeouts");
    }
}

/// Twenty segments in a row are lost, and so are their first two repairs. Every repair that arrives is a round-trip
/// sample, so each further timeout takes only its minimum. By Karn's rule they would double up to a minute.
#[test]
fn timeouts_do_not_grow_while_repairs_arrive() {
    let path =
        "bottleneck_rate = \"10Mbps\"\nbottleneck_delay = \"18ms\"\n[queue]\nkind = \"fifo\"\nlimit = \"100packets\"";
    let segments: Vec<_> = (100..120).collect();
    let drops = format!("[[drop]]\nfrom = \"west\"\nto = \"east\"\nsegments = {segments:?}\ncopies = 3\n");
    let seconds = |transport: &str| completion(&run("newreno", path, transport, "1MB", &drops, 1000));
    for transport in ["", "sack = false", "preset = \"linux\"", "preset = \"rfc\""] {
        assert!(seconds(transport) < 10.0, "{transport}: {} s", seconds(transport));
    }
    for transport in ["timestamps = false", "timestamps = false\nsack = false"] {
        assert!(seconds(transport) > 200.0, "{transport}: {} s", seconds(transport));
    }
}
