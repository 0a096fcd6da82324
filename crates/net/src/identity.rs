//! The identity of a host: its key pair, the key's fingerprint, and the peers that it trusts.
//!
//! A host has an Ed25519 key. Peers identify each other only by the SHA-256 of the public key (its
//! SubjectPublicKeyInfo). TLS uses the raw keys (RFC 7250), without certificates, names or authorities. A folder of
//! keys holds the private key (`key.pem`, PKCS #8) and the fingerprints of trusted peers (`trusted`, one per line,
//! followed by a remark). Both files are accessible to their owner only. Other users cannot write to the folder or to one
//! above it, since that suffices to replace the files (as `StrictModes` of OpenSSH).

use crate::peer_text::PeerText;
use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use rustls::crypto::ring::sign::any_eddsa_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::{CertifiedKey, SigningKey};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;

/// The file name of the private key.
pub const KEY_FILE: &str = "key.pem";

/// The file name of the list of trusted peers.
pub const TRUSTED_FILE: &str = "trusted";

/// The maximum number of trusted peers.
pub const MAX_TRUSTED: usize = 10_000;

/// The maximum size of a file in a folder of keys, bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The SHA-256 of a public key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Computes the fingerprint of a public key, given as a SubjectPublicKeyInfo.
    pub fn of(public_key: &[u8]) -> Fingerprint {
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, public_key).as_ref());
        Fingerprint(fingerprint)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not a fingerprint.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("\"{text}\" is not a fingerprint, which has 64 hexadecimal digits")]
pub struct FingerprintError {
    text: String,
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Fingerprint, FingerprintError> {
        let wrong = || FingerprintError { text: text.chars().take(80).collect() };
        let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
        let digits = digits.filter(|digits| digits.len() == 64).ok_or_else(wrong)?;
        let mut fingerprint = [0; 32];
        for (byte, pair) in fingerprint.iter_mut().zip(digits.chunks(2)) {
            *byte = pair[0] << 4 | pair[1];
        }
        Ok(Fingerprint(fingerprint))
    }
}

/// An error of a folder of keys.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The folder has no key.
    #[error("\"{folder}\" holds no key; `sparelane keys new --keys \"{folder}\"` makes one", folder = .0.display())]
    Missing(PathBuf),
    /// The folder has a key already.
    #[error("{}: there is a key already; it is not replaced", .0.display())]
    Exists(PathBuf),
    /// Other users can read or write the file.
    #[error("{}: others have access to it (mode {mode:03o}); only its owner may: chmod 600", path.display())]
    Rights {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Other users can write to the folder or to one above it, and so replace the key.
    #[error("{}: others can write to it (mode {mode:04o}); only its owner may: chmod go-w", path.display())]
    FolderRights {
        /// The folder.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A file or folder belongs to another user, who can change it.
    #[error("{}: it belongs to user {owner}, who can change it; allowed: this user or root", path.display())]
    Owner {
        /// The file or folder.
        path: PathBuf,
        /// The number of its owner.
        owner: u32,
    },
    /// The file has no Ed25519 key.
    #[error("{}: the file has no Ed25519 private key in PKCS #8", .0.display())]
    NoKey(PathBuf),
    /// A line of the list of trusted peers is invalid.
    #[error("{}, line {line}: {error}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line's number, from 1.
        line: usize,
        /// The reason.
        error: FingerprintError,
    },
    /// The list of trusted peers is too long.
    #[error("{}: more than {MAX_TRUSTED} trusted peers", .0.display())]
    TooMany(PathBuf),
    /// The system provides no random numbers.
    #[error("the system provides no random numbers for a key")]
    Random,
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> IdentityError {
    let path = path.to_owned();
    move |error| IdentityError::File { path, error }
}

/// A host's key pair.
#[derive(Clone)]
pub struct Identity {
    key: Arc<dyn SigningKey>,
    public_key: Vec<u8>,
    pkcs8: Arc<[u8]>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.fingerprint())
    }
}

