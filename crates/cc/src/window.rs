//! Machinery that window laws share: counting acknowledged bytes, slow start, one cut per episode, undo, and the
//! minimum window.
//!
//! A law consists of two formulas, growth and cut; [`Windowed`] turns it into a controller.
//!
//! Windows grow by the bytes that an acknowledgment newly delivers in sequence (RFC 5681 section 3.1, RFC 3465), as in
//! Linux. An acknowledgment that fills a hole covers data that SACK had already reported, and counts only for the data
//! that it had not. With `growth_limit = 1` windows grow by one segment's worth per acknowledgment, as in ns-3 and in
//! Linux 2.6.

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

/// Creates a controller from a law. Its window is [validated](validation) if the values enable that.
pub fn windowed<L: WindowLaw + 'static>(law: L, values: &Values, plan: &Blueprint<'_>) -> Box<dyn CongestionControl> {
    let config = WindowConfig::of(values);
    let controller = Windowed::new(law, config, plan.mss_bytes);
    if config.validation { Box::new(Validated::of(controller)) } else { Box::new(controller) }
}
