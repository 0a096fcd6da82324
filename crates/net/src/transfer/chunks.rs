//! The BLAKE3 digest of a file by chunks, so that an error in one chunk costs only that chunk.
//!
//! A chunk is a subtree of the file's BLAKE3 tree, and its digest is the chaining value of that subtree. The digest of
//! the whole file follows from those of its chunks, so each byte is hashed once. The last chunk may be shorter, and so
//! may the one at the end of an interrupted attempt.

use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use std::io::{self, Read};

/// A BLAKE3 digest.
pub type Digest = [u8; 32];

/// The maximum number of chunks of a file; their digests fit into one message.
pub const MAX_CHUNKS: usize = 256;

/// The minimum size of a chunk, bytes.
const MIN_CHUNK_BYTES: u64 = 1 << 20;

/// The number of bytes read at once.
const READ_BYTES: usize = 1 << 18;

/// The minimum number of bytes hashed at once. Shorter inputs, such as the content of packets, are joined, since BLAKE3
/// processes up to 16 KiB of one input in parallel.
const HASHED_BYTES: usize = 1 << 14;

/// The number of bytes between two progress reports to the waiting peer, while existing data is hashed.
const REPORT_BYTES: u64 = 64 << 20;

/// Returns the chunk size for a file of `size` bytes: a power of two, so that both sides divide the file alike.
pub fn chunk_bytes(size: u64) -> u64 {
    size.div_ceil(MAX_CHUNKS as u64).next_power_of_two().max(MIN_CHUNK_BYTES)
}

/// The chunks of a file, hashed as its bytes arrive.
#[derive(Debug)]
pub struct Chunks {
    size: u64,
    chunk_bytes: u64,
    /// The digests of the complete chunks.
    digests: Vec<Digest>,
    /// The chunk being hashed, its bytes so far, and the state of the hash.
    current: usize,
    filled_bytes: u64,
    hasher: blake3::Hasher,
    /// The last bytes of the chunk so far, which are not hashed yet.
    unhashed: Vec<u8>,
    /// The digest of a file of one chunk: the root of the tree has another digest than the same chunk elsewhere.
    root: Digest,
}

impl Chunks {
    /// Creates the state for a file of `size` bytes.
    pub fn new(size: u64) -> Chunks {
        Chunks {
            size,
            chunk_bytes: chunk_bytes(size),
            digests: Vec::new(),
            current: 0,
            filled_bytes: 0,
            hasher: blake3::Hasher::new(),
            unhashed: Vec::new(),
            root: *blake3::hash(&[]).as_bytes(),
        }
    }

    /// Creates the state for a stream, whose size is unknown until [`end_stream`](Self::end_stream). It has one chunk.
    pub fn of_stream() -> Chunks {
        Chunks::new(u64::MAX)
    }

    /// Ends a stream after the bytes so far.
    pub fn end_stream(&mut self) {
        self.hash_rest();
        (self.size, self.root) = (self.position(), *self.hasher.finalize().as_bytes());
    }

    /// The size of the file, bytes; the largest number for a stream that has not ended.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The size of each chunk but the last, bytes.
    pub fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    /// The offset of the next byte.
    pub fn position(&self) -> u64 {
        self.current as u64 * self.chunk_bytes + self.filled_bytes
    }

    /// Continues at the start of `chunk`, which has arrived before or is the next.
    pub fn begin(&mut self, chunk: usize) {
        debug_assert!(chunk <= self.digests.len(), "chunks are in order");
        (self.current, self.filled_bytes) = (chunk, 0);
        self.unhashed.clear();
        self.hasher = blake3::Hasher::new();
        self.hasher.set_input_offset(chunk as u64 * self.chunk_bytes);
    }

    /// Discards `chunk` and all later ones, and continues at its start.
    pub fn go_back(&mut self, chunk: usize) {
        self.digests.truncate(chunk);
        self.begin(chunk);
    }

