//! The self-test: measures the delay error and the packet rate of this machine before an emulation.
//!
//! The test sends packets from the first host to the second, over the scenario's cables with unlimited rates and a
//! delay of [`TEST_DELAY`]. Single packets measure the delay error: the time from just before the sending call until
//! the packet is in the device of its destination, less the delay. Bursts measure how many packets per second the
//! thread can forward. A scenario may use [`USABLE_SHARE`] of that rate, because acknowledgments take the way back, and
//! programs need the processor, too.

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

/// The number of single packets, and the time between them.
const PROBES: u64 = 300;
const PROBE_INTERVAL: Duration = Duration::from_millis(1);

/// The number of bursts, the packets of each (which fit the device's queue), and the time between them.
const BURSTS: u64 = 20;
const BURST_PACKETS: u64 = 200;
const BURST_INTERVAL: Duration = Duration::from_millis(20);

/// The share of the measured packet rate that a scenario may use.
///
/// Two thirds are left for data packets, because a flow has one acknowledgment per two packets. A quarter of that is
/// reserved for programs.
pub const USABLE_SHARE: f64 = 0.5;

/// The first bytes of the payload of test packets. The sending time in nanoseconds follows in single packets, zero in
/// bursts.
const MAGIC: [u8; 8] = *b"sltest01";
/// The size of the IPv4 and UDP headers in bytes.
const PAYLOAD_AT: usize = 28;
/// The discard port (RFC 863).
const PORT: u16 = 9;

/// The measured performance of a machine.
#[derive(Clone, Copy, Debug)]
pub struct Performance {
    /// The number of packets per second that the thread can forward.
    pub packets_per_s: f64,
    /// The highest rate between hosts that a scenario may have: [`USABLE_SHARE`] of that in packets of the largest
    /// size.
    pub rate: Rate,
    /// The median of the delay error.
    pub median: Dur,
    /// The 99th percentile of the delay error.
    pub p99: Dur,
}

impl Performance {
    /// Returns the reason why this machine is too slow for `plan`, if it is.
    pub fn refusal(&self, plan: &Plan) -> Option<String> {
        if plan.max_host_rate > self.rate {
            return Some(format!(
                "a host can send {} to another in this scenario; this machine can forward {}",
                plan.max_host_rate, self.rate
            ));
        }
        (self.p99 > plan.delay_error).then(|| {
            format!(
                "the delay error of this machine is now {} at the 99th percentile; this scenario allows {} (emulate.delay_error)",
                self.p99, plan.delay_error
            )
        })
    }
}

/// Runs the self-test with a plan [for tests](Plan::for_test), its devices, and the network namespaces of its first two
/// hosts. Returns the result and the devices.
///
/// # Errors
/// A namespace, socket or device fails, or most of the packets do not arrive.
pub fn run(plan: &Plan, devices: Vec<OwnedFd>, namespaces: [PathBuf; 2]) -> io::Result<(Performance, Vec<OwnedFd>)> {
    let bridge = Bridge::new(plan).map_err(io::Error::other)?;
    let [near, far] = namespaces;
    let to = SocketAddrV4::new(plan.hosts[1].address, PORT);
    // It is never read. It only keeps the kernel from answering that the port is unreachable.
    let _receiver = socket_in(&far, to)?;
    let sender = socket_in(&near, SocketAddrV4::new(plan.hosts[0].address, 0))?;
    sender.connect(to)?;
    let payload_bytes = plan.mtu_bytes as usize - PAYLOAD_AT;
    let sending = thread::spawn(move || send(&sender, payload_bytes));
    precise_timers()?;
    let mut exchange = Exchange::new(bridge, devices)?;
    let (mut errors, mut packets) = (Lateness::default(), 0_u64);
    // Other packets on the devices, such as the kernel's own, do not carry the magic bytes.
    let mut delivered = |packet: &[u8], at_ns: u64| {
        let Some(rest) = packet.get(PAYLOAD_AT..).and_then(|payload| payload.strip_prefix(&MAGIC)) else { return };
        let Some(Ok(sent_ns)) = rest.get(..8).map(|bytes| bytes.try_into().map(u64::from_le_bytes)) else { return };
        packets += 1;
        if sent_ns > 0 {
            errors.add(Dur::from_ns(at_ns.saturating_sub(sent_ns)).abs_diff(TEST_DELAY));
        }
    };
    while !sending.is_finished() {
        exchange.step(&mut delivered)?;
    }
    sending.join().map_err(|_| io::Error::other("the sender of the self-test has failed"))??;
    if errors.count() < PROBES / 2 || packets < (PROBES + BURSTS * BURST_PACKETS) / 2 {
        return Err(io::Error::other(format!("only {packets} packets of the self-test arrived")));
    }
    // Only busy time counts, because the thread sleeps between bursts.
    let packets_per_s = packets as f64 / exchange.busy().as_secs_f64().max(1e-9);
    let rate = Rate::from_bps((packets_per_s * USABLE_SHARE * plan.mtu_bytes as f64 * 8.0) as u64);
    let performance = Performance { packets_per_s, rate, median: errors.percentile(0.5), p99: errors.percentile(0.99) };
    Ok((performance, exchange.into_devices()))
}

/// Opens a socket in a network namespace. A thread of its own enters the namespace, so that the caller stays in its
/// own.
fn socket_in(namespace: &Path, address: SocketAddrV4) -> io::Result<UdpSocket> {
    let namespace = File::open(namespace)?;
    let opened = thread::spawn(move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        UdpSocket::bind(address)
    });
    opened.join().map_err(|_| io::Error::other("the self-test could not open a socket"))?
}

/// Sends the packets of the test: single packets with their sending times, and then bursts.
fn send(socket: &UdpSocket, payload_bytes: usize) -> io::Result<()> {
    precise_timers()?;
    let mut payload = vec![0; payload_bytes];
    payload[..8].copy_from_slice(&MAGIC);
    for _ in 0..PROBES {
        payload[8..16].copy_from_slice(&monotonic_ns().to_le_bytes());
        send_one(socket, &payload[..64])?;
        thread::sleep(PROBE_INTERVAL);
    }
    payload[8..16].fill(0);
    for _ in 0..BURSTS {
        for _ in 0..BURST_PACKETS {
            send_one(socket, &payload)?;
        }
        thread::sleep(BURST_INTERVAL);
    }
    Ok(())
}

/// Sends a packet. A full queue of the device, or an ICMP answer to an earlier packet, is not an error.
fn send_one(socket: &UdpSocket, payload: &[u8]) -> io::Result<()> {
    match socket.send(payload) {
        Err(error) if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused) => {
            if error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error()) { Ok(()) } else { Err(error) }
        }
        _ => Ok(()),
    }
}
