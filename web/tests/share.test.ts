/** Addresses with scenarios: what is written is read again, and hostile ones are refused. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateRawSync } from "node:zlib";
import {
  FragmentError,
  fromFragment,
  hasScenarios,
  MOST_FRAGMENT,
  type Shared,
  toFragment,
} from "../src/state/share.ts";

const SHARED: Shared = {
  variants: [
    { label: "TCP", toml: 'duration = "1s"\n# ü and 🙂\n' },
    { label: "RC3", toml: 'duration = "2s"\n' },
  ],
  view: "packets",
  question: "two-cubic",
};

function fragmentOf(json: unknown): string {
  return `#1.${deflateRawSync(typeof json === "string" ? json : JSON.stringify(json)).toString("base64url")}`;
}

test("a fragment restores what it was made from", async () => {
  const fragment = await toFragment(SHARED);
  assert.match(fragment, /^#1\.[\w-]+$/);
  assert.ok(hasScenarios(fragment));
  assert.deepEqual(await fromFragment(fragment), SHARED);
});

test("a fragment of another program is read, and only its variants are required", async () => {
  const shared = await fromFragment(fragmentOf({ variants: [{ label: "mine", toml: "seed = 1" }] }));
  assert.deepEqual(shared, { variants: [{ label: "mine", toml: "seed = 1" }], view: "time", question: null });
});

test("names of pages are no scenarios", () => {
  for (const fragment of ["", "#rc3", "#two-cubic", "#1"]) assert.ok(!hasScenarios(fragment));
});

const HOSTILE: [name: string, fragment: string, message: RegExp][] = [
  ["markup", "#1.<img src=x onerror=alert(1)>", /characters/],
  ["no compressed data", "#1.AAAA", /damaged/],
  ["a newer form", "#2.AAAA", /form 2/],
  ["too many characters", `#1.${"A".repeat(MOST_FRAGMENT)}`, /too long/],
  ["megabytes in a few characters", fragmentOf("[".repeat(20_000_000)), /more than 1 MB/],
  ["no JSON", fragmentOf("seed = 1"), /damaged/],
  ["no variants", fragmentOf({ variants: [] }), /one to 4/],
  [
    "too many variants",
    fragmentOf({ variants: Array.from({ length: 5 }, () => ({ label: "a", toml: "" })) }),
    /one to 4/,
  ],
  ["numbers in place of texts", fragmentOf({ variants: [{ label: 1, toml: 2 }] }), /no label/],
  ["a list in place of an object", fragmentOf([1]), /no scenarios/],
];

for (const [name, fragment, message] of HOSTILE) {
  test(`a fragment with ${name} is refused`, async () => {
    await assert.rejects(
      fromFragment(fragment),
      (error) => error instanceof FragmentError && message.test(error.message),
    );
  });
}

test("scenarios that are too long for an address are refused", async () => {
  // Text that does not shrink: a sequence of a generator in place of repeated words.
  let state = 1;
  const toml = Array.from({ length: 90_000 }, () => {
    state = (state * 48271) % 2147483647;
    return String.fromCharCode(33 + (state % 90));
  }).join("");
  await assert.rejects(toFragment({ ...SHARED, variants: [{ label: "long", toml }] }), FragmentError);
});
