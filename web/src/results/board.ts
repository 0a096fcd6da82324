/** Draws a figure on the page: rows of charts with a title and a legend, and a shared cursor and zoom. */

import { colourOf, type Theme } from "../base/colours.ts";
import { si } from "../base/quantity.ts";
import { type Figure, haveSameAxes, type Line, type Panel, prefixOf, rangeOf } from "../plot/figure.ts";
import { Chart, Group } from "../plot/screen.ts";

export interface BoardOptions {
  theme: Theme;
  height: number;
  /** The names of the columns, shown above them if there are several. */
  columns: readonly string[];
}

export class Board {
  readonly element = document.createElement("div");
  #charts: Chart[] = [];
  #group = new Group();

  constructor() {
    this.element.className = "board";
  }

  /** Shows a figure. The zoom stays if the horizontal axis still has its range. */
  show(figure: Figure, options: BoardOptions): void {
    const { zoom } = this.#group;
    this.clear();
    const [from, to] = rangeOf(figure.rows[0] ?? [], "x");
    if (zoom && zoom[0] >= from && zoom[1] <= to) this.#group.zoom = zoom;
    const longest = Math.max(...figure.rows.map((row) => row.length), 1);
    this.element.dataset.columns = String(Math.min(4, longest));
    if (options.columns.length > 1 && longest === options.columns.length) this.element.append(head(options.columns));
    figure.rows.forEach((row, index) => {
      const previous = figure.rows[index - 1];
      // The legend of the row above holds for this one, too.
      const hasLegend = !previous || labelsOf(previous) !== labelsOf(row);
      this.element.append(this.#row(row, options, hasLegend));
    });
  }

  clear(): void {
    for (const chart of this.#charts) chart.destroy();
    this.#charts = [];
    this.#group = new Group();
    this.element.replaceChildren();
  }

  /** Draws a vertical line in all charts. */
  mark(x: number | null): void {
    for (const chart of this.#charts) chart.mark(x);
  }

  #row(row: readonly Panel[], options: BoardOptions, hasLegend: boolean): HTMLElement {
    const { theme, height } = options;
    const element = make("section", "row");
    const isSame = haveSameAxes(row);
    if (isSame) element.append(caption(row[0]!, row, theme, hasLegend));
    const charts = make("div", "charts");
    const y = rangeOf(row, "y");
    row.forEach((panel, column) => {
      const ranges = isSame ? { x: rangeOf(row, "x"), y } : { x: rangeOf([panel], "x"), y: rangeOf([panel], "y") };
      const values = make("p", "values");
      const chart = new Chart(
        panel,
        { theme, height, ...ranges, onValues: (found) => (values.textContent = reading(panel, found)) },
        // Panels with other axes have no common cursor.
        isSame ? this.#group : new Group(),
      );
      const cell = make("div", "cell");
      const name = options.columns[column];
      if (isSame && name !== undefined && options.columns.length > 1) cell.dataset.variant = name;
      if (!isSame) cell.append(caption(panel, [panel], theme));
      cell.append(chart.element, values);
      charts.append(cell);
      this.#charts.push(chart);
    });
    element.append(charts);
    return element;
  }
}

function head(columns: readonly string[]): HTMLElement {
  const element = make("div", "charts heads");
  for (const name of columns) {
    const cell = make("div", "cell");
    cell.textContent = name;
    element.append(cell);
  }
  return element;
}

/** The title of a row with the unit of its axis, and the legend. */
function caption(panel: Panel, row: readonly Panel[], theme: Theme, hasLegend = true): HTMLElement {
  const element = make("header", "caption");
  const title = make("h2");
  title.textContent = panel.title;
  const unit = make("span", "unit");
  const [prefix] = prefixOf(panel.y, rangeOf(row, "y"));
  // Ticks of a logarithmic axis have their units.
  unit.textContent = panel.y.scale === "log" ? "" : `${prefix}${panel.y.unit}`;
  title.append(unit);
  element.append(title);
  const lines = linesOf(row);
  if (hasLegend && lines.some(({ label }) => label !== "")) element.append(legend(lines, theme));
  return element;
}

/** The different series of a row. */
function linesOf(row: readonly Panel[]): Line[] {
  return [...new Map(row.flatMap((one) => one.lines).map((line) => [line.label, line])).values()];
}

function labelsOf(row: readonly Panel[]): string {
  return linesOf(row)
    .map(({ label }) => label)
    .join("\n");
}

export function legend(lines: readonly Line[], theme: Theme): HTMLElement {
  const list = make("ul", "legend");
  for (const line of lines.slice(0, 14)) {
    const entry = document.createElement("li");
    const mark = make("span", line.form === "dots" ? "swatch dot" : "swatch");
    // A property, not an attribute, which the page's policy forbids.
    mark.style.setProperty("--colour", line.ink ?? colourOf(line.colour, theme));
    if (line.dash && line.dash.length > 0) mark.classList.add("dashed");
    entry.append(mark, line.label);
    list.append(entry);
  }
  return list;
}

function reading(panel: Panel, values: readonly number[]): string {
  return panel.lines
    .map((line, index) => ({ line, value: values[index] ?? NaN }))
    .filter(({ value }) => Number.isFinite(value))
    .map(({ line, value }) => {
      const number = panel.y.unit === "%" ? `${(100 * value).toFixed(1)} %` : si(value, panel.y.unit);
      return panel.lines.length > 1 ? `${line.label}: ${number}` : number;
    })
    .join(" · ");
}

function make<Name extends keyof HTMLElementTagNameMap>(name: Name, className = ""): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  if (className) element.className = className;
  return element;
}
