/** The place of packets at an instant: waiting in queues, on links, or just dropped. */

import { type Network, PacketFate, type Packets } from "../engine/index.ts";

/** A packet on a link at an instant. */
export interface OnLink {
  packet: number;
  link: number;
  /** The place of its last and first bit, 0 at the sending end of the link and 1 at the other end. */
  tail: number;
  head: number;
}

/** A packet that was dropped shortly before an instant. */
export interface Dropped {
  packet: number;
  link: number;
  /** The place on the link: 0 if the queue dropped it. */
  place: number;
  /** The time since the drop, seconds. */
  ageS: number;
}

export interface Instant {
  onLinks: OnLink[];
  /** The waiting packets of each link, in order of arrival. */
  waiting: Map<number, number[]>;
  dropped: Dropped[];
}

export class Motion {
  readonly packets: Packets;
  readonly #network: Network;
  /** The longest time that a packet is in the network. */
  readonly #longestS: number;
  /** The packets that were dropped, in order of time. */
  readonly #drops: number[];
  #times: Float64Array | null = null;

  constructor(packets: Packets, network: Network) {
    this.packets = packets;
    this.#network = network;
    let longest = 0;
    const drops: number[] = [];
    for (let packet = 0; packet < packets.count; packet += 1) {
      longest = Math.max(longest, this.#endOf(packet) - packets.sentS[packet]!);
      if (packets.fate[packet] === PacketFate.Dropped) drops.push(packet);
    }
    this.#longestS = longest;
    this.#drops = drops.sort((one, other) => packets.endS[one]! - packets.endS[other]!);
  }

  /** The places of all packets. Drops are shown for `fadeS`. */
  at(nowS: number, fadeS: number): Instant {
    const instant: Instant = { onLinks: [], waiting: new Map(), dropped: [] };
    const { sentS, count } = this.packets;
    for (let packet = lowerBound(sentS, nowS - this.#longestS); packet < count && sentS[packet]! <= nowS; packet += 1) {
      if (this.#endOf(packet) > nowS) this.#place(packet, nowS, instant);
    }
    for (const queue of instant.waiting.values())
      queue.sort((one, other) => this.#enteredS(one, nowS) - this.#enteredS(other, nowS));
    for (let index = this.#drops.length - 1; index >= 0; index -= 1) {
      const packet = this.#drops[index]!;
      const ageS = nowS - this.packets.endS[packet]!;
      if (ageS > fadeS) break;
      if (ageS >= 0) instant.dropped.push(this.#drop(packet, ageS));
    }
    return instant;
  }

  /** The next instant at which a packet enters or leaves a queue, arrives or is dropped; `null` at the end. */
  next(nowS: number): number | null {
    this.#times ??= this.#allTimes();
    const index = lowerBound(this.#times, nowS * (1 + 1e-12) + 1e-15);
    return index < this.#times.length ? this.#times[index]! : null;
  }

  #endOf(packet: number): number {
    const end = this.packets.endS[packet]!;
    return Number.isNaN(end) ? Number.POSITIVE_INFINITY : end;
  }

  #place(packet: number, nowS: number, instant: Instant): void {
    const { firstHop, hopLink, hopEnterS, hopStartS, hopLeaveS } = this.packets;
    const [first, end] = [firstHop[packet]!, firstHop[packet + 1]!];
    // The last hop that the packet has entered.
    let hop = end - 1;
    while (hop > first && hopEnterS[hop]! > nowS) hop -= 1;
    if (hop < first || hopEnterS[hop]! > nowS) return;
    const link = hopLink[hop]!;
    const start = hopStartS[hop]!;
    if (!(start <= nowS)) {
      const queue = instant.waiting.get(link);
      if (queue) queue.push(packet);
      else instant.waiting.set(link, [packet]);
      return;
    }
    const leave = hopLeaveS[hop]!;
    const arrival = hop + 1 < end ? hopEnterS[hop + 1]! : this.packets.endS[packet]!;
    const delay = arrival > leave ? arrival - leave : (this.#network.links[link]?.delayS ?? 0);
    // Without a delay, the packet covers the link while it is transmitted.
    const place = (since: number): number => (delay > 0 ? (nowS - since) / delay : nowS >= since ? 1 : 0);
    instant.onLinks.push({ packet, link, tail: clamp(place(leave)), head: clamp(place(start)) });
  }

  #drop(packet: number, ageS: number): Dropped {
    const { firstHop, hopLink, hopLeaveS, endS } = this.packets;
    const hop = Math.max(firstHop[packet]!, firstHop[packet + 1]! - 1);
    const isOnWire = hopLeaveS[hop]! <= endS[packet]!;
    return { packet, link: hopLink[hop] ?? 0, place: isOnWire ? 0.5 : 0, ageS };
  }

  #enteredS(packet: number, nowS: number): number {
    const { firstHop, hopEnterS } = this.packets;
    let hop = firstHop[packet + 1]! - 1;
    while (hop > firstHop[packet]! && hopEnterS[hop]! > nowS) hop -= 1;
    return hopEnterS[hop]!;
  }

  #allTimes(): Float64Array {
    const { hopEnterS, hopStartS, endS } = this.packets;
    const all = [hopEnterS, hopStartS, endS].flatMap((times) => Array.from(times).filter(Number.isFinite));
    return Float64Array.from(new Set(all)).sort();
  }
}

/** The position of the first value that is at least `value`. */
export function lowerBound(values: ArrayLike<number>, value: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

function clamp(value: number): number {
  return Math.max(0, Math.min(1, value));
}
