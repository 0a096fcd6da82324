//! Telemetry of nodes in virtual time.

use super::*;
use crate::telemetry::{Rows, TelemetryConfig};
use bytes::Bytes;
use qlog::reader::{Event, QlogSeqReader};
use sparelane_transport::qlog::head;
use std::io::{self, Cursor, Write};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Observed {
    digest: String,
    sent: [u64; MAX_CLASSES],
    /// Of the sender and of the receiver.
    rows: [Rows; 2],
    logs: [String; 2],
}

const BYTES: usize = 2_000_000;

/// Runs a transfer over a lossy path, with or without telemetry.
fn transfer(has_telemetry: bool) -> Observed {
    let mut net = Virtual::new(Path::default(), NodeConfig::default(), 3).expect("settings that fit");
    let logs = [Shared::default(), Shared::default()];
    if has_telemetry {
        for (at, log) in logs.iter().enumerate() {
            let log: Box<dyn Write + Send> = Box::new(log.clone());
            let config = TelemetryConfig { interval: Some(Dur::from_ms(5)), log: Some((log, 100_000)) };
            net.node(at).enable_telemetry(Time::ZERO, config);
        }
    }
    net.connect().expect("a peer");
    let mut sent = [0; MAX_CLASSES];
    while let Some((node, event)) = net.next_event(Time::ZERO + Dur::from_secs(60)) {
        let now = net.now();
        match (node, event) {
            (0, NodeEvent::Opened { association, .. }) => {
                // Before, a loss would delay the handshake of a class by a second.
                net.path_mut().loss = 0.02;
                let flow = net.node(0).open_flow(now, association, None).expect("a flow");
                net.node(0).write(flow, Bytes::from(vec![7; BYTES]));
                net.node(0).finish(flow);
            }
            (1, NodeEvent::Readable(flow)) => while net.node(1).read(flow).is_some() {},
            (0, NodeEvent::Sent(flow)) => {
                sent = net.node(0).sent_segments(flow.association);
                net.node(0).close(now, flow.association, 1, "all data is sent");
            }
            (1, NodeEvent::Closed { .. }) => break,
            _ => {}
        }
    }
    let rows = [0, 1].map(|at| net.node(at).telemetry_mut().map(|kept| kept.take_rows()).unwrap_or_default());
    assert_eq!(net.node(0).totals().sent, sent, "totals outlive the association");
    assert_eq!(net.node(1).totals().delivered_bytes, BYTES as u64);
    Observed { digest: net.digest(), sent, rows, logs: logs.map(|log| log.text()) }
}

/// Returns the values of a quantity over all probes whose names end with `name`, in order of time.
fn values(rows: &Rows, name: &str, quantity: &str) -> Vec<f64> {
    let is_wanted = |at: &usize| rows.names[rows.probe[*at] as usize].ends_with(name) && rows.quantity[*at] == quantity;
    (0..rows.value.len()).filter(is_wanted).map(|at| rows.value[at]).collect()
}

#[test]
fn telemetry_does_not_change_a_transfer() {
    assert_eq!(transfer(true).digest, transfer(false).digest);
}

#[test]
fn time_series_cover_a_transfer_at_both_ends() {
    let Observed { sent, rows: [sender, receiver], .. } = transfer(true);
    assert_eq!((sender.missed, receiver.missed), (0, 0));
    let windows = values(&sender, ".0", "cwnd_bytes");
    assert!(windows.len() > 30 && windows.iter().any(|&window| window > 2.0 * windows[0]), "{windows:?}");
    let flight = |class: usize| values(&sender, ".0", &format!("in_flight_class_{class}_bytes"));
    assert!(flight(3).iter().any(|&bytes| bytes > 50_000.0), "the tail is in the lowest class");
    assert!(values(&sender, ".0", "lost_class_3_segments").last().is_some_and(|&lost| lost > 0.0));
    let last = |rows, name, quantity| values(rows, name, quantity).last().copied();
    assert_eq!(last(&sender, ".0", "acknowledged_bytes"), Some(BYTES as f64));
    assert_eq!(last(&sender, ".0", "sent_class_0_segments"), Some(sent[0] as f64));
    assert_eq!(last(&receiver, "association 1", "delivered_bytes"), Some(BYTES as f64), "{:?}", receiver.names);
    assert!(values(&receiver, "received", "held_bytes").iter().any(|&bytes| bytes > 0.0));
    assert!(sender.time_ps.is_sorted() && receiver.time_ps.is_sorted());
}

#[test]
fn a_qlog_records_each_segment_sent_and_received() {
    let Observed { sent, logs: [sender, receiver], .. } = transfer(true);
    let count = |text: &str, name: &str| text.matches(name).count() as u64;
    assert_eq!(count(&sender, "transport:packet_sent"), sent.iter().sum::<u64>());
    assert!(count(&sender, "recovery:metrics_updated") > 30 && count(&sender, "recovery:packet_lost") > 0);
    let (left, received) = (count(&sender, "transport:packet_sent"), count(&receiver, "transport:packet_received"));
    assert!(received <= left && received * 100 > left * 97, "{received} of {left}");
    assert!(sender.split_terminator('\n').all(|line| line.starts_with('\u{1e}') && line.ends_with('}')));
}

/// Reads the logs with the crate *qlog*, an independent implementation of the drafts.
#[test]
fn an_independent_qlog_reader_accepts_every_record() {
    let Observed { logs, .. } = transfer(true);
    for log in logs {
        let records = log.matches('\u{1e}').count();
        let text = if log.contains("qlog_version") { log } else { head("a test", "client", "1", "UDP") + &log };
        let reader = QlogSeqReader::new(Box::new(Cursor::new(text.into_bytes())));
        let events: Vec<Event> = reader.map(Iterator::collect).unwrap_or_default();
        let unknown = events.iter().find_map(|event| match event {
            Event::Qlog(_) => None,
            Event::Json(record) => Some(record),
        });
        assert!(unknown.is_none(), "{unknown:?}");
        assert!(records > 1000 && records.abs_diff(events.len()) <= 1, "{} of {records} records", events.len());
    }
}
