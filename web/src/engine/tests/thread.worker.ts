/** The worker of the page in a thread of Node, whose messages have another interface than those of browsers. */

import { parentPort } from "node:worker_threads";

const scope = globalThis as unknown as {
  postMessage(message: unknown, transfer?: readonly ArrayBuffer[]): void;
  onmessage: ((event: { data: unknown }) => void) | null;
};
scope.postMessage = (message, transfer = []) => parentPort?.postMessage(message, transfer);
await import("../worker.ts");
parentPort?.on("message", (data) => scope.onmessage?.({ data }));