impl Identity {
    /// Generates a key pair.
    ///
    /// # Errors
    /// The system provides no random numbers.
    pub fn generate() -> Result<Identity, IdentityError> {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| IdentityError::Random)?;
        Identity::of_pkcs8(pkcs8.as_ref()).ok_or(IdentityError::Random)
    }

    fn of_pkcs8(pkcs8: &[u8]) -> Option<Identity> {
        let key = any_eddsa_type(&PrivatePkcs8KeyDer::from(pkcs8)).ok()?;
        let public_key = key.public_key()?.as_ref().to_vec();
        Some(Identity { key, public_key, pkcs8: pkcs8.into() })
    }

    /// Loads the key pair from a folder.
    ///
    /// # Errors
    /// The key is missing or invalid, or other users have access to it or to its folder.
    pub fn load(folder: &Path) -> Result<Identity, IdentityError> {
        let path = folder.join(KEY_FILE);
        let text = read_private(&path).map_err(|error| match error {
            IdentityError::File { error, .. } if error.kind() == io::ErrorKind::NotFound => {
                IdentityError::Missing(folder.to_owned())
            }
            other => other,
        })?;
        let key = PrivateKeyDer::from_pem_slice(text.as_bytes()).ok();
        key.and_then(|key| Identity::of_pkcs8(key.secret_der())).ok_or(IdentityError::NoKey(path))
    }

    /// Writes the key pair into a folder, which is created if it does not exist.
    ///
    /// # Errors
    /// The folder has a key already, cannot be written, or can be written by other users.
    pub fn save(&self, folder: &Path) -> Result<(), IdentityError> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed(folder))?;
        check_folder(folder)?;
        let path = folder.join(KEY_FILE);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let mut file = file.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => IdentityError::Exists(path.clone()),
            _ => failed(&path)(error),
        })?;
        let text = format!("-----BEGIN PRIVATE KEY-----\n{}-----END PRIVATE KEY-----\n", base64(&self.pkcs8));
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed(&path))
    }

    /// The fingerprint by which peers know this host.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.public_key)
    }

    /// Derives a key for another purpose from the private key (the key derivation of BLAKE3).
    /// `purpose` is fixed in the program, and `context` distinguishes keys for the same purpose.
    pub(crate) fn derive(&self, purpose: &'static str, context: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&blake3::derive_key(purpose, &self.pkcs8), context).as_bytes()
    }

    /// Returns an identity that presents the public key of `other` without its private key.
    #[cfg(test)]
    pub(crate) fn pretending_to_be(&self, other: &Identity) -> Identity {
        Identity { public_key: other.public_key.clone(), ..self.clone() }
    }

    /// The key pair in the form that TLS needs.
    pub(crate) fn certified(&self) -> Arc<CertifiedKey> {
        Arc::new(CertifiedKey::new(vec![self.public_key.clone().into()], Arc::clone(&self.key)))
    }
}

/// The peers that a host trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trusted(BTreeSet<Fingerprint>);

impl Trusted {
    /// Loads the trusted peers from a folder; the list is empty if the file does not exist.
    ///
    /// # Errors
    /// The file cannot be read, other users have access to it, or a line is invalid.
    pub fn load(folder: &Path) -> Result<Trusted, IdentityError> {
        Ok(Trusted::with_remarks(folder)?.into_keys().collect())
    }

