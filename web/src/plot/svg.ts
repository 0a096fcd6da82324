/** Writes figures as SVG, for files and, by way of the browser, as PNG. */

import { colourOf, type Theme } from "../base/colours.ts";
import {
  type Axis,
  type Figure,
  haveSameAxes,
  type Line,
  type Panel,
  prefixOf,
  rangeOf,
  ticks,
  tickTexts,
} from "./figure.ts";

const PANEL_WIDTH = 420;
const PANEL_HEIGHT = 190;
const LEFT = 74;
const RIGHT = 14;
const TOP = 26;
const BOTTOM = 42;
const HEAD = 34;
const LEGEND_ROW = 18;
const FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";
/** The largest number of points of a line, above which points of the same pixel column are merged. */
const MOST_POINTS = 2_000;

/** Writes a figure as an SVG document. */
export function toSvg(figure: Figure, theme: Theme): string {
  const columns = Math.max(1, ...figure.rows.map((row) => row.length));
  const width = columns * PANEL_WIDTH;
  const legends = figure.rows.map((row) => entriesOf(row));
  const heights = legends.map((entries) => PANEL_HEIGHT + (entries.length > 0 ? LEGEND_ROW : 0));
  const height = HEAD + heights.reduce((sum, one) => sum + one, 0) + 8;
  const parts: string[] = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
      `font-family="${escaped(FONT)}" font-size="11" fill="${theme.ink}">`,
    `<title>${escaped(figure.title)}</title>`,
    `<rect width="${width}" height="${height}" fill="${theme.paper}"/>`,
    `<text x="14" y="22" font-size="14" font-weight="600">${escaped(figure.title)}</text>`,
  ];
  let y = HEAD;
  figure.rows.forEach((row, index) => {
    parts.push(legend(legends[index]!, 14, y + 12, theme));
    const top = y + (legends[index]!.length > 0 ? LEGEND_ROW : 0);
    const isShared = haveSameAxes(row);
    for (const [column, panel] of row.entries()) {
      const panels = isShared ? row : [panel];
      const ranges = { x: rangeOf(panels, "x"), y: rangeOf(panels, "y") };
      parts.push(draw(panel, ranges, column * PANEL_WIDTH, top, theme));
    }
    y += heights[index]!;
  });
  parts.push("</svg>");
  return parts.join("\n");
}

/** The different series of a row, for one legend; none if there is a single series. */
function entriesOf(row: readonly Panel[]): Line[] {
  const byLabel = new Map(row.flatMap((panel) => panel.lines).map((line) => [line.label, line]));
  return byLabel.size > 1 ? [...byLabel.values()].slice(0, 12) : [];
}

function legend(lines: readonly Line[], x: number, y: number, theme: Theme): string {
  let left = x;
  return lines
    .map((line) => {
      const colour = line.ink ?? colourOf(line.colour, theme);
      const mark =
        line.form === "dots"
          ? `<circle cx="${left + 8}" cy="${y - 4}" r="3" fill="${colour}"/>`
          : `<line x1="${left}" x2="${left + 16}" y1="${y - 4}" y2="${y - 4}" stroke="${colour}" stroke-width="2"${dashes(line)}/>`;
      const text = `<text x="${left + 20}" y="${y}">${escaped(line.label)}</text>`;
      left += 34 + 6.2 * line.label.length;
      return mark + text;
    })
    .join("");
}

