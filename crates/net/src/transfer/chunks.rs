//! The BLAKE3 of a file by chunks, so that what is wrong in one costs this one alone.
//!
//! A chunk is a subtree of the file's own BLAKE3, and its digest that subtree's chaining value, of which the digest of the whole is
//! made: each byte is hashed once. The last chunk may be shorter; so is the one in which an earlier attempt was cut.

use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use std::io::{self, Read};

/// A BLAKE3 digest.
pub type Digest = [u8; 32];

/// The most chunks of a file: their digests fit one message.
pub const MOST_CHUNKS: usize = 256;

/// The smallest chunk, bytes.
const LEAST_CHUNK_BYTES: u64 = 1 << 20;

/// So much is read at once.
const READ_BYTES: usize = 1 << 18;

/// After so many bytes that were read only to be hashed, the other side is told, which waits.
const TOLD_BYTES: u64 = 64 << 20;

/// Bytes of a chunk of a file of so many bytes: a power of two, by which both sides divide the file alike.
pub fn chunk_bytes(size: u64) -> u64 {
    size.div_ceil(MOST_CHUNKS as u64).next_power_of_two().max(LEAST_CHUNK_BYTES)
}

/// The chunks of a file whose bytes come in.
#[derive(Debug)]
pub struct Chunks {
    size: u64,
    chunk_bytes: u64,
    /// Of the chunks from the first on.
    digests: Vec<Digest>,
    /// The chunk that is being hashed, how much of it was, and its state.
    current: usize,
    filled_bytes: u64,
    hasher: blake3::Hasher,
    /// Of a file that is one chunk: as the root of the tree it has another digest than as a chunk.
    root: Digest,
}

impl Chunks {
    /// Of a file of so many bytes, of which none has come.
    pub fn new(size: u64) -> Chunks {
        Chunks {
            size,
            chunk_bytes: chunk_bytes(size),
            digests: Vec::new(),
            current: 0,
            filled_bytes: 0,
            hasher: blake3::Hasher::new(),
            root: *blake3::hash(&[]).as_bytes(),
        }
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of each chunk but the last.
    pub fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    /// Where in the file the next bytes belong.
    pub fn position(&self) -> u64 {
        self.current as u64 * self.chunk_bytes + self.filled_bytes
    }

    /// The next bytes belong to the beginning of this chunk, which is one of those that have come, or the next.
    pub fn begin(&mut self, chunk: usize) {
        debug_assert!(chunk <= self.digests.len(), "chunks come in order");
        (self.current, self.filled_bytes) = (chunk, 0);
        self.hasher = blake3::Hasher::new();
        self.hasher.set_input_offset(chunk as u64 * self.chunk_bytes);
    }

    /// Goes back to the beginning of a chunk; what has come behind it counts no more.
    pub fn go_back(&mut self, chunk: usize) {
        self.digests.truncate(chunk);
        self.begin(chunk);
    }

    /// These bytes come next, which are no more than the file has.
    pub fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let whole_bytes = self.chunk_bytes.min(self.size.saturating_sub(self.current as u64 * self.chunk_bytes));
            let missing = (whole_bytes.saturating_sub(self.filled_bytes)).min(bytes.len() as u64) as usize;
            debug_assert!(missing > 0, "no more bytes than the file has");
            let (now, later) = bytes.split_at(missing.max(1));
            self.hasher.update(now);
            self.filled_bytes += now.len() as u64;
            bytes = later;
            if self.filled_bytes >= whole_bytes {
                self.end_chunk();
            }
        }
    }

    fn end_chunk(&mut self) {
        if self.size <= self.chunk_bytes {
            self.root = *self.hasher.finalize().as_bytes();
        }
        let digest = self.hasher.finalize_non_root();
        match self.digests.get_mut(self.current) {
            Some(known) => *known = digest,
            None => self.digests.push(digest),
        }
        self.begin(self.current + 1);
    }

    /// So many bytes come from `reader` next. Tells how many have come whenever it is time to.
    ///
    /// # Errors
    /// They cannot be read, or there are fewer.
    pub fn read(&mut self, mut reader: impl Read, bytes: u64, tell: &mut dyn FnMut(u64)) -> io::Result<()> {
        let mut buffer = vec![0; READ_BYTES.min(bytes as usize)];
        let (mut done, mut told) = (0, 0);
        while done < bytes {
            let most = buffer.len().min((bytes - done) as usize);
            match reader.read(&mut buffer[..most]) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
                Ok(read) => {
                    self.update(&buffer[..read]);
                    done += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if done - told >= TOLD_BYTES {
                told = done;
                tell(done);
            }
        }
        Ok(())
    }

    /// The digest of each chunk that has come, and of the beginning of the next one, if that has.
    pub fn digests(&self) -> Vec<Digest> {
        let mut digests = self.digests.clone();
        if self.filled_bytes > 0 && self.current == digests.len() {
            digests.push(self.hasher.finalize_non_root());
        }
        digests
    }

    /// The digest of the whole, all of which has come.
    pub fn whole(&self) -> Digest {
        match &self.digests[..] {
            [] | [_] => self.root,
            digests => {
                let (left, right) = digests.split_at(left_of(digests.len()));
                *merge_subtrees_root(&merged(left), &merged(right), Mode::Hash).as_bytes()
            }
        }
    }
}

