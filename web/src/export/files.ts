/** Saves files from the page, and reads files that the reader drops on it. */

/** The largest scenario that the page opens, bytes. */
const MOST_BYTES = 1_000_000;

/** Offers data as a download. */
export function save(name: string, data: string | Blob, type = "text/plain"): void {
  const address = URL.createObjectURL(typeof data === "string" ? new Blob([data], { type }) : data);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser has begun to read by then.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Draws an SVG document as PNG, at twice its size. */
export async function toPng(svg: string): Promise<Blob> {
  const image = new Image();
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = 2 * image.naturalWidth;
    canvas.height = 2 * image.naturalHeight;
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) =>
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("The browser could not write a PNG file.")))),
    );
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** A file that cannot be opened, with a message for the user. */
export class FileError extends Error {
  override name = "FileError";
}

/** Reads a scenario from a file. */
export async function readScenario(file: File): Promise<{ label: string; toml: string }> {
  if (file.size > MOST_BYTES) {
    throw new FileError(
      `${file.name} has ${Math.round(file.size / 1e6)} MB. A scenario has at most ${MOST_BYTES / 1e6} MB.`,
    );
  }
  const toml = await file.text();
  if (toml.includes("\u0000")) throw new FileError(`${file.name} is no text. A scenario is a TOML file.`);
  return { label: file.name.replace(/\.toml$/i, "") || "scenario", toml };
}

/** A text as a part of a file's name. */
export function fileName(text: string): string {
  return (
    text
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, "-")
      .replace(/^-+|-+$/g, "") || "scenario"
  );
}
