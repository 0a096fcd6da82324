/**
 * The engine in one thread: calls into WebAssembly, and converts arguments and results.
 *
 * Texts cross the border as JSON. Columns of numbers are copied once, out of the memory of the engine into arrays that a
 * worker can transfer.
 */

import * as engine from "../../build/engine/engine.js";
import { SHIPPED } from "virtual:scenarios";
import type {
  CallName,
  Calls,
  Estimate,
  Json,
  JsonObject,
  Mistake,
  Path,
  Progress,
  Refusal,
  RunOptions,
  RunOutcome,
  RunResults,
} from "./protocol.ts";
import { summarise } from "./statistics.ts";

/** Real time between two reports of progress, milliseconds. */
const SLICE_MS = 50;
/** The number of events of the first slice. The sizes of later ones follow from the measured speed. */
const FIRST_SLICE = 2_000;
/** The duration of the trial of an estimate, milliseconds. */
const TRIAL_MS = 100;
/** Runs that take longer than this are refused, seconds. */
const MOST_SECONDS = 600;

const DEFAULT_SAMPLES = 1_000;
const DEFAULT_PACKETS = 100_000;

export class Core {
  /** The buffers of the last results, which a worker transfers. */
  buffers: ArrayBuffer[] = [];

  constructor(module: WebAssembly.Module) {
    engine.initSync({ module });
  }

  /** The message of an exception. If the engine panicked, its own message says more. */
  explain(error: unknown): string {
    let panic = "";
    try {
      panic = engine.lastPanic();
    } catch {
      // The engine cannot even answer: the message of the exception must do.
    }
    if (panic) return `The simulator failed, which is a defect of it: ${panic}`;
    if (error instanceof WebAssembly.RuntimeError || error instanceof RangeError) {
      return `The simulator stopped, probably because the browser has no more memory: ${error.message}`;
    }
    return error instanceof Error ? error.message : String(error);
  }

  /** Answers one call. */
  call(name: CallName, given: readonly unknown[]): unknown {
    const answer = this.#calls[name] as ((...given: readonly unknown[]) => unknown) | undefined;
    if (answer === undefined) throw new Error(`the engine has no call "${String(name)}"`);
    return answer(...given);
  }

  readonly #calls: { [Name in CallName]: (...given: Calls[Name]["arguments"]) => Calls[Name]["result"] } = {
    catalogue: () => JSON.parse(engine.catalogue()),
    schema: () => JSON.parse(engine.schema()),
    scenarios: () => SHIPPED.filter(({ toml }) => !engine.needsFiles(toml)),
    parse: (toml) => JSON.parse(engine.parse(toml)),
    setKey: (toml: string, path: Path, value: Json | undefined) =>
      JSON.parse(engine.setKey(toml, path.map(String), value === undefined ? undefined : tomlOf(value))),
    toToml: (scenario: JsonObject) => JSON.parse(engine.toToml(tomlOf(scenario))),
    estimate: (toml) => estimate(toml),
    version: () => engine.version(),
  };

  /** Runs a scenario to its end. */
  run(toml: string, options: RunOptions, onProgress: (progress: Progress) => void): RunOutcome {
    const began = performance.now();
    const session = open(toml, options);
    try {
      const refused = refusalOf(session);
      if (refused !== null) return refused;
      advance(session, began, onProgress);
      const results = this.#results(session);
      const elapsedS = (performance.now() - began) / 1000;
      results.label = options.label ?? "";
      results.elapsedS = elapsedS;
      results.packetHopsPerS = results.totals.packetHops / Math.max(elapsedS, 1e-9);
      results.summary = summarise(results.flows, results.totals.endS);
      return { type: "done", results };
    } finally {
      session.free();
    }
  }

  #results(session: engine.Session): RunResults {
    const buffers: ArrayBuffer[] = [];
    const text = session.finish();
    const results = JSON.parse(text, (_, value: unknown) => {
      const index = (value as { $column?: number } | null)?.$column;
      if (index === undefined) return value;
      const column = columnOf(session, index);
      buffers.push(column.buffer as ArrayBuffer);
      return column;
    }) as RunResults;
    this.buffers = buffers;
    return results;
  }
}

function columnOf(session: engine.Session, index: number): Float64Array | Uint32Array | Uint8Array {
  switch (session.columnType(index)) {
    case 0:
      return session.takeF64(index);
    case 1:
      return session.takeU32(index);
    default:
      return session.takeU8(index);
  }
}

function open(toml: string, options: RunOptions): engine.Session {
  const series = options.series === undefined ? {} : options.series;
  const packets = options.packets ?? null;
  return new engine.Session(
    toml,
    series === null ? 0 : (series.samples ?? DEFAULT_SAMPLES),
    Uint32Array.from(series?.flows ?? []),
    Uint32Array.from(series?.links ?? []),
    packets === null ? 0 : (packets.most ?? DEFAULT_PACKETS),
    packets?.fromS ?? 0,
    packets?.toS ?? Infinity,
    packets?.flow,
  );
}

