/** The clock of the animation: simulated time that advances at a chosen speed. */

/** Speeds in simulated seconds per second, from 1 µs to 1 s. */
export const SPEEDS: readonly number[] = [-6, -5, -4, -3, -2, -1]
  .flatMap((power) => [1, 2, 5].map((part) => Number((part * 10 ** power).toPrecision(1))))
  .concat(1);

export class Clock {
  /** The start and end of the animation. */
  fromS = 0;
  toS = 1;
  nowS = 0;
  /** Simulated seconds per second. */
  speed = 1e-2;
  #isPlaying = false;
  #frame = 0;
  #last = 0;
  readonly #onTick: () => void;

  /** @param onTick is called after each change of the time or of the state */
  constructor(onTick: () => void) {
    this.#onTick = onTick;
  }

  get isPlaying(): boolean {
    return this.#isPlaying;
  }

  play(): void {
    if (this.#isPlaying) return;
    if (this.nowS >= this.toS) this.nowS = this.fromS;
    this.#isPlaying = true;
    this.#last = performance.now();
    const step = (time: number): void => {
      if (!this.#isPlaying) return;
      // After a pause of the tab, the animation goes on where it was.
      const elapsed = Math.min(0.1, Math.max(0, (time - this.#last) / 1000));
      this.#last = time;
      this.nowS = Math.min(this.toS, this.nowS + elapsed * this.speed);
      if (this.nowS >= this.toS) this.#isPlaying = false;
      else this.#frame = requestAnimationFrame(step);
      this.#onTick();
    };
    this.#frame = requestAnimationFrame(step);
    this.#onTick();
  }

  pause(): void {
    this.#isPlaying = false;
    cancelAnimationFrame(this.#frame);
    this.#onTick();
  }

  seek(seconds: number): void {
    this.nowS = Math.max(this.fromS, Math.min(this.toS, seconds));
    this.#onTick();
  }
}
