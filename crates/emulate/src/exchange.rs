//! Moves packets between devices and a [`Bridge`] in real time, in one thread that sleeps until a packet arrives or is
//! due.

use crate::bridge::{Bridge, Counts};
use crate::lateness::Lateness;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};
use sparelane_core::{Dur, Time};
use sparelane_sim::LinkTable;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of packets that are read from one device before the next device is read.
const BATCH: usize = 32;

/// The longest sleep, after which the thread checks the stop flag.
const MAX_SLEEP: Dur = Dur::from_ms(20);

/// The size of the largest packet of a TUN device in bytes.
const MAX_PACKET_BYTES: usize = 65_536;

/// Returns the time of the kernel's monotonic clock in nanoseconds.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The devices of all hosts, in the order of the hosts, with the network between them.
#[derive(Debug)]
pub struct Exchange {
    bridge: Bridge,
    devices: Vec<OwnedFd>,
    /// The clock's time at time zero of the network, in nanoseconds.
    began_ns: u64,
    ended: Option<Time>,
    buffer: Vec<u8>,
    lateness: Lateness,
    /// Packets that a device did not accept.
    refused: u64,
    /// The time for which the thread was not asleep.
    busy: Dur,
}

impl Exchange {
    /// Starts the network's time.
    ///
    /// # Errors
    /// A device cannot be made non-blocking.
    pub fn new(bridge: Bridge, devices: Vec<OwnedFd>) -> io::Result<Exchange> {
        for device in &devices {
            fcntl_setfl(device, fcntl_getfl(device)? | OFlags::NONBLOCK)?;
        }
        Ok(Exchange {
            bridge,
            devices,
            began_ns: monotonic_ns(),
            ended: None,
            buffer: vec![0; MAX_PACKET_BYTES],
            lateness: Lateness::default(),
            refused: 0,
            busy: Dur::ZERO,
        })
    }

    /// Returns the network's time, which stands still once `run` has ended.
    pub fn now(&self) -> Time {
        self.ended.unwrap_or_else(|| Time::from_ns(monotonic_ns().saturating_sub(self.began_ns)))
    }

    /// Forwards packets until `stop` is set, and then closes the devices.
    ///
    /// # Errors
    /// A device has failed.
    pub fn run(&mut self, stop: &AtomicBool) -> io::Result<()> {
        precise_timers()?;
        while !stop.load(Ordering::Relaxed) {
            self.step(&mut |_, _| {})?;
        }
        self.ended = Some(self.now());
        self.devices.clear();
        Ok(())
    }

    /// Sleeps until a packet arrives or is due, and handles all such packets.
    ///
    /// `delivered` is called with each packet that was written to a device, and the clock's time in nanoseconds.
    ///
    /// # Errors
    /// A device has failed.
    pub fn step(&mut self, delivered: &mut dyn FnMut(&[u8], u64)) -> io::Result<()> {
        let sleep = self.bridge.next_time().saturating_since(self.now()).min(MAX_SLEEP).as_ps() / 1_000;
        let timeout = Timespec { tv_sec: 0, tv_nsec: sleep as i64 };
        let mut waiting: Vec<_> = self.devices.iter().map(|device| PollFd::new(device, PollFlags::IN)).collect();
        match poll(&mut waiting, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<_> = (0..).zip(&waiting).filter(|(_, fd)| !fd.revents().is_empty()).map(|(at, _)| at).collect();
        let began = self.now();
        for host in ready {
            self.read_from(host, delivered)?;
        }
        self.deliver(delivered);
        self.busy += self.now() - began;
        Ok(())
    }

    /// Reads a batch of packets from the device of a host.
    fn read_from(&mut self, host: usize, delivered: &mut dyn FnMut(&[u8], u64)) -> io::Result<()> {
        for _ in 0..BATCH {
            match rustix::io::read(&self.devices[host], &mut self.buffer[..]) {
                Ok(bytes) => {
                    let now = self.now();
                    self.bridge.handle_packet(now, host, &self.buffer[..bytes]);
                    // Packets that became due meanwhile do not wait for the end of the batch.
                    self.deliver(delivered);
                }
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Writes all due packets to the devices of their hosts.
    fn deliver(&mut self, delivered: &mut dyn FnMut(&[u8], u64)) {
        let began_ns = self.began_ns;
        self.bridge.handle_time(self.now());
        while let Some(due) = self.bridge.poll_packet() {
            let is_accepted = rustix::io::write(&self.devices[due.host], due.bytes).is_ok();
            self.refused += u64::from(!is_accepted);
            let at_ns = monotonic_ns();
            self.lateness.add(Time::from_ns(at_ns.saturating_sub(began_ns)).saturating_since(due.at));
            delivered(due.bytes, at_ns);
        }
    }

    /// Returns the histogram of the delay between the due time of packets and their delivery.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// Returns the bridge's counts of packets.
    pub fn counts(&self) -> Counts {
        self.bridge.counts()
    }

    /// Returns the number of packets that a device did not accept.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the time for which the thread was not asleep.
    pub fn busy(&self) -> Dur {
        self.busy
    }

    /// Returns the counters of all links until now.
    pub fn link_table(&mut self) -> LinkTable {
        let now = self.now();
        self.bridge.link_table(now)
    }

    /// Returns the devices, for use in another exchange.
    pub fn into_devices(self) -> Vec<OwnedFd> {
        self.devices
    }
}

/// Sets this thread's timer slack to one nanosecond, so that sleeps end within microseconds of their deadline.
///
/// # Errors
/// The kernel refuses.
pub fn precise_timers() -> io::Result<()> {
    Ok(set_current_timer_slack(NonZeroU64::new(1))?)
}
