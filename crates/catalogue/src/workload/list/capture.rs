//! Flows of a packet capture (pcap or pcapng).
//!
//! Only headers are used, so captures with cut packets are complete. Each direction of a TCP or UDP connection with
//! payload is a flow: its start is the time of its first payload after the first packet of the capture. Its size is the
//! span of its sequence numbers for TCP, so that retransmissions count once, and the sum of its payloads for UDP. A SYN
//! on the ports of an earlier connection begins a new flow.
//!
//! The capture is read in pieces, so memory grows with its flows and not with its packets.
//!
//! Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng; RFC 791, 8200, 768 and 9293.

use super::FlowList;
use super::numbered::NumberedHosts;
use crate::schema::Warnings;
use crate::workload::{WorkloadError, ends};
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};
use sparelane_core::Time;
use sparelane_sim::{FlowSpec, Network, NodeId};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::IpAddr;

/// Size of the buffer; a larger block is refused.
const BUFFER_BYTES: usize = 1 << 20;
/// Maximum number of flows, of about 200 bytes each.
const MAX_FLOWS: usize = 4_000_000;
/// Maximum number of interfaces in a capture.
const MAX_INTERFACES: usize = 65_536;
/// Picoseconds per second.
const PS: u128 = 1_000_000_000_000;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Direction {
    src: IpAddr,
    dst: IpAddr,
    ports: [u16; 2],
    protocol: u8,
}

/// A packet with payload, or a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packet {
    direction: Direction,
    /// The sequence number of the first payload byte; 0 for UDP.
    first: u32,
    is_syn: bool,
    payload: u32,
}

/// A flow of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Captured {
    src: IpAddr,
    dst: IpAddr,
    /// Time of its first payload, counted from the first packet; `None` before that.
    start_ps: Option<u64>,
    /// Payload bytes so far.
    bytes: u64,
    /// The sequence number after the last byte so far.
    next: u32,
}

/// The flows of a capture, and the packets that are left out.
#[derive(Default)]
struct Table {
    first_ps: Option<u128>,
    flows: Vec<Captured>,
    open: BTreeMap<Direction, usize>,
    others: u64,
}

/// Properties of an interface: the format of its packets, and the units of time per second.
type Interface = (Linktype, u128);

/// Reads the flows of `capture`, all of which use `scheme`, under which a flow has at most `max_bytes`.
///
/// An address is the name of a host, or stands for the next host in the order of first appearance.
///
/// # Errors
/// Fails if the capture is damaged or has too many flows or a flow that is too large, or more addresses than `network`
/// has hosts.
pub fn parse(
    capture: Box<dyn Read + Send>,
    network: &Network,
    scheme: u16,
    max_bytes: u64,
    warnings: &Warnings,
) -> Result<FlowList, WorkloadError> {
    let table = read(capture)?;
    if table.others > 0 {
        warnings.add(format!("packets of the capture that are not TCP or UDP are left out: {}", table.others));
    }
    let hosts = hosts(&table.addresses(), network)?;
    let mut flows = Vec::new();
    for flow in table.sent() {
        let [src, dst] = [flow.src, flow.dst].map(|address| hosts[&address]);
        ends::check(network, src, dst).map_err(WorkloadError::new)?;
        if flow.bytes > max_bytes {
            let message = format!("a flow has {} bytes; allowed: at most {max_bytes}", flow.bytes);
            return Err(WorkloadError::new(message));
        }
        let start = Time::from_ps(flow.start_ps.unwrap_or(0));
        flows.push(FlowSpec::new(start, src, dst, Some(flow.bytes), scheme));
    }
    Ok(FlowList::sorted(flows))
}

