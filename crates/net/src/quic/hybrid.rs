//! The key exchange X25519MLKEM768 (draft-ietf-tls-ecdhe-mlkem): ML-KEM-768 (FIPS 203) beside X25519.
//!
//! Who records a connection today and can break X25519 with a quantum computer later still cannot decrypt it. The
//! secret stays safe as long as one of the two exchanges is. *ring* has no ML-KEM, so it comes from another library.

use ml_kem::kem::{Decapsulate, KeyExport};
use ml_kem::{B32, DecapsulationKey768, EncapsulationKey768, Seed};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::crypto::ring::kx_group::X25519;
use rustls::crypto::{ActiveKeyExchange, CompletedKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};

/// The size of an encapsulation key of ML-KEM-768, the first part of the client's share.
const KEY_BYTES: usize = 1184;

/// The size of a ciphertext of ML-KEM-768, the first part of the server's share.
const CIPHERTEXT_BYTES: usize = 1088;

/// The size of a public key of X25519, the second part of both shares.
const X25519_BYTES: usize = 32;

/// The group.
#[derive(Debug)]
pub(super) struct X25519MlKem768;

impl SupportedKxGroup for X25519MlKem768 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let (x25519, ml_kem) = (X25519.start()?, DecapsulationKey768::from_seed(Seed::from(random::<64>()?)));
        let share = [ml_kem.encapsulation_key().to_bytes().as_slice(), x25519.pub_key()].concat();
        Ok(Box::new(Started { x25519, ml_kem, share }))
    }

    fn start_and_complete(&self, share: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let (key, x25519) = split(share, KEY_BYTES)?;
        let x25519 = X25519.start_and_complete(x25519)?;
        // The key is checked as FIPS 203 section 7.2 demands.
        let key = key.try_into().ok().and_then(|key| EncapsulationKey768::new(key).ok()).ok_or(INVALID)?;
        let (ciphertext, secret) = key.encapsulate_deterministic(&B32::from(random::<32>()?));
        Ok(CompletedKeyExchange {
            group: self.name(),
            pub_key: [ciphertext.as_slice(), &x25519.pub_key].concat(),
            secret: joined(secret.as_slice(), &x25519.secret),
        })
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

/// An exchange that a client has started.
struct Started {
    x25519: Box<dyn ActiveKeyExchange>,
    ml_kem: DecapsulationKey768,
    share: Vec<u8>,
}

impl ActiveKeyExchange for Started {
    fn complete(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        let (ciphertext, x25519) = split(share, CIPHERTEXT_BYTES)?;
        let secret = self.ml_kem.decapsulate_slice(ciphertext).map_err(|_| INVALID)?;
        Ok(joined(secret.as_slice(), &self.x25519.complete(x25519)?))
    }

    /// A server without the hybrid group uses this share, without another round trip.
    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        Some((self.x25519.group(), self.x25519.pub_key()))
    }

    fn complete_hybrid_component(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        self.x25519.complete(share)
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }
}

/// The error of a share that has a wrong size or is no key.
const INVALID: Error = Error::PeerMisbehaved(PeerMisbehaved::InvalidKeyShare);

/// Splits a share into its part of ML-KEM, which has `first_bytes`, and that of X25519.
fn split(share: &[u8], first_bytes: usize) -> Result<(&[u8], &[u8]), Error> {
    share.split_at_checked(first_bytes).filter(|(_, x25519)| x25519.len() == X25519_BYTES).ok_or(INVALID)
}

/// The secret of both exchanges.
fn joined(ml_kem: &[u8], x25519: &SharedSecret) -> SharedSecret {
    SharedSecret::from([ml_kem, x25519.secret_bytes()].concat())
}

fn random<const BYTES: usize>() -> Result<[u8; BYTES], Error> {
    let mut bytes = [0; BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Error::FailedToGetRandomBytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_get_the_same_secret_and_each_exchange_another_one() {
        let mut secrets = vec![];
        for _ in 0..3 {
            let client = X25519MlKem768.start().expect("random numbers");
            assert_eq!(client.pub_key().len(), KEY_BYTES + X25519_BYTES);
            let server = X25519MlKem768.start_and_complete(client.pub_key()).expect("a valid share");
            assert_eq!(server.pub_key.len(), CIPHERTEXT_BYTES + X25519_BYTES);
            let secret = client.complete(&server.pub_key).expect("a valid share");
            assert_eq!(secret.secret_bytes(), server.secret.secret_bytes());
            assert_eq!(secret.secret_bytes().len(), 64);
            secrets.push(secret.secret_bytes().to_vec());
        }
        assert!(secrets[0] != secrets[1] && secrets[1] != secrets[2]);
    }

    #[test]
    fn shares_of_a_wrong_size_or_with_an_invalid_key_are_refused() {
        let share = X25519MlKem768.start().expect("random numbers").pub_key().to_vec();
        for wrong in [&share[..share.len() - 1], &share[1..], &[], &share[..32]] {
            assert!(X25519MlKem768.start_and_complete(wrong).is_err(), "{} bytes", wrong.len());
            let client = X25519MlKem768.start().expect("random numbers");
            assert!(client.complete(wrong).is_err(), "{} bytes", wrong.len());
        }
        // A coefficient of the key is beyond the modulus.
        let mut wrong = share.clone();
        wrong[..2].fill(0xff);
        assert!(X25519MlKem768.start_and_complete(&wrong).is_err());
    }

    #[test]
    fn a_changed_ciphertext_gives_another_secret() {
        let client = X25519MlKem768.start().expect("random numbers");
        let mut server = X25519MlKem768.start_and_complete(client.pub_key()).expect("a valid share");
        server.pub_key[7] ^= 1;
        let secret = client.complete(&server.pub_key).expect("a share of the right size");
        assert_ne!(secret.secret_bytes()[..32], server.secret.secret_bytes()[..32]);
    }
}
