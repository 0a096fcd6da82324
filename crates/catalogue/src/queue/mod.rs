//! Laws of active queue management: each a file with its keys, its settings and its law, and a line in [`QUEUES`].
//!
//! FIFO and strict priority are the engine's own.

mod cells;
mod codel;
mod fq_codel;
mod pie;
mod red;

pub use cells::CellsSpec;
pub use codel::CoDelSpec;
pub use fq_codel::FqCoDelSpec;
pub use pie::PieSpec;
pub use red::RedSpec;

use crate::schema::{Form, Key, Kind, ScenarioError, Section};
use sparelane_sim::Discipline;

/// A law as a scenario names it. It is read from the table of a queue, beside what one bandwidth-delay product is, bytes.
pub type QueueForm = Form<fn(&Section<'_>, u64) -> Result<Discipline, ScenarioError>>;

/// The orders of service that the engine has without a law, and the laws.
pub const QUEUES: [QueueForm; 7] = [FIFO, PRIORITY, red::FORM, codel::FORM, fq_codel::FORM, pie::FORM, cells::FORM];

/// Their names.
pub static KINDS: [&str; QUEUES.len()] = {
    let mut names = [""; QUEUES.len()];
    let mut place = 0;
    while place < names.len() {
        names[place] = QUEUES[place].name;
        place += 1;
    }
    names
};

const FIFO: QueueForm = Form {
    name: "fifo",
    summary: "first in, first out; what does not fit is dropped",
    source: "sparelane",
    keys: &[],
    read: |_, _| Ok(Discipline::Fifo),
};

const PRIORITY: QueueForm = Form {
    name: "priority",
    summary: "strict priority over one shared buffer; the newest packets of the lowest class make room for higher classes",
    source: "NSDI 2014 section 5; the authors' code",
    keys: &[],
    read: |_, _| Ok(Discipline::Priority),
};

const GAIN: Kind = Kind::Positive { max: 1e9 };
const PROBABILITY: Kind = Kind::Positive { max: 1.0 };
const MARKS: &str = "mark ECN-capable packets instead of dropping them early";

/// The keys of all laws, each name once.
pub fn all_keys() -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    for key in QUEUES.iter().flat_map(|form| form.keys) {
        if keys.iter().all(|other| other.name != key.name) {
            // What holds where a table is silent depends on the law.
            keys.push(Key { default: crate::schema::Fallback::Nothing("as the kind of queue says"), ..*key });
        }
    }
    keys
}

/// The word for a discipline.
pub fn kind_of(discipline: &Discipline) -> &'static str {
    match discipline {
        Discipline::Fifo => FIFO.name,
        Discipline::Priority => PRIORITY.name,
        Discipline::Active(spec) => spec.kind(),
    }
}

/// The discipline that a table of a queue asks for: of kind `kind`, or of the one that it follows. Where a table is silent,
/// [`Section::or`] decides what holds.
///
/// # Errors
/// The table has a key of another law, or misses one, or a value is out of range.
pub fn read(section: &Section<'_>, kind: &str, bdp_bytes: u64) -> Result<Discipline, ScenarioError> {
    for key in all_keys() {
        let has_key = |form: &&QueueForm| form.keys.iter().any(|other| other.name == key.name);
        if let Some(field) = section.own(key.name)
            && !QUEUES.iter().filter(has_key).any(|form| form.name == kind)
        {
            let kinds = QUEUES.iter().filter(has_key).map(|form| format!("\"{}\"", form.name));
            let allowed = kinds.collect::<Vec<_>>().join(", ");
            return Err(field.error(format!("a {kind} queue has no such setting; allowed: with kind = {allowed}")));
        }
    }
    let form = QUEUES.iter().find(|form| form.name == kind).unwrap_or(&FIFO);
    (form.read)(&section.with_keys(form.keys), bdp_bytes)
}

/// Packets for the tests of single laws.
#[cfg(test)]
pub(crate) mod packets {
    use sparelane_sim::qdisc::Packet;

    /// Data of 1000 bytes on the wire.
    pub(crate) fn data(flow: u32, seq: u32, ecn: bool) -> Packet {
        Packet::example(flow, seq, 1000, ecn)
    }

    /// The sequence numbers of `packets`.
    pub(crate) fn numbers<'p>(packets: impl IntoIterator<Item = &'p Packet>) -> Vec<u32> {
        packets.into_iter().map(Packet::seq).collect()
    }
}