/// Returns the host of each address: that with its name, otherwise the next one that no address names.
fn hosts(addresses: &BTreeMap<IpAddr, usize>, network: &Network) -> Result<BTreeMap<IpAddr, NodeId>, WorkloadError> {
    let numbered = NumberedHosts::of(network);
    let named: BTreeMap<_, _> =
        addresses.keys().filter_map(|address| Some((*address, numbered.named(&address.to_string())?))).collect();
    let taken: BTreeSet<_> = named.values().copied().collect();
    let mut free = network.hosts().into_iter().filter(|host| !taken.contains(host));
    let mut in_order: Vec<_> = addresses.iter().map(|(address, position)| (position, *address)).collect();
    in_order.sort_unstable();
    let host = |(_, address)| {
        let host = named.get(&address).copied().or_else(|| free.next()).ok_or_else(|| {
            WorkloadError::new(format!(
                "the capture has flows of {} addresses; allowed: at most the {} hosts of the network",
                addresses.len(),
                network.hosts().len()
            ))
        })?;
        Ok((address, host))
    };
    in_order.into_iter().map(host).collect()
}

/// Returns the number of hosts that the flows of `capture` need.
///
/// # Errors
/// Fails if the capture is damaged or has too many flows.
pub fn hosts_needed(capture: Box<dyn Read + Send>) -> Result<usize, WorkloadError> {
    Ok(read(capture)?.addresses().len())
}

fn read(capture: Box<dyn Read + Send>) -> Result<Table, WorkloadError> {
    let damaged = |packets: u64, cause: &str| {
        WorkloadError::new(format!("the capture is damaged after {packets} packets ({cause}); allowed: pcap or pcapng"))
    };
    let mut reader = create_reader(BUFFER_BYTES, capture).map_err(|error| damaged(0, cause(&error)))?;
    let mut table = Table::default();
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut packets = 0;
    loop {
        match reader.next() {
            Ok((length, block)) => {
                match block {
                    PcapBlockOwned::LegacyHeader(header) => {
                        let units = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
                        interfaces = vec![(header.network, units)];
                    }
                    PcapBlockOwned::Legacy(packet) => {
                        packets += 1;
                        let &(link, units) = interfaces.first().ok_or_else(|| damaged(packets, "no header"))?;
                        let time = u128::from(packet.ts_sec) * PS + u128::from(packet.ts_usec) * (PS / units);
                        table.add(time, packet_of(link, packet.data))?;
                    }
                    PcapBlockOwned::NG(Block::SectionHeader(_)) => interfaces.clear(),
                    PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                        let units = interface.ts_resolution().filter(|&units| units > 0);
                        let units = units.ok_or_else(|| damaged(packets, "resolution of time"))?;
                        if interfaces.len() == MAX_INTERFACES {
                            return Err(damaged(packets, "number of interfaces"));
                        }
                        interfaces.push((interface.linktype, u128::from(units)));
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                        packets += 1;
                        let interface = interfaces.get(packet.if_id as usize);
                        let &(link, units) = interface.ok_or_else(|| damaged(packets, "unknown interface"))?;
                        let stamp = u128::from(packet.ts_high) << 32 | u128::from(packet.ts_low);
                        let data = packet.data.get(..packet.caplen as usize).unwrap_or(packet.data);
                        table.add(stamp * PS / units, packet_of(link, data))?;
                    }
                    PcapBlockOwned::NG(Block::SimplePacket(_)) => {
                        return Err(WorkloadError::new(
                            "the capture has packets without times (simple packet blocks); allowed: enhanced packet blocks",
                        ));
                    }
                    PcapBlockOwned::NG(_) => {}
                }
                reader.consume(length);
            }
            Err(PcapError::Eof) => return Ok(table),
            Err(PcapError::Incomplete(_)) => {
                if reader.reader_exhausted() {
                    return Err(damaged(packets, "the last packet is cut"));
                }
                reader.refill().map_err(|error| damaged(packets, cause(&error)))?;
            }
            Err(error) => return Err(damaged(packets, cause(&error))),
        }
    }
}

