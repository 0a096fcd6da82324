//! Measurements between two sockets, each end in its own thread: the processor time per 1380 bytes, and the rate.

use crate::Failure;
use crate::place::{Place, Setup};
use bytes::Bytes;
use nix::time::{ClockId, clock_gettime};
use sparelane_core::{Rate, Time};
use sparelane_net::carrier::{Arrival, Datagram};
use sparelane_net::host::Host;
use sparelane_net::identity::{Identity, Trusted};
use sparelane_net::node::{GapAccuracy, NodeEvent};
use sparelane_net::quic::QuicConfig;
use sparelane_net::quic::plain::{PlainController, PlainEvent, PlainStream};
use sparelane_net::udp::{SendResult, UdpConfig, UdpSocket};
use sparelane_net::virt::Endpoint;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The unit of the measurements, roughly the payload of a full segment.
const UNIT_BYTES: f64 = 1380.0;

/// The maximum duration of a run.
const LIMIT: Duration = Duration::from_secs(60);

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Seconds from the connection to the last byte read.
    pub seconds: f64,
    /// Processor seconds of the sender and of the receiver.
    pub cpu_s: [f64; 2],
    /// Bytes carried.
    pub bytes: usize,
    /// The system calls that sent and received, for the sender and the receiver.
    pub calls: [(u64, u64); 2],
    /// Segments sent by class; empty for a stream.
    pub segments: Vec<u64>,
    /// The measured initial rate of the tail, if any.
    pub tail: Option<Rate>,
    /// The accuracy of gaps, if the controller schedules departures.
    pub gaps: Option<GapAccuracy>,
}

impl Measured {
    /// Microseconds per 1380 bytes at one end; 0 is the sender.
    pub fn us_of(&self, end: usize) -> f64 {
        self.cpu_s[end] * 1e6 / (self.bytes as f64 / UNIT_BYTES)
    }

    /// Microseconds per 1380 bytes at both ends.
    pub fn us_each(&self) -> f64 {
        self.us_of(0) + self.us_of(1)
    }

    /// Gigabits per second of processor time, both ends together.
    pub fn gbps_a_core(&self) -> f64 {
        self.bytes as f64 * 8e-9 / (self.cpu_s[0] + self.cpu_s[1])
    }

    /// Gigabits per second of elapsed time.
    pub fn gbps(&self) -> f64 {
        self.bytes as f64 * 8e-9 / self.seconds
    }
}

/// The resources that one end used.
struct Used {
    cpu_s: f64,
    calls: (u64, u64),
    at: Instant,
}

fn thread_cpu_s() -> f64 {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(0.0, |at| at.tv_sec() as f64 + at.tv_nsec() as f64 * 1e-9)
}

/// The configurations of two hosts with new keys that trust each other; the second one listens.
pub fn pair(batch: usize) -> Result<[QuicConfig; 2], Failure> {
    let (one, two) = (Identity::generate()?, Identity::generate()?);
    let trust = |peer: &Identity| Trusted::from_iter([peer.fingerprint()]);
    let of_one = QuicConfig { batch, ..QuicConfig::new(one.clone(), trust(&two)) };
    let of_two = QuicConfig { batch, listens: true, ..QuicConfig::new(two, trust(&one)) };
    Ok([of_one, of_two])
}

/// Measures a transfer with this crate's frames.
pub fn frames(setup: &Setup, bytes: usize) -> Result<Measured, Failure> {
    let [client, server] = pair(setup.batch)?;
    let udp = UdpConfig { offload: setup.batch > 1, ..UdpConfig::default() };
    let (finish, finished) = mpsc::channel();
    let (send_address, address) = mpsc::channel();
    let (place, config, of_udp) = (setup.receiver.clone(), setup.node.clone(), udp.clone());
    let receiving = thread::spawn(move || -> Result<Used, String> {
        place.enter()?;
        let mut receiver = Host::bind(place.address, of_udp, server, config).map_err(|error| error.to_string())?;
        send_address.send(receiver.socket().local_address()).map_err(|error| error.to_string())?;
        let (began, mut got, mut before) = (Instant::now(), 0, thread_cpu_s());
        while got < bytes {
            match receiver.next_event(Duration::from_millis(100)).map_err(|error| error.to_string())? {
                Some(NodeEvent::Opened { .. }) => before = thread_cpu_s(),
                Some(NodeEvent::Readable(flow)) => {
                    while let Some(bytes) = receiver.node_mut().read(flow) {
                        got += bytes.len();
                    }
                }
                _ => {}
            }
            if began.elapsed() > LIMIT {
                return Err(format!("{got} of {bytes} bytes in {LIMIT:?}"));
            }
        }
        let used = Used { cpu_s: thread_cpu_s() - before, calls: calls(receiver.socket()), at: Instant::now() };
        // Keep answering until the sender is done.
        while finished.try_recv().is_err() && began.elapsed() < LIMIT {
            receiver.next_event(Duration::from_millis(2)).map_err(|error| error.to_string())?;
        }
        Ok(used)
    });
    setup.sender.enter()?;
    let Ok(to) = address.recv() else { return Err(why(receiving).into()) };
    let mut sender = Host::bind(setup.sender.address, udp, client, setup.node.clone())?;
    sender.set_waiting(setup.waits);
    let now = sender.now();
    let association = sender.node_mut().connect(now, to)?;
    let content = Bytes::from(vec![7; bytes]);
    let (began, mut opened, mut before) = (Instant::now(), Instant::now(), 0.0);
    while began.elapsed() < LIMIT {
        match sender.next_event(Duration::from_millis(100))? {
            Some(NodeEvent::Opened { .. }) => {
                while !setup.settle.is_zero() && sender.next_event(setup.settle)?.is_some() {}
                (opened, before) = (Instant::now(), thread_cpu_s());
                let now = sender.now();
                let flow = sender.node_mut().open_flow(now, association, Some(bytes as u64))?;
                sender.node_mut().write(flow, content.clone());
                sender.node_mut().finish(flow);
            }
            Some(NodeEvent::Sent(_)) => break,
            Some(NodeEvent::Closed { reason, .. }) => return Err(reason.to_string().into()),
            _ => {}
        }
    }
    let cpu_s = thread_cpu_s() - before;
    // Joining a receiver that has given up gives its error.
    let _ = finish.send(());
    let used = receiving.join().map_err(|_| "the receiver panicked")??;
    let seconds = used.at.duration_since(opened).as_secs_f64();
    Ok(Measured {
        seconds,
        cpu_s: [cpu_s, used.cpu_s],
        bytes,
        calls: [calls(sender.socket()), used.calls],
        segments: sender.node().sent_segments(association).to_vec(),
        tail: sender.node().path(association).and_then(|path| path.tail_rate()),
        gaps: sender.node().gap_accuracy(),
    })
}