    /// Hashes the next bytes, which must not exceed the file's size.
    pub fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let whole_bytes = self.chunk_bytes.min(self.size.saturating_sub(self.current as u64 * self.chunk_bytes));
            let missing = (whole_bytes.saturating_sub(self.filled_bytes)).min(bytes.len() as u64) as usize;
            debug_assert!(missing > 0, "no more bytes than the file has");
            let (now, later) = bytes.split_at(missing.max(1));
            self.hash(now);
            self.filled_bytes += now.len() as u64;
            bytes = later;
            if self.filled_bytes >= whole_bytes {
                self.end_chunk();
            }
        }
    }

    /// Hashes the next bytes of the chunk, or keeps them to hash more at once.
    fn hash(&mut self, mut bytes: &[u8]) {
        if !self.unhashed.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(HASHED_BYTES - self.unhashed.len()));
            self.unhashed.extend_from_slice(now);
            if self.unhashed.len() < HASHED_BYTES {
                return;
            }
            self.hash_rest();
            bytes = later;
        }
        let (now, later) = bytes.split_at(bytes.len() - bytes.len() % HASHED_BYTES);
        self.hasher.update(now);
        self.unhashed.extend_from_slice(later);
    }

    fn hash_rest(&mut self) {
        self.hasher.update(&self.unhashed);
        self.unhashed.clear();
    }

    fn end_chunk(&mut self) {
        self.hash_rest();
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

    /// Hashes the next `bytes` from `reader`, and reports the progress now and then.
    ///
    /// # Errors
    /// The bytes cannot be read, or there are fewer.
    pub fn read(&mut self, mut reader: impl Read, bytes: u64, report: &mut dyn FnMut(u64)) -> io::Result<()> {
        let mut buffer = vec![0; READ_BYTES.min(bytes as usize)];
        let (mut done, mut reported) = (0, 0);
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
            if done - reported >= REPORT_BYTES {
                reported = done;
                report(done);
            }
        }
        Ok(())
    }

    /// The digests of the complete chunks and of the started one, if any.
    pub fn digests(&self) -> Vec<Digest> {
        let mut digests = self.digests.clone();
        if self.filled_bytes > 0 && self.current == digests.len() {
            digests.push(self.hasher.clone().update(&self.unhashed).finalize_non_root());
        }
        digests
    }

    /// The digest of the whole file, all of which must have been hashed.
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

/// The number of chunks in the left subtree of a tree of more than one.
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

    /// The content of BLAKE3's own test vectors.
    fn content(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at % 251) as u8).collect()
    }

    fn hex(digest: Digest) -> String {
        blake3::Hash::from_bytes(digest).to_hex().to_string()
    }

    #[test]
    fn the_digest_of_the_whole_is_its_blake3_for_any_step() {
        for bytes in [0, 1, 1024, MIB - 1, MIB, MIB + 1, 2 * MIB, 3 * MIB - 5, 5 * MIB + 1, 7 * MIB] {
            let content = content(bytes);
            for step in [1_380, HASHED_BYTES, 1 << 16, 777_777, 10 * MIB] {
                let mut chunks = Chunks::new(bytes as u64);
                content.chunks(step).for_each(|some| chunks.update(some));
                assert_eq!(chunks.whole(), *blake3::hash(&content).as_bytes(), "{bytes} by {step}");
                assert_eq!(chunks.digests().len(), bytes.div_ceil(MIB));
            }
        }
    }

    #[test]
    fn the_digest_of_a_stream_is_its_blake3() {
        for bytes in [0, 1, MIB, 3 * MIB + 5] {
            let (content, mut chunks) = (content(bytes), Chunks::of_stream());
            content.chunks(7_000).for_each(|some| chunks.update(some));
            chunks.end_stream();
            assert_eq!((chunks.size(), chunks.whole()), (bytes as u64, *blake3::hash(&content).as_bytes()));
        }
    }

    #[test]
    fn a_repeated_chunk_replaces_the_wrong_one() {
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

    /// A change of these digests would break the continuation of interrupted transfers.
    #[test]
    fn chunk_digests_are_stable() {
        for step in [1_380, 10 * MIB] {
            let mut chunks = Chunks::new(2 * MIB as u64 + 1000);
            content(MIB + 1000).chunks(step).for_each(|some| chunks.update(some));
            assert_eq!(
                chunks.digests().into_iter().map(hex).collect::<Vec<_>>(),
                [
                    "8a576541118ebf5fad8d683c09b63402288a71616ecc72514abf780822136023",
                    "6679eda4ee070570033cc9d532827f57573949d7d4b4453d717da2eecd08968c",
                ]
            );
        }
    }

    #[test]
    fn the_digests_of_a_file_of_any_size_fit_into_one_message() {
        assert_eq!([1, 256 << 20, (256 << 20) + 1].map(chunk_bytes), [1 << 20, 1 << 20, 2 << 20]);
        for size in [u64::MAX, 1 << 63, (1 << 40) + 1, 100_000_000_000] {
            assert!(size.div_ceil(chunk_bytes(size)) <= MAX_CHUNKS as u64, "{size}");
        }
    }
}
