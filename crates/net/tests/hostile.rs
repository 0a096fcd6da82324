//! Trusted peers that use as much of a listening side as they can.
//!
//! Most of them hold memory of a receiver. The receiver is a process of its own, whose resident memory is measured, and
//! it goes on serving others.
#![cfg(target_os = "linux")]

use nix::sys::resource::{Resource, setrlimit};
use sparelane_net::carrier::{AssociationId, Carrier, CloseReason};
use sparelane_net::control::Coded;
use sparelane_net::frame::{Data, Frame};
use sparelane_net::host::Host;
use sparelane_net::identity::{Identity, Trusted};
use sparelane_net::node::{NodeConfig, NodeEvent};
use sparelane_net::quic::QuicConfig;
use sparelane_net::service::{FileReceiver, FileSender, WireConfig};
use sparelane_net::transfer::collect;
use sparelane_net::transfer::message::{Kind, Message, Offer};
use sparelane_net::tunnel::Target;
use sparelane_net::tunnel::host::{Tunnel, TunnelConfig, TunnelEvent};
use sparelane_net::udp::UdpConfig;
use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A test that takes this long hangs. No outcome depends on it.
const HANG: Duration = Duration::from_secs(600);

/// The memory for received data of all peers, and of one key, bytes.
const MEMORY_BYTES: u64 = 64_000_000;
const MEMORY_PER_KEY_BYTES: u64 = 16_000_000;

/// The limit of the receiver's resident memory. Beside the received data, it has the memory of the program, of 1000
/// associations and of the names of offered files.
const RESIDENT_BYTES: u64 = 200_000_000;

/// The address space of the receiver, so that a mistake cannot take all memory of the machine.
const ADDRESS_SPACE_BYTES: u64 = 4 << 30;

/// The frames and offers that a hostile association sends.
const FRAMES: u32 = 300;
const OFFERS: u32 = 100;

/// The folder of the receiver's process, as an environment variable.
const FOLDER: &str = "SPARELANE_HOSTILE_FOLDER";

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// The receiver's process of the other tests; it does nothing else.
#[test]
#[ignore = "runs as a process of the other tests"]
fn receives_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    setrlimit(Resource::RLIMIT_AS, ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES).expect("a lower limit");
    let own = Identity::load(&folder.join("keys")).expect("a key");
    let mut config = WireConfig::new(own, Trusted::load(&folder.join("keys")).expect("trusted keys"));
    (config.node.memory_bytes, config.node.memory_per_key_bytes) = (MEMORY_BYTES, MEMORY_PER_KEY_BYTES);
    let mut receiver = FileReceiver::bind(&config, loopback(), &folder.join("to"), false).expect("a receiver");
    fs::write(folder.join("address.new"), receiver.local_address().to_string()).expect("a file");
    fs::rename(folder.join("address.new"), folder.join("address")).expect("a file");
    let mut most = 0;
    loop {
        receiver.step(Duration::from_millis(100)).expect("a socket");
        let associations = receiver.host().node().carrier().association_count();
        if associations > most {
            most = associations;
            fs::write(folder.join("most.new"), most.to_string()).expect("a file");
            fs::rename(folder.join("most.new"), folder.join("most")).expect("a file");
        }
    }
}

/// A receiver in a process of its own, with its folder.
struct Receiver {
    folder: PathBuf,
    identity: Identity,
    address: SocketAddr,
    process: Child,
    /// The largest resident memory so far, bytes.
    resident_bytes: u64,
}

