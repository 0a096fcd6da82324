/** Questions about flows that share a bottleneck. */

import { type Question, variant } from "./question.ts";

export const SHARING: readonly Question[] = [
  {
    id: "two-cubic",
    topic: "Sharing a link",
    title: "How do two CUBIC flows share a link?",
    text:
      "Two flows share a link of 100 Mb/s with a round trip of 40 ms. The second one starts after 4 s. " +
      "Each loss makes a flow reduce its window, and the two rates slowly approach each other. " +
      "The queue fills before each loss, so the round-trip time rises and falls with it.",
    next: "Move the buffer from 1 BDP to 0.2 BDP and look at the use of the link.",
    view: "time",
    toml: `# Two CUBIC flows on a link of 100 Mb/s. The second one starts after 4 s.
duration = "20s"
seed = 1

[topology]
kind = "dumbbell"
pairs = 2
access_rate = "1Gbps"
access_delay = "1ms"
bottleneck_rate = "100Mbps"
bottleneck_delay = "18ms"

[queue]
kind = "fifo"
limit = "1bdp"

[scheme.cubic]
controller = "cubic"

[[workload]]
kind = "bulk"
scheme = "cubic"
pairs = [["left0", "right0"]]

[[workload]]
kind = "bulk"
scheme = "cubic"
pairs = [["left1", "right1"]]
start = "4s"
`,
    variants: [variant("two CUBIC flows")],
  },
  {
    id: "bbr-shallow",
    topic: "BBR and buffers",
    title: "What does BBR do to CUBIC in a shallow buffer?",
    text:
      "A BBR flow and a CUBIC flow share 50 Mb/s. CUBIC reduces its window after a loss, and BBR version 1 does not. " +
      "In a shallow buffer, BBR causes losses and takes most of the link. In a deep buffer, CUBIC fills the queue.",
    next: "Replace the controller of the first scheme by bbr3, which reacts to losses.",
    view: "time",
    toml: `# One BBR flow and one CUBIC flow share a link of 50 Mb/s. Variants have buffers of different depths.
duration = "20s"
seed = 1

[topology]
kind = "dumbbell"
pairs = 2
access_rate = "1Gbps"
access_delay = "1ms"
bottleneck_rate = "50Mbps"
bottleneck_delay = "18ms"

[queue]
kind = "fifo"
limit = "0.3bdp"

[scheme.bbr]
controller = "bbr"

[scheme.cubic]
controller = "cubic"

[[workload]]
kind = "bulk"
scheme = "bbr"
pairs = [["left0", "right0"]]

[[workload]]
kind = "bulk"
scheme = "cubic"
pairs = [["left1", "right1"]]
`,
    variants: [variant("0.3 BDP"), variant("5 BDP", { "queue.limit": "5bdp" })],
  },
  {
    id: "round-trips",
    topic: "Fairness",
    title: "Does a longer round trip cost throughput?",
    text:
      "Two flows share 50 Mb/s. The round trip of the first one is 20 ms, that of the second one 100 ms. " +
      "NewReno grows by one segment in each round trip, so the flow with the short round trip wins. " +
      "It also wins with CUBIC. FQ-CoDel serves the flows in turn, so both have about the same rate.",
    next: "Set the delay of the second sender's cable to 1 ms in the section Cable: both flows are equal.",
    view: "time",
    toml: `# Two flows with round trips of 20 ms and 100 ms share a link of 50 Mb/s.
duration = "40s"
seed = 1

[topology]
kind = "dumbbell"
pairs = 2
access_rate = "1Gbps"
access_delay = "1ms"
bottleneck_rate = "50Mbps"
bottleneck_delay = "8ms"

# The second sender is 40 ms further away.
[[link]]
between = ["left1", "west"]
delay = "41ms"

[queue]
kind = "fifo"
limit = "1bdp"

[scheme.flow]
controller = "newreno"

[[workload]]
kind = "bulk"
scheme = "flow"
pairs = [["left0", "right0"]]

[[workload]]
kind = "bulk"
scheme = "flow"
pairs = [["left1", "right1"]]
`,
    variants: [
      variant("NewReno"),
      variant("CUBIC", { "scheme.flow.controller": "cubic" }),
      variant("NewReno, FQ-CoDel", { "queue.kind": "fq-codel" }),
    ],
  },
  {
    id: "lte",
    topic: "A link that changes",
    title: "What happens if the rate of a mobile link falls?",
    text:
      "The rate of a radio link changes between 3 and 30 Mb/s. CUBIC fills the deep queue of the base station. " +
      "When the rate falls, the same queue takes much longer to drain, and the round-trip time rises to more than a second. " +
      "BBR estimates the rate and keeps a shorter queue.",
    next: "Reduce the queue to 50 packets, and compare the use of the link.",
    view: "time",
    toml: `# One flow on a mobile link whose rate changes. The rates are round numbers of our own, not measurements.
duration = "20s"
seed = 1

[topology]
kind = "dumbbell"
pairs = 1
access_rate = "1Gbps"
access_delay = "1ms"
bottleneck_rate = "20Mbps"
bottleneck_delay = "20ms"

[queue]
kind = "fifo"
limit = "500packets"

[scheme.tcp]
controller = "cubic"

[workload]
kind = "bulk"
scheme = "tcp"

[[change]]
at = "4s"
between = ["west", "east"]
rate = "6Mbps"

[[change]]
at = "8s"
between = ["west", "east"]
rate = "30Mbps"

[[change]]
at = "12s"
between = ["west", "east"]
rate = "3Mbps"

[[change]]
at = "15s"
between = ["west", "east"]
rate = "20Mbps"
`,
    variants: [variant("CUBIC"), variant("BBR", { "scheme.tcp.controller": "bbr" })],
  },
];
