/** The animation of packets: one network and one sequence plot for each variant, with a common clock. */

import { html, nothing, render } from "lit-html";
import { live } from "lit-html/directives/live.js";
import type { Theme } from "../base/colours.ts";
import { si } from "../base/quantity.ts";
import type { Packets, RunResults } from "../engine/index.ts";
import { rangeOf } from "../plot/figure.ts";
import { Chart, Group } from "../plot/screen.ts";
import { legend } from "../results/board.ts";
import { Clock, SPEEDS } from "./clock.ts";
import { Motion } from "./motion.ts";
import { type ColourBy, Scene } from "./scene.ts";
import { flowsIn, sequencePanel } from "./sequence.ts";

/** The time that a dropped packet stays visible, seconds of real time. */
const FADE_S = 0.6;
/** The number of seconds that the first packet takes to its receiver by default. */
const CROSSING_S = 2;
const STAGE_HEIGHT = 230;

interface Part {
  results: RunResults;
  packets: Packets;
  motion: Motion;
  canvas: HTMLCanvasElement;
  /** `null` if the network is too large to be drawn. */
  scene: Scene | null;
  chart: Chart | null;
}

export class Player {
  readonly element = document.createElement("div");
  readonly #controls = document.createElement("div");
  readonly #stage = document.createElement("div");
  readonly #clock = new Clock(() => this.#tick());
  readonly #observer = new ResizeObserver(() => this.#resize());
  #parts: Part[] = [];
  #shown: readonly RunResults[] = [];
  #theme: Theme | null = null;
  #group = new Group();
  #flow = 0;
  #flows: number[] = [];
  #colourBy: ColourBy = "class";
  #onFrom: (seconds: number) => void;