function draw(
  panel: Panel,
  ranges: { x: [number, number]; y: [number, number] },
  left: number,
  top: number,
  theme: Theme,
): string {
  const [width, height] = [PANEL_WIDTH - LEFT - RIGHT, PANEL_HEIGHT - TOP - BOTTOM];
  const [x0, y0] = [left + LEFT, top + TOP];
  const toX = scaled(panel.x, ranges.x, x0, x0 + width);
  const toY = scaled(panel.y, ranges.y, y0 + height, y0);
  const clip = `c${Math.round(left)}-${Math.round(top)}`;
  const axes = [
    ...grid(panel.x, ranges.x, 6, (at, text) => {
      const x = toX(at).toFixed(1);
      return (
        `<line x1="${x}" x2="${x}" y1="${y0}" y2="${y0 + height}" stroke="${theme.grid}"/>` +
        `<text x="${x}" y="${y0 + height + 15}" text-anchor="middle" fill="${theme.muted}">${text}</text>`
      );
    }),
    ...grid(panel.y, ranges.y, 4, (at, text) => {
      const y = toY(at);
      return (
        `<line x1="${x0}" x2="${x0 + width}" y1="${y.toFixed(1)}" y2="${y.toFixed(1)}" stroke="${theme.grid}"/>` +
        `<text x="${x0 - 6}" y="${(y + 4).toFixed(1)}" text-anchor="end" fill="${theme.muted}">${text}</text>`
      );
    }),
  ];
  const lines = panel.lines.map((line) => shape(line, toX, toY, theme));
  return [
    `<clipPath id="${clip}"><rect x="${x0}" y="${y0}" width="${width}" height="${height}"/></clipPath>`,
    `<text x="${x0}" y="${top + 16}" font-weight="600">${escaped(panel.title)}</text>`,
    ...axes,
    `<text x="${x0 + width / 2}" y="${y0 + height + 32}" text-anchor="middle">${escaped(labelOf(panel.x, ranges.x))}</text>`,
    `<text transform="translate(${left + 13} ${y0 + height / 2}) rotate(-90)" text-anchor="middle">${escaped(labelOf(panel.y, ranges.y))}</text>`,
    `<g clip-path="url(#${clip})" fill="none">${lines.join("")}</g>`,
  ].join("\n");
}

function scaled(axis: Axis, [from, to]: [number, number], start: number, end: number): (value: number) => number {
  const map = axis.scale === "log" ? Math.log10 : (value: number) => value;
  const [low, high] = [map(from), map(to)];
  return (value) => start + ((map(value) - low) / (high - low)) * (end - start);
}

function grid(
  axis: Axis,
  range: [number, number],
  count: number,
  write: (at: number, text: string) => string,
): string[] {
  const at = ticks(range[0], range[1], count, axis.scale);
  const texts = tickTexts(axis, at, range, false);
  return at.map((value, index) => write(value, texts[index]!));
}

/** The label of an axis with the unit of its ticks. Ticks of a logarithmic axis have their units. */
function labelOf(axis: Axis, range: [number, number]): string {
  const [prefix] = prefixOf(axis, range);
  return axis.unit && axis.scale === "linear" ? `${axis.label} (${prefix}${axis.unit})` : axis.label;
}

function shape(line: Line, toX: (x: number) => number, toY: (y: number) => number, theme: Theme): string {
  const colour = line.ink ?? colourOf(line.colour, theme);
  if (line.form === "dots") {
    const radius = (line.size ?? 3) / 2;
    const dots: string[] = [];
    for (let index = 0; index < line.x.length; index += 1) {
      const [x, y] = [toX(line.x[index]!), toY(line.y[index]!)];
      if (Number.isFinite(x) && Number.isFinite(y))
        dots.push(`<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${radius}"/>`);
    }
    return `<g fill="${colour}">${dots.join("")}</g>`;
  }
  let path = "";
  let isDown = false;
  const every = Math.max(1, Math.floor(line.x.length / MOST_POINTS));
  for (let index = 0; index < line.x.length; index += every) {
    const [x, y] = [toX(line.x[index]!), toY(line.y[index]!)];
    if (!Number.isFinite(x) || !Number.isFinite(y)) {
      isDown = false;
      continue;
    }
    if (!isDown) path += `M${x.toFixed(1)} ${y.toFixed(1)}`;
    else if (line.form === "step") path += `H${x.toFixed(1)}V${y.toFixed(1)}`;
    else path += `L${x.toFixed(1)} ${y.toFixed(1)}`;
    isDown = true;
  }
  return `<path d="${path}" stroke="${colour}" stroke-width="${line.width ?? 1.4}"${dashes(line)}/>`;
}

function dashes(line: Line): string {
  return line.dash && line.dash.length > 0 ? ` stroke-dasharray="${line.dash.join(" ")}"` : "";
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
