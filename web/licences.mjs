/** Lists the licences of the npm packages that a bundle contains. */

import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

/**
 * The names, versions, licences and licence texts of all packages in these bundles.
 *
 * @param metafiles the descriptions of the bundles by esbuild
 * @param root the folder that paths in them are relative to
 */
export function licences(metafiles, root) {
  const inputs = metafiles.flatMap((metafile) => Object.keys(metafile.inputs));
  const folders = inputs.map((path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]);
  const packages = [...new Set(folders.filter((folder) => folder !== undefined))].sort();
  const head = "This page is a part of sparelane, under the Apache License 2.0. It contains these packages:\n";
  return [head, ...packages.map((folder) => entry(join(root, folder)))].join("\n");
}

function entry(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
  if (!license || !file) throw new Error(`the package ${name} has no licence, or no text of it`);
  const line = "-".repeat(80);
  return `${line}\n${name} ${version} (${license})\n${line}\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
}
