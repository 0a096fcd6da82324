//! Configuration of QUIC and TLS: one cipher suite, raw public keys, and no congestion control or pacing by QUIC.

use super::hybrid::X25519MlKem768;
use super::verifier::KeyVerifier;
use crate::carrier::{CarrierError, DEFAULT_DSCP, MAX_BATCH_BYTES};
use crate::identity::{Identity, Trusted};
use quinn_proto::congestion::{Controller, ControllerFactory};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::crypto::{CryptoError, HmacKey};
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, EndpointConfig, RandomConnectionIdGenerator, ServerConfig, TransportConfig,
    VarInt,
};
use ring::{hkdf, hmac};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::kx_group::X25519;
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use std::any::Any;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// The protocol's name and version in TLS (ALPN).
const PROTOCOL: &[u8] = b"sparelane/2";

/// The allowed UDP payloads: from the minimum of QUIC (RFC 9000 section 14) to that of Ethernet with jumbo frames.
pub(crate) const UDP_PAYLOAD_BYTES: std::ops::RangeInclusive<u16> = 1200..=9000;

/// The UDP payload of an Ethernet packet with an IPv6 header.
const DEFAULT_UDP_PAYLOAD_BYTES: u16 = 1452;

/// The datagrams of a batch: 46 kB of full packets, below the kernel's limit of 64 kB. A batch of 16 costs a tenth more
/// processor time per byte; one of 44 costs the same.
pub const DEFAULT_BATCH: usize = 32;

/// The size of a connection ID.
pub(super) const CONNECTION_ID_BYTES: usize = 8;

/// The minimum interval between stateless resets. A reset is smaller than its cause.
const MIN_RESET_INTERVAL: Duration = Duration::from_millis(1);

/// The buffer for frames in a connection, bytes.
const CHANNEL_BYTES: usize = 1 << 20;

/// The window of the control stream, bytes.
pub(super) const CONTROL_WINDOW_BYTES: u32 = 256 << 10;

/// The window of an incoming connection until its hello shows that it has a control stream, bytes.
const HELLO_WINDOW_BYTES: u32 = 4 << 10;

/// Configuration of the carrier.
#[derive(Clone, Debug)]
pub struct QuicConfig {
    /// This host's key.
    pub identity: Identity,
    /// The trusted peers.
    pub trusted: Trusted,
    /// Trusts the first peer if no peer is trusted yet.
    pub first_contact: bool,
    /// Accepts associations from peers.
    pub listens: bool,
    /// The address at which peers reach a listening host. After a restart at the same address,
    /// peers learn at once that their associations are gone; without the address, after the idle
    /// timeout.
    pub local: Option<SocketAddr>,
    /// The number of priority classes, 1 to 8.
    pub classes: u8,
    /// The DSCP of each class. A peer is answered with the code point of its own packets.
    pub dscp: Vec<u8>,
    /// The UDP payload of a full packet, 1200 to 9000 bytes. There is no path MTU discovery: if the path carries less,
    /// no full packet arrives.
    pub udp_payload_bytes: u16,
    /// The maximum number of datagrams per system call (generic segmentation offload), within its limit of bytes; 1
    /// disables batches.
    pub batch: usize,
    /// Sends a Retry to unvalidated addresses before allocating anything for them.
    pub retry: bool,
    /// The maximum number of associations.
    pub max_associations: usize,
    /// The maximum number of associations with one peer.
    pub max_associations_per_peer: usize,
    /// The maximum number of associations that a peer begins per second, on average over four seconds.
    pub max_new_per_second: u32,
    /// The time after which an association with a silent peer ends.
    pub idle_timeout: Duration,
    /// The seed of connection IDs, for reproducible runs; random without it.
    pub seed: Option<u64>,
}

impl QuicConfig {
    /// Creates the default configuration for a host with this key that trusts these peers.
    pub fn new(identity: Identity, trusted: Trusted) -> QuicConfig {
        QuicConfig {
            identity,
            trusted,
            first_contact: false,
            listens: false,
            local: None,
            classes: 4,
            dscp: DEFAULT_DSCP.to_vec(),
            udp_payload_bytes: DEFAULT_UDP_PAYLOAD_BYTES,
            batch: DEFAULT_BATCH,
            retry: true,
            max_associations: 1000,
            max_associations_per_peer: 64,
            max_new_per_second: 16,
            idle_timeout: Duration::from_secs(30),
            seed: None,
        }
    }