/// So many of more than one chunk are left of the root of their tree.
fn left_of(chunks: usize) -> usize {
    chunks.div_ceil(2).next_power_of_two()
}

fn merged(digests: &[Digest]) -> Digest {
    match digests {
        [] => Digest::default(),
        [digest] => *digest,
        digests => {
            let (left, right) = digests.split_at(left_of(digests.len()));
            merge_subtrees_non_root(&merged(left), &merged(right), Mode::Hash)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    /// Bytes that BLAKE3's own test vectors are made of.
    fn content(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at % 251) as u8).collect()
    }

    fn hex(digest: Digest) -> String {
        blake3::Hash::from_bytes(digest).to_hex().to_string()
    }

    #[test]
    fn the_digest_of_the_whole_is_its_blake3_however_it_comes() {
        for bytes in [0, 1, 1024, MIB - 1, MIB, MIB + 1, 2 * MIB, 3 * MIB - 5, 5 * MIB + 1, 7 * MIB] {
            let content = content(bytes);
            for step in [1 << 16, 777_777, 10 * MIB] {
                let mut chunks = Chunks::new(bytes as u64);
                content.chunks(step).for_each(|some| chunks.update(some));
                assert_eq!(chunks.whole(), *blake3::hash(&content).as_bytes(), "{bytes} by {step}");
                assert_eq!(chunks.digests().len(), bytes.div_ceil(MIB));
            }
        }
    }

    #[test]
    fn a_chunk_that_comes_again_takes_the_place_of_the_wrong_one() {
        let right = content(3 * MIB + 77);
        let mut wrong = right.clone();
        (wrong[MIB + 5], wrong[2 * MIB]) = (0xff, 0xff);
        let mut chunks = Chunks::new(right.len() as u64);
        chunks.update(&wrong);
        for chunk in [1, 2] {
            assert_ne!(chunks.whole(), *blake3::hash(&right).as_bytes());
            chunks.begin(chunk);
            assert_eq!(chunks.position(), (chunk * MIB) as u64);
            chunks.update(&right[chunk * MIB..(chunk + 1) * MIB]);
        }
        assert_eq!(chunks.whole(), *blake3::hash(&right).as_bytes());
        chunks.go_back(2);
        chunks.update(&right[2 * MIB..]);
        assert_eq!(chunks.whole(), *blake3::hash(&right).as_bytes());
    }

    /// What an earlier attempt has left is told by these digests: other ones would be another format.
    #[test]
    fn chunks_have_the_digests_that_they_had() {
        let mut chunks = Chunks::new(2 * MIB as u64 + 1000);
        chunks.update(&content(MIB + 1000));
        let digests = chunks.digests();
        assert_eq!(
            digests.into_iter().map(hex).collect::<Vec<_>>(),
            [
                "8a576541118ebf5fad8d683c09b63402288a71616ecc72514abf780822136023",
                "6679eda4ee070570033cc9d532827f57573949d7d4b4453d717da2eecd08968c",
            ]
        );
    }

    #[test]
    fn a_file_of_any_size_has_so_few_chunks_that_one_message_tells_them() {
        assert_eq!([1, 256 << 20, (256 << 20) + 1].map(chunk_bytes), [1 << 20, 1 << 20, 2 << 20]);
        for size in [u64::MAX, 1 << 63, (1 << 40) + 1, 100_000_000_000] {
            assert!(size.div_ceil(chunk_bytes(size)) <= MOST_CHUNKS as u64, "{size}");
        }
    }
}
