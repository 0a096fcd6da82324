//! Both ends over the loopback interface, each in a thread: the processor's time for each 1380 bytes, and the rate.

use crate::Failure;
use bytes::Bytes;
use nix::time::{ClockId, clock_gettime};
use sparelane_core::{Rate, Time};
use sparelane_net::carrier::{Arrival, Datagram};
use sparelane_net::host::Host;
use sparelane_net::identity::{Identity, Trusted};
use sparelane_net::node::{ControllerChoice, NodeConfig, NodeEvent};
use sparelane_net::quic::QuicConfig;
use sparelane_net::quic::plain::{PlainController, PlainEvent, PlainStream};
use sparelane_net::udp::{Sending, UdpConfig, UdpSocket};
use sparelane_net::virt::Endpoint;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// What is measured is told for each so many bytes: the payload of a full segment, about.
const UNIT_BYTES: f64 = 1380.0;

/// A run gives up after so long.
const LIMIT: Duration = Duration::from_secs(60);

/// What a run showed.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// From the connection to the last byte read, seconds.
    pub seconds: f64,
    /// Processor seconds of the sender and of the receiver.
    pub cpu_s: [f64; 2],
    /// Bytes carried.
    pub bytes: usize,
    /// System calls that sent, and that received, of the sender and the receiver.
    pub calls: [(u64, u64); 2],
}

impl Measured {
    /// Microseconds of one end, 0 the sender, for each 1380 bytes.
    pub fn us_of(&self, end: usize) -> f64 {
        self.cpu_s[end] * 1e6 / (self.bytes as f64 / UNIT_BYTES)
    }

    /// Microseconds of both ends for each 1380 bytes.
    pub fn us_each(&self) -> f64 {
        self.us_of(0) + self.us_of(1)
    }

    /// Gigabits for each second of the processor's time, of both ends together.
    pub fn gbps_a_core(&self) -> f64 {
        self.bytes as f64 * 8e-9 / (self.cpu_s[0] + self.cpu_s[1])
    }

    /// Gigabits a second, by the clock.
    pub fn gbps(&self) -> f64 {
        self.bytes as f64 * 8e-9 / self.seconds
    }
}

/// What one end used.
struct Used {
    cpu_s: f64,
    calls: (u64, u64),
    at: Instant,
}

fn thread_cpu_s() -> f64 {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(0.0, |at| at.tv_sec() as f64 + at.tv_nsec() as f64 * 1e-9)
}

/// The settings of two hosts with new keys that trust each other; the second listens.
pub fn pair(batch: usize) -> Result<[QuicConfig; 2], Failure> {
    let (one, two) = (Identity::generate()?, Identity::generate()?);
    let trust = |peer: &Identity| Trusted::from_iter([peer.fingerprint()]);
    let of_one = QuicConfig { batch, ..QuicConfig::new(one.clone(), trust(&two)) };
    let of_two = QuicConfig { batch, listens: true, ..QuicConfig::new(two, trust(&one)) };
    Ok([of_one, of_two])
}

/// Our frames under this controller.
pub fn frames(choice: &ControllerChoice, bytes: usize, batch: usize) -> Result<Measured, Failure> {
    let [client, server] = pair(batch)?;
    let mut config = NodeConfig { controller: choice.clone(), line_rate: Rate::from_gbps(10), ..NodeConfig::default() };
    config.tail.rate = Rate::from_gbps(10);
    let udp = UdpConfig { offload: batch > 1, ..UdpConfig::default() };
    let mut receiver = Host::bind(any(), udp.clone(), server, config.clone())?;
    let to = receiver.socket().local_address();
    let (tell, told) = mpsc::channel();
    let receiving = thread::spawn(move || -> Result<Used, String> {
        let (began, mut got, mut before) = (Instant::now(), 0, thread_cpu_s());
        while got < bytes && began.elapsed() < LIMIT {
            match receiver.next_event(Duration::from_millis(100)).map_err(|error| error.to_string())? {
                Some(NodeEvent::Opened { .. }) => before = thread_cpu_s(),
                Some(NodeEvent::Readable(flow)) => {
                    while let Some(bytes) = receiver.node_mut().read(flow) {
                        got += bytes.len();
                    }
                }
                _ => {}
            }
        }
        let used = Used { cpu_s: thread_cpu_s() - before, calls: calls(receiver.socket()), at: Instant::now() };
        // What the sender waits for.
        while told.try_recv().is_err() && began.elapsed() < LIMIT {
            receiver.next_event(Duration::from_millis(2)).map_err(|error| error.to_string())?;
        }
        Ok(used)
    });
    let mut sender = Host::bind(any(), udp, client, config)?;
    let now = sender.now();
    let association = sender.node_mut().connect(now, to)?;
    let content = Bytes::from(vec![7; bytes]);
    let (began, mut opened, mut before) = (Instant::now(), Instant::now(), 0.0);
    while began.elapsed() < LIMIT {
        match sender.next_event(Duration::from_millis(100))? {
            Some(NodeEvent::Opened { .. }) => {
                (opened, before) = (Instant::now(), thread_cpu_s());
                let now = sender.now();
                let flow = sender.node_mut().open_flow(now, association, Some(bytes as u64))?;
                sender.node_mut().write(flow, content.clone());
                sender.node_mut().finish(flow);
            }
            Some(NodeEvent::Sent(_)) => break,
            _ => {}
        }
    }
    let cpu_s = thread_cpu_s() - before;
    tell.send(())?;
    let used = receiving.join().map_err(|_| "the receiver panicked")??;
    let seconds = used.at.duration_since(opened).as_secs_f64();
    Ok(Measured { seconds, cpu_s: [cpu_s, used.cpu_s], bytes, calls: [calls(sender.socket()), used.calls] })
}

