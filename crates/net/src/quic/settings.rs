//! How QUIC and TLS are set up: one cipher suite, raw public keys that are pinned, and no congestion control or pace of QUIC's own.

use super::pins::Pins;
use crate::carrier::{CarrierError, DEFAULT_DSCP, MAX_BATCH_BYTES};
use crate::identity::{Identity, Trusted};
use quinn_proto::congestion::{Controller, ControllerFactory};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, EndpointConfig, IdleTimeout, RandomConnectionIdGenerator, ServerConfig,
    TransportConfig, VarInt,
};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::CryptoProvider;
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The name of this protocol and its version, in TLS.
const PROTOCOL: &[u8] = b"sparelane/2";

/// UDP payload that every IPv6 path carries (RFC 9000 section 14), and that of Ethernet.
pub(crate) const UDP_PAYLOAD_BYTES: std::ops::RangeInclusive<u16> = 1200..=9000;

/// UDP payload of an Ethernet packet with the larger header, that of IPv6.
const DEFAULT_UDP_PAYLOAD_BYTES: u16 = 1452;

/// Datagrams of a batch: 46 kB of full packets, less than the 64 kB that the kernel takes at once for TCP. With 16 a batch, data
/// costs a tenth more of the processor's time; with 44, as much.
pub const DEFAULT_BATCH: usize = 32;

/// Of the number by which a connection is known in each packet.
pub(super) const CONNECTION_ID_BYTES: usize = 8;

/// Frames that wait in a channel, received and not yet handed on, bytes.
const CHANNEL_BYTES: usize = 1 << 20;

/// Of the control stream.
const CONTROL_WINDOW_BYTES: u32 = 256 << 10;

/// What can be set about the carrier.
#[derive(Clone, Debug)]
pub struct QuicConfig {
    /// This host's key.
    pub identity: Identity,
    /// The peers that it talks to.
    pub trusted: Trusted,
    /// Whether the first peer that comes is trusted from then on, as long as nobody is.
    pub first_contact: bool,
    /// Whether peers may begin associations.
    pub listens: bool,
    /// Classes of priority, 1 to 8.
    pub classes: u8,
    /// The code point of each class; a peer is answered with the one that it came with.
    pub dscp: Vec<u8>,
    /// UDP payload bytes of a full packet, 1200 to 9000. There is no discovery: where the path takes less, nothing full arrives.
    pub udp_payload_bytes: u16,
    /// Datagrams that leave with one system call (generic segmentation offload), as far as it takes so many bytes; 1 has no
    /// batches.
    pub batch: usize,
    /// An address that is not known to be the peer's own has to answer before anything is kept for it (Retry).
    pub retry: bool,
    /// The most associations at a time.
    pub max_associations: usize,
    /// An association is over when nothing has come for so long.
    pub idle_timeout: Duration,
    /// For connection IDs, where a run is to be repeated; without, they are random.
    pub seed: Option<u64>,
}

impl QuicConfig {
    /// The defaults, for a host with this key that trusts these peers.
    pub fn new(identity: Identity, trusted: Trusted) -> QuicConfig {
        QuicConfig {
            identity,
            trusted,
            first_contact: false,
            listens: false,
            classes: 4,
            dscp: DEFAULT_DSCP.to_vec(),
            udp_payload_bytes: DEFAULT_UDP_PAYLOAD_BYTES,
            batch: DEFAULT_BATCH,
            retry: true,
            max_associations: 1000,
            idle_timeout: Duration::from_secs(30),
            seed: None,
        }
    }

    /// Datagrams of a batch, of packets as large as they are.
    pub(super) fn datagrams_at_once(&self) -> usize {
        self.batch.min(MAX_BATCH_BYTES / usize::from(self.udp_payload_bytes)).max(1)
    }

    pub(super) fn check(&self) -> Result<(), CarrierError> {
        let setting = |what, value, allowed| Err(CarrierError::Setting { what, value, allowed });
        if !(1..=8).contains(&self.classes) {
            return setting("the number of classes", self.classes.into(), "1 to 8");
        }
        if !UDP_PAYLOAD_BYTES.contains(&self.udp_payload_bytes) {
            return setting("the UDP payload in bytes", self.udp_payload_bytes.into(), "1200 to 9000");
        }
        if !(1..=64).contains(&self.batch) {
            return setting("the batch in datagrams", self.batch as u64, "1 to 64");
        }
        Ok(())
    }
}

/// Everything that endpoint and connections are made from.
pub(super) struct Settings {
    pub(super) endpoint: Arc<EndpointConfig>,
    pub(super) server: Option<Arc<ServerConfig>>,
    /// Of class 0, and of the classes below, which live as long as class 0 does.
    pub(super) client: [ClientConfig; 2],
    pub(super) pins: Arc<Pins>,
    pub(super) seed: Option<[u8; 32]>,
}

