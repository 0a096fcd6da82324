/** The public face of the engine: the page imports from here alone. */

export { Engine, EngineError } from "./client.ts";
export type { Port, Run } from "./client.ts";
export { compare, NO_INTERVAL } from "./compare.ts";
export { loadEngine } from "./load.ts";
export * from "./protocol.ts";
