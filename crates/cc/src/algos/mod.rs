//! One file per controller.

pub mod bbr;
pub mod bbr3;
pub mod bic;
pub mod constant;
pub mod cubic;
pub mod dctcp;
pub mod fast;
pub mod highspeed;
pub mod htcp;
pub mod hybla;
pub mod illinois;
pub mod ledbat;
pub mod ledbat_plus_plus;
pub mod lp;
pub mod newreno;
pub mod pcc_allegro;
pub mod pcc_vivace;
pub mod rc3;
pub mod rcp;
pub mod rtcp;
pub mod scalable;
pub mod timely;
pub mod vegas;
pub mod veno;
pub mod westwood;
pub mod yeah;