    /// Loads the trusted peers from a folder, each with its remark. Characters that would confuse a
    /// terminal are escaped.
    ///
    /// # Errors
    /// As for [`load`](Trusted::load).
    pub fn with_remarks(folder: &Path) -> Result<BTreeMap<Fingerprint, String>, IdentityError> {
        let path = folder.join(TRUSTED_FILE);
        let mut trusted = BTreeMap::new();
        if !path.exists() {
            return Ok(trusted);
        }
        for (at, line) in read_private(&path)?.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (word, remark) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let peer = word.parse().map_err(|error| IdentityError::Line { path: path.clone(), line: at + 1, error })?;
            trusted.insert(peer, PeerText::from(remark.trim()).into());
            if trusted.len() > MAX_TRUSTED {
                return Err(IdentityError::TooMany(path));
            }
        }
        Ok(trusted)
    }

    /// Appends a peer to the list of a folder. Returns false if it is there already; its remark is
    /// kept then.
    ///
    /// # Errors
    /// The file cannot be read or written, or the list is full.
    pub fn append(folder: &Path, peer: Fingerprint, remark: &str) -> Result<bool, IdentityError> {
        let trusted = Trusted::load(folder)?;
        let path = folder.join(TRUSTED_FILE);
        if trusted.contains(peer) {
            return Ok(false);
        }
        if trusted.0.len() >= MAX_TRUSTED {
            return Err(IdentityError::TooMany(path));
        }
        let remark: String = remark.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path).map_err(failed(&path))?;
        writeln!(file, "{peer} {remark}").map_err(failed(&path))?;
        Ok(true)
    }

    /// Removes a peer from the list of a folder and keeps all other lines. Returns true if the peer was there.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn remove(folder: &Path, peer: Fingerprint) -> Result<bool, IdentityError> {
        if !Trusted::load(folder)?.contains(peer) {
            return Ok(false);
        }
        let path = folder.join(TRUSTED_FILE);
        let is_other = |line: &&str| line.split_whitespace().next().and_then(|word| word.parse().ok()) != Some(peer);
        let text = read_private(&path)?;
        let kept: String = text.lines().filter(is_other).flat_map(|line| [line, "\n"]).collect();
        // The new file replaces the old one in one step, so that an interruption leaves one of them.
        let fresh = folder.join(format!("{TRUSTED_FILE}.new"));
        let made = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh);
        let mut file = made.map_err(failed(&fresh))?;
        file.write_all(kept.as_bytes()).and_then(|()| file.sync_all()).map_err(failed(&fresh))?;
        std::fs::rename(&fresh, &path).map_err(failed(&path))?;
        Ok(true)
    }

    /// Adds a peer.
    pub fn add(&mut self, peer: Fingerprint) {
        self.0.insert(peer);
    }

    /// Returns true if `peer` is trusted.
    pub fn contains(&self, peer: Fingerprint) -> bool {
        self.0.contains(&peer)
    }

    /// The trusted peers in order.
    pub fn iter(&self) -> impl Iterator<Item = Fingerprint> + '_ {
        self.0.iter().copied()
    }

    /// Returns true if no peer is trusted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Fingerprint> for Trusted {
    fn from_iter<I: IntoIterator<Item = Fingerprint>>(peers: I) -> Trusted {
        Trusted(peers.into_iter().collect())
    }
}

/// Reads a file of this user's configuration, and checks that nobody else can write to it. Returns
/// `None` if it does not exist.
///
/// # Errors
/// It cannot be read, or others can write to it, to its folder or to one above.
pub fn read_config(path: &Path) -> Result<Option<String>, IdentityError> {
    if !path.exists() {
        return Ok(None);
    }
    let (text, mode) = read_own(path)?;
    if mode & 0o022 != 0 {
        return Err(IdentityError::FolderRights { path: path.to_owned(), mode });
    }
    Ok(Some(text))
}

/// Reads a text file, and checks that only its owner has access.
fn read_private(path: &Path) -> Result<String, IdentityError> {
    let (text, mode) = read_own(path)?;
    if mode & 0o077 != 0 {
        return Err(IdentityError::Rights { path: path.to_owned(), mode });
    }
    Ok(text)
}

/// Reads a text file, and checks that it belongs to this user and that others cannot replace it.
/// Returns its permission bits, too.
fn read_own(path: &Path) -> Result<(String, u32), IdentityError> {
    let file = File::open(path).map_err(failed(path))?;
    let metadata = file.metadata().map_err(failed(path))?;
    if let Some(folder) = path.parent() {
        let owner = check_folder(folder)?;
        check_owner(path, &metadata, owner)?;
    }
    let mode = metadata.permissions().mode() & 0o777;
    let mut text = String::new();
    file.take(MAX_FILE_BYTES).read_to_string(&mut text).map_err(failed(path))?;
    // Some editors write a byte order mark.
    Ok((text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned), mode))
}

