//! TCP without sockets: a sender and a receiver that take time and segments in and give segments out.
//!
//! No clock, no callbacks, no I/O. The simulator drives it over simulated links; a real network can
//! drive the same code.

pub mod acknowledgment;
pub mod config;
pub mod receiver;
pub mod rounds;
pub mod rtt;
pub mod scoreboard;
pub mod segment;
pub mod send_buffer;
pub mod sender;

pub use acknowledgment::{AckError, Acknowledgment, Extras};
pub use config::{
    DelayedAck, Ecn, FlightSize, HEADER_BYTES, MAX_HEADER_BYTES, MAX_WINDOW_SEGMENTS, RtoConfig, TransportConfig,
};
pub use receiver::Receiver;
pub use segment::{AckSegment, Chunk, MAX_SACK_BLOCKS, SackBlock, Segment, Transmit};
pub use sender::{Ending, Sender, SenderCounts};
