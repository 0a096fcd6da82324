/** Draws panels on the screen with uPlot: a cursor and a zoom that all charts of a group share, by mouse and by keyboard. */

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { colourOf, type Theme } from "../base/colours.ts";
import { type Axis, type Line, type Panel, tickTexts, ticks } from "./figure.ts";

/** Charts whose cursor and zoom move together. */
export class Group {
  readonly #charts = new Set<Chart>();
  readonly sync = uPlot.sync(`group-${Math.random()}`);
  #isBusy = false;
  /** The range of all charts while they are zoomed. */
  zoom: [number, number] | null = null;
  /** Called with the time under the cursor, or `null` if it left. */
  onCursor: ((x: number | null) => void) | null = null;

  add(chart: Chart): void {
    this.#charts.add(chart);
  }

  remove(chart: Chart): void {
    this.#charts.delete(chart);
  }

  /** Sets the horizontal range of all charts; `null` shows everything. */
  setZoom(range: [number, number] | null): void {
    // Each chart reports its new range, which would start the next round.
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.zoom = range;
    for (const chart of this.#charts) chart.show(range);
    this.#isBusy = false;
  }
}

export interface Look {
  theme: Theme;
  height: number;
  /** The ranges that all panels of a row share. */
  x: [number, number];
  y: [number, number];
  /** The values under the cursor, in the order of the lines. */
  onValues?: (values: readonly number[]) => void;
}

/** One panel on the screen. */
export class Chart {
  readonly element = document.createElement("div");
  readonly #plot: uPlot;
  readonly #group: Group;
  readonly #full: [number, number];
  readonly #observer: ResizeObserver;
  readonly #marker = document.createElement("div");
  #marked: number | null = null;

  constructor(panel: Panel, look: Look, group: Group) {
    this.#group = group;
    this.#full = look.x;
    this.element.className = "chart";
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "img");
    this.element.setAttribute("aria-label", panel.description);
    this.element.setAttribute("aria-description", "Arrow keys move the cursor, + and - zoom, Escape shows everything.");
    const { theme } = look;
    const data = aligned(panel.lines);
    const range = look.y;
    const options: uPlot.Options = {
      width: 300,
      height: look.height,
      padding: [8, 24, 0, 0],
      legend: { show: false },
      cursor: {
        sync: { key: group.sync.key, setSeries: false, scales: ["x", null] },
        drag: { x: true, y: false, dist: 6 },
        points: { size: 5, width: 0 },
        y: false,
      },
      scales: {
        x: {
          time: false,
          distr: panel.x.scale === "log" ? 3 : 1,
          range: (_, low, high) => (group.zoom ? [low, high] : this.#full),
        },
        y: { distr: panel.y.scale === "log" ? 3 : 1, range: () => range },
      },
      axes: [axisOptions(panel.x, look.x, theme, 26), axisOptions(panel.y, look.y, theme, 50)],
      series: [{}, ...panel.lines.map((line) => seriesOptions(line, theme))],
      hooks: {
        setSelect: [
          (plot) => {
            if (plot.select.width < 4) return;
            const low = plot.posToVal(plot.select.left, "x");
            const high = plot.posToVal(plot.select.left + plot.select.width, "x");
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            group.setZoom([low, high]);
          },
        ],
        setCursor: [
          (plot) => {
            const index = plot.cursor.idx;
            const isInside = typeof index === "number" && (plot.cursor.left ?? -1) >= 0;
            group.onCursor?.(isInside ? (data[0]![index] ?? null) : null);
            look.onValues?.(
              panel.lines.map((_, line) => (isInside ? ((data[line + 1]![index] as number | null) ?? NaN) : NaN)),
            );
          },
        ],
        draw: [() => this.#placeMarker()],
      },
    };
    this.#plot = new uPlot(options, data, this.element);
    this.#marker.className = "marker";
    this.#marker.hidden = true;
    this.#plot.over.append(this.#marker);
    // A double click shows everything again, in all charts.
    this.#plot.over.addEventListener("dblclick", () => group.setZoom(null));
    this.element.addEventListener("keydown", (event) => this.#onKey(event));
    this.#observer = new ResizeObserver(([entry]) => {
      const width = Math.floor(entry?.contentRect.width ?? 0);
      if (width > 0 && width !== this.#plot.width) this.#plot.setSize({ width, height: look.height });
    });
    this.#observer.observe(this.element);
    group.add(this);
    if (group.zoom) this.show(group.zoom);
  }

  /** Shows a horizontal range; `null` shows everything. */
  show(range: [number, number] | null): void {
    const [min, max] = range ?? this.#full;
    this.#plot.setScale("x", { min, max });
  }

  /** Shows a vertical line at a value of the horizontal axis; `null` removes it. */
  mark(x: number | null): void {
    this.#marked = x;
    this.#placeMarker();
  }

  /** The value of the horizontal axis at a click; `null` outside the plot. */
  timeAt(event: MouseEvent): number | null {
    const box = this.#plot.over.getBoundingClientRect();
    const left = event.clientX - box.left;
    return left >= 0 && left <= box.width ? this.#plot.posToVal(left, "x") : null;
  }

  destroy(): void {
    this.#observer.disconnect();
    this.#group.remove(this);
    this.#plot.destroy();
    this.element.remove();
  }

  /** Moves the line, which is an element: drawing all points again for each frame would take too long. */
  #placeMarker(): void {
    const { over } = this.#plot;
    const x = this.#marked === null ? -1 : this.#plot.valToPos(this.#marked, "x");
    const isInside = x >= 0 && x <= over.clientWidth;
    this.#marker.hidden = !isInside;
    if (isInside) this.#marker.style.transform = `translateX(${x.toFixed(1)}px)`;
  }

