//! Peers are known by their keys alone: a raw public key is good where its fingerprint is among the trusted ones.

use crate::identity::{Fingerprint, Trusted};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerMisbehaved, SignatureScheme};
use std::sync::{Mutex, PoisonError, RwLock};

/// The trusted keys, for both sides of TLS.
#[derive(Debug)]
pub(super) struct Pins {
    trusted: RwLock<Trusted>,
    /// Whoever comes first is trusted, while nobody is.
    first_contact: bool,
    /// The last key that was refused, to be told to whoever dialed it.
    refused: Mutex<Option<Fingerprint>>,
    /// The same, until it was told.
    stranger: Mutex<Option<Fingerprint>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Pins {
    pub(super) fn new(trusted: Trusted, first_contact: bool, algorithms: WebPkiSupportedAlgorithms) -> Pins {
        let (trusted, refused, stranger) = (RwLock::new(trusted), Mutex::new(None), Mutex::new(None));
        Pins { trusted, first_contact, refused, stranger, algorithms }
    }

    /// Whether a peer may come in that has proved that it has this key. The first one is trusted from then on, where that is asked
    /// for; until its proof is there, others can still come first.
    pub(super) fn admit(&self, peer: Fingerprint) -> bool {
        let mut trusted = self.trusted.write().unwrap_or_else(PoisonError::into_inner);
        if self.first_contact && trusted.is_empty() {
            trusted.add(peer);
        }
        trusted.contains(peer)
    }

    /// The key that was refused last, once.
    pub(super) fn take_stranger(&self) -> Option<Fingerprint> {
        self.stranger.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// From now on these are trusted.
    pub(super) fn set_trusted(&self, trusted: Trusted) {
        *self.trusted.write().unwrap_or_else(PoisonError::into_inner) = trusted;
    }

    /// Those that are trusted.
    pub(super) fn trusted(&self) -> Trusted {
        self.trusted.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The key that was refused last.
    pub(super) fn last_refused(&self) -> Option<Fingerprint> {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, key: &CertificateDer<'_>) -> Result<(), Error> {
        let peer = Fingerprint::of(key);
        let trusted = self.trusted.read().unwrap_or_else(PoisonError::into_inner);
        if trusted.contains(peer) || self.first_contact && trusted.is_empty() {
            return Ok(());
        }
        *self.stranger.lock().unwrap_or_else(PoisonError::into_inner) = Some(peer);
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(peer);
        Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    fn check_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signature, &self.algorithms)
    }
}

const ONLY_TLS13: Error = Error::PeerMisbehaved(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme);

impl ServerCertVerifier for Pins {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(key).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(ONLY_TLS13)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Pins {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(key).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(ONLY_TLS13)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
