//! Basic types of sparelane: time, rates, segment numbers, seeded randomness and rings.
//!
//! Nothing here does I/O, reads a clock or depends on another crate. Every quantity that affects a result is an
//! integer, so that a run is bit-identical on any machine.

pub mod maths;
mod prefetch;
pub mod rate;
pub mod ring;
pub mod rng;
pub mod seq;
mod slots;
pub mod time;

pub use prefetch::{prefetch, prefetch_start};
pub use rate::Rate;
pub use ring::Ring;
pub use rng::{Domain, Stream, Streams};
pub use seq::{Seq, widen};
pub use slots::Slots;
pub use time::{Dur, Time};
