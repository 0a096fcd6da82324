//! Authentication of peers by their raw public keys: a key is valid if its fingerprint is trusted.
//!
//! A public key is no secret, so a peer can present the key of another. The check therefore waits for the signature of
//! the handshake: only a peer that has proved possession of its key is reported by name, and all strangers get the same
//! answer at the same point. The answers do not reveal which public keys are trusted.

use crate::identity::{Fingerprint, Trusted};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerMisbehaved, SignatureScheme};
use std::sync::{Mutex, PoisonError, RwLock};

/// Verifies keys for both sides of TLS.
#[derive(Debug)]
pub(super) struct KeyVerifier {
    trusted: RwLock<Trusted>,
    /// Trusts the first peer if no peer is trusted yet.
    first_contact: bool,
    /// The last proven key that was refused, for the error of the side that dialed. None if the proof was wrong.
    refused: Mutex<Option<Fingerprint>>,
    /// The last proven key that was refused, until it is reported.
    unreported: Mutex<Option<Fingerprint>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl KeyVerifier {
    pub(super) fn new(trusted: Trusted, first_contact: bool, algorithms: WebPkiSupportedAlgorithms) -> KeyVerifier {
        let (trusted, refused, unreported) = (RwLock::new(trusted), Mutex::new(None), Mutex::new(None));
        KeyVerifier { trusted, first_contact, refused, unreported, algorithms }
    }

    /// Returns true if a peer that has proved possession of this key may open an association. With first contact, the
    /// first such peer becomes trusted; until its proof arrives, another one may still be first.
    pub(super) fn admit(&self, peer: Fingerprint) -> bool {
        let mut trusted = self.trusted.write().unwrap_or_else(PoisonError::into_inner);
        if self.first_contact && trusted.is_empty() {
            trusted.add(peer);
        }
        trusted.contains(peer)
    }

    /// Returns, once, the last proven key that was refused.
    pub(super) fn take_refused_peer(&self) -> Option<Fingerprint> {
        self.unreported.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Replaces the trusted keys.
    pub(super) fn set_trusted(&self, trusted: Trusted) {
        *self.trusted.write().unwrap_or_else(PoisonError::into_inner) = trusted;
    }

    /// The trusted keys.
    pub(super) fn trusted(&self) -> Trusted {
        self.trusted.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The last proven key that was refused; none if a peer without a proof was refused after it.
    pub(super) fn last_refused(&self) -> Option<Fingerprint> {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks the peer's signature of the handshake, and then whether its key is trusted. Both failures send the same
    /// alert.
    fn check(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let peer = Fingerprint::of(key);
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        let proof = verify_tls13_signature_with_raw_key(message, &key, signature, &self.algorithms);
        let trusted = self.trusted.read().unwrap_or_else(PoisonError::into_inner);
        let proven = match proof {
            Ok(valid) if trusted.contains(peer) || self.first_contact && trusted.is_empty() => return Ok(valid),
            Ok(_) => Some(peer),
            Err(_) => None,
        };
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = proven;
        if proven.is_some() {
            *self.unreported.lock().unwrap_or_else(PoisonError::into_inner) = proven;
        }
        Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }
}

const ONLY_TLS13: Error = Error::PeerMisbehaved(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme);

impl ServerCertVerifier for KeyVerifier {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // The signature, which follows, is checked together with the key.
        Ok(ServerCertVerified::assertion())
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
        self.check(message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for KeyVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        // The signature, which follows, is checked together with the key.
        Ok(ClientCertVerified::assertion())
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
        self.check(message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
