//! TCP without sockets: a [`Sender`] and a [`Receiver`] as state machines.
//!
//! The caller passes in the time and the segments that arrive, and polls for the segments to send. The crate reads no
//! clock, calls no callbacks and does no I/O. The simulator drives it over simulated links, and `sparelane-net` drives
//! the same code over UDP sockets.
//!
//! ```
//! use sparelane_cc::{Blueprint, Registry, Values};
//! use sparelane_core::{Domain, Dur, Stream, Time};
//! use sparelane_transport::{Acknowledgment, Receiver, Sender, Transmit, TransportConfig};
//!
//! let (config, inner) = (TransportConfig::default(), Values::default());
//! let cubic = *Registry::built_in().find("cubic").ok_or("no such controller")?;
//! let controller = cubic.build(&Values::default(), &Blueprint::of_any(config.mss_bytes, &inner))?;
//! let mut receiver = Receiver::new(&config);
//! let mut sender = Sender::new(config, controller, Stream::new(1, Domain::Controller, 0));
//!
//! // Transfer 100 kB over a lossless path with a delay of 10 ms each way.
//! sender.write(100_000);
//! let mut now = Time::ZERO;
//! while !sender.is_done() {
//!     let mut acks = Vec::new();
//!     let sent: Vec<Transmit> = std::iter::from_fn(|| sender.poll_transmit(now, false)).collect();
//!     now += Dur::from_ms(20);
//!     for transmit in sent {
//!         match transmit {
//!             Transmit::Syn => sender.handle_syn_ack(now, None),
//!             Transmit::Data(segment) => acks.extend(receiver.handle_data(now, segment, false)),
//!             Transmit::Probe | Transmit::Reset => {}
//!         }
//!     }
//!     for ack in acks {
//!         sender.handle_ack(now, &Acknowledgment::of(ack, receiver.sack_blocks()))?;
//!     }
//! }
//! assert_eq!(receiver.held_bytes(), 100_000);
//! assert!(now < Time::ZERO + Dur::from_ms(200), "windows double every round trip");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod accurate_ecn;
pub mod acknowledgment;
mod cached_threshold;
pub mod config;
pub mod qlog;
pub mod receiver;
pub mod rounds;
pub mod rtt;
pub mod scoreboard;
pub mod segment;
mod segment_ring;
pub mod send_buffer;
pub mod sender;

pub use accurate_ecn::{AccEcnOption, AccurateEcho, CounterOrder, EcnField, EcnFlags};
pub use acknowledgment::{AckError, Acknowledgment, Extras};
pub use cached_threshold::{CachedThreshold, LastWindow};
pub use config::{
    DEFAULT_READ_BUFFER_BYTES, DelayedAck, Ecn, FlightSize, HEADER_BYTES, MAX_HEADER_BYTES, MAX_WINDOW_SEGMENTS,
    RdmaRecovery, RtoConfig, TransportConfig,
};
pub use receiver::Receiver;
pub use segment::{AckSegment, Chunk, MAX_SACK_BLOCKS, SackBlock, Segment, Transmit};
pub use sender::{Ending, Sender, SenderCounts};
