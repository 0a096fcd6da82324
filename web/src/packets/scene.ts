/** Draws a network and its packets on a canvas. */

import { classColour, colourOf, type Theme } from "../base/colours.ts";
import { type Network, PacketKind, type Packets } from "../engine/index.ts";
import type { Dropped, Instant, OnLink } from "./motion.ts";

/** The value that colours stand for. */
export type ColourBy = "class" | "flow";

/** The distance of the two directions of a cable from its middle, pixels. */
const LANE = 4;
const DATA_WIDTH = 6;
const ACKNOWLEDGMENT_WIDTH = 3;
/** The least length of a packet, so that it can be seen. */
const LEAST_LENGTH = 3;
/** With more links than this, thick lines would cover each other. */
const MANY_LINKS = 40;
/** The place of a queue: cells of this size, in rows beside the node. */
const CELL = 5;
const CELLS_IN_ROW = 10;
const MOST_ROWS = 6;

interface Line {
  x0: number;
  y0: number;
  length: number;
  /** The unit vector along the link, and the one to its right. */
  dx: number;
  dy: number;
}

export class Scene {
  readonly #canvas: HTMLCanvasElement;
  readonly #network: Network;
  readonly #packets: Packets;
  #lines: Line[] = [];
  #width = 0;
  #height = 0;
  theme: Theme;
  colourBy: ColourBy;

  constructor(canvas: HTMLCanvasElement, network: Network, packets: Packets, theme: Theme, colourBy: ColourBy) {
    this.#canvas = canvas;
    this.#network = network;
    this.#packets = packets;
    this.theme = theme;
    this.colourBy = colourBy;
  }

  /** Adapts to the size of the canvas on the page. */
  resize(): void {
    const { clientWidth, clientHeight } = this.#canvas;
    const ratio = devicePixelRatio || 1;
    this.#width = clientWidth;
    this.#height = clientHeight;
    this.#canvas.width = Math.round(clientWidth * ratio);
    this.#canvas.height = Math.round(clientHeight * ratio);
    this.#lines = this.#network.links.map(({ from, to }) => this.#line(from, to));
  }

  draw(instant: Instant, fadeS: number): void {
    const context = this.#canvas.getContext("2d");
    if (!context || this.#width === 0) return;
    const ratio = devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.#width, this.#height);
    this.#drawLinks(context);
    for (const one of instant.onLinks) this.#drawPacket(context, one);
    this.#drawNodes(context);
    for (const [link, waiting] of instant.waiting) this.#drawQueue(context, link, waiting);
    for (const one of instant.dropped) this.#drawDrop(context, one, fadeS);
  }

  #point(node: number): [number, number] {
    const { x, y } = this.#network.nodes[node]!;
    const [side, top] = [46, 34];
    return [side + (x ?? 0.5) * (this.#width - 2 * side), top + (y ?? 0.5) * (this.#height - 2 * top)];
  }

  #line(from: number, to: number): Line {
    const [x0, y0] = this.#point(from);
    const [x1, y1] = this.#point(to);
    const length = Math.hypot(x1 - x0, y1 - y0) || 1;
    const [dx, dy] = [(x1 - x0) / length, (y1 - y0) / length];
    // Each direction is to the right of the middle, seen in its direction, as on a road.
    return { x0: x0 - dy * LANE, y0: y0 + dx * LANE, length, dx, dy };
  }

  #drawLinks(context: CanvasRenderingContext2D): void {
    context.strokeStyle = this.theme.grid;
    context.lineWidth = this.#lines.length > MANY_LINKS ? 2 : DATA_WIDTH + 1;
    context.beginPath();
    for (const { x0, y0, length, dx, dy } of this.#lines) {
      context.moveTo(x0, y0);
      context.lineTo(x0 + dx * length, y0 + dy * length);
    }
    context.stroke();
  }

  #drawPacket(context: CanvasRenderingContext2D, { packet, link, tail, head }: OnLink): void {
    const { x0, y0, length, dx, dy } = this.#lines[link]!;
    const end = head * length;
    const start = Math.min(tail * length, end - LEAST_LENGTH);
    const isData = this.#packets.kind[packet] === PacketKind.Data;
    context.strokeStyle = this.#colour(packet);
    context.lineWidth = isData ? DATA_WIDTH : ACKNOWLEDGMENT_WIDTH;
    context.beginPath();
    context.moveTo(x0 + dx * start, y0 + dy * start);
    context.lineTo(x0 + dx * end, y0 + dy * end);
    context.stroke();
  }

  #drawNodes(context: CanvasRenderingContext2D): void {
    const { nodes } = this.#network;
    const hosts = nodes.filter(({ isHost }) => isHost).length;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    nodes.forEach(({ name, isHost }, node) => {
      const [x, y] = this.#point(node);
      const size = isHost ? (hosts > 30 ? 4 : 7) : 10;
      context.fillStyle = this.theme.paper;
      context.strokeStyle = this.theme.ink;
      context.lineWidth = 1.5;
      context.beginPath();
      if (isHost) context.rect(x - size, y - size, 2 * size, 2 * size);
      else context.arc(x, y, size, 0, 2 * Math.PI);
      context.fill();
      context.stroke();
      // Names of many hosts would overlap.
      if (isHost && hosts > 16) return;
      context.fillStyle = this.theme.muted;
      context.fillText(name, x, y + size + 13);
    });
  }

  /** Draws the waiting packets as cells beside the sending node, the next one to leave first. */
  #drawQueue(context: CanvasRenderingContext2D, link: number, waiting: readonly number[]): void {
    const { from } = this.#network.links[link]!;
    const { dx, dy } = this.#lines[link]!;
    const [x, y] = this.#point(from);
    const shown = Math.min(waiting.length, CELLS_IN_ROW * MOST_ROWS);
    // Rows lie along the link and grow away from it, to the left of its direction.
    for (let index = 0; index < shown; index += 1) {
      const along = 14 + (index % CELLS_IN_ROW) * (CELL + 1);
      const away = 12 + Math.floor(index / CELLS_IN_ROW) * (CELL + 1);
      context.fillStyle = this.#colour(waiting[index]!);
      context.fillRect(x + dx * along + dy * away - CELL / 2, y + dy * along - dx * away - CELL / 2, CELL, CELL);
    }
    if (waiting.length < 3) return;
    const away = 16 + Math.ceil(shown / CELLS_IN_ROW) * (CELL + 1);
    context.fillStyle = this.theme.ink;
    context.textAlign = "left";
    context.fillText(`${waiting.length} waiting`, x + dx * 12 + dy * away, y + dy * 12 - dx * away);
  }

  #drawDrop(context: CanvasRenderingContext2D, { packet, link, place, ageS }: Dropped, fadeS: number): void {
    const { x0, y0, length, dx, dy } = this.#lines[link]!;
    const share = ageS / fadeS;
    const x = x0 + dx * place * length;
    const y = y0 + dy * place * length + 14 + 40 * share;
    context.globalAlpha = 1 - share;
    context.strokeStyle = this.#colour(packet);
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(x - 4, y - 4);
    context.lineTo(x + 4, y + 4);
    context.moveTo(x + 4, y - 4);
    context.lineTo(x - 4, y + 4);
    context.stroke();
    context.globalAlpha = 1;
  }

  #colour(packet: number): string {
    const { kind, flow } = this.#packets;
    if (kind[packet] !== PacketKind.Data && this.colourBy === "class") return this.theme.acknowledgment;
    return this.colourBy === "flow"
      ? colourOf(flow[packet]!, this.theme)
      : classColour(this.#packets.class[packet]!, this.theme);
  }
}