/// Describes an error in words. The error itself holds part of the file.
fn cause(error: &PcapError<&[u8]>) -> &'static str {
    match error {
        PcapError::Eof | PcapError::UnexpectedEof | PcapError::Incomplete(_) => "the file ends",
        PcapError::BufferTooSmall => "a packet of more than a megabyte",
        PcapError::ReadError => "the file cannot be read",
        _ => "not a block of a capture",
    }
}

impl Table {
    /// Adds a packet at `time_ps` since some epoch; `None` is a packet of another protocol.
    fn add(&mut self, time_ps: u128, packet: Option<Packet>) -> Result<(), WorkloadError> {
        let first_ps = *self.first_ps.get_or_insert(time_ps);
        let Some(packet) = packet else {
            self.others += 1;
            return Ok(());
        };
        let known = self.open.get(&packet.direction).copied();
        // A SYN that is sent again belongs to the same flow, unless data has been sent since.
        let place = match known.filter(|&place| !(packet.is_syn && self.flows[place].bytes > 0)) {
            Some(place) => place,
            None => {
                if self.flows.len() == MAX_FLOWS {
                    return Err(WorkloadError::new(format!("the capture has more than {MAX_FLOWS} flows")));
                }
                let Direction { src, dst, .. } = packet.direction;
                self.flows.push(Captured { src, dst, start_ps: None, bytes: 0, next: packet.first });
                self.open.insert(packet.direction, self.flows.len() - 1);
                self.flows.len() - 1
            }
        };
        let flow = &mut self.flows[place];
        if packet.is_syn {
            flow.next = packet.first;
        }
        if packet.payload == 0 {
            return Ok(());
        }
        let start_ps = u64::try_from(time_ps.saturating_sub(first_ps)).unwrap_or(u64::MAX);
        flow.start_ps.get_or_insert(start_ps);
        if packet.direction.protocol == UDP {
            flow.bytes += u64::from(packet.payload);
            return Ok(());
        }
        // Bytes beyond the last one are new. The difference of sequence numbers is right across their wrap.
        let end = packet.first.wrapping_add(packet.payload);
        let beyond = end.wrapping_sub(flow.next) as i32;
        if beyond > 0 {
            flow.bytes += beyond as u64;
            flow.next = end;
        }
        Ok(())
    }

    /// Returns the flows with payload between two addresses.
    fn sent(&self) -> impl Iterator<Item = &Captured> {
        self.flows.iter().filter(|flow| flow.bytes > 0 && flow.src != flow.dst)
    }

    /// Returns the addresses of these flows with their positions in the order of first appearance.
    fn addresses(&self) -> BTreeMap<IpAddr, usize> {
        let mut addresses = BTreeMap::new();
        for address in self.sent().flat_map(|flow| [flow.src, flow.dst]) {
            let position = addresses.len();
            addresses.entry(address).or_insert(position);
        }
        addresses
    }
}

