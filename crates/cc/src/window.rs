//! What window laws share: what an acknowledgment counts for, slow start, one cut per episode, undo, and the floor.
//!
//! A law is two formulas, how to grow and how to cut; [`Windowed`] makes a controller of it.
//!
//! Windows grow by the bytes that an acknowledgment newly delivers in sequence (RFC 5681 section 3.1, RFC 3465), as in
//! Linux: an acknowledgment that fills a hole covers much that SACK had reported and counts for the little that it had not.
//! With `growth_limit = 1` they grow by acknowledgments, each worth a segment, as in ns-3 and in Linux 2.6.

mod config;
mod law;
pub mod validation;

use crate::contract::CongestionControl;
use crate::param::Values;
use crate::registry::Blueprint;
pub use config::{
    GROWTH_LIMIT, INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START, SLOW_START_LIMIT, SlowStart, WINDOW_VALIDATION,
    WindowConfig,
};
pub use law::{Window, WindowLaw, Windowed};
use validation::Validated;

/// A controller made of a law, whose window is [validated](validation) where the values say so.
pub fn windowed<L: WindowLaw + 'static>(law: L, values: &Values, plan: &Blueprint<'_>) -> Box<dyn CongestionControl> {
    let config = WindowConfig::of(values);
    let controller = Windowed::new(law, config, plan.mss_bytes);
    if config.validation { Box::new(Validated::of(controller)) } else { Box::new(controller) }
}