  #onKey(event: KeyboardEvent): void {
    const plot = this.#plot;
    const width = plot.over.clientWidth;
    const left = plot.cursor.left ?? -1;
    const here = left < 0 ? width / 2 : left;
    const step = event.shiftKey ? width / 10 : width / 100;
    const [low, high] = this.#group.zoom ?? this.#full;
    const centre = plot.posToVal(here, "x");
    const zoomBy = (factor: number): void => {
      const span = Math.min(this.#full[1] - this.#full[0], (high - low) * factor);
      const start = Math.max(this.#full[0], Math.min(centre - span / 2, this.#full[1] - span));
      this.#group.setZoom(factor > 1 && span >= this.#full[1] - this.#full[0] ? null : [start, start + span]);
    };
    const moves: Record<string, () => void> = {
      ArrowLeft: () => plot.setCursor({ left: Math.max(0, here - step), top: 10 }),
      ArrowRight: () => plot.setCursor({ left: Math.min(width, here + step), top: 10 }),
      "+": () => zoomBy(0.5),
      "=": () => zoomBy(0.5),
      "-": () => zoomBy(2),
      Escape: () => this.#group.setZoom(null),
    };
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    move();
  }
}

/** The data in the form of uPlot: one horizontal column for all lines. */
function aligned(lines: readonly Line[]): uPlot.AlignedData {
  const first = lines[0]?.x;
  if (!first) return [[]];
  if (lines.every((line) => line.x === first)) {
    return [
      Array.from(first),
      ...lines.map((line) => Array.from(line.y, (value) => (Number.isFinite(value) ? value : null))),
    ];
  }
  return uPlot.join(
    lines.map((line) => [distinct(line.x), Array.from(line.y, (value) => (Number.isFinite(value) ? value : null))]),
  );
}

/** Moves equal values apart by a rounding error, because uPlot keeps one point for each of them. */
function distinct(values: ArrayLike<number>): number[] {
  let last = -Infinity;
  return Array.from(values, (value) => {
    last = value > last ? value : last + Math.max(Math.abs(last) * 1e-12, 1e-15);
    return last;
  });
}

function seriesOptions(line: Line, theme: Theme): uPlot.Series {
  const colour = line.ink ?? colourOf(line.colour, theme);
  const base: uPlot.Series = { label: line.label, stroke: colour };
  if (line.form === "dots") {
    return {
      ...base,
      paths: () => null,
      points: { show: true, size: line.size ?? 4, width: 0, fill: colour, space: 0 },
    };
  }
  const dash = line.dash && line.dash.length > 0 ? { dash: [...line.dash] } : {};
  const steps = uPlot.paths.stepped;
  return {
    ...base,
    ...dash,
    width: line.width ?? 1.5,
    points: { show: false },
    ...(line.form === "step" && steps ? { paths: steps({ align: 1 }) } : {}),
  };
}

function axisOptions(axis: Axis, range: [number, number], theme: Theme, size: number): uPlot.Axis {
  const isVertical = size > 40;
  return {
    stroke: theme.muted,
    size,
    gap: 4,
    font: "11px system-ui, sans-serif",
    grid: { stroke: theme.grid, width: 1 },
    ticks: { show: false },
    // By default, a logarithmic axis leaves out the texts of some ticks.
    filter: (_, splits) => splits,
    // The same ticks as in files, a little fewer on narrow charts.
    splits: (plot, _, low, high) => {
      const length = (isVertical ? plot.bbox.height : plot.bbox.width) / devicePixelRatio;
      return ticks(low, high, Math.max(2, Math.floor(length / (isVertical ? 26 : 68))), axis.scale);
    },
    values: (_, splits) => tickTexts(axis, splits, range, !isVertical),
  };
}
