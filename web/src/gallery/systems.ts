/** Questions about RC3, TCP RAPID and RTCP. */

import { type Question, variant } from "./question.ts";

export const SYSTEMS: readonly Question[] = [
  {
    id: "rc3-first-round-trip",
    topic: "RC3",
    title: "How does RC3 fill the first round trip?",
    text:
      "One flow of 300 packets crosses an empty path of 100 Mb/s. TCP starts with ten packets and doubles its window in each round trip. " +
      "RC3 also sends the tail of the flow at once, at lower priorities. Both ends meet after one round trip, and the flow is complete. " +
      "Play the packets, and look at the sequence plot.",
    next: "Change the size of the flow to 10 packets: RC3 gains nothing if the first window is enough.",
    view: "packets",
    toml: `# One flow of 300 packets on an empty path of 100 Mb/s and 40 ms, with TCP and with RC3.
duration = "500ms"
seed = 1

[topology]
kind = "dumbbell"
pairs = 1
access_rate = "100Mbps"
access_delay = "1ms"
bottleneck_rate = "100Mbps"
bottleneck_delay = "18ms"

[queue]
kind = "priority"
limit = "5MB"

[scheme.flow]
controller = "newreno"

[workload]
kind = "bulk"
scheme = "flow"
size = "300packets"
`,
    variants: [variant("TCP", { "queue.kind": "fifo" }), variant("RC3", { "scheme.flow.controller": "rc3" })],
  },
  {
    id: "rc3-sizes",
    topic: "RC3",
    title: "Which flows gain from RC3?",
    text:
      "Flows of many sizes arrive at random and use 30 % of a link of 1 Gb/s. All variants have the same flows. " +
      "Flows that fit into the first window gain little. Flows that need several windows gain most, because RC3 sends their tail at once.",
    next: "Raise the load to 70 %: there is less free capacity, and RC3 gains less.",
    view: "completion",
    toml: `# Flows of many sizes arrive at random at 30 % of 1 Gb/s, with TCP and with RC3.
duration = "2s"
seed = 1

[topology]
kind = "dumbbell"
pairs = 4
access_rate = "1Gbps"
access_delay = "1ms"
bottleneck_rate = "1Gbps"
bottleneck_delay = "18ms"

[queue]
kind = "priority"
limit = "5MB"

[scheme.flow]
controller = "newreno"
initial_window = 4

[workload]
kind = "poisson"
scheme = "flow"
load = 0.3
load_on = "busiest-core"
sizes = { kind = "rc3" }
`,
    variants: [
      variant("TCP", { "queue.kind": "fifo" }),
      variant("RC3", { "scheme.flow": { controller: "rc3", inner: { controller: "newreno", initial_window: 4 } } }),
    ],
  },
  {
    id: "rc3-harm",
    topic: "RC3 and others",
    title: "Does RC3 slow other traffic down?",
    text:
      "Long CUBIC flows and short flows share 100 Mb/s. In two variants, the short flows use RC3. " +
      "Routers with priorities serve the tail of RC3 last, so the long flows keep their rate. They leave no free capacity, so RC3 gains nothing. " +
      "A FIFO queue treats the tail like all packets. Then the short flows end sooner, and the long flows pay for it.",
    next: "Set the size of the long flows to 20 MB: RC3 has free capacity once they have ended.",
    view: "time",
    toml: `# Two long CUBIC flows share 100 Mb/s with short flows, which use TCP or RC3.
duration = "10s"
seed = 1

[topology]
kind = "dumbbell"
pairs = 4
access_rate = "1Gbps"
access_delay = "1ms"
bottleneck_rate = "100Mbps"
bottleneck_delay = "18ms"

[queue]
kind = "fifo"
limit = "1bdp"

[scheme.long]
controller = "cubic"

[scheme.short]
controller = "cubic"

[[workload]]
kind = "bulk"
scheme = "long"
pairs = [["left0", "right0"], ["left1", "right1"]]

[[workload]]
kind = "poisson"
scheme = "short"
sources = ["left2", "left3"]
flows_per_second = 5
sizes = { kind = "fixed", size = "300kB" }
`,
    variants: [
      variant("short flows use CUBIC"),
      variant("RC3, priorities", { "scheme.short.controller": "rc3", "queue.kind": "priority" }),
      variant("RC3, FIFO", { "scheme.short.controller": "rc3" }),
    ],
  },
  {
    id: "rapid-bursts",
    topic: "TCP RAPID",
    title: "Can RAPID use what bursty traffic leaves?",
    text:
      "One transfer shares 10 Gb/s with bursty traffic that does not react, 2.5 Gb/s on average. " +
      "RAPID measures the free capacity with the gaps between its packets, and has no timeout. " +
      "CUBIC needs losses to find the capacity. Scalable grows fast, loses many packets, and waits for timeouts.",
    next: "Set the peak rate of the bursts to 260 Mb/s, which makes the traffic smoother.",
    view: "time",
    toml: `# One transfer and bursty cross traffic share 10 Gb/s. The frames are jumbo frames of 9 kB.
duration = "2s"
seed = 1

[topology]
kind = "dumbbell"
pairs = 11
access_rate = "10Gbps"
access_delay = "10us"
bottleneck_rate = "10Gbps"
bottleneck_delay = "2ms"

[queue]
limit = "2MB"

[transport]
mss = "8948B"
receive_window = "39MB"

[scheme.transfer]
controller = "rapid"
initial_rate = "4Gbps"

[workload]
kind = "bulk"
scheme = "transfer"
pairs = [["left0", "right0"]]

[[cross_traffic]]
kind = "aggregate"
from = ["left1", "left2", "left3", "left4", "left5", "left6", "left7", "left8", "left9", "left10"]
to = ["right1", "right2", "right3", "right4", "right5", "right6", "right7", "right8", "right9", "right10"]
rate = "250Mbps"
peak = "500Mbps"
smallest = "10kB"
largest = "3MB"
shape = 1.2
`,
    variants: [
      variant("RAPID"),
      variant("CUBIC", { "scheme.transfer": { controller: "cubic" } }),
      variant("Scalable", { "scheme.transfer": { controller: "scalable" } }),
    ],
  },
  {
    id: "rtcp-weights",
    topic: "RTCP",
    title: "How do weights share a link under RTCP?",
    text:
      "Two RTCP flows share 1 Gb/s. A larger weight keeps the counter of a flow higher, so the flow yields later. " +
      "With equal weights, both have the same rate. With weights of 2 and 1, the difference is small. With weights of 4 and 1, the first flow has most of the link. " +
      "Windows alternate between one segment and their bound, so the link is not always full.",
    next: "Open the page on RTCP's counter to see the variable behind this.",
    view: "time",
    toml: `# Two RTCP flows with weights share a switch of 1 Gb/s.
duration = "100ms"
seed = 1

[topology]
kind = "star"
hosts = 3
rate = "1Gbps"
delay = "25us"

[queue]
limit = "1000packets"

[scheme.rtcp]
controller = "rtcp"
alpha = 500
delta = 125
interface = "delay"
x_max = 2
weights = { first = 12000, second = 12000 }

[[workload]]
kind = "bulk"
scheme = "rtcp"
traffic_class = "first"
pairs = [["h1", "h3"]]

[[workload]]
kind = "bulk"
scheme = "rtcp"
traffic_class = "second"
pairs = [["h2", "h3"]]
`,
    variants: [
      variant("equal weights"),
      variant("weights 2 and 1", { "scheme.rtcp.weights": { first: 24000, second: 12000 } }),
      variant("weights 4 and 1", { "scheme.rtcp.weights": { first: 48000, second: 12000 } }),
    ],
  },
];
