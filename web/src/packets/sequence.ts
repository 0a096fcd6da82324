/** The sequence plot of a flow: its packets by number and class over time, and its acknowledgments. */

import { classColour, type Theme } from "../base/colours.ts";
import { PacketFate, PacketKind, type Packets } from "../engine/index.ts";
import type { Line, Panel } from "../plot/figure.ts";

interface Points {
  x: number[];
  y: number[];
}

/** The panel of a flow. Times are those at which packets leave their host, counted from `originS`. */
export function sequencePanel(packets: Packets, flow: number, theme: Theme, label: string, originS = 0): Panel {
  const byClass = new Map<number, Points>();
  const again: Points = { x: [], y: [] };
  const lost: Points = { x: [], y: [] };
  const acknowledged: Points = { x: [], y: [] };
  let most = 0;
  for (let packet = 0; packet < packets.count; packet += 1) {
    if (packets.flow[packet] !== flow) continue;
    if (packets.kind[packet] === PacketKind.Data) {
      const time = leftHost(packets, packet) - originS;
      const number = packets.segment[packet]! + 1;
      most = Math.max(most, number);
      if (packets.isRetransmission[packet]) push(again, time, number);
      else push(inClass(byClass, packets.class[packet]!), time, number);
      if (packets.fate[packet] === PacketFate.Dropped) push(lost, time, number);
    } else if (packets.kind[packet] === PacketKind.Acknowledgment && packets.fate[packet] === PacketFate.Arrived) {
      push(acknowledged, packets.endS[packet]! - originS, packets.segment[packet]!);
    }
  }
  const classes = [...byClass.keys()].sort((one, other) => one - other);
  const hasClasses = classes.length > 1;
  const size = most > 2_000 ? 2.5 : 4;
  const lines: Line[] = classes.map((level) => ({
    ...sorted(byClass.get(level)!),
    label: hasClasses ? `priority ${level}` : "sent",
    colour: level,
    ink: classColour(level, theme),
    form: "dots",
    size,
  }));
  if (again.x.length > 0)
    lines.push({
      ...sorted(again),
      label: "sent again",
      colour: 3,
      ink: theme.series[3]!,
      form: "dots",
      size: size + 1,
    });
  if (lost.x.length > 0)
    lines.push({ ...sorted(lost), label: "dropped", colour: 6, ink: theme.drop, form: "dots", size: size + 2 });
  if (acknowledged.x.length > 0) {
    lines.push({
      ...rising(sorted(acknowledged)),
      label: "acknowledged without holes",
      colour: 6,
      ink: theme.muted,
      form: "step",
      width: 1,
    });
  }
  const counts = classes.map((level) => `${byClass.get(level)!.x.length} packets of priority ${level}`);
  return {
    title: "Packets of the flow over time",
    x: {
      label: "time",
      unit: "s",
      scale: "linear",
      from: packets.fromS - originS,
      to: lastTime(packets, flow) - originS,
    },
    y: { label: "packet", unit: "", scale: "linear" },
    lines,
    description: `Sequence plot of flow ${flow}, ${label}: ${counts.join(", ")}, ${again.x.length} sent again, ${lost.x.length} dropped.`,
  };
}

/** The time at which a packet left its host, or was dropped there. */
export function leftHost(packets: Packets, packet: number): number {
  const hop = packets.firstHop[packet]!;
  const start = hop < packets.firstHop[packet + 1]! ? packets.hopStartS[hop]! : NaN;
  return Number.isNaN(start) ? packets.sentS[packet]! : start;
}

/** The flows that have packets, with the number of each. */
export function flowsIn(packets: Packets): number[] {
  return [...new Set(packets.flow)].sort((one, other) => one - other);
}

function lastTime(packets: Packets, flow: number): number {
  let last = packets.fromS;
  for (let packet = 0; packet < packets.count; packet += 1) {
    if (packets.flow[packet] !== flow) continue;
    last = Math.max(last, packets.endS[packet] || packets.sentS[packet]!);
  }
  return last > packets.fromS ? last : packets.toS;
}

function inClass(all: Map<number, Points>, level: number): Points {
  const points = all.get(level) ?? { x: [], y: [] };
  all.set(level, points);
  return points;
}

function push(points: Points, x: number, y: number): void {
  points.x.push(x);
  points.y.push(y);
}

function sorted({ x, y }: Points): Points {
  const order = [...x.keys()].sort((one, other) => x[one]! - x[other]!);
  return { x: order.map((index) => x[index]!), y: order.map((index) => y[index]!) };
}

/** Acknowledgments never fall: one of lower priority may arrive late with an older number. */
function rising({ x, y }: Points): Points {
  let most = 0;
  return { x, y: y.map((value) => (most = Math.max(most, value))) };
}
