//! Where flows come from.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod bulk;
mod classes;
mod core_load;
mod draws;
mod ends;
mod error;
mod list;
mod merge;
mod mix;
mod paced;
mod poisson;
mod receivers;
mod requests;
mod sizes;
mod streams;
mod surge;
mod web_users;

pub use bulk::{Bulk, BulkSpec, Pairs, Starts};
pub use classes::{Classed, TrafficClasses};
pub use error::WorkloadError;
pub use list::FlowList;
pub use merge::Merge;
pub use mix::{Mix, MixBy, Mixed, UNDECIDED};
pub use paced::Paced;
pub use poisson::{ArrivalRate, LoadOn, Poisson, PoissonSpec};
pub use receivers::Destinations;
pub use requests::{FanOut, Requests, RequestsSpec};
pub use sizes::{
    BodyAndTail, SizeDistribution, data_mining_flow_sizes, rc3_flow_sizes, w2000_flow_sizes, web_search_flow_sizes,
};
pub use surge::Surge;
pub use web_users::{MAX_WEB_USERS, WebUsers, WebUsersSpec};
