//! The hello: the first bytes of each connection, which state its class and prove its association.
//!
//! An association's secret is exported from the TLS session of class 0 (RFC 8446 section 7.5). A connection of a lower
//! class exports a value of its own session, and its client sends that value keyed with the secret. Only a participant
//! in both sessions can compute it. No other association, not even one of the same peer, can therefore add a class to
//! this one.

use quinn_proto::Connection;

/// The size of a hello: version, class and proof.
pub(super) const HELLO_BYTES: usize = 2 + 32;

/// The version of the hello's format.
const VERSION: u8 = 1;

const LABEL_ASSOCIATION: &[u8] = b"EXPORTER-sparelane-association";
const LABEL_CLASS: &[u8] = b"EXPORTER-sparelane-class";

/// The secret of an association, exported from its class 0.
#[derive(Clone, Copy)]
pub(super) struct Secret([u8; 32]);

impl Secret {
    pub(super) fn of(class_0: &Connection) -> Option<Secret> {
        let mut secret = [0; 32];
        class_0.crypto_session().export_keying_material(&mut secret, LABEL_ASSOCIATION, &[]).ok()?;
        Some(Secret(secret))
    }

    /// Computes the proof that `connection` is the association's `class`.
    pub(super) fn proof(&self, connection: &Connection, class: u8) -> Option<[u8; 32]> {
        let mut own = [0; 32];
        connection.crypto_session().export_keying_material(&mut own, LABEL_CLASS, &[class]).ok()?;
        Some(*blake3::keyed_hash(&self.0, &own).as_bytes())
    }
}

/// The first message of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) class: u8,
    /// The proof of a lower class; zero for class 0.
    pub(super) proof: [u8; 32],
}

impl Hello {
    pub(super) fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        (bytes[0], bytes[1]) = (VERSION, self.class);
        bytes[2..].copy_from_slice(&self.proof);
        bytes
    }

    /// Decodes a hello; `None` if it has another version.
    pub(super) fn decode(bytes: &[u8; HELLO_BYTES]) -> Option<Hello> {
        let mut proof = [0; 32];
        proof.copy_from_slice(&bytes[2..]);
        (bytes[0] == VERSION).then_some(Hello { class: bytes[1], proof })
    }

    /// Compares the proof in constant time.
    pub(super) fn proves(&self, proof: &[u8; 32]) -> bool {
        blake3::Hash::from_bytes(self.proof) == blake3::Hash::from_bytes(*proof)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_has_a_stable_encoding() {
        let hello = Hello { class: 3, proof: [7; 32] };
        let bytes = hello.encode();
        assert_eq!((&bytes[..3], bytes[33]), (&[1, 3, 7][..], 7));
        assert_eq!(Hello::decode(&bytes), Some(hello));
        let mut other = bytes;
        other[0] = 2;
        assert_eq!(Hello::decode(&other), None);
        assert!(hello.proves(&[7; 32]) && !hello.proves(&[8; 32]));
    }
}
