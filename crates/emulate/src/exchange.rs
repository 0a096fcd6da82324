//! Devices and the clock around a [`Bridge`]: one thread that sleeps until a packet comes or is due.

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

/// How many packets of one host are taken before it is another's turn.
const BATCH: usize = 32;

/// How long the thread sleeps at most before it looks whether to stop.
const LONGEST_SLEEP: Dur = Dur::from_ms(20);

/// The largest packet that a device can have.
const LARGEST_BYTES: usize = 65_536;

/// What the kernel tells by its monotonic clock, nanoseconds.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The devices of the hosts, in their order, with the network between them.
#[derive(Debug)]
pub struct Exchange {
    bridge: Bridge,
    devices: Vec<OwnedFd>,
    /// The time of the clock at the network's time zero, nanoseconds.
    began_ns: u64,
    ended: Option<Time>,
    buffer: Vec<u8>,
    lateness: Lateness,
    /// Packets that the kernel did not take.
    refused: u64,
    /// How long the thread was at work.
    busy: Dur,
}

impl Exchange {
    /// The network's time begins now.
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
            buffer: vec![0; LARGEST_BYTES],
            lateness: Lateness::default(),
            refused: 0,
            busy: Dur::ZERO,
        })
    }

    /// The time in the network; that of its end, once `run` has ended.
    pub fn now(&self) -> Time {
        self.ended.unwrap_or_else(|| Time::from_ns(monotonic_ns().saturating_sub(self.began_ns)))
    }

    /// Carries packets until `stop` is set, and gives up the devices then.
    ///
    /// # Errors
    /// A device is gone.
    pub fn run(&mut self, stop: &AtomicBool) -> io::Result<()> {
        precise_timers()?;
        while !stop.load(Ordering::Relaxed) {
            self.turn(&mut |_, _| {})?;
        }
        self.ended = Some(self.now());
        self.devices.clear();
        Ok(())
    }

    /// Sleeps until something is to do, and does it; `sent` is told of packets that go to hosts, with the clock's nanoseconds.
    ///
    /// # Errors
    /// A device is gone.
    pub fn turn(&mut self, sent: &mut dyn FnMut(&[u8], u64)) -> io::Result<()> {
        let sleep = self.bridge.next_time().saturating_since(self.now()).min(LONGEST_SLEEP).as_ps() / 1_000;
        let timeout = Timespec { tv_sec: 0, tv_nsec: sleep as i64 };
        let mut waiting: Vec<_> = self.devices.iter().map(|device| PollFd::new(device, PollFlags::IN)).collect();
        match poll(&mut waiting, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let came: Vec<_> = (0..).zip(&waiting).filter(|(_, fd)| !fd.revents().is_empty()).map(|(at, _)| at).collect();
        let began = self.now();
        for host in came {
            self.take_from(host, sent)?;
        }
        self.deliver(sent);
        self.busy += self.now() - began;
        Ok(())
    }

    /// Takes some of what a host has sent.
    fn take_from(&mut self, host: usize, sent: &mut dyn FnMut(&[u8], u64)) -> io::Result<()> {
        for _ in 0..BATCH {
            match rustix::io::read(&self.devices[host], &mut self.buffer[..]) {
                Ok(bytes) => {
                    let now = self.now();
                    self.bridge.handle_packet(now, host, &self.buffer[..bytes]);
                    self.deliver(sent);
                }
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Hands over what is due.
    fn deliver(&mut self, sent: &mut dyn FnMut(&[u8], u64)) {
        let began_ns = self.began_ns;
        self.bridge.handle_time(self.now());
        while let Some(due) = self.bridge.poll_packet() {
            let is_taken = rustix::io::write(&self.devices[due.host], due.bytes).is_ok();
            self.refused += u64::from(!is_taken);
            let at_ns = monotonic_ns();
            self.lateness.add(Time::from_ns(at_ns.saturating_sub(began_ns)).saturating_since(due.at));
            sent(due.bytes, at_ns);
        }
    }

    /// How late packets went to their hosts, after the instant at which they were due there.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// What became of packets.
    pub fn counts(&self) -> Counts {
        self.bridge.counts()
    }

    /// Packets that the kernel did not take.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// How long the thread was at work.
    pub fn busy(&self) -> Dur {
        self.busy
    }

    /// What links have counted.
    pub fn link_table(&mut self) -> LinkTable {
        let now = self.now();
        self.bridge.link_table(now)
    }

    /// The devices, for another exchange.
    pub fn into_devices(self) -> Vec<OwnedFd> {
        self.devices
    }
}

/// Lets this thread sleep to the microsecond.
///
/// # Errors
/// The kernel refuses.
pub fn precise_timers() -> io::Result<()> {
    Ok(set_current_timer_slack(NonZeroU64::new(1))?)
}
