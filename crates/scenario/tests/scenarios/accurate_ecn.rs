//! Accurate ECN (RFC 9768) from end to end: counters instead of echoes, fallback, and the bits of captures.

use super::run;
use sparelane_sim::Records;

/// Two flows of DCTCP over a bottleneck that marks, with these keys of the transport and of the network.
fn dctcp(transport: &str, network: &str) -> Records {
    run(&format!(
        "duration = \"2s\"\nseed = 3\n[topology]\nkind = \"dumbbell\"\npairs = 2\nbottleneck_rate = \"100Mbps\"\n\
         bottleneck_delay = \"5ms\"\naccess_rate = \"1Gbps\"\n[queue]\nlimit = \"200packets\"\nmark_at = \"20packets\"\n\
         [transport]\n{transport}\n{network}[scheme.x]\ncontroller = \"dctcp\"\n[workload]\nkind = \"bulk\"\nsize = \"unlimited\"\n"
    ))
}

/// Each acknowledgment reports the mark of one segment, by an echo or by a counter.
#[test]
fn with_an_acknowledgment_for_each_segment_counters_equal_exact_echoes() {
    let [exact, accurate] = ["dctcp", "accurate"].map(|ecn| dctcp(&format!("ecn = \"{ecn}\""), ""));
    assert!(exact.links.marked_packets.iter().sum::<u64>() > 500);
    assert_eq!((&exact.flows, &exact.links), (&accurate.flows, &accurate.links));
}

/// Acknowledgments of up to 16 segments, more than three bits count. The option counts the marks exactly. Without it, the
/// sender assumes as many marks as possible after an unusually large acknowledgment, which costs throughput.
#[test]
fn acknowledgments_of_many_segments_report_marks_with_and_without_the_option() {
    let used = |ecn: &str| {
        let records = dctcp(&format!("delayed_ack = {{ every = 16, timeout = \"40ms\" }}\n{ecn}"), "");
        records.flows.delivered_bytes.iter().sum::<u64>() as f64 * 8.0 / 2.0 / 97.3e6
    };
    let [exact, with, without] =
        ["ecn = \"dctcp\"", "ecn = \"accurate\"", "ecn = \"accurate\"\necn_option = false"].map(used);
    assert!(with > 0.8 * exact && without < with, "{exact} with echoes, {with} with counters, {without} without");
}

/// The ends negotiate classic ECN, or none.
#[test]
fn a_peer_without_accurate_ecn_leaves_classic_ecn_or_none() {
    let cubic = |transport: &str| {
        run(&format!(
            "duration = \"5s\"\n[topology]\nkind = \"dumbbell\"\npairs = 1\nbottleneck_rate = \"50Mbps\"\n\
             bottleneck_delay = \"5ms\"\naccess_rate = \"1Gbps\"\n[queue]\nkind = \"codel\"\necn = true\nlimit = \"300packets\"\n\
             [transport]\n{transport}\n[scheme.x]\ncontroller = \"cubic\"\n[workload]\nkind = \"bulk\"\nsize = \"unlimited\"\n"
        ))
    };
    for peer in ["classic", "off"] {
        let [own, fallen] = [format!("ecn = \"{peer}\""), format!("ecn = \"accurate\"\npeer_ecn = \"{peer}\"")]
            .map(|transport| cubic(&transport));
        assert_eq!((&own.flows, &own.links), (&fallen.flows, &fallen.links), "{peer}");
    }
    assert!(cubic("ecn = \"accurate\"").links.marked_packets.iter().sum::<u64>() > 0);
}

/// Losses, delayed acknowledgments, slow readers and merged segments occur together with the counters.
#[test]
fn transfers_with_counters_end_whatever_else_happens() {
    for transport in
        ["delayed_ack = true", "receive_batch = 8", "read_rate = \"20Mbps\"", "preset = \"linux\"", "sack = false"]
    {
        let lossy = "[[link]]\nbetween = [\"west\", \"east\"]\nloss = 0.01\n";
        let records = run(&format!(
            "duration = \"60s\"\n[topology]\nkind = \"dumbbell\"\npairs = 2\nbottleneck_rate = \"50Mbps\"\n\
             bottleneck_delay = \"5ms\"\naccess_rate = \"1Gbps\"\n[queue]\nlimit = \"60packets\"\nmark_at = \"10packets\"\n\
             [transport]\n{transport}\necn = \"accurate\"\n{lossy}[scheme.x]\ncontroller = \"cubic\"\n[workload]\n\
             kind = \"bulk\"\nsize = \"5MB\"\n"
        ));
        assert_eq!(records.totals.finished_flows, 2, "{transport}");
        assert!(records.links.marked_packets.iter().sum::<u64>() > 0, "{transport}");
    }
}
