/**
 * The address of a page with scenarios: the part after `#`, which browsers do not send to any server.
 *
 *     #1.DATA
 *
 * `1` is the version of the form. DATA is Base64 for URLs without padding (RFC 4648 section 5), of raw deflate
 * (RFC 1951), of JSON in UTF-8:
 *
 *     {"variants": [{"label": "TCP", "toml": "duration = ..."}], "view": "time", "question": "two-cubic"}
 *
 * Only `variants` is required, with one to four entries. `sparelane play` writes the same form. A fragment may come
 * from a stranger. So its length is bounded before and after decompression, its types are checked, and the page shows
 * its texts as text only.
 */

import { QUESTIONS, type View } from "../gallery/index.ts";

/** The largest number of variants. */
export const MOST_VARIANTS = 4;
/** The longest fragment, characters. */
export const MOST_FRAGMENT = 65_536;
/** The longest JSON in a fragment, bytes. */
export const MOST_JSON_BYTES = 1_000_000;
/** The longest label, characters. */
export const MOST_LABEL = 40;

const VERSION = "1";
const VIEWS: readonly View[] = ["time", "completion", "packets"];

/** The content of an address. */
export interface Shared {
  variants: { label: string; toml: string }[];
  view: View;
  /** The question of the gallery that the scenarios come from. */
  question: string | null;
}

/** A fragment that cannot be read, with a message for the user. */
export class FragmentError extends Error {
  override name = "FragmentError";
}

/** Returns true if a fragment has scenarios; others are names of pages. */
export function hasScenarios(fragment: string): boolean {
  return /^#?\d+\./.test(fragment);
}

/** Writes a fragment, with its `#`. */
export async function toFragment(shared: Shared): Promise<string> {
  const json = new TextEncoder().encode(JSON.stringify(shared));
  const packed = await pipe(json, new CompressionStream("deflate-raw"), Number.POSITIVE_INFINITY);
  const fragment = `#${VERSION}.${toBase64(packed)}`;
  if (fragment.length > MOST_FRAGMENT) {
    throw new FragmentError(
      `These scenarios are too long for an address: ${fragment.length} of ${MOST_FRAGMENT} characters. ` +
        "Download them as files instead.",
    );
  }
  return fragment;
}

/** Reads a fragment, with or without its `#`. Throws a `FragmentError` if it is damaged, too long or of a newer form. */
export async function fromFragment(fragment: string): Promise<Shared> {
  if (fragment.length > MOST_FRAGMENT) {
    throw new FragmentError(`The address is too long: ${fragment.length} of ${MOST_FRAGMENT} characters.`);
  }
  const match = /^#?(\d+)\.([A-Za-z0-9_-]+)$/.exec(fragment);
  if (!match) throw new FragmentError("The address is damaged: it contains characters that no address has.");
  const [, version, data] = match as unknown as [string, string, string];
  if (version !== VERSION) {
    throw new FragmentError(`The address has form ${version}, and this page reads form ${VERSION}. Use a newer page.`);
  }
  let json: unknown;
  try {
    const bytes = await pipe(fromBase64(data), new DecompressionStream("deflate-raw"), MOST_JSON_BYTES);
    json = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    if (cause instanceof FragmentError) throw cause;
    throw new FragmentError("The address is damaged. Copy it again in full.", { cause });
  }
  return checked(json);
}

function checked(json: unknown): Shared {
  const { variants, view, question } = asRecord(json);
  if (!Array.isArray(variants) || variants.length < 1 || variants.length > MOST_VARIANTS) {
    throw new FragmentError(`The address must contain one to ${MOST_VARIANTS} scenarios.`);
  }
  return {
    variants: variants.map((one) => {
      const { label, toml } = asRecord(one);
      if (typeof label !== "string" || typeof toml !== "string") {
        throw new FragmentError("The address is damaged: a scenario has no label or no text.");
      }
      return { label: label.slice(0, MOST_LABEL), toml };
    }),
    view: VIEWS.find((one) => one === view) ?? "time",
    question: QUESTIONS.find(({ id }) => id === question)?.id ?? null,
  };
}

function asRecord(value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new FragmentError("The address is damaged: it contains no scenarios.");
  }
  return value as Record<string, unknown>;
}

/** Sends bytes through a stream, and stops once the output is longer than `most`. */
async function pipe(
  bytes: Uint8Array<ArrayBuffer>,
  through: GenericTransformStream,
  most: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const reader = new Blob([bytes])
    .stream()
    .pipeThrough(through as TransformStream<Uint8Array, Uint8Array>)
    .getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > most) {
      // Without an end of reading, a small fragment could expand to gigabytes.
      await reader.cancel();
      throw new FragmentError(`The address contains more than ${most / 1e6} MB.`);
    }
    parts.push(value);
  }
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

function toBase64(bytes: Uint8Array): string {
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (character) => character.charCodeAt(0));
}
