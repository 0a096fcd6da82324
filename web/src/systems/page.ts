/** A page with an example whose parameters the reader changes: the frame that all three systems share. */

import { html, nothing, render } from "lit-html";
import type { Theme } from "../base/colours.ts";
import type { Engine, RunOptions, RunResults } from "../engine/index.ts";
import type { Figure } from "../plot/figure.ts";
import { Board } from "../results/board.ts";

/** A parameter. Positions of its slider are whole numbers. */
export interface Knob<Values> {
  key: keyof Values;
  label: string;
  /** The values at the positions of the slider. */
  steps: readonly number[];
  write(value: number): string;
}

export interface Scenario {
  label: string;
  toml: string;
}

/** The outcome of a run for the reader. */
export interface Outcome {
  figure: Figure;
  height: number;
  columns: readonly string[];
  /** Sentences on what happened. */
  verdict: string;
}

/** An example with parameters. */
export interface Example<Values extends Record<string, number>> {
  id: string;
  title: string;
  lead: string;
  /** The values at the start. */
  values: Values;
  knobs: readonly Knob<Values>[];
  scenarios(values: Values): Scenario[];
  options(values: Values): RunOptions;
  outcome(results: readonly RunResults[], values: Values, theme: Theme): Outcome;
  /** Terms, each with its explanation. */
  prose: readonly (readonly [string, string])[];
  source: string;
}

/** The pause after a change before the runs start, milliseconds. */
const PAUSE_MS = 60;

export class ExamplePage<Values extends Record<string, number>> {
  readonly element = document.createElement("div");
  readonly id: string;
  readonly #example: Example<Values>;
  readonly #engine: Engine;
  readonly #open: (scenarios: Scenario[]) => void;
  readonly #board = new Board();
  #theme: Theme;
  #values: Values;
  #results: RunResults[] = [];
  /** The values of the results, which are older than those of the sliders during a run. */
  #shown: Values;
  #verdict = "";
  #problem: string | null = null;
  #running: { cancel(): void }[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #round = 0;

  /** @param open shows scenarios in the playground */
  constructor(example: Example<Values>, engine: Engine, theme: Theme, open: (scenarios: Scenario[]) => void) {
    this.#example = example;
    this.id = example.id;
    this.#engine = engine;
    this.#theme = theme;
    this.#open = open;
    this.#values = { ...example.values };
    this.#shown = this.#values;
    this.element.className = "system";
    this.#draw();
  }

  start(): Promise<void> {
    return this.#run();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#round += 1;
    for (const run of this.#running) run.cancel();
    this.#board.clear();
  }

  setTheme(theme: Theme): void {
    if (theme === this.#theme) return;
    this.#theme = theme;
    this.#show();
  }

  #set(key: keyof Values, value: number): void {
    this.#values = { ...this.#values, [key]: value };
    this.#draw();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#run(), PAUSE_MS);
  }

  #reset(): void {
    this.#values = { ...this.#example.values };
    this.#draw();
    void this.#run();
  }

  async #run(): Promise<void> {
    for (const run of this.#running) run.cancel();
    const round = ++this.#round;
    const values = this.#values;
    this.#running = this.#example
      .scenarios(values)
      .map(({ label, toml }) => this.#engine.run(toml, { ...this.#example.options(values), label }));
    const outcomes = await Promise.all((this.#running as ReturnType<Engine["run"]>[]).map(({ outcome }) => outcome));
    if (round !== this.#round) return;
    const results = outcomes.flatMap((one) => (one.type === "done" ? [one.results] : []));
    const failed = outcomes.find(({ type }) => type !== "done");
    this.#problem = null;
    if (failed?.type === "mistakes") this.#problem = failed.mistakes[0]?.text ?? "The scenario has a mistake.";
    else if (failed?.type === "refused") this.#problem = failed.refusal.reason;
    else if (failed?.type === "failed") this.#problem = failed.message;
    else {
      this.#results = results;
      this.#shown = values;
    }
    this.#show();
  }

  #show(): void {
    if (this.#results.length > 0) {
      const { figure, height, columns, verdict } = this.#example.outcome(this.#results, this.#shown, this.#theme);
      this.#board.show(figure, { theme: this.#theme, height, columns });
      this.#verdict = verdict;
    }
    this.#draw();
  }

  #draw(): void {
    const { title, lead, knobs, prose, source, values } = this.#example;
    const isPaper = knobs.every(({ key }) => this.#values[key] === values[key]);
    render(
      html`
        <h1>${title}</h1>
        <p class="lead">${lead}</p>
        <div class="bench">
          <div class="knobs" role="group" aria-label="Parameters">
            ${knobs.map((knob) => this.#knob(knob))}
            <div class="buttons">
              <button type="button" data-action="reset" ?disabled=${isPaper} @click=${() => this.#reset()}>Reset</button>
              <button type="button" data-action="playground" @click=${() => this.#open(this.#example.scenarios(this.#values))}>
                Open in the playground
              </button>
            </div>
          </div>
          <div class="outcome">
            <p class="verdict" role="status">${this.#verdict}</p>
            ${this.#problem ? html`<p class="problem" role="alert">${this.#problem}</p>` : nothing} ${this.#board.element}
          </div>
        </div>
        <div class="prose">
          <dl>
            ${prose.map(([term, text]) => html`<dt>${term}</dt><dd>${text}</dd>`)}
          </dl>
          <p class="note">${source}</p>
        </div>
      `,
      this.element,
    );
  }

  #knob({ key, label, steps, write }: Knob<Values>): unknown {
    const value = this.#values[key] as number;
    return html`<label>
      <span class="caption"><span>${label}</span><output>${write(value)}</output></span>
      <input
        type="range"
        min="0"
        max=${steps.length - 1}
        data-knob=${String(key)}
        .value=${String(steps.indexOf(value))}
        aria-valuetext=${write(value)}
        @input=${(event: Event) => this.#set(key, steps[Number((event.target as HTMLInputElement).value)]!)}
      />
    </label>`;
  }
}

/** Whole numbers from `from` to `to`, in steps of `by`. */
export function range(from: number, to: number, by = 1): number[] {
  return Array.from({ length: Math.floor((to - from) / by + 1e-9) + 1 }, (_, index) =>
    Number((from + index * by).toPrecision(9)),
  );
}
