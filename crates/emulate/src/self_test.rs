//! What this machine can keep: packets of its own go from the first host to the second, over the scenario's cables, which for so
//! long have no rate worth the name and a delay of [`TEST_DELAY`].
//!
//! Single packets tell the error of delays: from just before a program sends one until it is in the device of its host, less the
//! delay. Bursts tell how many packets a second the thread can carry; a share of these is what a scenario may ask for, since
//! acknowledgments go back, and programs need the processor, too.

use crate::bridge::Bridge;
use crate::exchange::{Exchange, monotonic_ns, precise_timers};
use crate::lateness::Lateness;
use crate::plan::{Plan, TEST_DELAY};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use sparelane_core::{Dur, Rate};
use std::fs::File;
use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Single packets, and the time between them.
const PROBES: u64 = 300;
const PROBE_EVERY: Duration = Duration::from_millis(1);

/// Bursts, the packets of each, which fit the device's queue, and the time between them.
const BURSTS: u64 = 20;
const BURST_PACKETS: u64 = 200;
const BURST_EVERY: Duration = Duration::from_millis(20);

/// The share of what the thread can carry that a scenario may ask for: two thirds, as a flow has an acknowledgment for each two
/// packets, and three quarters of that.
pub const KEPT_SHARE: f64 = 0.5;

/// What begins the payload of the test's packets; a clock's nanoseconds follow in single ones, zero in bursts.
const MARK: [u8; 8] = *b"sltest01";
const PAYLOAD_AT: usize = 28;
const PORT: u16 = 9;

/// What a machine can keep.
#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    /// Packets a second that the thread can carry.
    pub packets_per_s: f64,
    /// What a scenario may ask for: [`KEPT_SHARE`] of that, in packets of the largest size.
    pub rate: Rate,
    /// By how much half of the packets are late.
    pub median: Dur,
    /// By how much one in a hundred is.
    pub p99: Dur,
}

impl Verdict {
    /// Why `plan` asks for more than that, if it does.
    pub fn refuses(&self, plan: &Plan) -> Option<String> {
        if plan.asked > self.rate {
            return Some(format!(
                "a host can send {} to another in this scenario; this machine keeps {}",
                plan.asked, self.rate
            ));
        }
        (self.p99 > plan.delay_error).then(|| {
            format!(
                "on this machine, now, one packet in a hundred is late by {}; this scenario allows {} (emulate.delay_error)",
                self.p99, plan.delay_error
            )
        })
    }
}

/// Tests the machine with the devices of `plan`, which is one [for tests](Plan::for_test), and the network namespaces of its
/// first two hosts.
///
/// # Errors
/// Namespaces or sockets fail, or the test's packets do not arrive.
pub fn run(plan: &Plan, devices: Vec<OwnedFd>, namespaces: [PathBuf; 2]) -> io::Result<(Verdict, Vec<OwnedFd>)> {
    let bridge = Bridge::new(plan).map_err(io::Error::other)?;
    let [near, far] = namespaces;
    let to = SocketAddrV4::new(plan.hosts[1].address, PORT);
    // Nobody reads from it, but nobody answers that the port is shut.
    let _receiver = socket_in(&far, to)?;
    let sender = socket_in(&near, SocketAddrV4::new(plan.hosts[0].address, 0))?;
    sender.connect(to)?;
    let payload_bytes = plan.mtu_bytes as usize - PAYLOAD_AT;
    let sending = thread::spawn(move || send(&sender, payload_bytes));
    precise_timers()?;
    let mut exchange = Exchange::new(bridge, devices)?;
    let (mut errors, mut packets) = (Lateness::default(), 0_u64);
    let mut sent = |packet: &[u8], at_ns: u64| {
        let Some(rest) = packet.get(PAYLOAD_AT..).and_then(|payload| payload.strip_prefix(&MARK)) else { return };
        let Some(Ok(sent_ns)) = rest.get(..8).map(|bytes| bytes.try_into().map(u64::from_le_bytes)) else { return };
        packets += 1;
        if sent_ns > 0 {
            errors.add(Dur::from_ns(at_ns.saturating_sub(sent_ns)).abs_diff(TEST_DELAY));
        }
    };
    while !sending.is_finished() {
        exchange.turn(&mut sent)?;
    }
    sending.join().map_err(|_| io::Error::other("the sender of the self-test has failed"))??;
    if errors.count() < PROBES / 2 || packets < (PROBES + BURSTS * BURST_PACKETS) / 2 {
        return Err(io::Error::other(format!("of the self-test's packets, only {packets} arrived")));
    }
    let packets_per_s = packets as f64 / exchange.busy().as_secs_f64().max(1e-9);
    let rate = Rate::from_bps((packets_per_s * KEPT_SHARE * plan.mtu_bytes as f64 * 8.0) as u64);
    let verdict = Verdict { packets_per_s, rate, median: errors.percentile(0.5), p99: errors.percentile(0.99) };
    Ok((verdict, exchange.into_devices()))
}

/// A socket of a network namespace. Threads are in namespaces, so a thread makes it.
fn socket_in(namespace: &Path, address: SocketAddrV4) -> io::Result<UdpSocket> {
    let namespace = File::open(namespace)?;
    let made = thread::spawn(move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        UdpSocket::bind(address)
    });
    made.join().map_err(|_| io::Error::other("a socket of the self-test could not be made"))?
}

/// Sends the packets of the test.
fn send(socket: &UdpSocket, payload_bytes: usize) -> io::Result<()> {
    precise_timers()?;
    let mut payload = vec![0; payload_bytes];
    payload[..8].copy_from_slice(&MARK);
    for _ in 0..PROBES {
        payload[8..16].copy_from_slice(&monotonic_ns().to_le_bytes());
        send_one(socket, &payload[..64])?;
        thread::sleep(PROBE_EVERY);
    }
    payload[8..16].fill(0);
    for _ in 0..BURSTS {
        for _ in 0..BURST_PACKETS {
            send_one(socket, &payload)?;
        }
        thread::sleep(BURST_EVERY);
    }
    Ok(())
}

/// Sends a packet; that the device's queue is full, or that an answer came, is no failure.
fn send_one(socket: &UdpSocket, payload: &[u8]) -> io::Result<()> {
    match socket.send(payload) {
        Err(error) if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused) => {
            if error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error()) { Ok(()) } else { Err(error) }
        }
        _ => Ok(()),
    }
}
