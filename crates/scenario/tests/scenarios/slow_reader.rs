//! Applications that read slowly: `read_rate` of `[transport]`.

use sparelane_sim::Records;

/// A flow over 100 Mb/s with a round trip of 20 ms.
fn run(size: &str, rest: &str) -> Records {
    run_with("cubic", size, rest)
}

fn run_with(controller: &str, size: &str, rest: &str) -> Records {
    let text = format!(
        r#"
duration = "200s"
[topology]
kind = "star"
hosts = 2
rate = "100Mbps"
delay = "5ms"
[scheme.tcp]
controller = "{controller}"
[workload]
kind = "bulk"
pairs = [["h2", "h1"]]
size = "{size}"
{rest}
"#
    );
    crate::run(&text)
}

/// Seconds until the receiving host holds everything.
fn seconds(records: &Records) -> f64 {
    let flows = &records.flows;
    assert_eq!(flows.delivered_bytes.len(), 1);
    (flows.finish_ps[0] - flows.start_ps[0]) as f64 * 1e-12
}

/// Asserts that a flow took `least` seconds, and at most four round trips more: for the handshake, the first segment, and
/// the last updates of the window.
fn assert_took(took: f64, least: f64) {
    assert!(took >= least && took < least + 4.0 * 0.02, "{took} s, at least {least} s");
}

#[test]
fn a_flow_is_as_fast_as_its_application_reads() {
    let records = run("14600000B", "[transport]\nread_rate = \"5Mbps\"\nreceive_window = \"292kB\"");
    // The last 200 segments are in the buffer, unread, when the host holds everything.
    let wanted = (14_600_000.0 - 292_000.0) * 8.0 / 5e6;
    assert_took(seconds(&records), wanted);
    assert_eq!((records.flows.retransmissions[0], records.flows.timeouts[0]), (0, 0));
}

#[test]
fn without_a_receive_window_the_buffer_is_that_of_linux() {
    let [plain, given] = ["", "receive_window = \"64KiB\"\n"]
        .map(|window| run("1MB", &format!("[transport]\n{window}read_rate = \"1Mbps\"")));
    assert_eq!(seconds(&plain), seconds(&given));
    let wanted = (1_000_000.0 - 65_536.0) * 8.0 / 1e6;
    assert_took(seconds(&plain), wanted);
}

/// A segment takes 0.12 ms on the link, and 0.13 ms to read. When the last of ten segments arrives, it and the one before
/// are unread, so that eight segments are sent per round trip instead of ten.
#[test]
fn unread_segments_are_missing_from_the_window() {
    let window = "[transport]\nreceive_window = \"14600B\"";
    let fast = run("1460000B", window);
    let slow = run("1460000B", &format!("{window}\nread_rate = \"90Mbps\""));
    // 1,000 segments in round trips of 20.4 ms, the transmission of a segment and its acknowledgment included.
    for (records, per_round_trip) in [(fast, 10.0), (slow, 8.0)] {
        let wanted = 1_000.0 / per_round_trip * 0.0204;
        assert!((seconds(&records) / wanted - 1.0).abs() < 0.02, "{} s, not {wanted} s", seconds(&records));
    }
}

/// An application that reads a segment in 1.46 s closes the window of two segments again and again. The sender probes
/// it, and continues although half of all acknowledgments and updates are lost.
#[test]
fn probes_find_an_open_window_whose_update_was_lost() {
    let settings = "[transport]\nread_rate = \"8kbps\"\nreceive_window = \"2920B\"";
    let lost = "[[link]]\nbetween = [\"h1\", \"switch\"]\nloss = 0.5\n";
    let records = run("14600B", &format!("{lost}{settings}"));
    let took = seconds(&records);
    // Ten segments, the last two of which are not read.
    let least = 8.0 * 1.46;
    assert!(took >= least && took < 200.0, "{took} s");
    assert_took(seconds(&run("14600B", settings)), least);
}

/// Without SACK, updates of the window must not count as duplicate acknowledgments.
#[test]
fn updates_of_the_window_cause_no_retransmission() {
    for (sack, delayed) in [(true, true), (true, false), (false, true), (false, false)] {
        let settings = format!(
            "[transport]\nsack = {sack}\ndelayed_ack = {delayed}\nread_rate = \"3Mbps\"\nreceive_window = \"20kB\"\n"
        );
        let records = run("2MB", &settings);
        assert_eq!((records.flows.retransmissions[0], records.flows.timeouts[0]), (0, 0), "{settings}");
        let wanted = (2e6 - 20_000.0) * 8.0 / 3e6;
        assert_took(seconds(&records), wanted);
    }
}

/// RC3 sends its tail within the window only.
#[test]
fn a_tail_keeps_to_the_window_too() {
    let settings = "[transport]\nread_rate = \"5Mbps\"\nreceive_window = \"29200B\"";
    let records = run_with("rc3", "1460kB", settings);
    let wanted = (1_460_000.0 - 29_200.0) * 8.0 / 5e6;
    assert_took(seconds(&records), wanted);
}

/// Flows on a kept connection share its application, which has not read the last flow yet when the next one starts.
#[test]
fn the_next_flow_of_a_connection_waits_for_what_is_unread() {
    let flows = "flows = 2\ngap = \"1s\"\nconnections = \"reused\"\n";
    let records = run("146kB", &format!("{flows}[transport]\nread_rate = \"1Mbps\"\nreceive_window = \"29200B\""));
    let took: Vec<f64> = records
        .flows
        .finish_ps
        .iter()
        .zip(&records.flows.start_ps)
        .map(|(finish, start)| (finish - start) as f64 * 1e-12)
        .collect();
    let first = (146_000.0 - 29_200.0) * 8.0 / 1e6;
    // The first flow is read at 1.168 s, and the second starts at 1 s.
    let second = first + 146_000.0 * 8.0 / 1e6 - 1.0;
    assert_took(took[0], first);
    assert_took(took[1], second);
}
