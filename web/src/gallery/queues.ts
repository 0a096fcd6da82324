/** Questions about queues. */

import { type Question, variant } from "./question.ts";

export const QUEUES: readonly Question[] = [
  {
    id: "bufferbloat",
    topic: "Bufferbloat",
    title: "Why does an upload make the web slow, and how does CoDel help?",
    text:
      "An upload shares 10 Mb/s with short web flows. A full FIFO queue of 1000 packets takes 1.2 s to drain, and web flows lose packets, too. " +
      "CoDel drops a packet once the delay has stayed above 5 ms for 100 ms. " +
      "FQ-CoDel also gives each flow a queue of its own, so the web flows overtake the upload.",
    next: "Set the limit of the queue to 50 packets, and compare FIFO with CoDel again.",
    view: "completion",
    toml: `# A long upload and short web flows share a link of 10 Mb/s.
duration = "20s"
seed = 1

[topology]
kind = "dumbbell"
pairs = 4
access_rate = "1Gbps"
access_delay = "1ms"
bottleneck_rate = "10Mbps"
bottleneck_delay = "18ms"

[queue]
kind = "fifo"
limit = "1000packets"

[scheme.upload]
controller = "cubic"

[scheme.web]
controller = "cubic"

[[workload]]
kind = "bulk"
scheme = "upload"
pairs = [["left0", "right0"]]

[[workload]]
kind = "poisson"
scheme = "web"
sources = ["left1", "left2", "left3"]
flows_per_second = 2
sizes = { kind = "fixed", size = "30kB" }
`,
    variants: [
      variant("FIFO"),
      variant("CoDel", { "queue.kind": "codel" }),
      variant("FQ-CoDel", { "queue.kind": "fq-codel" }),
    ],
  },
  {
    id: "dctcp",
    topic: "Marks in datacentres",
    title: "Where should a switch start to mark for DCTCP?",
    text:
      "Two DCTCP flows share a port of 10 Gb/s with a round trip of 80 µs. The queue marks packets above a length of K. " +
      "A small K ends slow start early: with 5 packets, the flows need 3 ms to fill the link. " +
      "A large K only adds delay: with 100 packets, throughput is that of 20 packets, and queueing takes four times as long.",
    next: "Set K to 65 packets, the value that the DCTCP paper uses at 10 Gb/s.",
    view: "time",
    toml: `# Two DCTCP flows share a port of 10 Gb/s. mark_at is K, the queue length above which packets are marked.
duration = "40ms"
seed = 1

[topology]
kind = "dumbbell"
pairs = 2
access_rate = "40Gbps"
access_delay = "10us"
bottleneck_rate = "10Gbps"
bottleneck_delay = "20us"

[queue]
kind = "fifo"
limit = "700kB"
mark_at = "5packets"

[transport]
min_rto = "10ms"

[scheme.dctcp]
controller = "dctcp"
transport = { ecn = "dctcp" }

[workload]
kind = "bulk"
scheme = "dctcp"
flows = 2
`,
    variants: [
      variant("K = 5"),
      variant("K = 20", { "queue.mark_at": "20packets" }),
      variant("K = 100", { "queue.mark_at": "100packets" }),
    ],
  },
  {
    id: "l4s",
    topic: "L4S",
    title: "Can low latency and classic traffic share a link?",
    text:
      "A Prague flow and a CUBIC flow share 40 Mb/s with a base round trip of 10 ms. DualPI2 has a queue for each kind of traffic, and couples their marks and drops. " +
      "Prague waits about 0.5 ms, CUBIC about 15 ms, and neither gets less than 40 % of the link in the second half. " +
      "In one FIFO queue without marks, both wait 50 ms, and CUBIC takes three quarters.",
    next: "Set the delay of the bottleneck to 25 ms: Prague then gets twice the rate of CUBIC.",
    view: "time",
    toml: `# Prague and a CUBIC flow share a link of 40 Mb/s. Both ends of Prague's flow count marks (AccECN).
duration = "15s"
seed = 1

[topology]
kind = "dumbbell"
pairs = 2
access_rate = "1Gbps"
access_delay = "0s"
bottleneck_rate = "40Mbps"
bottleneck_delay = "5ms"

[queue]
kind = "dualpi2"
limit = "1000packets"

[scheme.prague]
controller = "prague"
transport = { ecn = "accurate" }

[scheme.cubic]
controller = "cubic"

[[workload]]
kind = "bulk"
scheme = "prague"
pairs = [["left0", "right0"]]

[[workload]]
kind = "bulk"
scheme = "cubic"
pairs = [["left1", "right1"]]
`,
    variants: [variant("DualPI2"), variant("FIFO", { "queue.kind": "fifo", "queue.limit": "200packets" })],
  },
  {
    id: "copa",
    topic: "Delay as a signal",
    title: "Can Copa keep queues short, and still get its share?",
    text:
      "Two flows share 48 Mb/s with a base round trip of 50 ms. Two Copa flows agree on equal rates, and wait less than 3 ms. " +
      "CUBIC fills the queue whatever Copa does. Copa notices this and enters its competitive mode, which keeps a fifth of the link. " +
      "With a fixed mode, Copa is left with 2 %.",
    next: "Set the limit of the queue to half a bandwidth-delay product (0.5bdp): Copa then gets a third.",
    view: "time",
    toml: `# Two Copa flows share a link of 48 Mb/s with a base round trip of 50 ms.
duration = "30s"
seed = 1

[topology]
kind = "dumbbell"
pairs = 2
access_rate = "1Gbps"
access_delay = "0s"
bottleneck_rate = "48Mbps"
bottleneck_delay = "25ms"

[queue]
kind = "fifo"
limit = "2bdp"

[scheme.copa]
controller = "copa"

[scheme.rival]
controller = "copa"

[[workload]]
kind = "bulk"
scheme = "copa"
pairs = [["left0", "right0"]]

[[workload]]
kind = "bulk"
scheme = "rival"
pairs = [["left1", "right1"]]
start = "2s"
`,
    variants: [
      variant("Copa rival"),
      variant("CUBIC rival", { "scheme.rival.controller": "cubic" }),
      variant("CUBIC rival, fixed mode", {
        "scheme.rival.controller": "cubic",
        "scheme.copa.mode_switching": false,
      }),
    ],
  },
  {
    id: "incast",
    topic: "Incast",
    title: "What happens if 40 servers answer at once?",
    text:
      "Each of 40 servers sends 64 kB to one client at the same time. With NewReno, the queue of the client's port overflows. " +
      "Flows that lose their last packets wait for a timeout of 200 ms. With a shorter least timeout, they repair losses sooner. " +
      "DCTCP helps little here: the first windows of 40 flows exceed the queue before any mark arrives. " +
      "Swift loses nothing, since its windows may fall below one packet, but it uses only a fifth of the link.",
    next: "Set the limit of the queue to 2000 packets: no packet is lost.",
    view: "completion",
    toml: `# 40 servers send 64 kB each to one client (h1) at once, over a switch of 1 Gb/s.
duration = "2s"
seed = 1

[topology]
kind = "star"
hosts = 41
rate = "1Gbps"
delay = "25us"

[queue]
kind = "fifo"
limit = "100packets"

[transport]
min_rto = "200ms"

[scheme.flow]
controller = "newreno"

[workload]
kind = "bulk"
scheme = "flow"
pairs = "incast"
size = "64kB"
spread = "100us"
`,
    variants: [
      variant("NewReno"),
      variant("least timeout of 10 ms", { "transport.min_rto": "10ms" }),
      variant("DCTCP", {
        "scheme.flow": { controller: "dctcp", transport: { ecn: "dctcp" } },
        "queue.mark_at": "20packets",
      }),
      variant("Swift", { "scheme.flow.controller": "swift" }),
    ],
  },
];
