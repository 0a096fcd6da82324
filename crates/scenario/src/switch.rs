//! `[switch]`: memory that the output queues of each router share.

use crate::queues::{Queues, most_bytes};
use crate::schemes::Schemes;
use sparelane_catalogue::schema::Field;
use sparelane_catalogue::schema::ScenarioError;
use sparelane_catalogue::schema::{Fallback, Key, Kind};
use sparelane_sim::SwitchSpec;

/// The keys of `[switch]`.
pub static SWITCH: &[Key] = &[
    Key::new(
        "memory",
        Kind::Size { min: 1, max: 1 << 50 },
        Fallback::Required,
        "what the output queues of one router can hold together, without packets in transmission; each also has its own limit",
    ),
    Key::new(
        "share",
        Kind::Positive { max: 1024.0 },
        Fallback::Value("1.0"),
        "a queue may grow to this factor times the free memory (dynamic thresholds: alpha)",
    )
    .from("Choudhury and Hahne, ToN 6(2), 1998"),
];

/// Reads `[switch]`.
pub fn read(field: &Field<'_>, queues: &Queues, schemes: &Schemes) -> Result<SwitchSpec, ScenarioError> {
    let section = field.clone().section(&[SWITCH])?;
    let memory = section.need("memory")?;
    let spec = SwitchSpec { memory_bytes: memory.size()?, share: section.need("share")?.positive()? };
    let packet = schemes.largest_packet_bytes();
    if spec.memory_bytes < packet {
        return Err(memory.error(format!("smaller than one packet; allowed: {packet}B or more")));
    }
    let most = spec.most_alone(packet);
    match queues.router.mark_at {
        Some(mark) if most_bytes(mark, schemes) > most => {
            Err(memory
                .error(format!("one queue can hold {most}B of it, less than queue.mark_at, and would never mark")))
        }
        _ => Ok(spec),
    }
}