/** The outcome of a run that cannot begin; `null` if it can. */
function refusalOf(session: engine.Session): RunOutcome | null {
  const text = session.refused();
  if (text === "") return null;
  const { mistakes, refusal } = JSON.parse(text) as { mistakes?: Mistake[]; refusal?: Refusal };
  return refusal ? { type: "refused", refusal } : { type: "mistakes", mistakes: mistakes ?? [] };
}

/** Advances a run to its end in slices, each of which takes about `SLICE_MS`. */
function advance(session: engine.Session, began: number, onProgress: (progress: Progress) => void): void {
  const durationS = session.durationS();
  let events = FIRST_SLICE;
  let last = performance.now();
  while (!session.advance(events)) {
    const now = performance.now();
    events = Math.max(1, Math.min(2 * events, Math.round((events * SLICE_MS) / Math.max(now - last, 1e-3)), 1e9));
    last = now;
    const nowS = session.nowS();
    onProgress({ nowS, durationS, share: nowS / durationS, elapsedS: (now - began) / 1000 });
  }
}

/** Runs the start of a scenario for `TRIAL_MS`, and extrapolates its second half. */
function estimate(toml: string): Estimate | { mistakes: Mistake[] } {
  const size = JSON.parse(engine.expect(toml)) as {
    mistakes?: Mistake[];
    refusal?: Refusal;
    flows?: number;
    bytes?: number;
  };
  if (size.mistakes) return { mistakes: size.mistakes };
  const unknown = { packetHops: null, seconds: null, bytes: size.bytes ?? 0, flows: size.flows ?? 0, isExact: false };
  if (size.refusal) return { ...unknown, refusal: size.refusal };
  const began = performance.now();
  const session = open(toml, {});
  try {
    const refused = refusalOf(session);
    if (refused?.type === "mistakes") return { mistakes: refused.mistakes };
    const durationS = session.durationS();
    const builtMs = performance.now() - began;
    let [middleS, middleMs, isOver, spentMs] = [0, 0, false, 0];
    while (!isOver && spentMs < TRIAL_MS) {
      isOver = session.advance(FIRST_SLICE);
      spentMs = performance.now() - began - builtMs;
      if (middleMs === 0 && spentMs >= TRIAL_MS / 2) [middleS, middleMs] = [session.nowS(), spentMs];
    }
    const nowS = session.nowS();
    const hops = session.packetHops();
    if (isOver) {
      return { ...unknown, packetHops: hops, seconds: (builtMs + spentMs) / 1000, isExact: true, refusal: null };
    }
    // The second half of the trial is closer to the rest of the run, since few flows are open at the start.
    const pace = nowS > middleS ? (spentMs - middleMs) / (nowS - middleS) : spentMs / Math.max(nowS, 1e-12);
    const seconds = (builtMs + spentMs + pace * (durationS - nowS)) / 1000;
    const packetHops = (hops / spentMs) * (seconds * 1000 - builtMs);
    return { ...unknown, packetHops, seconds, refusal: seconds > MOST_SECONDS ? tooLong(seconds) : null };
  } finally {
    session.free();
  }
}

function tooLong(seconds: number): Refusal {
  const expected = seconds < 5400 ? `${Math.round(seconds / 60)} minutes` : `${Math.round(seconds / 3600)} hours`;
  const reason = `This scenario would take about ${expected} in a browser. Shorten its duration, or run it in a terminal.`;
  return { cause: "time", reason, command: "sparelane run scenario.toml" };
}

/** A JSON value as TOML on one line. */
export function tomlOf(value: Json): string {
  if (value === null) throw new Error("TOML has no null; leave the key out");
  if (typeof value === "string") return quoted(value);
  if (typeof value === "boolean") return String(value);
  if (typeof value === "number") {
    // Beyond 2^53 a number is a float in JavaScript, and must be one in TOML.
    const isFloat = !Number.isInteger(value) || Math.abs(value) > Number.MAX_SAFE_INTEGER;
    const text = String(value);
    return isFloat && /^-?\d+$/.test(text) ? `${text}.0` : text.replace("Infinity", "inf").replace("NaN", "nan");
  }
  if (Array.isArray(value)) return `[${value.map(tomlOf).join(", ")}]`;
  const entries = Object.entries(value).map(([key, entry]) => `${keyOf(key)} = ${tomlOf(entry)}`);
  return entries.length === 0 ? "{}" : `{ ${entries.join(", ")} }`;
}

/** A key as people write it: in quotes only if TOML requires them. */
function keyOf(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : quoted(key);
}

function quoted(text: string): string {
  // The escapes of JSON are those of TOML, but TOML also forbids DEL, and has no lone surrogates.
  const whole = text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd");
  return JSON.stringify(whole).replaceAll("\u007f", "\\u007f");
}