    /// The number of datagrams in a batch of full packets.
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

/// The configuration objects of quinn-proto and rustls.
pub(super) struct Settings {
    pub(super) endpoint: Arc<EndpointConfig>,
    reset_key: Option<Arc<ResetKey>>,
    pub(super) server: Option<Arc<ServerConfig>>,
    /// The settings of class 0, then those of the lower classes, which are not kept alive.
    pub(super) client: [ClientConfig; 2],
    pub(super) verifier: Arc<KeyVerifier>,
    pub(super) seed: Option<[u8; 32]>,
}

impl Settings {
    pub(super) fn of(config: &QuicConfig) -> Result<Settings, CarrierError> {
        config.check()?;
        let keys = |error: rustls::Error| CarrierError::Keys(error.to_string());
        let provider = Arc::new(provider());
        let verifier = Arc::new(KeyVerifier::new(
            config.trusted.clone(),
            config.first_contact,
            provider.signature_verification_algorithms,
        ));
        let client = [Some(config.idle_timeout), None].map(|idle| client(config, &provider, &verifier, idle));
        let [first, below] = client;
        let server = if config.listens { Some(server(config, &provider, &verifier).map_err(keys)?) } else { None };
        let seed = config.seed.map(|seed| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&seed.to_be_bytes());
            bytes
        });
        // A host that only dials has no address at which peers could find it after a restart.
        let local = config.local.filter(|_| config.listens);
        let reset_key = local.map(|local| Arc::new(ResetKey::new(&config.identity, local)));
        let mut endpoint = match &reset_key {
            Some(key) => EndpointConfig::new(Arc::clone(key) as _),
            None => EndpointConfig::default(),
        };
        endpoint.rng_seed(seed).min_reset_interval(MIN_RESET_INTERVAL);
        // The default generator's IDs differ in three bytes only, and that of a Retry is not checked for collisions.
        // With a thousand associations, one handshake in a thousand would reach a wrong connection and get no answer.
        endpoint.cid_generator(|| Box::new(RandomConnectionIdGenerator::new(CONNECTION_ID_BYTES)));
        // Accept packets of any allowed size, unless the path is known to carry less; in that case the limit is
        // announced to the peer.
        let is_small = config.udp_payload_bytes < DEFAULT_UDP_PAYLOAD_BYTES;
        let most = if is_small { config.udp_payload_bytes } else { *UDP_PAYLOAD_BYTES.end() };
        let largest = endpoint.max_udp_payload_size(most);
        largest.map_err(|error| CarrierError::Keys(error.to_string()))?;
        let endpoint = Arc::new(endpoint);
        let client = [first.map_err(keys)?, below.map_err(keys)?];
        Ok(Settings { endpoint, reset_key, server, client, verifier, seed })
    }

    /// Returns the settings of `config` for the endpoint of these settings, which is in use. The
    /// connections that begin from now on can be reset after a restart with the new key.
    pub(super) fn renewed(&self, config: &QuicConfig) -> Result<Settings, CarrierError> {
        let fresh = Settings::of(config)?;
        if let (Some(used), Some(new)) = (&self.reset_key, &fresh.reset_key) {
            used.set(new.get());
        }
        Ok(Settings { endpoint: Arc::clone(&self.endpoint), reset_key: self.reset_key.clone(), ..fresh })
    }
}

/// The cipher suite, and the groups of the key exchange: the hybrid one is preferred.
fn provider() -> CryptoProvider {
    let mut provider = rustls::crypto::ring::default_provider();
    provider.cipher_suites.retain(|suite| suite.suite() == rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
    provider.kx_groups = vec![&X25519MlKem768, X25519];
    provider
}

/// The key of stateless resets (RFC 9000 section 10.3). It changes with the host's key, but an
/// endpoint takes its configuration only once.
struct ResetKey(RwLock<hmac::Key>);

impl ResetKey {
    /// Derives the key from that of the host. Everybody can make a host send the reset of a connection
    /// ID. Hosts with the same key at several addresses therefore need a reset key for each; otherwise
    /// one could be made to end the connections of another.
    fn new(identity: &Identity, local: SocketAddr) -> ResetKey {
        let key = identity.derive("sparelane stateless reset", local.to_string().as_bytes());
        ResetKey(RwLock::new(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }

    fn get(&self) -> hmac::Key {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, key: hmac::Key) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = key;
    }
}

impl HmacKey for ResetKey {
    fn sign(&self, data: &[u8], out: &mut [u8]) {
        HmacKey::sign(&self.get(), data, out);
    }

    fn signature_len(&self) -> usize {
        self.get().signature_len()
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        HmacKey::verify(&self.get(), data, signature)
    }
}

/// The key of address validation tokens (RFC 9000 section 8.1).
fn token_key(identity: &Identity) -> hkdf::Prk {
    hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, &identity.derive("sparelane address token", &[]))
}

fn client(
    config: &QuicConfig,
    provider: &Arc<CryptoProvider>,
    verifier: &Arc<KeyVerifier>,
    idle: Option<Duration>,
) -> Result<ClientConfig, rustls::Error> {
    let tls = QuicClientConfig::try_from(client_tls(config, provider, verifier)?)
        .map_err(|error| rustls::Error::General(error.to_string()))?;
    let mut client = ClientConfig::new(Arc::new(tls));
    client.transport_config(Arc::new(transport(config, idle)));
    Ok(client)
}

fn client_tls(
    config: &QuicConfig,
    provider: &Arc<CryptoProvider>,
    verifier: &Arc<KeyVerifier>,
) -> Result<rustls::ClientConfig, rustls::Error> {
    let mut tls = rustls::ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(verifier) as _)
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(config.identity.certified())));
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    tls.resumption = Resumption::disabled();
    tls.enable_sni = false;
    Ok(tls)
}

