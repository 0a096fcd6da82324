//! A scenario as text with every unit, default, preset and file resolved.
//!
//! Stored results are looked up by this text, so it must contain everything that decides a run. It is the debug output
//! of the parsed scenario, which has that by construction: comments, titles, units and the order of keys are gone, and
//! the content of files is included. Texts of different versions of this crate cannot be compared.

use super::Scenario;

impl Scenario {
    /// The scenario as text. Scenarios with equal texts give equal results in the same build of the simulator.
    ///
    /// The reverse does not hold: a controller's parameter that is set to its default appears in the text, although it
    /// changes no result.
    pub fn resolved(&self) -> String {
        // All fields are listed, so that the compiler asks about a new one.
        let Scenario {
            title: _,
            source: _,
            seed,
            duration,
            bdp_bytes,
            file: _,
            text: _,
            warnings: _,
            emulation_warnings: _,
            routing,
            network,
            queues,
            switch,
            differing,
            host,
            hosts_at,
            schemes,
            workloads,
            order,
            demand: _,
            cross_traffic,
            drops,
            changes,
            sampling,
            traffic_classes,
            measure,
            packets,
            emulate: _,
            threads: _,
        } = self;
        let run = (seed, duration, bdp_bytes, routing);
        let nodes = (network, changes, queues, switch, differing, host, hosts_at);
        let traffic = (schemes, workloads, traffic_classes, cross_traffic, drops);
        let observers = (sampling, measure, packets);
        let mut text = format!("{run:?}\n{nodes:?}\n{traffic:?}\n{observers:?}\n");
        // Settings that most scenarios lack are left out, so that the texts of those do not change.
        if order.iter().any(|after| !after.is_empty()) {
            text.push_str(&format!("{order:?}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    const TEXT: &str = r#"
        title = "Two flows"
        duration = "2s"
        [topology]
        kind = "dumbbell"
        bottleneck_rate = "10Mbps"
        [queue]
        limit = "1bdp"
        [scheme.tcp]
        controller = "cubic"
        [[workload]]
        kind = "bulk"
        size = "3kB"
    "#;

    fn resolved(text: &str, overrides: &[&str]) -> String {
        let source = Source { file: "s.toml".to_owned(), folder: ".".into() };
        let overrides: Vec<_> = overrides.iter().map(|&text| text.to_owned()).collect();
        Scenario::parse(text, &source, &overrides).expect("a scenario").resolved()
    }

    #[test]
    fn spelling_comments_order_and_explicit_defaults_do_not_matter() {
        let other = r#"
            # The same in other words.
            duration = "2000ms"
            title = "A couple of flows"
            [workload]
            size = "3000B"
            kind = "bulk"
            [scheme.tcp]
            controller = "cubic"
            [topology]
            kind = "dumbbell"
            pairs = 1
            access_rate = "1Gbps"
            bottleneck_rate = "5Mbps"
        "#;
        assert_eq!(resolved(other, &["topology.bottleneck_rate=0.01Gbps"]), resolved(TEXT, &["seed=1"]));
    }

    #[test]
    fn any_setting_that_decides_the_run_matters() {
        let texts = [
            resolved(TEXT, &[]),
            resolved(TEXT, &["seed=2"]),
            resolved(TEXT, &["duration=2001ms"]),
            resolved(TEXT, &["queue.limit=1.001bdp"]),
            resolved(TEXT, &["workload.size=3001B"]),
            resolved(TEXT, &["scheme.tcp.beta=0.71"]),
            resolved(TEXT, &["sample.flows=[0]"]),
            resolved(TEXT, &["measure.delays=true"]),
        ];
        for (at, text) in texts.iter().enumerate() {
            assert!(!texts[..at].contains(text), "text {at}");
        }
    }
}
