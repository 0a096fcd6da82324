//! Telemetry: samples that programs record while a process watches them.
//!
//! A watcher renews a lease each time it fetches samples. Programs record samples only during a lease, so an unwatched
//! program spends no time on them, even if its watcher was killed.

use crate::error::BpfError;
use crate::libbpf::Samples;
use crate::loaded;
use crate::programs::{self, Program};
use nix::time::{ClockId, clock_gettime};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// The size of `struct sample` in `programs/watch.h`.
const SAMPLE_BYTES: usize = 96;

/// The time for which a program records samples after the last fetch.
///
/// The lease expires on its own if the watcher is killed.
pub const LEASE: Duration = Duration::from_secs(5);

/// The lease that a watcher leaves when it is dropped. Another watcher that fetches more often than this misses no
/// samples.
const FINAL_LEASE: Duration = Duration::from_millis(100);

/// The number of samples that the kernel keeps until they are fetched (`programs/watch.h`).
const SAMPLES_KEPT: usize = 65_536;

/// The event on which a sample was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An acknowledgment arrived.
    Acknowledgment,
    /// A packet was sent.
    Departure,
    /// A loss, an ECN mark or a timeout was detected.
    Congestion,
    /// The connection ended.
    End,
}

/// The state of a connection at one event.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The time on the kernel's monotonic clock in nanoseconds.
    pub time_ns: u64,
    /// The number of the connection within the program, from 1.
    pub connection: u32,
    /// The local port.
    pub local_port: u16,
    /// The remote port.
    pub remote_port: u16,
    /// The remote address.
    pub remote: IpAddr,
    /// The event.
    pub event: Event,
    /// The congestion window in segments.
    pub cwnd_segments: u32,
    /// The round-trip time of the acknowledged segment in microseconds, if it was measured.
    pub rtt_us: Option<u32>,
    /// The program's quantities as pairs of name and value, in the units of [`Quantity`](crate::programs::Quantity).
    pub values: Vec<(&'static str, f64)>,
}

/// A watcher of one controller. It receives all samples as long as it fetches at least once every [`LEASE`].
#[derive(Debug)]
pub struct Watch {
    program: &'static Program,
    samples: Samples,
}

impl Watch {
    /// Starts to watch the controller of this name.
    ///
    /// # Errors
    /// [`BpfError::NotLoaded`] if no such controller is loaded, or the kernel refuses.
    pub fn start(name: &str) -> Result<Watch, BpfError> {
        loaded::check_is_known(name)?;
        let all = loaded::all()?;
        let ours = |one: &&loaded::Loaded| one.program.is_some() && one.is_registered;
        let names: Vec<String> = all.iter().filter(ours).map(|one| one.name.clone()).collect();
        let not_loaded = || BpfError::NotLoaded {
            name: name.to_owned(),
            loaded: if names.is_empty() { "none".to_owned() } else { names.join(", ") },
        };
        let found = all.into_iter().find(|one| one.name == name && one.is_registered).ok_or_else(not_loaded)?;
        let program = programs::find(found.program.ok_or_else(not_loaded)?)?;
        let watch = Watch { program, samples: Samples::find_in(&found.maps).ok_or_else(not_loaded)? };
        // Samples from an earlier lease do not belong to this watch. The bound ends the loop if new ones keep coming.
        for _ in 0..SAMPLES_KEPT {
            if watch.take()?.is_none() {
                break;
            }
        }
        watch.renew(LEASE)?;
        Ok(watch)
    }

    /// Makes the program record samples for this time from now on.
    fn renew(&self, lease: Duration) -> Result<(), BpfError> {
        let failed = |error| BpfError::system("reading the clock", error);
        // The program compares it with `bpf_ktime_get_ns`, which reads this clock.
        let now = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(failed)?);
        self.samples.record_until((now + lease).as_nanos() as u64)
    }

    fn take(&self) -> Result<Option<Sample>, BpfError> {
        Ok(self.samples.take()?.and_then(|bytes| bytes.first_chunk().map(|bytes| self.sample(bytes))))
    }

    /// Returns the samples since the last call, at most `most`, and renews the lease.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn poll(&self, most: usize) -> Result<Vec<Sample>, BpfError> {
        self.renew(LEASE)?;
        let mut samples = Vec::new();
        while samples.len() < most
            && let Some(sample) = self.take()?
        {
            samples.push(sample);
        }
        Ok(samples)
    }

    /// Decodes `struct sample` of `programs/watch.h`.
    fn sample(&self, bytes: &[u8; SAMPLE_BYTES]) -> Sample {
        let u32_at = |at: usize| bytes[at..].first_chunk().copied().map(u32::from_le_bytes).unwrap_or_default();
        let u64_at = |at: usize| bytes[at..].first_chunk().copied().map(u64::from_le_bytes).unwrap_or_default();
        let octets: [u8; 16] = bytes[16..32].try_into().unwrap_or_default();
        let v4 = [octets[0], octets[1], octets[2], octets[3]];
        // Offsets are those of the structure in C.
        let event = match u32_at(36) {
            0 => Event::Acknowledgment,
            1 => Event::Departure,
            2 => Event::Congestion,
            _ => Event::End,
        };
        let is_departure = event == Event::Departure;
        let quantities = self.program.quantities.iter().filter(|quantity| quantity.of_departures == is_departure);
        Sample {
            time_ns: u64_at(0),
            connection: u32_at(8),
            local_port: u16::from_le_bytes([bytes[12], bytes[13]]),
            remote_port: u16::from_le_bytes([bytes[14], bytes[15]]),
            remote: if u32_at(32) == 1 { Ipv6Addr::from(octets).into() } else { Ipv4Addr::from(v4).into() },
            event,
            cwnd_segments: u32_at(40),
            rtt_us: Some(u32_at(44)).filter(|&rtt_us| rtt_us > 0),
            values: quantities
                .map(|quantity| (quantity.name, u64_at(48 + 8 * quantity.slot) as f64 * quantity.unit))
                .collect(),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // This fails if the controller was unloaded, and then no lease is left to shorten.
        let _ = self.renew(FINAL_LEASE);
    }
}
