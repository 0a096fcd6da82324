//! Fuzzes a sender with arbitrary acknowledgments, timers and writes, under any controller and settings.

use super::bytes::Bytes;
use sparelane_cc::{Blueprint, Registry, Values};
use sparelane_core::{Domain, Dur, Rate, Stream, Time};
use sparelane_transport::{
    AccEcnOption, AccurateEcho, AckSegment, Acknowledgment, CounterOrder, Ecn, Extras, SackBlock, Sender, Transmit,
    TransportConfig,
};

const MSS: u64 = 1_000;
/// The largest number of segments written.
const MAX_SEGMENTS: u64 = 3_000;
/// The memory limit of such a connection in bytes.
const MAX_MEMORY_BYTES: usize = 1_000_000;

/// Runs one connection.
///
/// # Panics
/// If the sender panics, has more than twice the data written in flight, accepts acknowledgments of data that was never
/// written, or exceeds the memory limit.
pub fn check(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let Some(mut sender) = sender(&mut bytes) else { return };
    let (mut now, mut highest, mut written) = (Time::ZERO, 0, 0);
    while !bytes.is_over() {
        match bytes.byte() % 8 {
            0 => {
                let more = u64::from(bytes.byte()).min(MAX_SEGMENTS - written);
                written += more;
                sender.write(more * MSS);
            }
            1 | 2 => {
                for _ in 0..=bytes.byte() % 64 {
                    match sender.poll_transmit(now, bytes.0.len() % 2 == 0) {
                        Some(Transmit::Data(segment)) => highest = highest.max(segment.seq + 1),
                        Some(_) => {}
                        None => break,
                    }
                }
            }
            3 => {
                sender.handle_syn_ack_flags(bytes.byte());
                sender.handle_syn_ack(now, bytes.coin().then(|| Rate::from_bps(bytes.scaled().max(1))));
            }
            4 => {
                now += Dur::from_us(bytes.scaled() >> 40);
                if sender.next_timer() <= now {
                    sender.handle_timer(now);
                }
            }
            5 if sender.next_timer() != Time::NEVER => {
                now = now.max(sender.next_timer());
                sender.handle_timer(now);
            }
            _ => acknowledge(&mut sender, now, &mut bytes),
        }
        // With a scheduler below TCP, as in RAPID, retransmissions can be queued twice, so the bound is twice the data
        // written.
        let acknowledged = sender.acknowledged();
        assert!(
            highest <= written && acknowledged <= highest,
            "{highest} sent, {acknowledged} acknowledged of {written}"
        );
        let in_flight = sender.in_flight_bytes();
        assert!(in_flight <= 2 * written * MSS, "{in_flight} bytes in flight of {written} segments");
        assert!(sender.memory_bytes() < MAX_MEMORY_BYTES, "{} bytes", sender.memory_bytes());
    }
}

fn sender(bytes: &mut Bytes<'_>) -> Option<Sender> {
    let registry = Registry::built_in();
    let all = registry.all();
    let controller = &all[usize::from(bytes.byte()) % all.len()];
    let flags = bytes.any();
    let flag = |bit: u32| flags >> bit & 1 == 1;
    let config = TransportConfig {
        mss_bytes: MSS,
        sack: flag(0) || flag(1),
        limited_transmit: flag(2),
        prr: flag(3) && (flag(0) || flag(1)),
        rack_tlp: flag(4) && (flag(0) || flag(1)),
        timestamps: flag(5),
        sack_survives_timeout: flag(6),
        undo_spurious: flag(7),
        ecn: [Ecn::Off, Ecn::Classic, Ecn::Dctcp, Ecn::Accurate][(flags >> 8 & 3) as usize],
        send_batch: if flag(10) { 1 } else { 10 },
        receive_window_bytes: flag(11).then_some(100 * MSS),
        send_buffer_bytes: flag(12).then_some(50 * MSS),
        syn_loss_resets_window: flag(13),
        ..TransportConfig::default()
    };
    let (values, inner) = (Values::default(), Values::default());
    let cc = controller.build(&values, &Blueprint::of_any(MSS, &inner)).ok()?;
    Some(Sender::new(config, cc, Stream::new(flags, Domain::Controller, 0)))
}

/// Draws accurate ECN feedback, with counters beyond their 24 bits.
fn feedback(bytes: &mut Bytes<'_>) -> AccurateEcho {
    let [ect0_bytes, ce_bytes, ect1_bytes] = [(); 3].map(|()| bytes.any() as u32);
    let option = AccEcnOption { order: CounterOrder::Ect0First, ect0_bytes, ce_bytes, ect1_bytes };
    AccurateEcho { ace: bytes.byte(), option: bytes.coin().then_some(option) }
}

fn acknowledge(sender: &mut Sender, now: Time, bytes: &mut Bytes<'_>) {
    let near = sender.acknowledged();
    let mut blocks = Vec::new();
    for _ in 0..(bytes.byte() % 8).saturating_sub(1) {
        let start = bytes.around(near + 100);
        let end = if bytes.byte() == 255 { bytes.any() } else { start.saturating_add(u64::from(bytes.byte() % 32)) };
        blocks.push(SackBlock { start, end });
    }
    let segment = AckSegment {
        cumulative: if bytes.coin() { near } else { bytes.around(near + 100) },
        trigger: bytes.around(near + 100),
        trigger_retransmitted: bytes.coin(),
        class: if bytes.byte() > 200 { bytes.byte() } else { 0 },
        ecn_echo: bytes.byte() > 200,
    };
    let extras = bytes.coin().then(|| Extras {
        explicit_rate: bytes.coin().then(|| Rate::from_bps(bytes.scaled().max(1))),
        one_way_delay: bytes.coin().then(|| Dur::from_ps(bytes.scaled())),
        received_at: bytes.coin().then(|| Time::ZERO + Dur::from_ps(bytes.scaled())),
        host_delay: bytes.coin().then(|| Dur::from_ps(bytes.scaled())),
        accurate_ecn: bytes.coin().then(|| feedback(bytes)),
        window_segments: bytes.coin().then(|| (bytes.scaled() >> 32) as u32),
        nic_backlog_bytes: bytes.scaled() >> 40,
    });
    let acknowledgment = Acknowledgment { segment, blocks: &blocks, extras: extras.as_ref() };
    if let Err(error) = sender.handle_ack(now, &acknowledgment) {
        assert!(!error.to_string().is_empty());
    }
}
