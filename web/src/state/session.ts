/**
 * The state of the playground: variants of a scenario, their results, and what is shown.
 *
 * The text of each variant is the only source: the form shows the parsed text and changes it key by key.
 */

import type {
  Engine,
  Json,
  JsonObject,
  Mistake,
  Network,
  PacketOptions,
  Parsed,
  Path,
  Progress,
  Refusal,
  RunResults,
} from "../engine/index.ts";
import type { Question, View } from "../gallery/index.ts";
import { at, differences, dotted, isEqual } from "../base/values.ts";
import { MOST_LABEL, MOST_VARIANTS, type Shared } from "./share.ts";

/** The state of a variant's last run. */
export type RunState =
  | { type: "none" }
  | { type: "running"; progress: Progress | null }
  | { type: "done" }
  | { type: "cancelled" }
  | { type: "stopped"; message: string; command: string | null };

export interface Variant {
  /** Distinguishes variants for the page; not shown. */
  readonly key: number;
  label: string;
  toml: string;
  /** The parsed text; `null` until the engine has answered. */
  parsed: Parsed | null;
  /** The tables of the last text that was valid TOML, so that the form stays while the text has mistakes. */
  scenario: JsonObject | null;
  /** The network of the last text without mistakes. */
  network: Network | null;
  run: RunState;
  /** The last results, which stay until the next ones. */
  results: RunResults | null;
  /** True if the text has changed since the run of `results`. */
  isStale: boolean;
}

/** A change of one key; `undefined` removes it. */
export interface Edit {
  path: Path;
  value: Json | undefined;
}

/** The number of packets that a run records for the animation. */
const MOST_PACKETS = 60_000;
/** A run that took less real time than this is repeated after each change, seconds. */
const QUICK_S = 1.5;
/** A run that takes longer is estimated, and ended if it would take too long, seconds. */
const ESTIMATE_AFTER_S = 1;
/** The pause after a change before a run starts, milliseconds. */
const PAUSE_MS = 180;

export class Session {
  readonly engine: Engine;
  variants: Variant[] = [];
  active = 0;
  question: Question | null = null;
  view: View = "time";
  /** True if a change in the form applies to all variants in which the key has the same value. */
  isForAll = true;
  /** The start of the packets that runs record, seconds. */
  packetsFromS = 0;
  #listeners = new Set<() => void>();
  #running: { cancel(): void }[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #lastKey = 0;
  /** Counts loads and edits, so that late answers to earlier texts are dropped. */
  #round = 0;
  #edits: Promise<void> = Promise.resolve();

  constructor(engine: Engine) {
    this.engine = engine;
  }

  /** Calls `listener` after each change of the state; returns a function that ends this. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get current(): Variant {
    return this.variants[this.active]!;
  }

  get isRunning(): boolean {
    return this.variants.some(({ run }) => run.type === "running");
  }

  get isStale(): boolean {
    return this.variants.some(({ isStale, results }) => isStale || results === null);
  }

  /** True if every variant can be run. */
  get isValid(): boolean {
    return this.variants.length > 0 && this.variants.every(({ parsed }) => parsed?.ok === true);
  }

  /** The variants that have results. */
  get finished(): Variant[] {
    return this.variants.filter(({ results }) => results !== null);
  }

  /** True if changes are followed by a run at once. */
  get isQuick(): boolean {
    const seconds = this.variants.reduce((sum, { results }) => sum + (results?.elapsedS ?? 0), 0);
    // A reader who has cancelled a run does not want the next one at once.
    const hasEnded = this.variants.every(({ run }) => run.type !== "stopped" && run.type !== "cancelled");
    return seconds < QUICK_S && hasEnded;
  }

  /** Shows a question of the gallery and runs it. */
  async ask(question: Question): Promise<void> {
    const variants: { label: string; toml: string }[] = [];
    for (const { label, set } of question.variants) {
      let toml = question.toml;
      for (const { path, value } of set) {
        const edited = await this.engine.setKey(toml, path, value);
        if (!edited.ok) throw new Error(`question ${question.id}: ${edited.mistakes[0]?.text}`);
        toml = edited.toml;
      }
      variants.push({ label, toml });
    }
    await this.load({ variants, view: question.view, question: null }, question);
  }

