/** The reader's choice of a light or dark page. */

import { themeFor, type Theme, type ThemeChoice } from "../base/colours.ts";

const KEY = "sparelane-theme";
const CHOICES: readonly ThemeChoice[] = ["system", "light", "dark"];

export class ThemeSwitch {
  choice: ThemeChoice;
  readonly #system = matchMedia("(prefers-color-scheme: dark)");
  readonly #onChange: () => void;
  #isPrinting = false;

  /** @param onChange draws the page again at once, because printing does not wait for the next frame */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
    this.choice = stored();
    this.#system.addEventListener("change", () => this.#apply());
    addEventListener("beforeprint", () => this.#setPrinting(true));
    addEventListener("afterprint", () => this.#setPrinting(false));
    document.documentElement.dataset.theme = this.isDark ? "dark" : "light";
  }

  get isDark(): boolean {
    if (this.#isPrinting) return false;
    return this.choice === "dark" || (this.choice === "system" && this.#system.matches);
  }

  get theme(): Theme {
    return themeFor(this.isDark);
  }

  next(): void {
    this.choice = CHOICES[(CHOICES.indexOf(this.choice) + 1) % CHOICES.length]!;
    try {
      localStorage.setItem(KEY, this.choice);
    } catch {
      // Pages from files may have no storage; the choice then lasts until the page closes.
    }
    this.#apply();
  }

  /** Paper is white, so charts need the colours for it. */
  #setPrinting(isPrinting: boolean): void {
    this.#isPrinting = isPrinting;
    this.#apply();
  }

  #apply(): void {
    document.documentElement.dataset.theme = this.isDark ? "dark" : "light";
    this.#onChange();
  }
}

function stored(): ThemeChoice {
  try {
    return CHOICES.find((choice) => choice === localStorage.getItem(KEY)) ?? "system";
  } catch {
    return "system";
  }
}
