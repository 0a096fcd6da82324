/**
 * Colours that readers with colour blindness can tell apart (Okabe and Ito, 2008), for light and for dark backgrounds.
 * Series that share a colour differ in their dashes.
 */

export interface Theme {
  isDark: boolean;
  /** The colours of series. */
  series: readonly string[];
  /** The colours of priority classes: 0 is TCP's own, and the others are of lower priority. */
  classes: readonly string[];
  ink: string;
  muted: string;
  grid: string;
  paper: string;
  drop: string;
  acknowledgment: string;
}

const LIGHT: Theme = {
  isDark: false,
  series: ["#0072b2", "#d55e00", "#009e73", "#b0568c", "#9a6a00", "#2b8fc6", "#444444"],
  classes: ["#0072b2", "#d55e00", "#009e73", "#b0568c", "#9a6a00"],
  ink: "#1c2430",
  muted: "#5a6473",
  grid: "#e3e7ec",
  paper: "#ffffff",
  drop: "#1c2430",
  acknowledgment: "#8a94a3",
};

const DARK: Theme = {
  isDark: true,
  series: ["#56b4e9", "#f0803c", "#2fc79a", "#dd93bc", "#e6b23c", "#8fd0f5", "#c8c8c8"],
  classes: ["#56b4e9", "#f0803c", "#2fc79a", "#dd93bc", "#e6b23c"],
  ink: "#e8ecf2",
  muted: "#a3adbb",
  grid: "#2b333f",
  paper: "#161b22",
  drop: "#ffffff",
  acknowledgment: "#7d8796",
};

const DASHES: readonly (readonly number[])[] = [[], [6, 4], [2, 3], [8, 3, 2, 3]];

/** The choice of the reader: a theme, or that of the system. */
export type ThemeChoice = "light" | "dark" | "system";

export function themeFor(isDark: boolean): Theme {
  return isDark ? DARK : LIGHT;
}

/** The theme for print and for files, which have a white background. */
export const PRINT_THEME = LIGHT;

export function colourOf(index: number, theme: Theme): string {
  return theme.series[index % theme.series.length]!;
}

/** The dashes of a series, so that series of the same colour differ. */
export function dashOf(index: number, theme: Theme): readonly number[] {
  return DASHES[Math.floor(index / theme.series.length) % DASHES.length]!;
}

export function classColour(level: number, theme: Theme): string {
  return theme.classes[level % theme.classes.length]!;
}