impl Receiver {
    fn start(name: &str, trusted: &[Identity]) -> Receiver {
        let folder = std::env::temp_dir().join(format!("sparelane-hostile-{}-{name}", std::process::id()));
        let keys = folder.join("keys");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        let identity = Identity::generate().expect("a key");
        identity.save(&keys).expect("a folder for keys");
        for peer in trusted {
            Trusted::append(&keys, peer.fingerprint(), "").expect("a list of keys");
        }
        let program = std::env::current_exe().expect("this program");
        let arguments = ["--exact", "receives_until_it_is_killed", "--ignored", "--nocapture"];
        let mut command = Command::new(program);
        command.args(arguments).env(FOLDER, &folder).stdout(Stdio::null());
        let process = command.spawn().expect("a process");
        let began = Instant::now();
        let address = loop {
            assert!(began.elapsed() < HANG, "the receiver does not start");
            match fs::read_to_string(folder.join("address")) {
                Ok(text) => break text.parse().expect("an address"),
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        Receiver { folder, identity, address, process, resident_bytes: 0 }
    }

    /// Measures the resident memory.
    fn measure(&mut self) {
        assert!(self.process.try_wait().expect("a process").is_none(), "the receiver has ended");
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("a process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        self.resident_bytes = self.resident_bytes.max(kib * 1024);
    }

    /// The largest number of associations so far.
    fn most_associations(&self) -> usize {
        fs::read_to_string(self.folder.join("most")).expect("a file").parse().expect("a number")
    }

    /// The configuration of a peer with this key.
    fn peer(&self, own: &Identity) -> WireConfig {
        WireConfig::new(own.clone(), Trusted::from_iter([self.identity.fingerprint()]))
    }

    /// Sends a file as a lawful peer, while `meanwhile` is called again and again.
    fn accept_file(&mut self, own: &Identity, mut meanwhile: impl FnMut(&mut Receiver)) {
        let path = self.folder.join("file");
        let content: Vec<u8> = (0..1_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        fs::write(&path, &content).expect("a file");
        let sources = collect(&[path]).expect("a file").sources;
        let mut sender = FileSender::begin(&self.peer(own), self.address, sources).expect("a socket");
        let (began, mut outcomes) = (Instant::now(), vec![]);
        while !sender.progress().done {
            assert!(began.elapsed() < HANG, "{:?}", sender.progress());
            outcomes.extend(sender.step(Duration::from_millis(1)).expect("a transfer"));
            meanwhile(self);
        }
        assert!(outcomes.len() == 1 && outcomes[0].error.is_none(), "{outcomes:?}");
        assert!(fs::read(self.folder.join("to/file")).expect("a file") == content);
        eprintln!("the lawful file took {:.2} s", began.elapsed().as_secs_f64());
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The associations of one hostile key, on a socket of its own.
struct Hostile {
    host: Host,
    /// The number of steps of each open association.
    open: BTreeMap<AssociationId, u32>,
    reasons: Vec<CloseReason>,
}

impl Hostile {
    fn new(receiver: &Receiver, own: &Identity, associations: usize) -> Hostile {
        let trusted = Trusted::from_iter([receiver.identity.fingerprint()]);
        let quic = QuicConfig { classes: 1, ..QuicConfig::new(own.clone(), trusted) };
        let node = NodeConfig { classes: 1, ..NodeConfig::default() };
        let udp = UdpConfig { dscp: vec![0], ..UdpConfig::default() };
        let mut host = Host::bind(loopback(), udp, quic, node).expect("a socket");
        for _ in 0..associations {
            let now = host.now();
            host.node_mut().connect(now, receiver.address).expect("room");
        }
        Hostile { host, open: BTreeMap::new(), reasons: vec![] }
    }

    /// Handles what has arrived, and sends the next part of the attack. Nothing of the receiver's answers is read.
    fn step(&mut self) {
        while let Some(event) = self.host.next_event(Duration::ZERO).expect("a socket") {
            match event {
                NodeEvent::Opened { association, .. } => drop(self.open.insert(association, 0)),
                NodeEvent::Closed { association, reason } => {
                    self.open.remove(&association);
                    self.reasons.push(reason);
                }
                _ => {}
            }
        }
        let now = self.host.now();
        for (&association, step) in &mut self.open {
            let frames = (*step..FRAMES.min(*step + 10)).map(|at| attack(association, at).encode());
            self.host.node_mut().carrier_mut().send(now, association, 0, &mut frames.collect::<Vec<_>>().into_iter());
            for item in *step..OFFERS.min(*step + 10) {
                // The limit of waiting control data is that of this side.
                let _ = self.host.node_mut().write_control(association, offer(association, item).encode());
            }
            *step = FRAMES.min(*step + 10);
        }
    }

    /// Returns true if all associations are over or have sent everything.
    fn is_done(&self, associations: usize) -> bool {
        let sent = self.open.values().filter(|&&step| step == FRAMES).count();
        sent + self.reasons.len() == associations
    }
}

/// Returns a segment of an unannounced flow: full ones in sequence, small ones at the end of the window, or small ones
/// in sequence.
fn attack(association: AssociationId, at: u32) -> Frame {
    let (flow, segment, bytes) = match association.0 % 3 {
        0 => (at % 4, at / 4, 1380),
        1 => (at, 23_000, 1),
        _ => (at % 4, at / 4, 1),
    };
    let (resent, window_reduced, last, timed) = (false, false, false, false);
    let payload = vec![7; bytes].into();
    Frame::Data(Data { flow, segment, resent, window_reduced, last, timed, payload })
}

/// Returns an offer, with a long name, of a file that never begins.
fn offer(association: AssociationId, item: u32) -> Message {
    let name = vec![format!("{:0200}", u64::from(item) << 32 | association.0); 15];
    Message::Offer(Offer { item, kind: Kind::File, size: 1, mode: 0o600, modified_ns: 0, name })
}

fn keys(count: usize) -> Vec<Identity> {
    (0..count).map(|_| Identity::generate().expect("a key")).collect()
}

/// Runs the attack until everything is sent, and a lawful transfer after that, while the associations stay open.
fn attacked(name: &str, keys: &[Identity], associations: usize) -> (Receiver, Vec<Hostile>) {
    let (lawful, hostile) = keys.split_last().expect("keys");
    let mut receiver = Receiver::start(name, keys);
    receiver.measure();
    let at_first = receiver.resident_bytes;
    let mut attackers: Vec<Hostile> =
        hostile.iter().map(|key| Hostile::new(&receiver, key, associations / hostile.len())).collect();
    let began = Instant::now();
    while !attackers.iter().all(|attacker| attacker.is_done(associations / hostile.len())) {
        assert!(began.elapsed() < HANG, "the attack does not end");
        attackers.iter_mut().for_each(Hostile::step);
        receiver.measure();
    }
    eprintln!("the attack took {:.1} s", began.elapsed().as_secs_f64());
    receiver.accept_file(lawful, |receiver| {
        attackers.iter_mut().for_each(Hostile::step);
        receiver.measure();
    });
    let (most, mb) = (receiver.resident_bytes, 1e6);
    eprintln!("{name}: {:.0} MB resident at first, {:.0} MB at most", at_first as f64 / mb, most as f64 / mb);
    assert!(most < RESIDENT_BYTES, "{most} bytes");
    (receiver, attackers)
}

#[test]
fn a_thousand_associations_of_one_key_take_bounded_memory_and_others_are_served() {
    let (receiver, attackers) = attacked("one", &keys(2), 1000);
    assert_eq!(receiver.most_associations(), 64 + 1, "the limit of a key, and the lawful one");
    let is_refused = |reason: &CloseReason| matches!(reason, CloseReason::Peer { reason, .. } if reason.as_str().starts_with("too many"));
    let refused = attackers[0].reasons.iter().filter(|reason| is_refused(reason)).count();
    assert!(refused > 100, "{refused} refused; {:?}", attackers[0].reasons.first());
}

#[test]
fn sixty_four_hostile_keys_take_bounded_memory_and_others_are_served() {
    let (receiver, _attackers) = attacked("many", &keys(65), 64 * 15);
    let most = receiver.most_associations();
    assert!((500..=1000).contains(&most), "{most} associations");
}

#[test]
fn the_tunnel_connections_of_a_key_are_limited_over_all_its_associations() {
    let [own, dialing]: [Identity; 2] = keys(2).try_into().expect("two keys");
    let of = |own: &Identity, peer: &Identity| {
        let wire = WireConfig::new(own.clone(), Trusted::from_iter([peer.fingerprint()]));
        TunnelConfig { max_connections: 1, ..TunnelConfig::new(wire) }
    };
    let listener = TcpListener::bind(loopback()).expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let at = listener.local_addr().expect("an address");
    let target: Target = at.to_string().parse().expect("a target");
    let allowed = BTreeMap::from([(target.clone(), at)]);
    let mut serving = Tunnel::serve(of(&own, &dialing), loopback(), allowed).expect("a socket");
    let to = serving.local_address();
    let (mut sites, mut applications, mut accepted, mut refused) = (vec![], vec![], vec![], vec![]);
    let began = Instant::now();
    // Each association may have one connection, and all of the key may have four.
    while refused.is_empty() {
        assert!(began.elapsed() < HANG, "{} connections", accepted.len());
        if sites.len() == accepted.len() {
            let site = Tunnel::dial(of(&dialing, &own), &[to], vec![(loopback(), target.clone())]).expect("a port");
            applications.push(TcpStream::connect(site.forwarded()[0]).expect("a connection"));
            sites.push(site);
        }
        let events = serving.step(Duration::from_millis(5)).expect("a socket");
        refused.extend(events.into_iter().filter_map(|event| match event {
            TunnelEvent::Failed { error, .. } => Some(error),
            _ => None,
        }));
        for site in &mut sites {
            site.step(Duration::from_millis(1)).expect("a socket");
        }
        accepted.extend(listener.accept().ok());
    }
    assert_eq!((accepted.len(), sites.len()), (4, 5));
    assert_eq!(refused, ["there are 4 connections of this key already, the limit"]);
}