fn server(
    config: &QuicConfig,
    provider: &Arc<CryptoProvider>,
    verifier: &Arc<KeyVerifier>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let tls = QuicServerConfig::try_from(server_tls(config, provider, verifier)?)
        .map_err(|error| rustls::Error::General(error.to_string()))?;
    // A Retry stays valid if this host restarts before its answer.
    let mut server = ServerConfig::new(Arc::new(tls), Arc::new(token_key(&config.identity)));
    let mut transport = transport(config, None);
    transport.receive_window(VarInt::from_u32(HELLO_WINDOW_BYTES));
    server.transport_config(Arc::new(transport));
    server.max_incoming(64).incoming_buffer_size(64 << 10).incoming_buffer_size_total(1 << 20);
    Ok(Arc::new(server))
}

fn server_tls(
    config: &QuicConfig,
    provider: &Arc<CryptoProvider>,
    verifier: &Arc<KeyVerifier>,
) -> Result<rustls::ServerConfig, rustls::Error> {
    let mut tls = rustls::ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(Arc::clone(verifier) as _)
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(config.identity.certified())));
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    tls.send_tls13_tickets = 0;
    Ok(tls)
}

fn transport(config: &QuicConfig, idle: Option<Duration>) -> TransportConfig {
    let mut acks = AckFrequencyConfig::default();
    // QUIC's own acknowledgments control nothing here, so they can be rare.
    acks.ack_eliciting_threshold(VarInt::from_u32(1000));
    acks.reordering_threshold(VarInt::from_u32(0));
    acks.max_ack_delay(Some(Duration::from_millis(100)));
    let mut transport = TransportConfig::default();
    transport
        .initial_mtu(config.udp_payload_bytes)
        .min_mtu(config.udp_payload_bytes)
        // QUIC's detection of black holes would stall a transfer whose lower classes are dropped.
        .mtu_discovery_config(None)
        // The carrier checks for idle peers itself.
        .max_idle_timeout(None)
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
        .congestion_controller_factory(Arc::new(UnlimitedFactory));
    transport
}

/// An unlimited window, since the transport above controls congestion. A window beyond 32 bits also disables QUIC's
/// pacer.
#[derive(Clone, Debug)]
struct Unlimited;

impl Controller for Unlimited {
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
struct UnlimitedFactory;

impl ControllerFactory for UnlimitedFactory {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(Unlimited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{ClientConnection, NamedGroup, ServerConnection};

    /// Returns the group that a client and a server with these groups negotiate.
    fn negotiated(client_hybrid: bool, server_hybrid: bool) -> Option<NamedGroup> {
        let [client, server] = [0, 1].map(|_| Identity::generate().expect("a key"));
        let provider = |hybrid| {
            let mut provider = provider();
            provider.kx_groups.retain(|group| hybrid || group.name() == NamedGroup::X25519);
            Arc::new(provider)
        };
        let config =
            |own: &Identity, peer: &Identity| QuicConfig::new(own.clone(), Trusted::from_iter([peer.fingerprint()]));
        let verifier = |config: &QuicConfig, provider: &CryptoProvider| {
            let algorithms = provider.signature_verification_algorithms;
            Arc::new(KeyVerifier::new(config.trusted.clone(), false, algorithms))
        };
        let (of_client, of_server) = (config(&client, &server), config(&server, &client));
        let (ours, theirs) = (provider(client_hybrid), provider(server_hybrid));
        let client = client_tls(&of_client, &ours, &verifier(&of_client, &ours)).expect("a configuration");
        let server = server_tls(&of_server, &theirs, &verifier(&of_server, &theirs)).expect("a configuration");
        let name = "sparelane".try_into().expect("a name");
        let mut client = ClientConnection::new(Arc::new(client), name).expect("a connection");
        let mut server = ServerConnection::new(Arc::new(server)).expect("a connection");
        while client.is_handshaking() || server.is_handshaking() {
            let mut bytes = vec![];
            client.write_tls(&mut bytes).expect("memory");
            server.read_tls(&mut &bytes[..]).expect("memory");
            server.process_new_packets().expect("a valid message");
            bytes.clear();
            server.write_tls(&mut bytes).expect("memory");
            client.read_tls(&mut &bytes[..]).expect("memory");
            client.process_new_packets().expect("a valid message");
        }
        let groups = [client.negotiated_key_exchange_group(), server.negotiated_key_exchange_group()];
        let [ours, theirs] = groups.map(|group| group.map(|group| group.name()));
        assert_eq!(ours, theirs);
        ours
    }

    #[test]
    fn the_hybrid_group_is_negotiated_and_x25519_if_one_side_lacks_it() {
        assert_eq!(negotiated(true, true), Some(NamedGroup::X25519MLKEM768));
        assert_eq!(negotiated(true, false), Some(NamedGroup::X25519));
        assert_eq!(negotiated(false, true), Some(NamedGroup::X25519));
    }
}
