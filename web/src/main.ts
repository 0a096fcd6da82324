/** Starts the page. */

import "./styles/index.ts";
import { EngineError, loadEngine } from "./engine/index.ts";
import { App } from "./page/app.ts";

async function start(root: HTMLElement): Promise<void> {
  say(root, "The simulator is starting.", "status");
  try {
    const engine = await loadEngine();
    const [catalogue, version] = await Promise.all([engine.catalogue(), engine.version()]);
    root.replaceChildren();
    await new App(root, engine, catalogue, version).start();
  } catch (cause) {
    say(root, cause instanceof EngineError ? cause.message : `The page could not start: ${String(cause)}`, "alert");
    if (!(cause instanceof EngineError)) throw cause;
  }
}

/** Shows a sentence in place of the page. */
function say(root: HTMLElement, text: string, role: "status" | "alert"): void {
  const message = document.createElement("p");
  message.className = "starting";
  message.setAttribute("role", role);
  message.textContent = text;
  root.replaceChildren(message);
}

const root = document.getElementById("page");
if (root) void start(root);