/// Measures a plain stream of QUIC.
pub fn stream(setup: &Setup, controller: PlainController, bytes: usize) -> Result<Measured, Failure> {
    let [client, server] = pair(setup.batch)?;
    let udp = UdpConfig { offload: setup.batch > 1, dscp: vec![0], ..UdpConfig::default() };
    let epoch = Instant::now();
    let (finish, finished) = mpsc::channel();
    let (send_address, address) = mpsc::channel();
    let (place, of_udp) = (setup.receiver.clone(), udp.clone());
    let receiving = thread::spawn(move || -> Result<Used, String> {
        place.enter()?;
        let end = PlainStream::new(&server, controller, epoch).map_err(|error| error.to_string())?;
        let mut receiver = Loop::bind(end, &place, &of_udp, epoch).map_err(|error| error.to_string())?;
        send_address.send(receiver.socket.local_address()).map_err(|error| error.to_string())?;
        let (began, mut before) = (Instant::now(), thread_cpu_s());
        loop {
            match receiver.next_event(Duration::from_millis(100)).map_err(|error| error.to_string())? {
                Some(PlainEvent::Connected) => before = thread_cpu_s(),
                Some(PlainEvent::Received { .. }) => break,
                _ => {}
            }
            if began.elapsed() > LIMIT {
                return Err(format!("the stream is not done in {LIMIT:?}"));
            }
        }
        let used = Used { cpu_s: thread_cpu_s() - before, calls: calls(&receiver.socket), at: Instant::now() };
        while finished.try_recv().is_err() && began.elapsed() < LIMIT {
            receiver.next_event(Duration::from_millis(2)).map_err(|error| error.to_string())?;
        }
        Ok(used)
    });
    setup.sender.enter()?;
    let Ok(to) = address.recv() else { return Err(why(receiving).into()) };
    let mut sender = Loop::bind(PlainStream::new(&client, controller, epoch)?, &setup.sender, &udp, epoch)?;
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
    let _ = finish.send(());
    let used = receiving.join().map_err(|_| "the receiver panicked")??;
    let seconds = used.at.duration_since(opened).as_secs_f64();
    Ok(Measured {
        seconds,
        cpu_s: [cpu_s, used.cpu_s],
        bytes,
        calls: [calls(&sender.socket), used.calls],
        segments: vec![],
        tail: None,
        gaps: None,
    })
}

/// Returns the reason for which a receiver did not start.
fn why(receiving: JoinHandle<Result<Used, String>>) -> String {
    match receiving.join() {
        Ok(Err(error)) => error,
        _ => "the receiver did not begin".to_owned(),
    }
}

fn calls(socket: &UdpSocket) -> (u64, u64) {
    (socket.counts().sends, socket.counts().receives)
}

/// The loop of a host around any kind of end.
struct Loop<E> {
    end: E,
    socket: UdpSocket,
    epoch: Instant,
    waiting: Option<Datagram>,
}

impl<E: Endpoint> Loop<E> {
    fn bind(end: E, place: &Place, udp: &UdpConfig, epoch: Instant) -> Result<Loop<E>, Failure> {
        Ok(Loop { end, socket: UdpSocket::bind(place.address, udp.clone())?, epoch, waiting: None })
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
                && self.socket.receive(&mut |received| {
                    let (from, dscp, ecn, received_ns) =
                        (received.from, received.dscp, received.ecn, received.received_ns.unwrap_or(0));
                    end.handle_datagram(now, Arrival { from, dscp, ecn, received_ns }, received.bytes);
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
                if self.socket.send(&datagram) == SendResult::Full {
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
