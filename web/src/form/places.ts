/** The cables and hosts of a network, as choices of the form, and new tables that name them. */

import { RATE, TIME, inBase, withUnit } from "../base/quantity.ts";
import type { JsonObject, Network, NetworkLink, Path } from "../engine/index.ts";
import type { Edit } from "../state/session.ts";

export interface Choice {
  value: string;
  label: string;
}

/** Larger networks offer groups of cables only, and hosts as text. */
const MOST_CHOICES = 200;

const GROUPS: readonly Choice[] = [
  { value: "all", label: "all cables" },
  { value: "access", label: "cables of hosts" },
  { value: "core", label: "cables between routers" },
];

/** The groups of cables, and each cable by the names of its ends. */
export function cables({ nodes, links }: Network): Choice[] {
  // The two directions of a cable follow each other.
  const ends = links.filter((_, index) => index % 2 === 0).map((link) => endsOf(nodes, link));
  if (ends.length > MOST_CHOICES) return [...GROUPS];
  return [...GROUPS, ...ends.map((pair) => ({ value: nameOf(pair), label: pair.join(" – ") }))];
}

/** The choice that a table of `[[link]]` or `[[change]]` has made; empty if there is none. */
export function cableOf({ select, between }: JsonObject): string {
  if (typeof select === "string") return select;
  return Array.isArray(between) && between.length === 2 ? nameOf(between.map(String)) : "";
}

/** The edits that choose other cables. Directions are removed, since they name the ends of the old cable. */
export function editsOfCable(path: Path, values: JsonObject, choice: string): Edit[] {
  const isGroup = GROUPS.some(({ value }) => value === choice);
  const old = Object.keys(values).filter((key) => key === "from" || key.endsWith("_from"));
  const unset = [...old, isGroup ? "between" : "select"].filter((key) => Object.hasOwn(values, key));
  return [
    ...unset.map((key) => ({ path: [...path, key], value: undefined })),
    isGroup
      ? { path: [...path, "select"], value: choice }
      : { path: [...path, "between"], value: choice.split(SEPARATOR) },
  ];
}

/** The directions that a table of `[[link]]` or `[[change]]` can be restricted to. */
export function directions({ select, between }: JsonObject): string[] {
  if (select === "access") return ["hosts", "routers"];
  return Array.isArray(between) ? between.map(String) : [];
}

/** The names of all hosts; empty for a large network. */
export function hosts(network: Network | null): string[] {
  const all = network?.nodes.filter(({ isHost }) => isHost) ?? [];
  return all.length > MOST_CHOICES ? [] : all.map(({ name }) => name);
}

/** Settings of the slowest cable, which do not change it yet. */
export function newCable(network: Network): JsonObject {
  const slowest = slowestOf(network);
  return { between: endsOf(network.nodes, slowest), rate: withUnit(slowest.rateBps, RATE, 9) };
}

/** Packets from the first host to the last one, at a fifth of the slowest rate. */
export function newCrossTraffic(network: Network): JsonObject {
  const all = network.nodes.filter(({ isHost }) => isHost);
  const [first, last] = [all[0]!, all.at(-1)!];
  const rate = withUnit(slowestOf(network).rateBps / 5, RATE);
  return { kind: "constant", from: [first.name], to: [last.name], rate };
}

/** A change that halves the rate of the slowest cable in the middle of the run. */
export function newChange(network: Network, { duration }: JsonObject): JsonObject {
  const slowest = slowestOf(network);
  const middle = withUnit((inBase(duration, TIME) ?? 1) / 2, TIME);
  return { at: middle, between: endsOf(network.nodes, slowest), rate: withUnit(slowest.rateBps / 2, RATE) };
}

/** The slowest cable between routers, or of all if there is none. */
function slowestOf({ nodes, links }: Network): NetworkLink {
  const between = links.filter(({ from, to }) => !nodes[from]!.isHost && !nodes[to]!.isHost);
  const all = between.length > 0 ? between : links;
  return all.reduce((slowest, link) => (link.rateBps < slowest.rateBps ? link : slowest));
}

function endsOf(nodes: Network["nodes"], { from, to }: NetworkLink): string[] {
  return [nodes[from]!.name, nodes[to]!.name];
}

/** Between the names of two nodes; names of nodes have no line breaks. */
const SEPARATOR = "\n";

/** A name for both orders of the ends. */
function nameOf(ends: readonly string[]): string {
  return [...ends].sort().join(SEPARATOR);
}
