/** The ready-made scenarios, which `build.mjs` reads from the folder `scenarios`. */
declare module "virtual:scenarios" {
  export const SHIPPED: readonly { name: string; summary: string; toml: string }[];
}
