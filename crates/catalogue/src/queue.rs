//! Kinds of queue: laws of active queue management, each in a file with its keys, settings and law, and a line in
//! [`QUEUES`].
//!
//! The engine itself implements FIFO and strict priority.

mod cells;
mod cobalt;
mod codel;
mod dualpi2;
mod fair;
mod fq_codel;
mod fq_pie;
mod pie;
mod red;
mod weighted_tail_drop;

pub use cells::CellsSpec;
pub use cobalt::CobaltSpec;
pub use codel::{CeThreshold, CoDelSpec};
pub use dualpi2::{DualPi2Spec, Ramp, Scheduler};
pub use fair::FairSpec;
pub use fq_codel::FqCoDelSpec;
pub use fq_pie::FqPieSpec;
pub use pie::PieSpec;
pub use red::RedSpec;
pub use weighted_tail_drop::WeightedTailDropSpec;

use crate::schema::{Fallback, Form, Key, Kind, ScenarioError, Section};
use sparelane_cc::Value;
use sparelane_sim::Discipline;

/// The form of a queue in a scenario. Its reader takes the queue's table and the bandwidth-delay product in bytes.
pub type QueueForm = Form<fn(&Section<'_>, u64) -> Result<Discipline, ScenarioError>>;

/// The built-in kinds of queue: the two service orders of the engine, then the laws.
pub static QUEUES: &[QueueForm] = &[
    FIFO,
    PRIORITY,
    red::FORM,
    codel::FORM,
    fq_codel::FORM,
    cobalt::FORM,
    pie::FORM,
    fq_pie::FORM,
    dualpi2::FORM,
    cells::FORM,
    weighted_tail_drop::FORM,
];

const FIFO: QueueForm = Form {
    name: "fifo",
    summary: "first in, first out; packets that do not fit are dropped",
    source: "sparelane",
    keys: &[],
    read: |_, _| Ok(Discipline::Fifo),
};

const PRIORITY: QueueForm = Form {
    name: "priority",
    summary: "strict priority in one shared buffer; the newest packets of the lowest class make room for higher \
              classes",
    source: "NSDI 2014 section 5; the authors' code",
    keys: &[],
    read: |_, _| Ok(Discipline::Priority),
};

const GAIN: Kind = Kind::Positive { max: 1e9 };
const PROBABILITY: Kind = Kind::Positive { max: 1.0 };
const MARKS: &str = "mark ECN-capable packets instead of dropping them early";

/// Returns the name of a discipline.
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
    /// Returns the names of the kinds.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.0.iter().map(|form| form.name)
    }

    /// Returns the keys of all kinds, each name once.
    pub fn all_keys(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = Vec::new();
        for key in self.0.iter().flat_map(|form| form.keys) {
            if keys.iter().all(|other| other.name != key.name) {
                // The default depends on the kind.
                keys.push(Key { default: Fallback::Nothing("depends on the kind of queue"), ..*key });
            }
        }
        keys
    }

    /// Reads the discipline of kind `kind` from a table. [`Section::or`] supplies missing values.
    ///
    /// # Errors
    /// Fails if the table has a key of another kind, lacks a required key, or a value is out of range.
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

    /// The settings of a discipline of kind `kind` that a table asks for, given or by default, by their keys; keys without a
    /// value are left out. For limits, `"1bdp"` is `bdp_bytes`, and a packet is `packet_bytes`.
    ///
    /// # Errors
    /// A value is not of its kind, or out of range.
    pub fn settings(
        &self,
        section: &Section<'_>,
        kind: &str,
        bdp_bytes: u64,
        packet_bytes: u64,
    ) -> Result<Vec<(&'static str, Value)>, ScenarioError> {
        let keys = self.0.iter().find(|form| form.name == kind).map_or(&[][..], |form| form.keys);
        let section = section.with_keys(keys);
        let has_value = |key: &&Key| section.given(key.name).is_some() || matches!(key.default, Fallback::Value(_));
        let value = |key: &Key| Ok((key.name, section.need(key.name)?.value(bdp_bytes, packet_bytes)?));
        keys.iter().filter(has_value).map(value).collect()
    }
}

/// Packets for tests of single laws.
#[cfg(test)]
pub(crate) mod packets {
    use sparelane_sim::qdisc::Packet;

    /// Returns a data packet of 1000 bytes on the wire.
    pub(crate) fn data(flow: u32, seq: u32, ecn: bool) -> Packet {
        Packet::example(flow, seq, 1000, ecn)
    }

    /// Returns the sequence numbers of `packets`.
    pub(crate) fn numbers<'p>(packets: impl IntoIterator<Item = &'p Packet>) -> Vec<u32> {
        packets.into_iter().map(Packet::seq).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::packets::data;
    use super::*;
    use sparelane_core::{Dur, Rate, Time};
    use sparelane_sim::Limit;
    use sparelane_sim::qdisc::{ActiveSpec, Fates, Place};

    /// A sender that lost everything sends one packet per retransmission timeout. If a law dropped each of them, the
    /// flow would be stuck. No law may do so, however hard it was to meet its settings in an overload.
    #[test]
    fn every_law_lets_lone_packets_pass_after_an_overload() {
        let (least, packets) = (Dur::from_ps(1), Limit::Packets);
        let codel = CoDelSpec { target: least, interval: least, ..CoDelSpec::default() };
        let (min, max) = (packets(1), packets(2));
        let red = RedSpec { min, max, max_probability: 1.0, weight: 1.0, gentle: false, ecn: false };
        let pie = PieSpec { target: least, max_burst: Dur::ZERO, ..PieSpec::default() };
        let fair = FairSpec { flows: 1, quantum: None };
        let laws: [&dyn ActiveSpec; 8] = [
            &red,
            &RedSpec { weight: 0.01, ..red },
            &codel,
            &FqCoDelSpec { codel, fair },
            &CobaltSpec { target: least, interval: least },
            &pie,
            &FqPieSpec { pie, fair },
            &DualPi2Spec { target: least, alpha: 100.0, ..DualPi2Spec::default() },
        ];
        for spec in laws {
            let (limit, rate) = (packets(100), Rate::from_mbps(4));
            let mut law = spec.make(&Place { limit, rate, largest_bytes: 1000, seed: 1, link: 0 });
            let (mut now, mut fates) = (Time::ZERO, Fates::default());
            // Five packets arrive in the time in which two leave.
            for seq in 0..5_000 {
                law.enqueue(now, data(0, seq, false), None, &mut fates);
                if seq % 5 < 2 {
                    law.dequeue(now, &mut fates);
                }
                now += Dur::from_ms(1);
            }
            assert!(fates.dropped().len() > 1_000, "{spec:?}");
            while law.dequeue(now, &mut fates).is_some() {
                now += Dur::from_ms(2);
            }
            let left = (0..20).filter(|seq| {
                let idle_since = now;
                now += Dur::from_secs(60);
                law.enqueue(now, data(0, *seq, false), Some(idle_since), &mut fates);
                law.dequeue(now, &mut fates).is_some()
            });
            let left = left.count();
            assert!(left > 0, "{spec:?}: none of 20 lone packets left");
        }
    }
}
