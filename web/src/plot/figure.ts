/** Figures as data. `screen.ts` draws them with uPlot, and `svg.ts` writes them to files. */

import { axisPrefix, si } from "../base/quantity.ts";

/** A series of a panel. */
export interface Line {
  label: string;
  x: ArrayLike<number>;
  /** `NaN` leaves a gap. */
  y: ArrayLike<number>;
  colour: number;
  /** The form: a line between values, a line that keeps each value until the next one, or dots. */
  form: "line" | "step" | "dots";
  /** Overrides the colour of the series, for priority classes and acknowledgments. */
  ink?: string;
  /** Dashes of the line; by default none. */
  dash?: readonly number[];
  /** The diameter of dots in pixels. */
  size?: number;
  width?: number;
}

export interface Axis {
  label: string;
  /** The base unit, such as `b/s`; ticks get a prefix. Empty for plain numbers. */
  unit: string;
  scale: "linear" | "log";
  /** The range, if it does not follow from the data. */
  from?: number;
  to?: number;
}

/** The prefix of an axis's unit, and its factor. Logarithmic axes have a prefix at each tick instead. */
export function prefixOf(axis: Axis, [, to]: readonly [number, number]): readonly [prefix: string, factor: number] {
  if (axis.unit === "%") return ["", 0.01];
  return axis.unit === "" || axis.scale === "log" ? ["", 1] : axisPrefix(to);
}

/** The texts of ticks. With `hasUnit`, the last one has the unit of the axis. */
export function tickTexts(
  axis: Axis,
  at: readonly number[],
  range: readonly [number, number],
  hasUnit: boolean,
): string[] {
  const [prefix, factor] = prefixOf(axis, range);
  return at.map((value, index) => {
    if (axis.scale === "log" && axis.unit !== "") return si(value, axis.unit);
    const text = String(Number((value / factor).toPrecision(6)));
    return hasUnit && index === at.length - 1 && axis.unit !== "" ? `${text} ${prefix}${axis.unit}` : text;
  });
}

/** One set of axes with its series. */
export interface Panel {
  title: string;
  x: Axis;
  y: Axis;
  lines: readonly Line[];
  /** The text for readers who do not see the figure. */
  description: string;
}

/** Panels in rows. */
export interface Figure {
  title: string;
  rows: readonly (readonly Panel[])[];
}

/** Returns true if the panels of a row show the same quantities, and so share their axes. */
export function haveSameAxes(row: readonly Panel[]): boolean {
  return row.every(({ title }) => title === row[0]?.title);
}

/** The smallest and largest finite value, or `null` without any. */
export function extent(values: Iterable<number>): [number, number] | null {
  let least = Infinity;
  let most = -Infinity;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return least <= most ? [least, most] : null;
}

/** The range of an axis over all panels of a row. */
export function rangeOf(panels: readonly Panel[], axis: "x" | "y"): [number, number] {
  const own = panels[0]?.[axis];
  let least = Infinity;
  let most = -Infinity;
  for (const panel of panels) {
    for (const line of panel.lines) {
      const found = extent(iterate(line[axis], own?.scale === "log"));
      if (!found) continue;
      least = Math.min(least, found[0]);
      most = Math.max(most, found[1]);
    }
  }
  if (least > most) [least, most] = own?.scale === "log" ? [1, 10] : [0, 1];
  if (axis === "y" && own?.scale === "linear") {
    least = Math.min(0, least);
    most = most === least ? least + 1 : most + 0.06 * (most - least);
  }
  if (least === most) most = own?.scale === "log" ? least * 10 : least + 1;
  return [own?.from ?? least, own?.to ?? most];
}

function* iterate(values: ArrayLike<number>, isLog: boolean): Iterable<number> {
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index]!;
    if (!isLog || value > 0) yield value;
  }
}

/** Round positions of ticks in a range, about `count` of them. */
export function ticks(from: number, to: number, count: number, scale: "linear" | "log"): number[] {
  // A chart without data has no range.
  if (!Number.isFinite(from) || !Number.isFinite(to) || to <= from || (scale === "log" && from <= 0)) return [];
  if (scale === "log") {
    const all: number[] = [];
    const decades = Math.log10(to / from);
    const parts = decades > 2.5 ? [1] : decades > 1.2 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 7];
    for (let power = Math.floor(Math.log10(from)); power <= Math.ceil(Math.log10(to)); power += 1) {
      for (const part of parts) {
        const value = part * 10 ** power;
        if (value >= from * 0.999 && value <= to * 1.001) all.push(value);
      }
    }
    return all;
  }
  const rough = (to - from) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((part) => part * power).find((one) => one >= rough / 1.4) ?? 10 * power;
  const all: number[] = [];
  // Adding 0 makes a zero of "-0".
  for (let index = Math.ceil(from / step - 1e-9) + 0; index * step <= to + step * 1e-9; index += 1)
    all.push(index * step);
  return all;
}