  /** @param onFrom is called if the reader asks for packets from another time on */
  constructor(onFrom: (seconds: number) => void) {
    this.#onFrom = onFrom;
    this.element.className = "player";
    this.#controls.className = "controls";
    this.#stage.className = "stage";
    this.element.append(this.#controls, this.#stage);
    this.#observer.observe(this.#stage);
  }

  /** Shows the packets of runs. The same results keep the present time. */
  show(results: readonly RunResults[], theme: Theme): void {
    const isSame = results.length === this.#shown.length && results.every((one, index) => one === this.#shown[index]);
    if (isSame && theme === this.#theme) return;
    const isFirst = this.#shown.length === 0;
    this.#shown = [...results];
    this.#theme = theme;
    this.#build(results, theme, isFirst);
  }

  /** Stops the animation while it is not visible. */
  pause(): void {
    if (this.#clock.isPlaying) this.#clock.pause();
  }

  #build(results: readonly RunResults[], theme: Theme, isFirst: boolean): void {
    this.pause();
    this.#clear();
    const packets = results.flatMap((one) => (one.packets ? [one.packets] : []));
    this.#flows = [...new Set(packets.flatMap(flowsIn))].sort((one, other) => one - other);
    if (!this.#flows.includes(this.#flow)) this.#flow = this.#flows[0] ?? 0;
    const hasClasses = packets.some((one) => one.class.some((level) => level > 0));
    this.#colourBy = hasClasses || this.#flows.length < 2 ? "class" : "flow";
    this.#stage.replaceChildren(...results.map((one) => this.#part(one, theme)));
    if (packets.length > 0) this.#setTimes(packets, isFirst);
    this.#resize();
    this.#tick();
  }

  #setTimes(packets: readonly Packets[], isFirst: boolean): void {
    const clock = this.#clock;
    clock.fromS = Math.min(...packets.map(({ fromS }) => fromS));
    clock.toS = Math.max(...packets.map((one) => lastEnd(one)));
    if (clock.toS <= clock.fromS) clock.toS = clock.fromS + 1e-3;
    if (clock.nowS < clock.fromS || clock.nowS > clock.toS || isFirst) {
      const first = packets[0]!;
      const crossing = (first.endS[0] ?? 0) - (first.sentS[0] ?? 0);
      clock.speed = nearestSpeed(crossing > 0 ? crossing / CROSSING_S : (clock.toS - clock.fromS) / 20);
      clock.nowS = clock.fromS;
    }
  }

  #part(results: RunResults, theme: Theme): HTMLElement {
    const element = document.createElement("section");
    element.className = "part";
    if (this.#shown.length > 1) {
      const title = document.createElement("h2");
      title.textContent = results.label;
      element.append(title);
    }
    const { packets, network } = results;
    if (!packets) {
      const message = document.createElement("p");
      message.className = "note";
      message.textContent = results.packetsMissing ?? "This run has recorded no packets.";
      element.append(message);
      return element;
    }
    const body = document.createElement("div");
    body.className = "part-body";
    const canvas = document.createElement("canvas");
    canvas.className = "network";
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Animation of the network of ${results.label}`);
    let scene: Scene | null = null;
    if (network.layout === "none") {
      const message = document.createElement("p");
      message.className = "note";
      message.textContent = `A network of ${network.nodes.length} nodes is too large to be drawn. The plot shows its packets.`;
      body.append(message);
    } else {
      scene = new Scene(canvas, network, packets, theme, this.#colourBy);
      body.append(canvas);
    }
    const part: Part = { results, packets, motion: new Motion(packets, network), canvas, scene, chart: null };
    this.#parts.push(part);
    body.append(this.#sequence(part, theme));
    element.append(body);
    return element;
  }

  #sequence(part: Part, theme: Theme): HTMLElement {
    const cell = document.createElement("div");
    cell.className = "sequence";
    const panel = sequencePanel(part.packets, this.#flow, theme, part.results.label);
    const caption = document.createElement("header");
    caption.className = "caption";
    const title = document.createElement("p");
    title.className = "title";
    title.textContent = `Packets of flow ${this.#flow}`;
    caption.append(title, legend(panel.lines, theme));
    if (panel.lines.length > 0) {
      const all = this.#shown.flatMap((one) =>
        one.packets ? [sequencePanel(one.packets, this.#flow, theme, "")] : [],
      );
      // All variants share the axes, so that their times can be compared.
      const to = Math.max(...all.map(({ x }) => x.to ?? 0));
      const look = {
        theme,
        height: STAGE_HEIGHT - 26,
        x: [panel.x.from ?? 0, to] as [number, number],
        y: rangeOf(all, "y"),
      };
      part.chart = new Chart({ ...panel, x: { ...panel.x, to } }, look, this.#group);
      part.chart.element.addEventListener("click", (event) => this.#seekByClick(event, part));
      cell.append(caption, part.chart.element);
    }
    return cell;
  }

  #seekByClick(event: MouseEvent, part: Part): void {
    const time = part.chart?.timeAt(event);
    if (time !== undefined && time !== null) this.#clock.seek(time);
  }

  #clear(): void {
    for (const { chart } of this.#parts) chart?.destroy();
    this.#parts = [];
    this.#group = new Group();
  }

  #resize(): void {
    for (const { scene } of this.#parts) scene?.resize();
    this.#draw();
  }

  #tick(): void {
    this.#draw();
    this.#drawControls();
  }

  #draw(): void {
    const { nowS, speed } = this.#clock;
    const fadeS = FADE_S * speed;
    for (const { scene, motion, chart } of this.#parts) {
      scene?.draw(motion.at(nowS, fadeS), fadeS);
      chart?.mark(nowS);
    }
  }

  #step(): void {
    this.pause();
    const times = this.#parts.map(({ motion }) => motion.next(this.#clock.nowS)).filter((time) => time !== null);
    if (times.length > 0) this.#clock.seek(Math.min(...times));
  }

  #setFlow(flow: number): void {
    this.#flow = flow;
    if (this.#theme) this.#build(this.#shown, this.#theme, false);
  }

  #drawControls(): void {
    const clock = this.#clock;
    const speed = SPEEDS.indexOf(nearestSpeed(clock.speed));
    const span = clock.toS - clock.fromS;
    const isCut = this.#parts.some(({ packets }) => packets.isCut);
    render(
      html`
        <div class="buttons">
          <button type="button" class="primary" @click=${() => (clock.isPlaying ? clock.pause() : clock.play())}>
            ${clock.isPlaying ? "Pause" : "Play"}
          </button>
          <button type="button" @click=${() => this.#step()} title="To the next event of a packet">Step</button>
          <button type="button" @click=${() => clock.seek(clock.fromS)}>Restart</button>
        </div>
        <label class="scrub">
          <span>Time <output>${si(clock.nowS, "s", 4)}</output></span>
          <input
            type="range"
            min="0"
            max="1000"
            .value=${live(String(Math.round((1000 * (clock.nowS - clock.fromS)) / span)))}
            aria-valuetext=${si(clock.nowS, "s", 4)}
            @input=${(event: Event) => clock.seek(clock.fromS + (Number(inputValue(event)) / 1000) * span)}
          />
        </label>
        <label class="speed">
          <span>Speed <output>${si(clock.speed, "s", 1)} per second</output></span>
          <input
            type="range"
            min="0"
            max=${SPEEDS.length - 1}
            .value=${live(String(speed))}
            aria-valuetext=${`${si(clock.speed, "s", 1)} of simulated time per second`}
            @input=${(event: Event) => {
              clock.speed = SPEEDS[Number(inputValue(event))] ?? clock.speed;
              this.#drawControls();
            }}
          />
        </label>
        ${
          this.#flows.length > 1
            ? html`<label class="choice">
              <span>Plot of</span>
              <select @change=${(event: Event) => this.#setFlow(Number(inputValue(event)))}>
                ${this.#flows.slice(0, 200).map((flow) => html`<option value=${flow} ?selected=${flow === this.#flow}>flow ${flow}</option>`)}
              </select>
            </label>`
            : nothing
        }
        <label class="choice">
          <span>Packets from</span>
          <select @change=${(event: Event) => this.#onFrom(Number(inputValue(event)))}>
            ${this.#starts().map((start) => html`<option value=${start} ?selected=${start === clock.fromS}>${si(start, "s")}</option>`)}
          </select>
        </label>
        ${isCut ? html`<p class="note">The run has more packets than the page records. These are the packets up to ${si(clock.toS, "s", 4)}.</p>` : nothing}
      `,
      this.#controls,
    );
  }

  /** The times from which packets can be recorded: tenths of the run. */
  #starts(): number[] {
    const end = this.#shown[0]?.totals.endS ?? 0;
    const tenths = Array.from({ length: 10 }, (_, index) => Number(((index * end) / 10).toPrecision(6)));
    return tenths.includes(this.#clock.fromS)
      ? tenths
      : [...tenths, this.#clock.fromS].sort((one, other) => one - other);
  }
}

/** The last time at which a packet arrived or was dropped. */
function lastEnd({ endS, fromS }: Packets): number {
  let last = fromS;
  // Packets without an end have NaN, which is not larger.
  for (const end of endS) if (end > last) last = end;
  return last;
}

function nearestSpeed(speed: number): number {
  return SPEEDS.reduce(
    (best, one) => (Math.abs(Math.log(one / speed)) < Math.abs(Math.log(best / speed)) ? one : best),
    1,
  );
}

function inputValue(event: Event): string {
  return (event.target as HTMLInputElement | HTMLSelectElement).value;
}