/// Returns the packet in a frame, or `None` if it is not TCP or UDP over IP, or its headers are cut.
fn packet_of(link: Linktype, frame: &[u8]) -> Option<Packet> {
    let ip = match link {
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 => frame,
        Linktype::NULL | Linktype::LOOP => frame.get(4..)?,
        Linktype::ETHERNET => {
            // The type follows two addresses, and up to two tags of four bytes (IEEE 802.1Q).
            let tags = [12, 16]
                .into_iter()
                .take_while(|&at| matches!(frame.get(at..at + 2), Some([0x81 | 0x88 | 0x91, 0 | 0xa8])))
                .count();
            frame.get(14 + 4 * tags..)?
        }
        Linktype::LINUX_SLL => frame.get(16..)?,
        Linktype::LINUX_SLL2 => frame.get(20..)?,
        _ => return None,
    };
    let (src, dst, protocol, body, length) = match ip.first()? >> 4 {
        4 => {
            let header = 4 * usize::from(ip[0] & 15);
            let total = usize::from(word(ip, 2)?);
            // Later fragments have no ports.
            let is_first = word(ip, 6)? & 0x1fff == 0;
            let address = |at| Some(IpAddr::from(<[u8; 4]>::try_from(ip.get(at..at + 4)?).ok()?));
            is_first.then_some((
                address(12)?,
                address(16)?,
                *ip.get(9)?,
                ip.get(header..)?,
                total.checked_sub(header)?,
            ))?
        }
        6 => {
            let address = |at| Some(IpAddr::from(<[u8; 16]>::try_from(ip.get(at..at + 16)?).ok()?));
            (address(8)?, address(24)?, *ip.get(6)?, ip.get(40..)?, usize::from(word(ip, 4)?))
        }
        _ => return None,
    };
    let direction = Direction { src, dst, ports: [word(body, 0)?, word(body, 2)?], protocol };
    match protocol {
        TCP => {
            let sequence = u32::from(word(body, 4)?) << 16 | u32::from(word(body, 6)?);
            let header = 4 * usize::from(body.get(12)? >> 4);
            let is_syn = body.get(13)? & 2 != 0;
            // A SYN takes one sequence number.
            let first = sequence.wrapping_add(u32::from(is_syn));
            Some(Packet { direction, first, is_syn, payload: length.checked_sub(header)? as u32 })
        }
        UDP => Some(Packet { direction, first: 0, is_syn: false, payload: word(body, 4)?.checked_sub(8)?.into() }),
        _ => None,
    }
}