impl Settings {
    pub(super) fn of(config: &QuicConfig) -> Result<Settings, CarrierError> {
        config.check()?;
        let keys = |error: rustls::Error| CarrierError::Keys(error.to_string());
        let mut provider = rustls::crypto::ring::default_provider();
        provider.cipher_suites.retain(|suite| suite.suite() == rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
        provider.kx_groups.retain(|group| group.name() == rustls::NamedGroup::X25519);
        let provider = Arc::new(provider);
        let pins = Arc::new(Pins::new(
            config.trusted.clone(),
            config.first_contact,
            provider.signature_verification_algorithms,
        ));
        let client = [Some(config.idle_timeout), None].map(|idle| client(config, &provider, &pins, idle));
        let [first, below] = client;
        let server = if config.listens { Some(server(config, &provider, &pins).map_err(keys)?) } else { None };
        let seed = config.seed.map(|seed| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&seed.to_be_bytes());
            bytes
        });
        let mut endpoint = EndpointConfig::default();
        endpoint.rng_seed(seed);
        // The default ones differ in three bytes alone. That of a Retry is not compared with those in use: beside a thousand
        // associations, one handshake in a thousand would speak to somebody else's connection, and get no answer.
        endpoint.cid_generator(|| Box::new(RandomConnectionIdGenerator::new(CONNECTION_ID_BYTES)));
        // What comes may be as large as packets are, unless this host knows that the path carries less: then the peer is told.
        let is_small = config.udp_payload_bytes < DEFAULT_UDP_PAYLOAD_BYTES;
        let most = if is_small { config.udp_payload_bytes } else { *UDP_PAYLOAD_BYTES.end() };
        let largest = endpoint.max_udp_payload_size(most);
        largest.map_err(|error| CarrierError::Keys(error.to_string()))?;
        let endpoint = Arc::new(endpoint);
        Ok(Settings { endpoint, server, client: [first.map_err(keys)?, below.map_err(keys)?], pins, seed })
    }
}

fn client(
    config: &QuicConfig,
    provider: &Arc<CryptoProvider>,
    pins: &Arc<Pins>,
    idle: Option<Duration>,
) -> Result<ClientConfig, rustls::Error> {
    let mut tls = rustls::ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(pins) as _)
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(config.identity.certified())));
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    tls.resumption = Resumption::disabled();
    tls.enable_sni = false;
    let tls = QuicClientConfig::try_from(tls).map_err(|error| rustls::Error::General(error.to_string()))?;
    let mut client = ClientConfig::new(Arc::new(tls));
    client.transport_config(Arc::new(transport(config, idle)));
    Ok(client)
}

fn server(
    config: &QuicConfig,
    provider: &Arc<CryptoProvider>,
    pins: &Arc<Pins>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut tls = rustls::ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(Arc::clone(pins) as _)
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(config.identity.certified())));
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    tls.send_tls13_tickets = 0;
    let tls = QuicServerConfig::try_from(tls).map_err(|error| rustls::Error::General(error.to_string()))?;
    let mut server = ServerConfig::with_crypto(Arc::new(tls));
    // How long class 0 may be silent is seen to by the carrier: which connection that is, is not known when it begins.
    server.transport_config(Arc::new(transport(config, None)));
    server.max_incoming(64).incoming_buffer_size(64 << 10).incoming_buffer_size_total(1 << 20);
    Ok(Arc::new(server))
}

fn transport(config: &QuicConfig, idle: Option<Duration>) -> TransportConfig {
    let mut acks = AckFrequencyConfig::default();
    // QUIC's own acknowledgments steer nothing here.
    acks.ack_eliciting_threshold(VarInt::from_u32(1000));
    acks.reordering_threshold(VarInt::from_u32(0));
    acks.max_ack_delay(Some(Duration::from_millis(100)));
    let idle_timeout = idle.and_then(|idle| IdleTimeout::try_from(idle).ok());
    let mut transport = TransportConfig::default();
    transport
        .initial_mtu(config.udp_payload_bytes)
        .min_mtu(config.udp_payload_bytes)
        // Its detection of black holes would stall a transfer whose low classes are dropped.
        .mtu_discovery_config(None)
        .max_idle_timeout(idle_timeout)
        .keep_alive_interval(idle.map(|idle| idle / 3))
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .stream_receive_window(VarInt::from_u32(CONTROL_WINDOW_BYTES))
        .receive_window(VarInt::from_u32(CONTROL_WINDOW_BYTES))
        .send_window(CONTROL_WINDOW_BYTES.into())
        .datagram_receive_buffer_size(Some(CHANNEL_BYTES))
        .datagram_send_buffer_size(CHANNEL_BYTES)
        .enable_segmentation_offload(config.batch > 1)
        .ack_frequency_config(Some(acks))
        .congestion_controller_factory(Arc::new(OpenFactory));
    transport
}

/// Lets everything go: the transport above governs. A window beyond 32 bits also switches QUIC's own pacer off.
#[derive(Clone, Debug)]
struct Open;

impl Controller for Open {
    fn window(&self) -> u64 {
        u64::MAX
    }

    fn initial_window(&self) -> u64 {
        u64::MAX
    }

    fn on_mtu_update(&mut self, _: u16) {}

    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: u64) {}

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[derive(Debug)]
struct OpenFactory;

impl ControllerFactory for OpenFactory {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(Open)
    }
}
