//! Tests of the bridge in virtual time, with the bytes of real packets.

use sparelane_core::{Dur, Time};
use sparelane_emulate::bridge::{Bridge, Counts};
use sparelane_emulate::ip;
use sparelane_emulate::plan::{Plan, address};
use sparelane_scenario::{Scenario, Source};
use sparelane_sim::recorded::record;
use std::collections::BTreeMap;

const HEADER_BYTES: usize = 20;
const TAG: std::ops::Range<usize> = 24..28;

/// Returns a UDP packet, or a TCP segment without payload, with a tag that identifies it.
fn packet(from: usize, to: usize, tos: u8, bytes: usize, is_data: bool, tag: u32) -> Vec<u8> {
    let mut packet = vec![0; bytes];
    packet[0] = 0x45;
    packet[1] = tos;
    packet[2..4].copy_from_slice(&(bytes as u16).to_be_bytes());
    packet[8] = 64;
    packet[9] = if is_data { 17 } else { 6 };
    packet[12..16].copy_from_slice(&address(from).octets());
    packet[16..20].copy_from_slice(&address(to).octets());
    packet[TAG].copy_from_slice(&tag.to_be_bytes());
    if !is_data {
        packet[32] = 5 << 4;
    }
    let sum = checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// Computes the checksum of a header (RFC 1071); zero if its checksum field is correct.
fn checksum(packet: &[u8]) -> u16 {
    let words = packet[..HEADER_BYTES].chunks(2);
    let sum: u32 = words.map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !(((folded & 0xffff) + (folded >> 16)) as u16)
}

fn tag(packet: &[u8]) -> u32 {
    u32::from_be_bytes(packet[TAG].try_into().expect("four bytes"))
}

fn scenario(extra: &str) -> Scenario {
    let text = format!(
        "duration = \"3s\"\nseed = 5\n[topology]\nkind = \"dumbbell\"\npairs = 2\naccess_rate = \"97Mbps\"\n\
         bottleneck_rate = \"9.7Mbps\"\nbottleneck_delay = \"7ms\"\n{extra}"
    );
    let source = Source { file: "s.toml".to_owned(), folder: ".".into() };
    Scenario::parse(&text, &source, &[]).expect("a scenario")
}

const PLAIN: &str = "[scheme.tcp]\ncontroller = \"cubic\"\n[workload]\nkind = \"bulk\"\nsize = \"1MB\"\n";

fn bridge(scenario: &Scenario) -> Bridge {
    Bridge::new(&Plan::new(scenario).expect("a plan")).expect("a network")
}

/// Returns the due time, destination and type of service of each due packet, by its tag.
fn due(bridge: &mut Bridge) -> BTreeMap<u32, (Time, usize, u8)> {
    let mut all = BTreeMap::new();
    while let Some(due) = bridge.poll_packet() {
        assert_eq!(checksum(due.bytes), 0, "a header with a wrong checksum");
        all.insert(tag(due.bytes), (due.at, due.host, due.bytes[1]));
    }
    all
}

/// Replays the packets of recorded simulations: RC3 and flows with ECN, over lossy cables and several kinds of queues.
/// The bridge must deliver, mark and drop the same packets at the same picosecond.
#[test]
fn the_bridge_treats_packets_like_the_simulation_of_the_same_scenario() {
    let traffic = "[scheme.rc3]\ncontroller = \"rc3\"\n[scheme.ecn]\ncontroller = \"newreno\"\ntransport = { ecn = \"classic\" }\n\
                   [[workload]]\nkind = \"bulk\"\nscheme = \"rc3\"\nsize = \"1MB\"\n[[workload]]\nkind = \"bulk\"\nscheme = \"ecn\"\nsize = \
                   \"2MB\"\n[[link]]\nselect = \"core\"\nloss = 0.004\nloss_of = \"data\"\n";
    let queues = [
        "[queue]\nlimit = \"30kB\"\nkind = \"fifo\"\nmark_at = \"9kB\"\n",
        "[queue]\nlimit = \"30kB\"\nkind = \"priority\"\n",
        "[queue]\nlimit = \"60kB\"\nkind = \"red\"\nmin = \"5packets\"\nmax = \"15packets\"\necn = true\n",
        "[queue]\nlimit = \"60kB\"\nkind = \"codel\"\necn = true\n",
        "[queue]\nlimit = \"60kB\"\nkind = \"pie\"\necn = true\n",
        "[queue]\nlimit = \"60kB\"\nkind = \"dualpi2\"\n",
    ];
    for queue in queues {
        let ecn = if queue.contains("dualpi2") { "l4s" } else { "classic" };
        let scenario = scenario(&format!("{}{queue}", traffic.replace("classic", ecn)));
        let recording = record(scenario.build().expect("a run")).expect("physics holds");
        let mut bridge = bridge(&scenario);
        let plan = Plan::new(&scenario).expect("a plan");
        let place = |node| plan.hosts.iter().position(|host| host.node == node).expect("a host");
        let mut delivered = BTreeMap::new();
        for (number, sent) in (0..).zip(&recording.sent) {
            let offered = sent.offered;
            // ECT(0) is 2, and ECT(1) is 1.
            let ect = u8::from(offered.is_ecn_capable) * if offered.is_l4s { 1 } else { 2 };
            let tos = plan.code_points[usize::from(offered.class)] << 2 | ect;
            let (from, to) = (place(offered.from), place(offered.to));
            let bytes = packet(from, to, tos, usize::from(offered.wire_bytes), offered.is_data, number);
            bridge.handle_packet(sent.at, from, &bytes);
            // Packets are polled in batches: the results must not depend on when they are polled.
            if number % 3 == 0 {
                delivered.append(&mut due(&mut bridge));
            }
        }
        bridge.handle_time(recording.ended);
        delivered.append(&mut due(&mut bridge));
        // Packets that are due exactly at the end are left out, because only one side may have delivered them.
        let fates = delivered.iter().filter(|(_, fate)| fate.0 < recording.ended);
        let mut fates: Vec<_> = fates
            .map(|(&tag, &(at, _, tos))| {
                let sent = &recording.sent[tag as usize];
                (at, sent.identity, tos & 3 == 3)
            })
            .collect();
        let mut expected = recording.delivered;
        expected.retain(|fate| fate.0 < recording.ended);
        fates.sort_unstable();
        expected.sort_unstable();
        assert!(fates == expected, "{queue}: packets, times or marks differ");
        let links = bridge.link_table(recording.ended);
        assert_eq!(links.marked_packets, recording.links.marked_packets, "{queue}");
        assert_eq!(links.dropped_packets, recording.links.dropped_packets, "{queue}");
        assert_eq!(links.lost_packets, recording.links.lost_packets, "{queue}");
        assert_eq!(links.arrived_packets, recording.links.arrived_packets, "{queue}");
        assert!(bridge.counts().dropped > 0 && expected.len() > 1_000, "{queue}: nothing happened");
    }
}

/// Transmission of 1000 bytes at 97, 9.7 and 97 Mb/s, and 9 ms of propagation.
#[test]
fn a_single_packet_is_due_after_its_transmissions_and_delays() {
    let mut bridge = bridge(&scenario(PLAIN));
    let sent = Time::from_ns(123_456);
    bridge.handle_packet(sent, 0, &packet(0, 2, 0, 1000, true, 7));
    let transmissions = Dur::from_ps(8_000 * (1_000_000 * 2 + 10_000_000) / 97);
    let expected = sent + transmissions + Dur::from_ms(9);
    assert!(bridge.next_time() < expected);
    bridge.handle_time(expected + Dur::from_ms(1));
    let (at, host, _) = due(&mut bridge)[&7];
    assert!((at - Time::ZERO).abs_diff(expected - Time::ZERO) < Dur::from_ps(1_000), "{at} for {expected}");
    assert_eq!(host, 2);
}

#[test]
fn code_points_decide_the_order_and_unknown_ones_are_in_class_0() {
    let mut bridge = bridge(&scenario(&format!("{PLAIN}[queue]\nkind = \"priority\"\nlimit = \"100kB\"\n")));
    // At the routers, code points 19, 11 and 3 wait behind the packet in transmission. Code point 46 is in class 0.
    for (number, dscp) in [19, 19, 11, 3, 46, 0].into_iter().enumerate() {
        bridge.handle_packet(Time::ZERO, number % 2, &packet(number % 2, 2, dscp << 2, 1000, true, number as u32));
    }
    bridge.handle_time(Time::ZERO + Dur::from_secs(1));
    let mut order: Vec<_> = due(&mut bridge).into_iter().map(|(tag, (at, _, _))| (at, tag)).collect();
    order.sort_unstable();
    let order: Vec<_> = order.into_iter().map(|(_, tag)| [19, 19, 11, 3, 46, 0][tag as usize]).collect();
    let last = order.len() - 1;
    assert_eq!(order[last], 19, "{order:?}");
    let place = |dscp| order.iter().position(|&other| other == dscp);
    assert!(place(46) < place(3) && place(0) < place(3) && place(3) < place(11), "{order:?}");
}

#[test]
fn changes_happen_at_their_exact_times() {
    let change = "[[emulate.change]]\nat = \"100ms\"\nbetween = [\"west\", \"east\"]\n";
    let text = format!("{PLAIN}{change}delay = \"57ms\"\n{}down = true\n", change.replace("100ms", "200ms"));
    let mut bridge = bridge(&scenario(&text));
    let mut journey = |ms, number| {
        let sent = Time::ZERO + Dur::from_ms(ms);
        bridge.handle_packet(sent, 0, &packet(0, 2, 0, 100, true, number));
        // The bridge is not called for a while. Changes happen at their exact times nevertheless.
        bridge.handle_time(sent + Dur::from_ms(150));
        due(&mut bridge).get(&number).map(|(at, ..)| (*at - sent).as_ps() / 1_000_000_000)
    };
    assert_eq!([journey(0, 0), journey(150, 1), journey(310, 2)], [Some(9), Some(59), None]);
}

/// The engine's keys span a few hours. A longer silence moves their base, without spurious wake-ups.
#[test]
fn a_network_works_for_days() {
    let mut bridge = bridge(&scenario(PLAIN));
    for (number, hours) in (0..).zip([0, 1, 2, 3, 9, 100, 101]) {
        let sent = Time::ZERO + Dur::from_secs(hours * 3600);
        bridge.handle_time(sent);
        assert!(bridge.next_time() > sent, "a spurious wake-up at {hours} h");
        bridge.handle_packet(sent, 0, &packet(0, 2, 0, 100, true, number));
        assert!(bridge.next_time() < sent + Dur::from_ms(9));
        bridge.handle_time(sent + Dur::from_ms(10));
        assert!(due(&mut bridge).contains_key(&number), "the packet of {hours} h");
    }
}

#[test]
fn packets_for_no_host_are_counted_and_dropped() {
    let mut bridge = bridge(&scenario(PLAIN));
    let to = |to| packet(0, to, 0, 100, true, 1);
    let mut version_6 = to(1);
    version_6[0] = 0x65;
    for bytes in [to(9), to(0), version_6, Vec::new(), vec![0; 3]] {
        bridge.handle_packet(Time::ZERO, 0, &bytes);
    }
    bridge.handle_time(Time::ZERO + Dur::from_secs(1));
    assert!(due(&mut bridge).is_empty());
    assert_eq!(bridge.counts(), Counts { from_hosts: 5, foreign: 5, ..Counts::default() });
}

/// A host's own queue holds two gigabytes in a simulation. The bridge stores less, and counts the packets that it
/// drops.
#[test]
fn memory_is_bounded_and_reused() {
    let mut bridge = bridge(&scenario(PLAIN));
    let most = sparelane_emulate::bridge::MAX_STORED_BYTES / 1500;
    for _ in 0..most + 1000 {
        bridge.handle_packet(Time::ZERO, 0, &packet(0, 2, 0, 40, true, 0));
    }
    let counts = bridge.counts();
    assert!(counts.overflowed >= 900 && counts.overflowed <= 1000, "{counts:?}");
    bridge.handle_time(Time::ZERO + Dur::from_secs(100));
    while bridge.poll_packet().is_some() {}
    bridge.handle_packet(Time::ZERO + Dur::from_secs(100), 0, &packet(0, 2, 0, 40, true, 0));
    assert_eq!(bridge.counts().overflowed, counts.overflowed);
}

#[test]
fn classes_have_the_code_points_of_the_wire() {
    let silent = scenario(PLAIN);
    assert_eq!(silent.emulate().code_points, sparelane_net::carrier::DEFAULT_DSCP);
    let marked = packet(0, 1, 19 << 2, 100, true, 1);
    assert_eq!(ip::read(&marked).map(|header| header.dscp), Some(19));
}
