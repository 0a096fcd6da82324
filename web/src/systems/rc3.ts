/** RC3's worked example: a flow of 66 packets (Mittal et al., NSDI 2014, section 2.2 and figure 3). */

import { si } from "../base/quantity.ts";
import { PacketKind, type Packets, type RunResults } from "../engine/index.ts";
import type { Panel } from "../plot/figure.ts";
import { leftHost, sequencePanel } from "../packets/sequence.ts";
import { type Example, range, type Scenario } from "./page.ts";

type Values = { size: number; window: number; path: number; lost: number };

/** The first segment that the path loses, counted from 1 as in the paper. */
const FIRST_LOST = 21;
/** The time that a packet of 1500 bytes takes at 12 Mb/s, milliseconds. */
const PACKET_MS = 1;

function toml(values: Values, scheme: string): string {
  // The first acknowledgment returns while the last packet of a round trip is being sent: four delays, two
  // transmissions of a packet and two of an acknowledgment. The paper's path of 50 packets has delays of 11.98 ms.
  const delay = ((values.path * PACKET_MS - 2.08) / 4).toFixed(3);
  const lost = range(FIRST_LOST, FIRST_LOST + values.lost - 1).filter((number) => number <= values.size);
  // The path of the example loses packets of low priority only, and TCP has none.
  const drop =
    lost.length === 0 || scheme === "tcp"
      ? ""
      : `
[[drop]]
from = "r0"
to = "h2"
flow = 0
segments = [${lost.map((number) => number - 1).join(", ")}]
copies = 1
`;
  return `# RC3's worked example (NSDI 2014, section 2.2): a packet of 1500 B takes 1 ms, and ${values.path} of them a round trip.
duration = "10s"
seed = 1

[topology]
kind = "chain"
routers = 1
hosts_per_router = 2
access_rate = "12Mbps"
access_delay = "${Number(delay)}ms"

[queue]
kind = "priority"
limit = "5MB"

[transport]
limited_transmit = false
delayed_ack = false

[scheme.tcp]
controller = "newreno"
initial_window = ${values.window}

[scheme.rc3]
controller = "rc3"
levels = [40, 440, 4440]
inner = { controller = "newreno", initial_window = ${values.window} }

[workload]
kind = "bulk"
scheme = "${scheme}"
pairs = [["h1", "h2"]]
size = "${values.size}packets"
${drop}`;
}

interface Timing {
  startS: number;
  /** The time at which the sender has the acknowledgment of every packet. */
  endS: number;
  sent: number;
}

function timing(packets: Packets, size: number): Timing | null {
  let startS = Number.POSITIVE_INFINITY;
  let endS = Number.POSITIVE_INFINITY;
  let sent = 0;
  for (let packet = 0; packet < packets.count; packet += 1) {
    if (packets.kind[packet] === PacketKind.Data) {
      sent += 1;
      startS = Math.min(startS, leftHost(packets, packet));
    } else if (packets.kind[packet] === PacketKind.Acknowledgment && packets.segment[packet]! >= size) {
      endS = Math.min(endS, packets.endS[packet]!);
    }
  }
  return Number.isFinite(endS) ? { startS, endS, sent } : null;
}

function panelOf(results: RunResults, { size }: Values, theme: Parameters<typeof sequencePanel>[2]): Panel | null {
  const { packets, label } = results;
  const times = packets && timing(packets, size);
  if (!packets || !times) return null;
  const panel = sequencePanel(packets, 0, theme, label, times.startS);
  return {
    ...panel,
    // TCP has one class, and the legend of both panels is the same.
    lines: panel.lines.map((line) => (line.label === "sent" ? { ...line, label: "priority 0" } : line)),
    title: "Packets of the flow by the time at which they leave the sender",
  };
}

export const RC3: Example<Values> = {
  id: "rc3",
  title: "RC3: both ends of a flow meet",
  lead:
    "TCP sends the front of a flow, and its window starts small. RC3 also sends the tail, backwards and at lower priorities, " +
    "which routers serve only if nothing else waits. So the flow uses the free capacity from its first round trip.",
  values: { size: 66, window: 4, path: 50, lost: 2 },
  knobs: [
    { key: "size", label: "Size of the flow", steps: range(1, 400), write: (value) => `${value} packets` },
    { key: "window", label: "Initial window", steps: range(1, 20), write: (value) => `${value} packets` },
    { key: "path", label: "Path holds", steps: range(10, 150, 5), write: (value) => `${value} packets` },
    {
      key: "lost",
      label: "Lost at low priority",
      steps: range(0, 12),
      write: (value) => (value === 0 ? "none" : value === 1 ? "packet 21" : `packets 21 to ${20 + value}`),
    },
  ],
  scenarios: (values): Scenario[] => [
    { label: "RC3", toml: toml(values, "rc3") },
    { label: "TCP", toml: toml(values, "tcp") },
  ],
  options: () => ({ series: null, packets: { most: 20_000 } }),
  outcome: (results, values, theme) => {
    const panels = results.flatMap((one) => panelOf(one, values, theme) ?? []);
    // Both panels have the same axes, so that times can be compared.
    const to = Math.max(...panels.map(({ x }) => x.to ?? 0));
    const shared = panels.map((panel) => ({ ...panel, x: { ...panel.x, from: 0, to } }));
    return {
      figure: { title: "RC3's worked example", rows: [shared] },
      height: 330,
      columns: results.map(({ label }) => label),
      verdict: verdict(results, values),
    };
  },
  prose: [
    [
      "Order",
      "The last 40 packets have priority 1, the 400 before them priority 2, and so on. Each is sent once at low priority.",
    ],
    ["Where the ends meet", "The tail ends where it meets the last packet that TCP has sent."],
    [
      "Holes",
      "The path loses the first copy of the packets that you choose. SACK tells TCP which packets are missing, so TCP sends only these. In the paper's example, it also repeats packets whose acknowledgments have not arrived yet.",
    ],
    [
      "The acknowledgments",
      "The grey line is the first missing packet. It jumps to the end once the last hole is filled.",
    ],
    [
      "If the window is large",
      "Raise the initial window, or shrink the flow: RC3 gains nothing if TCP's first window holds the whole flow.",
    ],
  ],
  source: "The example is that of Mittal, Sherry, Ratnasamy and Shenker, NSDI 2014, section 2.2 and figure 3.",
};

function verdict(results: readonly RunResults[], { path, size }: Values): string {
  const [rc3, tcp] = results.map(({ packets }) => packets && timing(packets, size));
  if (!rc3 || !tcp) return "The flow has not finished.";
  const trips = (times: Timing): number => Math.floor((times.endS - times.startS) / ((path * PACKET_MS) / 1000)) + 1;
  const words = (times: Timing): string => `${si(times.endS - times.startS, "s")}, in round trip ${trips(times)}`;
  const gain = 1 - (rc3.endS - rc3.startS) / (tcp.endS - tcp.startS);
  const compared =
    Math.abs(gain) < 0.005
      ? "RC3 gains nothing."
      : `RC3 takes ${Math.abs(100 * gain).toFixed(0)} % ${gain > 0 ? "less" : "more"} time.`;
  const copies = rc3.sent > size ? ` RC3 sends ${rc3.sent} packets for ${size}, TCP ${tcp.sent}.` : "";
  return `All packets are acknowledged after ${words(rc3)} with RC3, and after ${words(tcp)} with TCP. ${compared}${copies}`;
}
