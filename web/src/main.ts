/** Starts the page. */

import "./styles/index.ts";
import { EngineError, loadEngine } from "./engine/index.ts";
import { App } from "./page/app.ts";

async function start(root: HTMLElement): Promise<void> {
  try {
    const engine = await loadEngine();
    const [catalogue, version] = await Promise.all([engine.catalogue(), engine.version()]);
    root.replaceChildren();
    await new App(root, engine, catalogue, version).start();
  } catch (cause) {
    const message = document.createElement("p");
    message.className = "starting";
    message.setAttribute("role", "alert");
    message.textContent = cause instanceof EngineError ? cause.message : `The page could not start: ${String(cause)}`;
    root.replaceChildren(message);
    if (!(cause instanceof EngineError)) throw cause;
  }
}

const root = document.getElementById("page");
if (root) void start(root);