/// Returns two bytes in network order.
fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(<[u8; 2]>::try_from(bytes.get(at..at + 2)?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_sim::NodeKind;

    const SYN: u8 = 2;
    const ACK: u8 = 16;

    /// An IPv4 packet with TCP from host number `src` to `dst`; only its headers are present.
    fn tcp(src: u8, dst: u8, sequence: u32, flags: u8, payload: u16) -> Vec<u8> {
        let mut ip = vec![0x45, 0];
        ip.extend((40 + payload).to_be_bytes());
        ip.extend([0, 0, 0x40, 0, 64, TCP, 0, 0, 10, 0, 0, src, 10, 0, 0, dst]);
        ip.extend([0, 80, 0x90, src]);
        ip.extend(sequence.to_be_bytes());
        ip.extend([0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
        ip
    }

    fn udp(src: u8, dst: u8, payload: u16) -> Vec<u8> {
        let mut ip = vec![0x45, 0];
        ip.extend((28 + payload).to_be_bytes());
        ip.extend([0, 0, 0, 0, 64, UDP, 0, 0, 10, 0, 0, src, 10, 0, 0, dst, 1, 0, 2, 0]);
        ip.extend((8 + payload).to_be_bytes());
        ip.extend([0, 0]);
        ip
    }

    /// A capture of packets that begin with their IP header, at microseconds.
    fn pcap(packets: &[(u32, Vec<u8>)]) -> Vec<u8> {
        let mut file = Vec::new();
        for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 101_u32] {
            file.extend(word.to_le_bytes());
        }
        for (us, packet) in packets {
            for word in [7 + us / 1_000_000, us % 1_000_000, packet.len() as u32, 1500] {
                file.extend(word.to_le_bytes());
            }
            file.extend(packet);
        }
        file
    }

    fn network(hosts: usize) -> Network {
        let mut network = Network::default();
        network.add("router", NodeKind::Router);
        (0..hosts).for_each(|host| {
            network.add(format!("host{host}"), NodeKind::Host);
        });
        network
    }

    fn flows(file: Vec<u8>, network: &Network) -> Result<(Vec<FlowSpec>, Vec<String>), String> {
        let warnings = Warnings::new();
        let list = parse(Box::new(std::io::Cursor::new(file)), network, 0, 1_000_000, &warnings);
        list.map(|list| (list.roots.collect(), warnings.list())).map_err(|error| error.to_string())
    }

    fn flow(start_us: u64, src: u32, dst: u32, bytes: u64) -> FlowSpec {
        FlowSpec::new(Time::from_ns(start_us * 1000), NodeId(src), NodeId(dst), Some(bytes), 0)
    }

    #[test]
    fn each_direction_with_payload_is_a_flow_and_retransmissions_count_once() {
        let last = u32::MAX;
        let file = pcap(&[
            (0, tcp(1, 2, last - 1000, SYN, 0)),
            (50, tcp(2, 1, 5, SYN | ACK, 0)),
            (100, tcp(1, 2, last - 999, ACK, 1000)),
            // Across the wrap of sequence numbers, a lost packet in between, and a retransmission.
            (120, tcp(1, 2, 1000, ACK, 500)),
            (130, tcp(1, 2, 0, ACK, 1000)),
            (140, tcp(1, 2, last - 999, ACK, 1000)),
            (150, tcp(2, 1, 6, ACK, 10)),
            (160, vec![0x60]),
            (170, udp(3, 1, 100)),
            (180, udp(3, 1, 50)),
            // The ports again: another connection.
            (1_500_000, tcp(1, 2, 77, SYN, 0)),
            (1_500_001, tcp(1, 2, 78, ACK, 9)),
            (1_500_002, tcp(4, 4, 78, ACK, 9)),
        ]);
        let expected = vec![flow(100, 1, 2, 2500), flow(150, 2, 1, 10), flow(170, 3, 1, 150), flow(1_500_001, 1, 2, 9)];
        let warnings = vec!["packets of the capture that are not TCP or UDP are left out: 1".to_owned()];
        assert_eq!(flows(file.clone(), &network(3)), Ok((expected, warnings)));
        assert_eq!(hosts_needed(Box::new(std::io::Cursor::new(file.clone()))), Ok(3));
        let error = flows(file.clone(), &network(2)).unwrap_err();
        assert_eq!(error, "the capture has flows of 3 addresses; allowed: at most the 2 hosts of the network");
        // Hosts that are called like the addresses are these addresses.
        let mut named = network(3);
        named.nodes[3].name = "10.0.0.1".to_owned();
        let (list, _) = flows(file, &named).unwrap();
        assert_eq!(list[..3], [flow(100, 3, 1, 2500), flow(150, 1, 3, 10), flow(170, 2, 3, 150)]);
    }

    #[test]
    fn ethernet_and_tags_are_skipped() {
        let ip = tcp(1, 2, 7, ACK, 3);
        let packet = packet_of(Linktype::RAW, &ip).unwrap();
        assert_eq!((packet.payload, packet.first, packet.direction.ports), (3, 7, [80, 0x9001]));
        for between in [&[][..], &[0x81, 0, 0, 5], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6]] {
            let frame = [&[0; 12], between, &[8, 0], &ip].concat();
            assert_eq!(packet_of(Linktype::ETHERNET, &frame), Some(packet));
        }
        for cut in 0..ip.len() {
            // A header that is cut is no packet, and no panic.
            let _ = packet_of(Linktype::RAW, &ip[..cut]);
            let _ = packet_of(Linktype::ETHERNET, &ip[..cut]);
        }
        assert_eq!(packet_of(Linktype::RAW, &ip[..30]), None);
    }

    #[test]
    fn a_damaged_capture_is_refused() {
        let whole = pcap(&[(0, udp(1, 2, 5)), (1, udp(1, 2, 5))]);
        for length in [0, 10, 30, whole.len() - 3] {
            let error = flows(whole[..length].to_vec(), &network(2)).unwrap_err();
            assert!(error.starts_with("the capture is damaged after"), "{error}");
        }
        // A packet that claims gigabytes takes no memory.
        let mut huge = whole.clone();
        huge[32..36].copy_from_slice(&0x7fff_ffff_u32.to_le_bytes());
        assert!(flows(huge, &network(2)).unwrap_err().starts_with("the capture is damaged after 0 packets"));
        assert_eq!(flows(pcap(&[]), &network(2)), Ok((vec![], vec![])));
    }
}