/// Checks that only this user and root can write to a folder and to all folders above it. A sticky folder, such as
/// `/tmp`, lets everybody write but only owners rename, so it may be above the folder of keys. Returns the owner.
fn check_folder(folder: &Path) -> Result<u32, IdentityError> {
    const STICKY: u32 = 0o1000;
    let folder = folder.canonicalize().map_err(failed(folder))?;
    let owner = std::fs::metadata(&folder).map_err(failed(&folder))?.uid();
    for path in folder.ancestors() {
        let metadata = std::fs::metadata(path).map_err(failed(path))?;
        let mode = metadata.permissions().mode() & 0o7777;
        let is_sticky = mode & STICKY != 0 && path != folder;
        if mode & 0o022 != 0 && !is_sticky {
            return Err(IdentityError::FolderRights { path: path.to_owned(), mode });
        }
        check_owner(path, &metadata, owner)?;
    }
    Ok(owner)
}

/// Checks that a file or folder belongs to this user, to root or, if this user is root (as with `sudo`), to the owner of
/// the folder of keys.
fn check_owner(path: &Path, metadata: &Metadata, folder_owner: u32) -> Result<(), IdentityError> {
    let (owner, own) = (metadata.uid(), nix::unistd::geteuid().as_raw());
    if owner == 0 || owner == own || own == 0 && owner == folder_owner {
        return Ok(());
    }
    Err(IdentityError::Owner { path: path.to_owned(), owner })
}

/// Removes all permissions on `path` except the owner's.
///
/// # Errors
/// The system refuses.
pub fn make_private(path: &Path) -> Result<(), IdentityError> {
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed(path))
}

