/** Results as CSV (RFC 4180). */

import { NO_TEXT, type RunResults, type Table } from "../engine/index.ts";

/** The flows of all runs, with the columns of `flows.parquet` and the variant in front. */
export function flowsCsv(results: readonly RunResults[]): string {
  return joined(results.map((one) => tableRows(one.label, one.flows)));
}

/** The time series of all runs, one row for each sample of each probe. */
export function seriesCsv(results: readonly RunResults[]): string {
  const rows: string[] = ["variant,time_s,probe,quantity,value"];
  for (const { label, series } of results) {
    if (!series) continue;
    const probes: [string, string, Float64Array][] = [
      ...series.flows.flatMap((flow) =>
        Object.entries(flow.quantities).map(([name, values]): [string, string, Float64Array] => [
          `flow ${flow.flow}`,
          name,
          values,
        ]),
      ),
      ...series.links.flatMap((link): [string, string, Float64Array][] => [
        [link.name, "backlog_bytes", link.backlogBytes],
        [link.name, "utilization", link.utilization],
      ]),
      ...series.schemes.flatMap((scheme): [string, string, Float64Array][] => [
        [`scheme ${scheme.scheme}`, "throughput_bps", scheme.throughputBps],
        [`scheme ${scheme.scheme}`, "open_flows", scheme.openFlows],
      ]),
    ];
    for (const [probe, quantity, values] of probes) {
      values.forEach((value, index) => {
        if (Number.isFinite(value))
          rows.push([cell(label), series.timeS[index], cell(probe), quantity, value].join(","));
      });
    }
  }
  return `${rows.join("\n")}\n`;
}

/** The table of schemes of all runs. */
export function summaryCsv(results: readonly RunResults[]): string {
  const rows = results.flatMap((one) =>
    one.summary.map((summary) => ({ variant: one.label, ...summary, digest: one.digest })),
  );
  const names = Object.keys(rows[0] ?? { variant: "" });
  const lines = rows.map((row) =>
    names.map((name) => cell((row as unknown as Record<string, string | number>)[name] ?? "")).join(","),
  );
  return `${[names.join(","), ...lines].join("\n")}\n`;
}

function tableRows(label: string, { rows, columns }: Table): { names: string[]; lines: string[] } {
  const names = Object.keys(columns);
  const readers = names.map((name) => {
    const column = columns[name]!;
    return column.type === "text"
      ? (row: number) => (column.codes[row] === NO_TEXT ? "" : (column.dictionary[column.codes[row]!] ?? ""))
      : (row: number) => column.values[row]!;
  });
  const lines = Array.from({ length: rows }, (_, row) =>
    [cell(label), ...readers.map((read) => cell(read(row)))].join(","),
  );
  return { names: ["variant", ...names], lines };
}

function joined(tables: readonly { names: string[]; lines: string[] }[]): string {
  return `${[tables[0]?.names.join(",") ?? "", ...tables.flatMap(({ lines }) => lines)].join("\n")}\n`;
}

/** A cell; numbers without a value are empty. Text that a spreadsheet would take for a formula is quoted as text. */
function cell(value: string | number): string {
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
