/** Access to the columns of a table of results. */

import { NO_TEXT, type Table } from "../engine/index.ts";

const NONE = new Float64Array(0);

/** The numbers of a column; empty if the table does not have it. */
export function numbers(table: Table, name: string): Float64Array {
  const column = table.columns[name];
  return column && column.type !== "text" ? column.values : NONE;
}

/** The text of a row; empty without a value. */
export function text(table: Table, name: string, row: number): string {
  const column = table.columns[name];
  if (column?.type !== "text") return "";
  const code = column.codes[row] ?? NO_TEXT;
  return code === NO_TEXT ? "" : (column.dictionary[code] ?? "");
}
