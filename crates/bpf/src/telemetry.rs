//! What programs tell while somebody watches.

use crate::error::BpfError;
use crate::libbpf::Samples;
use crate::loaded;
use crate::programs::{self, Program};
use nix::time::{ClockId, clock_gettime};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// As long as `struct sample` in `programs/watch.h`.
const SAMPLE_BYTES: usize = 96;

/// A program tells samples for so long after somebody has last fetched some. Whoever is killed need not say that he goes.
pub const LEASE: Duration = Duration::from_secs(5);

/// And for so long after a watcher has gone in good order: another one who fetches more often misses nothing.
const LAST_LEASE: Duration = Duration::from_millis(100);

/// How many samples are kept until somebody fetches them, as `programs/watch.h` has it.
const SAMPLES_KEPT: usize = 65_536;

/// What a sample is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An acknowledgment.
    Acknowledgment,
    /// A packet that leaves.
    Departure,
    /// A loss, a mark or a timeout.
    Congestion,
    /// The end of the connection.
    End,
}

/// What a program told.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The kernel's monotonic clock.
    pub time_ns: u64,
    /// Which connection of the program, counted from 1.
    pub connection: u32,
    /// The port here.
    pub local_port: u16,
    /// The port there.
    pub remote_port: u16,
    /// The address there.
    pub remote: IpAddr,
    /// What it is of.
    pub event: Event,
    /// The window.
    pub cwnd_segments: u32,
    /// The round trip of the segment that was acknowledged, if it tells one.
    pub rtt_us: Option<u32>,
    /// Quantities of the program, by their names.
    pub values: Vec<(&'static str, f64)>,
}

/// Somebody who watches one controller, and is told as long as he fetches samples at least every [`LEASE`].
#[derive(Debug)]
pub struct Watch {
    program: &'static Program,
    samples: Samples,
}

impl Watch {
    /// Watches the controller of that name.
    ///
    /// # Errors
    /// [`BpfError::NotLoaded`] if no such controller is loaded.
    pub fn of(name: &str) -> Result<Watch, BpfError> {
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
        let watch = Watch { program, samples: Samples::among(&found.maps).ok_or_else(not_loaded)? };
        // What was told to others does not belong to this watch.
        for _ in 0..SAMPLES_KEPT {
            if watch.take()?.is_none() {
                break;
            }
        }
        watch.renew(LEASE)?;
        Ok(watch)
    }

    /// Has the program tell samples for so long from now on.
    fn renew(&self, lease: Duration) -> Result<(), BpfError> {
        let failed = |error| BpfError::system("reading the clock", error);
        // The clock that the program reads.
        let now = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(failed)?);
        self.samples.tell_until((now + lease).as_nanos() as u64)
    }

    fn take(&self) -> Result<Option<Sample>, BpfError> {
        Ok(self.samples.take()?.and_then(|bytes| bytes.first_chunk().map(|bytes| self.sample(bytes))))
    }

    /// What was told since the last call, at most so many samples.
    ///
    /// # Errors
    /// The kernel says no.
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

    fn sample(&self, bytes: &[u8; SAMPLE_BYTES]) -> Sample {
        let word = |at: usize| bytes[at..].first_chunk().copied().map(u32::from_le_bytes).unwrap_or_default();
        let long = |at: usize| bytes[at..].first_chunk().copied().map(u64::from_le_bytes).unwrap_or_default();
        let octets: [u8; 16] = bytes[16..32].try_into().unwrap_or_default();
        let v4 = [octets[0], octets[1], octets[2], octets[3]];
        let event = match word(36) {
            0 => Event::Acknowledgment,
            1 => Event::Departure,
            2 => Event::Congestion,
            _ => Event::End,
        };
        let is_told = |of_departures: bool| of_departures == (event == Event::Departure);
        let quantities = self.program.quantities.iter().filter(|quantity| is_told(quantity.of_departures));
        Sample {
            time_ns: long(0),
            connection: word(8),
            local_port: u16::from_le_bytes([bytes[12], bytes[13]]),
            remote_port: u16::from_le_bytes([bytes[14], bytes[15]]),
            remote: if word(32) == 1 { Ipv6Addr::from(octets).into() } else { Ipv4Addr::from(v4).into() },
            event,
            cwnd_segments: word(40),
            rtt_us: Some(word(44)).filter(|&rtt_us| rtt_us > 0),
            values: quantities
                .map(|quantity| (quantity.name, long(48 + 8 * quantity.slot) as f64 * quantity.unit))
                .collect(),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // The controller may be gone.
        let _ = self.renew(LAST_LEASE);
    }
}