  /** Shows scenarios and runs them. */
  async load(shared: Shared, question: Question | null): Promise<void> {
    this.cancel();
    this.#round += 1;
    this.variants = shared.variants.map(({ label, toml }) => this.#variant(label, toml));
    this.active = 0;
    this.isForAll = this.variants.length > 1;
    this.view = shared.view;
    this.question = question;
    this.packetsFromS = 0;
    this.#changed();
    await Promise.all(this.variants.map((variant) => this.#parse(variant)));
    await this.run();
  }

  get shared(): Shared {
    return {
      variants: this.variants.map(({ label, toml }) => ({ label, toml })),
      view: this.view,
      question: this.question?.id ?? null,
    };
  }

  select(index: number): void {
    this.active = Math.max(0, Math.min(index, this.variants.length - 1));
    this.#changed();
  }

  /** Adds a copy of the active variant. */
  add(): void {
    if (this.variants.length >= MOST_VARIANTS) return;
    const { toml, parsed, scenario, network } = this.current;
    const copy = this.#variant(`variant ${this.variants.length + 1}`, toml);
    this.variants.push({ ...copy, parsed, scenario, network });
    this.active = this.variants.length - 1;
    // A copy is made to change it alone.
    this.isForAll = false;
    this.#changed();
  }

  remove(index: number): void {
    if (this.variants.length < 2) return;
    this.variants.splice(index, 1);
    this.active = Math.min(this.active, this.variants.length - 1);
    if (this.variants.length < 2) this.isForAll = true;
    this.#changed();
  }

  rename(index: number, label: string): void {
    const variant = this.variants[index];
    const text = label.trim().slice(0, MOST_LABEL);
    if (!variant || !text) return;
    variant.label = text;
    if (variant.results) variant.results.label = text;
    this.#changed();
  }

  setForAll(isForAll: boolean): void {
    this.isForAll = isForAll;
    this.#changed();
  }

  async setView(view: View): Promise<void> {
    this.view = view;
    this.#changed();
    // Runs record packets only while they are shown, because they take memory.
    if (
      view === "packets" &&
      this.variants.some(({ results }) => results && !results.packets && !results.packetsMissing)
    ) {
      await this.run();
    }
  }

  async setPacketsFrom(seconds: number): Promise<void> {
    this.packetsFromS = seconds;
    await this.run();
  }

  /** Replaces the text of the active variant, as the editor does. */
  async setText(toml: string): Promise<void> {
    const variant = this.current;
    if (variant.toml === toml) return;
    this.#touch(variant, toml);
    this.#changed();
    await this.#parse(variant);
    this.#schedule();
  }

  /** Replaces all variants by one scenario, as an import does. */
  async open(label: string, toml: string): Promise<void> {
    await this.load({ variants: [{ label: label.slice(0, MOST_LABEL), toml }], view: this.view, question: null }, null);
  }

  /** The paths in which the variants differ. */
  get differing(): Path[] {
    const [first, ...others] = this.variants;
    const all = others.flatMap(({ scenario }) => differences(first?.scenario ?? {}, scenario ?? {}));
    return [...new Map(all.map((path) => [dotted(path), path])).values()];
  }

  /**
   * Sets keys in the active variant, or each of them in all variants in which it has the same value. `undefined`
   * removes a key.
   */
  edit(edits: readonly Edit[]): Promise<void> {
    // Edits follow each other: each needs the text that the previous one left.
    const edited = this.#edits.then(() => this.#edit(edits));
    this.#edits = edited.catch(() => {});
    return edited;
  }

  async #edit(edits: readonly Edit[]): Promise<void> {
    const { scenario } = this.current;
    await Promise.all(
      this.variants.map(async (variant) => {
        let { toml } = variant;
        for (const { path, value } of edits) {
          const isTarget =
            variant === this.current || (this.isForAll && isEqual(at(variant.scenario, path), at(scenario, path)));
          if (!isTarget) continue;
          const edited = await this.engine.setKey(toml, path, value);
          if (edited.ok) toml = edited.toml;
        }
        if (toml === variant.toml) return;
        this.#touch(variant, toml);
        await this.#parse(variant);
      }),
    );
    this.#schedule();
  }

  /** Runs all variants. */
  async run(): Promise<void> {
    clearTimeout(this.#timer);
    this.#stopAll();
    if (!this.isValid) return;
    const round = ++this.#round;
    const variants = [...this.variants];
    const packets = this.view === "packets" ? { fromS: this.packetsFromS, most: MOST_PACKETS } : null;
    for (const variant of variants) variant.run = { type: "running", progress: null };
    this.#changed();
    await Promise.all(variants.map((variant) => this.#runOne(variant, round, packets)));
    if (round === this.#round) this.#running = [];
  }

  async #runOne(variant: Variant, round: number, packets: PacketOptions | null): Promise<void> {
    const { toml, label } = variant;
    let refusal: Promise<Refusal | null> | null = null;
    const run = this.engine.run(toml, { label, packets }, (progress) => {
      if (round !== this.#round) return;
      // An estimate takes a trial run, so only runs that are not over soon get one.
      if (progress.elapsedS > ESTIMATE_AFTER_S) refusal ??= this.#refusal(toml, () => run.cancel());
      variant.run = { type: "running", progress };
      this.#changed();
    });
    this.#running.push(run);
    const outcome = await run.outcome;
    const refused = await refusal;
    if (round !== this.#round) return;
    if (outcome.type === "done") {
      variant.results = outcome.results;
      variant.isStale = variant.toml !== toml;
      variant.run = { type: "done" };
    } else if (outcome.type === "refused" || refused) {
      const { reason, command } = outcome.type === "refused" ? outcome.refusal : refused!;
      variant.run = { type: "stopped", message: reason, command };
    } else if (outcome.type === "cancelled") {
      variant.run = { type: "cancelled" };
    } else {
      const message = outcome.type === "failed" ? outcome.message : (outcome.mistakes[0]?.text ?? "");
      variant.run = { type: "stopped", message, command: null };
    }
    this.#changed();
  }

  /** The reason for not running a scenario in a browser; `cancel` is called if there is one. */
  async #refusal(toml: string, cancel: () => void): Promise<Refusal | null> {
    // A failure of the estimate says nothing about the run.
    const estimate = await this.engine.estimate(toml).catch(() => null);
    const refusal = estimate && "refusal" in estimate ? estimate.refusal : null;
    if (refusal) cancel();
    return refusal;
  }

  /** Ends all runs at once. */
  cancel(): void {
    clearTimeout(this.#timer);
    this.#stopAll();
    for (const variant of this.variants) if (variant.run.type === "running") variant.run = { type: "cancelled" };
    this.#changed();
  }

  #stopAll(): void {
    this.#round += 1;
    for (const run of this.#running) run.cancel();
    this.#running = [];
  }

  #schedule(): void {
    this.#changed();
    clearTimeout(this.#timer);
    if (!this.isValid || !this.isQuick) return;
    this.#timer = setTimeout(() => void this.run(), PAUSE_MS);
  }

  #variant(label: string, toml: string): Variant {
    return {
      key: ++this.#lastKey,
      label,
      toml,
      parsed: null,
      scenario: null,
      network: null,
      run: { type: "none" },
      results: null,
      isStale: false,
    };
  }

  #touch(variant: Variant, toml: string): void {
    variant.toml = toml;
    variant.isStale = true;
    if (variant.run.type === "stopped") variant.run = { type: "none" };
  }

  async #parse(variant: Variant): Promise<void> {
    const { toml } = variant;
    const parsed = await this.engine.parse(toml).catch(failure);
    if (variant.toml !== toml) return;
    variant.parsed = parsed;
    variant.scenario = parsed.scenario ?? variant.scenario;
    if (parsed.ok) variant.network = parsed.network;
    this.#changed();
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}

/** A failure of the engine while it parsed a text, as the outcome of parsing. */
function failure(cause: unknown): Parsed {
  const message = cause instanceof Error ? cause.message : String(cause);
  const mistake = { line: null, column: null, endColumn: null, key: "", value: null, message, text: message };
  return { ok: false, mistakes: [mistake], scenario: null };
}

/** The mistakes of a variant. */
export function mistakesOf({ parsed }: Variant): readonly Mistake[] {
  return parsed && !parsed.ok ? parsed.mistakes : [];
}
