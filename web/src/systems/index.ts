/** The pages on the three systems. */

import type { Theme } from "../base/colours.ts";
import type { Engine } from "../engine/index.ts";
import { ExamplePage, type Scenario } from "./page.ts";
import { RAPID } from "./rapid.ts";
import { RC3 } from "./rc3.ts";
import { RTCP } from "./rtcp.ts";

export type SystemId = "rc3" | "rapid" | "rtcp";

/** The pages, by the fragment of their address and their name in the header. */
export const SYSTEM_PAGES: readonly { id: SystemId; name: string }[] = [
  { id: "rc3", name: "RC3" },
  { id: "rapid", name: "RAPID" },
  { id: "rtcp", name: "RTCP" },
];

export type SystemPage = Pick<ExamplePage<Record<string, number>>, "element" | "id" | "start" | "close" | "setTheme">;

/** Makes a page; `open` shows scenarios in the playground. */
export function systemPage(
  id: SystemId,
  engine: Engine,
  theme: () => Theme,
  open: (scenarios: Scenario[]) => void,
): SystemPage {
  if (id === "rc3") return new ExamplePage(RC3, engine, theme(), open);
  if (id === "rapid") return new ExamplePage(RAPID, engine, theme(), open);
  return new ExamplePage(RTCP, engine, theme(), open);
}
