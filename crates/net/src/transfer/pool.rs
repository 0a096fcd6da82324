//! Buffers for the pieces of files that are read, which are used again.
//!
//! The system clears each page of a new buffer. Without the pool, this takes as long as reading a file that is in the
//! page cache.

use bytes::Bytes;
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The smallest buffer that is used again, bytes. Allocators keep the pages of smaller ones.
const MIN_BYTES: usize = 1 << 20;

/// The maximum number of buffers that wait for their next use.
const MAX_UNUSED: usize = 2;

/// Makes pieces from buffers, and uses a buffer again after all parts of its piece were dropped, by any thread.
#[derive(Debug, Default)]
pub struct Pool {
    unused: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Pool {
    /// Returns an empty buffer with at least this capacity.
    pub fn buffer(&self, bytes: usize) -> Vec<u8> {
        let unused = if bytes < MIN_BYTES { None } else { locked(&self.unused).pop() };
        let mut buffer = unused.unwrap_or_default();
        buffer.clear();
        buffer.reserve_exact(bytes);
        buffer
    }

    /// Makes a piece of a filled buffer.
    pub fn piece(&self, buffer: Vec<u8>) -> Bytes {
        if buffer.capacity() < MIN_BYTES {
            Bytes::from(buffer)
        } else {
            Bytes::from_owner(Pooled { buffer, unused: self.unused.clone() })
        }
    }
}

fn locked(unused: &Mutex<Vec<Vec<u8>>>) -> MutexGuard<'_, Vec<Vec<u8>>> {
    unused.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A buffer that returns to its pool when it is dropped.
struct Pooled {
    buffer: Vec<u8>,
    unused: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl AsRef<[u8]> for Pooled {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let mut unused = locked(&self.unused);
        if unused.len() < MAX_UNUSED {
            unused.push(take(&mut self.buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(pool: &Pool, bytes: usize, with: u8) -> Vec<u8> {
        let mut buffer = pool.buffer(bytes);
        buffer.resize(bytes, with);
        buffer
    }

    #[test]
    fn a_buffer_is_used_again_after_its_piece_and_not_before() {
        let pool = Pool::default();
        let buffer = filled(&pool, MIN_BYTES, 1);
        let address = buffer.as_ptr();
        let piece = pool.piece(buffer);
        let part = piece.slice(1..3);
        drop(piece);
        let other = filled(&pool, MIN_BYTES, 2);
        assert_ne!(other.as_ptr(), address, "a part of the piece still refers to the buffer");
        assert_eq!(&part[..], [1, 1]);
        std::thread::spawn(move || drop(part)).join().expect("the thread ends");
        let again = pool.buffer(MIN_BYTES);
        assert_eq!((again.as_ptr(), again.len()), (address, 0));
    }

    #[test]
    fn a_piece_outlives_its_pool() {
        let pool = Pool::default();
        let piece = pool.piece(filled(&pool, MIN_BYTES, 7));
        drop(pool);
        assert_eq!((piece[0], piece.len()), (7, MIN_BYTES));
    }

    #[test]
    fn few_buffers_are_kept_and_no_small_ones() {
        let pool = Pool::default();
        let pieces: Vec<Bytes> = [1, MIN_BYTES, MIN_BYTES, MIN_BYTES + 1, 2 * MIN_BYTES]
            .map(|bytes| pool.piece(filled(&pool, bytes, 0)))
            .into();
        drop(pieces);
        assert_eq!(locked(&pool.unused).len(), MAX_UNUSED);
        assert!(locked(&pool.unused).iter().all(|buffer| buffer.capacity() >= MIN_BYTES));
    }
}
