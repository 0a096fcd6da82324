//! Laws of active queue management: each a file with its keys, its settings and its law, and a line in [`QUEUES`].
//!
//! FIFO and strict priority are the engine's own.

mod cells;
mod codel;
mod fq_codel;
mod pie;
mod red;
mod weighted_tail_drop;

pub use cells::CellsSpec;
pub use codel::CoDelSpec;
pub use fq_codel::FqCoDelSpec;
pub use pie::PieSpec;
pub use red::RedSpec;
pub use weighted_tail_drop::WeightedTailDropSpec;

use crate::schema::{Fallback, Form, Key, Kind, ScenarioError, Section};
use sparelane_sim::Discipline;

/// A law as a scenario names it. It is read from the table of a queue, beside what one bandwidth-delay product is, bytes.
pub type QueueForm = Form<fn(&Section<'_>, u64) -> Result<Discipline, ScenarioError>>;

/// The orders of service that the engine has without a law, and the laws.
pub static QUEUES: &[QueueForm] =
    &[FIFO, PRIORITY, red::FORM, codel::FORM, fq_codel::FORM, pie::FORM, cells::FORM, weighted_tail_drop::FORM];

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

/// The word for a discipline.
pub fn kind_of(discipline: &Discipline) -> &'static str {
    match discipline {
        Discipline::Fifo => FIFO.name,
        Discipline::Priority => PRIORITY.name,
        Discipline::Active(spec) => spec.kind(),
    }
}

/// The kinds of queue that a scenario can name.
#[derive(Clone, Debug)]
pub struct Queues(pub Vec<&'static QueueForm>);

impl Queues {
    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.0.iter().map(|form| form.name)
    }

    /// The keys of all laws, each name once.
    pub fn all_keys(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = Vec::new();
        for key in self.0.iter().flat_map(|form| form.keys) {
            if keys.iter().all(|other| other.name != key.name) {
                // What holds where a table is silent depends on the law.
                keys.push(Key { default: Fallback::Nothing("as the kind of queue says"), ..*key });
            }
        }
        keys
    }

    /// The discipline of kind `kind` that a table asks for. Where the table is silent, [`Section::or`] decides what holds.
    ///
    /// # Errors
    /// The table has a key of another law, or misses one, or a value is out of range.
    pub fn read(&self, section: &Section<'_>, kind: &str, bdp_bytes: u64) -> Result<Discipline, ScenarioError> {
        let with_key = |name: &'static str| {
            self.0.iter().filter(move |form| form.keys.iter().any(|key| key.name == name)).map(|form| form.name)
        };
        for key in self.all_keys() {
            if let (Some(field), false) = (section.own(key.name), with_key(key.name).any(|name| name == kind)) {
                let kinds = with_key(key.name).map(|name| format!("\"{name}\""));
                let allowed = kinds.collect::<Vec<_>>().join(", ");
                return Err(field.error(format!("a {kind} queue has no such setting; allowed: with kind = {allowed}")));
            }
        }
        match self.0.iter().find(|form| form.name == kind) {
            Some(form) => (form.read)(&section.with_keys(form.keys), bdp_bytes),
            None => Ok(Discipline::Fifo),
        }
    }
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