/// Base64 of RFC 4648 section 4, in lines of 64 characters.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for line in bytes.chunks(48) {
        for group in line.chunks(3) {
            let bits = group.iter().fold(0, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - group.len()));
            for place in 0..4 {
                let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63];
                text.push(if place > group.len() { '=' } else { char::from(digit) });
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::chown;

    /// A folder that is removed after the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("sparelane-identity-{}-{name}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn fingerprint(digit: char) -> Fingerprint {
        digit.to_string().repeat(64).parse().expect("a fingerprint")
    }

    #[test]
    fn a_saved_key_loads_again_and_is_private() {
        let folder = Folder::new("saved");
        let identity = Identity::generate().expect("a key");
        identity.save(&folder.0).expect("a folder");
        let path = folder.0.join(KEY_FILE);
        let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::metadata(&folder.0).expect("a folder").permissions().mode() & 0o777, 0o700);
        assert_eq!(Identity::load(&folder.0).expect("the key").fingerprint(), identity.fingerprint());
        assert!(matches!(identity.save(&folder.0), Err(IdentityError::Exists(_))), "a key is never replaced");
        assert_ne!(Identity::generate().expect("a key").fingerprint(), identity.fingerprint());
    }

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        let folder = Folder::new("rights");
        Identity::generate().expect("a key").save(&folder.0).expect("a folder");
        let path = folder.0.join(KEY_FILE);
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("rights");
        let refused = Identity::load(&folder.0).expect_err("others can read it").to_string();
        assert!(refused.ends_with("others have access to it (mode 640); only its owner may: chmod 600"), "{refused}");
        make_private(&path).expect("rights");
        Identity::load(&folder.0).expect("the key");
        std::fs::write(&path, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").expect("a file");
        assert!(matches!(Identity::load(&folder.0), Err(IdentityError::NoKey(_))));
        assert!(matches!(Identity::load(&folder.0.join("elsewhere")), Err(IdentityError::Missing(_))));
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let above = Folder::new("writable");
        let folder = above.0.join("keys");
        Identity::generate().expect("a key").save(&folder).expect("a folder");
        Trusted::append(&folder, fingerprint('a'), "").expect("a line");
        let set = |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("rights");
        for mode in [0o777, 0o720, 0o702, 0o1777] {
            set(&folder, mode);
            for refused in [Identity::load(&folder).err(), Trusted::load(&folder).err()] {
                let refused = refused.expect("others can write").to_string();
                let end = format!("others can write to it (mode {mode:04o}); only its owner may: chmod go-w");
                assert!(refused.ends_with(&end), "{refused}");
            }
            let trusts = Trusted::append(&folder, fingerprint('b'), "");
            assert!(matches!(trusts, Err(IdentityError::FolderRights { .. })), "{trusts:?}");
        }
        set(&folder, 0o755);
        Identity::load(&folder).expect("others can only read");
        // The right to rename the folder suffices to replace it.
        set(&above.0, 0o777);
        assert!(matches!(Identity::load(&folder), Err(IdentityError::FolderRights { path, .. }) if path == above.0));
        set(&above.0, 0o1777);
        Identity::load(&folder).expect("only owners can rename in a sticky folder");
        set(&above.0, 0o700);
        let open = above.0.join("open");
        std::fs::create_dir(&open).expect("a folder");
        set(&open, 0o770);
        let saved = Identity::generate().expect("a key").save(&open);
        assert!(matches!(saved, Err(IdentityError::FolderRights { .. })), "{saved:?}");
    }

    #[test]
    fn keys_belong_to_this_user_or_to_the_owner_of_their_folder() {
        let folder = Folder::new("owner");
        Identity::generate().expect("a key").save(&folder.0).expect("a folder");
        Identity::load(&folder.0).expect("this user's key");
        // Only root can give files to others.
        if nix::unistd::geteuid().is_root() {
            let path = folder.0.join(KEY_FILE);
            chown(&folder.0, Some(1234), None).expect("rights");
            Identity::load(&folder.0).expect("root's key in another user's folder");
            chown(&path, Some(1234), None).expect("rights");
            Identity::load(&folder.0).expect("another user's folder and key, as with sudo");
            chown(&path, Some(1235), None).expect("rights");
            let refused = Identity::load(&folder.0).expect_err("a third user's key").to_string();
            assert!(refused.contains("it belongs to user 1235, who can change it"), "{refused}");
        }
    }

    #[test]
    fn trusted_peers_are_stored_once_each_with_a_remark() {
        let folder = Folder::new("trusted");
        assert!(Trusted::load(&folder.0).expect("none").is_empty());
        Identity::generate().expect("a key").save(&folder.0).expect("a folder");
        for (digit, remark) in [('a', "the archive"), ('b', "two\nlines"), ('a', "again")] {
            Trusted::append(&folder.0, fingerprint(digit), remark).expect("a line");
        }
        let trusted = Trusted::load(&folder.0).expect("two");
        assert_eq!(trusted.iter().collect::<Vec<_>>(), [fingerprint('a'), fingerprint('b')]);
        let path = folder.0.join(TRUSTED_FILE);
        let text = std::fs::read_to_string(&path).expect("a file");
        std::fs::write(&path, format!("# comment\n\n{text}xyz\n")).expect("a file");
        let refused = Trusted::load(&folder.0).expect_err("no fingerprint").to_string();
        assert!(
            refused.ends_with("line 5: \"xyz\" is not a fingerprint, which has 64 hexadecimal digits"),
            "{refused}"
        );
    }

    #[test]
    fn removing_a_peer_keeps_all_other_lines() {
        let folder = Folder::new("untrusted");
        Identity::generate().expect("a key").save(&folder.0).expect("a folder");
        for digit in ['a', 'b', 'c'] {
            Trusted::append(&folder.0, fingerprint(digit), "remark").expect("a line");
        }
        let path = folder.0.join(TRUSTED_FILE);
        let text = std::fs::read_to_string(&path).expect("a file");
        std::fs::write(&path, format!("# comment\n{text}")).expect("a file");
        assert!(Trusted::remove(&folder.0, fingerprint('b')).expect("a file"));
        assert!(!Trusted::remove(&folder.0, fingerprint('b')).expect("a file"), "it is removed already");
        let left = Trusted::load(&folder.0).expect("for the owner alone");
        assert_eq!(left.iter().collect::<Vec<_>>(), [fingerprint('a'), fingerprint('c')]);
        let text = std::fs::read_to_string(&path).expect("a file");
        assert!(text.starts_with("# comment\n") && text.contains("remark"), "{text}");
    }

    #[test]
    fn fingerprints_are_printed_and_parsed() {
        let text = "00ff".repeat(16);
        assert_eq!(text.parse::<Fingerprint>().expect("one").to_string(), text);
        for wrong in ["", "00", &"g".repeat(64), &"0".repeat(65), &"é".repeat(32)] {
            assert!(wrong.parse::<Fingerprint>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn base64_matches_the_vectors_of_its_rfc() {
        for (bytes, text) in [("", ""), ("f", "Zg==\n"), ("fo", "Zm8=\n"), ("foo", "Zm9v\n"), ("foobar", "Zm9vYmFy\n")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
