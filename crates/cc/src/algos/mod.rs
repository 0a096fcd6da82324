//! One file per controller.

pub mod bbr;
pub mod constant;
pub mod cubic;
pub mod dctcp;
pub mod newreno;
pub mod rc3;
pub mod rcp;
pub mod rtcp;
pub mod timely;