/// A plain stream of QUIC.
pub fn stream(controller: PlainController, bytes: usize, batch: usize) -> Result<Measured, Failure> {
    let [client, server] = pair(batch)?;
    let udp = UdpConfig { offload: batch > 1, dscp: vec![0], ..UdpConfig::default() };
    let epoch = Instant::now();
    let mut receiver = Loop::bind(PlainStream::new(&server, controller, epoch)?, &udp, epoch)?;
    let to = receiver.socket.local_address();
    let (tell, told) = mpsc::channel();
    let receiving = thread::spawn(move || -> Result<Used, String> {
        let (began, mut before) = (Instant::now(), thread_cpu_s());
        while began.elapsed() < LIMIT {
            match receiver.next_event(Duration::from_millis(100)).map_err(|error| error.to_string())? {
                Some(PlainEvent::Connected) => before = thread_cpu_s(),
                Some(PlainEvent::Received { .. }) => break,
                _ => {}
            }
        }
        let used = Used { cpu_s: thread_cpu_s() - before, calls: calls(&receiver.socket), at: Instant::now() };
        while told.try_recv().is_err() && began.elapsed() < LIMIT {
            receiver.next_event(Duration::from_millis(2)).map_err(|error| error.to_string())?;
        }
        Ok(used)
    });
    let mut sender = Loop::bind(PlainStream::new(&client, controller, epoch)?, &udp, epoch)?;
    let now = sender.now();
    sender.end.send(now, to, Bytes::from(vec![7; bytes]))?;
    let (began, mut opened, mut before) = (Instant::now(), Instant::now(), 0.0);
    while began.elapsed() < LIMIT {
        match sender.next_event(Duration::from_millis(100))? {
            Some(PlainEvent::Connected) => (opened, before) = (Instant::now(), thread_cpu_s()),
            Some(PlainEvent::Sent) => break,
            _ => {}
        }
    }
    let cpu_s = thread_cpu_s() - before;
    tell.send(())?;
    let used = receiving.join().map_err(|_| "the receiver panicked")??;
    let seconds = used.at.duration_since(opened).as_secs_f64();
    Ok(Measured { seconds, cpu_s: [cpu_s, used.cpu_s], bytes, calls: [calls(&sender.socket), used.calls] })
}

fn any() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn calls(socket: &UdpSocket) -> (u64, u64) {
    (socket.counts().sends, socket.counts().receives)
}

/// The loop of a host, around any end.
struct Loop<E> {
    end: E,
    socket: UdpSocket,
    epoch: Instant,
    waiting: Option<Datagram>,
}

impl<E: Endpoint> Loop<E> {
    fn bind(end: E, udp: &UdpConfig, epoch: Instant) -> Result<Loop<E>, Failure> {
        Ok(Loop { end, socket: UdpSocket::bind(any(), udp.clone())?, epoch, waiting: None })
    }

    fn now(&self) -> Time {
        Time::from_ns(self.epoch.elapsed().as_nanos() as u64)
    }

    fn next_event(&mut self, at_most: Duration) -> Result<Option<E::Event>, Failure> {
        let until = Instant::now() + at_most;
        loop {
            if let Some(event) = self.end.poll_event() {
                return Ok(Some(event));
            }
            let now = self.now();
            let (mut rounds, end) = (0, &mut self.end);
            while rounds < 32
                && self.socket.receive(&mut |came| {
                    let (from, dscp, ecn, received_ns) =
                        (came.from, came.dscp, came.ecn, came.received_ns.unwrap_or(0));
                    end.handle_datagram(now, Arrival { from, dscp, ecn, received_ns }, came.bytes);
                })?
            {
                rounds += 1;
            }
            let now = self.now();
            if self.end.next_timer() <= now {
                self.end.handle_timer(now);
            }
            let mut sent = 0;
            while sent < 64 {
                let now = self.now();
                let Some(datagram) = self.waiting.take().or_else(|| self.end.poll_transmit(now)) else { break };
                if self.socket.send(&datagram) == Sending::Full {
                    self.waiting = Some(datagram);
                    break;
                }
                sent += 1;
            }
            if self.end.has_events() {
                continue;
            }
            if Instant::now() >= until {
                return Ok(None);
            }
            if rounds < 32 && (sent < 64 || self.waiting.is_some()) {
                let timer = self.end.next_timer().saturating_since(self.now()).as_ps().div_ceil(1000);
                let left = until.saturating_duration_since(Instant::now());
                self.socket.wait(self.waiting.is_some(), Duration::from_nanos(timer).min(left))?;
            }
        }
    }
}
