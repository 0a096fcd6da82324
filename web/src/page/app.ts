/** The page: puts the parts together, and draws them again after each change of the state. */

import { html, nothing, render } from "lit-html";
import type { Catalogue, CatalogueKey, Engine } from "../engine/index.ts";
import { Editor } from "../editor/editor.ts";
import { readScenario } from "../export/files.ts";
import { Keys } from "../form/keys.ts";
import { QUESTIONS, question, type Question } from "../gallery/index.ts";
import { Player } from "../packets/player.ts";
import { Board } from "../results/board.ts";
import { completionTimes } from "../results/completion.ts";
import { overTime } from "../results/over-time.ts";
import { mistakesOf, Session } from "../state/session.ts";
import { fromFragment, hasScenarios, toFragment } from "../state/share.ts";
import { SYSTEM_PAGES, type SystemPage, systemPage } from "../systems/index.ts";
import { Dialog } from "./dialog.ts";
import { downloads } from "./download.ts";
import { gallery } from "./gallery.ts";
import { results } from "./results.ts";
import { type Side, settings } from "./settings.ts";
import { ThemeSwitch } from "./theme.ts";

const CHART_HEIGHT = 150;
const COMPLETION_HEIGHT = 280;
const NO_COMPLETION =
  'No flow has finished, so there are no completion times. Flows of the size "unlimited" have no end.';

export class App {
  readonly #root: HTMLElement;
  readonly #session: Session;
  readonly #keys: Keys;
  readonly #version: string;
  readonly #theme = new ThemeSwitch(() => this.#drawNow());
  readonly #dialog = new Dialog("dialog");
  readonly #board = new Board();
  readonly #player = new Player((seconds) => void this.#session.setPacketsFrom(seconds));
  readonly #editor: Editor;
  #side: Side = "form";
  #explained: CatalogueKey | null = null;
  #message: string | null = null;
  #isWaiting = false;
  /** What the board shows, so that charts are drawn again only if it changes. */
  #drawn: readonly unknown[] = [];
  #missing: string | null = null;
  #page: SystemPage | null = null;

  constructor(root: HTMLElement, engine: Engine, catalogue: Catalogue, version: string) {
    this.#root = root;
    this.#session = new Session(engine);
    this.#keys = new Keys(catalogue);
    this.#version = version;
    this.#editor = new Editor(
      (text) => void this.#session.setText(text),
      () => void this.#session.run(),
    );
    this.#session.listen(() => this.#draw());
    addEventListener("hashchange", () => void this.#follow());
    this.#acceptFiles();
    // Answers of the engine arrive as promises. A failure that no other part of the page explains is shown here.
    addEventListener("unhandledrejection", ({ reason }) => {
      this.#say(reason instanceof Error ? reason.message : String(reason));
    });
  }

  /** Shows what the address names, or the first question. */
  async start(): Promise<void> {
    await this.#follow();
    if (this.#session.variants.length === 0 && !this.#page) await this.#session.ask(QUESTIONS[0]!);
  }

  async #follow(): Promise<void> {
    const fragment = location.hash.slice(1);
    this.#page?.close();
    this.#page = null;
    if (hasScenarios(fragment)) {
      try {
        const shared = await fromFragment(fragment);
        await this.#session.load(shared, shared.question ? (question(shared.question) ?? null) : null);
      } catch (cause) {
        this.#say(cause instanceof Error ? cause.message : String(cause));
      }
      return;
    }
    const page = SYSTEM_PAGES.find(({ id }) => id === fragment);
    if (page) {
      this.#player.pause();
      this.#page = systemPage(
        page.id,
        this.#session.engine,
        () => this.#theme.theme,
        (variants) => {
          history.pushState(null, "", "#playground");
          this.#page?.close();
          this.#page = null;
          void this.#session.load({ variants, view: "packets", question: null }, null);
        },
      );
      this.#draw();
      await this.#page.start();
      return;
    }
    const asked = question(fragment);
    if (asked && asked !== this.#session.question) await this.#session.ask(asked);
    else if (this.#session.variants.length === 0) await this.#session.ask(QUESTIONS[0]!);
    this.#draw();
  }

  /** Draws the page in the next frame. */
  #draw(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    requestAnimationFrame(() => {
      this.#isWaiting = false;
      this.#drawNow();
    });
  }

  #drawNow(): void {
    if (this.#page) this.#page.setTheme(this.#theme.theme);
    else if (this.#session.variants.length > 0) {
      const { current } = this.#session;
      this.#editor.setText(current.toml);
      this.#editor.setMistakes(mistakesOf(current));
    }
    const missing = this.#page ? null : this.#drawView();
    document.title = this.#title();
    render(
      html`
        ${this.#header()}
        ${this.#message ? html`<div class="message" role="alert"><p>${this.#message}</p><button type="button" class="quiet" @click=${() => this.#say(null)}>Close</button></div>` : nothing}
        <main id="main">${this.#page ? this.#page.element : this.#playground(missing)}</main>
        ${this.#footer()} ${this.#dialog.element}
      `,
      this.#root,
    );
  }

  #title(): string {
    const page = SYSTEM_PAGES.find(({ id }) => id === this.#page?.id)?.name;
    const shown = page ?? this.#session.question?.title;
    return shown ? `${shown} · sparelane playground` : "sparelane playground";
  }

  #header(): unknown {
    const page = this.#page?.id;
    return html`<a class="skip" href="#main" @click=${(event: Event) => skip(event)}>To the content</a>
      <header class="top">
        <a class="brand" href="#playground">sparelane <span>playground</span></a>
        <nav aria-label="Pages">
          <button type="button" class="quiet" data-action="gallery" @click=${() => this.#openGallery()}>Questions</button>
          ${SYSTEM_PAGES.map(({ id, name }) => html`<a href=${`#${id}`} aria-current=${id === page ? "page" : "false"}>${name}</a>`)}
        </nav>
        <div class="actions">
          ${
            page
              ? nothing
              : html`
                <button type="button" class="quiet" data-action="open" @click=${() => this.#pickFile()}>Open</button>
                <button type="button" class="quiet" data-action="share" @click=${() => void this.#share()}>Share</button>
                <button type="button" class="quiet" data-action="download" @click=${() => this.#openDownloads()}>Download</button>
              `
          }
          <button type="button" class="quiet" data-action="theme" title="Light, dark, or as the system" @click=${() => this.#theme.next()}>
            ${this.#theme.choice === "system" ? "Auto" : this.#theme.choice === "light" ? "Light" : "Dark"}
          </button>
        </div>
      </header>`;
  }

  #playground(missing: string | null): unknown {
    const session = this.#session;
    if (session.variants.length === 0) return html`<p class="starting">The simulator is starting.</p>`;
    return html`
      ${this.#banner(session.question)}
      <div class="workspace">
        <section class="settings" aria-label="Scenario">
          ${settings({
            session,
            keys: this.#keys,
            side: this.#side,
            editor: this.#editor.element,
            explained: this.#explained,
            choose: (side) => {
              this.#side = side;
              this.#draw();
            },
            explain: (key) => {
              this.#explained = key;
              this.#draw();
            },
            goTo: (line) => {
              this.#side = "text";
              this.#drawNow();
              this.#editor.goTo(line);
            },
          })}
        </section>
        <section class="results" aria-label="Results">
          ${results({ session, view: session.view === "packets" ? this.#player.element : this.#board.element, missing })}
        </section>
      </div>
    `;
  }

  #banner(asked: Question | null): unknown {
    if (!asked) return html`<div class="banner"><h1>Your scenario</h1></div>`;
    const following = QUESTIONS[(QUESTIONS.indexOf(asked) + 1) % QUESTIONS.length]!;
    return html`<div class="banner" data-shown=${asked.id}>
      <p class="topic">${asked.topic}</p>
      <h1>${asked.title}</h1>
      <p class="text">${asked.text}</p>
      <div class="aside">
        <p class="next"><strong>Try next:</strong> ${asked.next}</p>
        <button type="button" class="quiet" data-action="next" @click=${() => this.#ask(following)}>
          Next question: ${following.title}
        </button>
      </div>
    </div>`;
  }

  #footer(): unknown {
    return html`<footer class="bottom">
      <p>
        sparelane ${this.#version}. The simulator runs in this page: nothing is sent anywhere.
        <button type="button" class="quiet" data-action="licences" @click=${() => this.#openLicences()}>Licences</button>
      </p>
    </footer>`;
  }

  /** Shows results in the view; returns the reason if there is nothing to show. */
  #drawView(): string | null {
    const session = this.#session;
    const finished = session.finished.map((one) => one.results!);
    const { theme } = this.#theme;
    if (session.view !== "packets") this.#player.pause();
    if (finished.length === 0) return null;
    if (session.view === "packets") {
      if (finished.every(({ packets, packetsMissing }) => !packets && !packetsMissing))
        return "The packets are being recorded.";
      this.#player.show(finished, theme);
      return null;
    }
    const key = [session.view, theme, ...finished, ...finished.map(({ label }) => label)];
    if (key.length === this.#drawn.length && key.every((one, index) => one === this.#drawn[index]))
      return this.#missing;
    this.#drawn = key;
    const isOverTime = session.view === "time";
    const figure = isOverTime ? overTime(finished) : completionTimes(finished);
    this.#missing = figure ? null : NO_COMPLETION;
    if (!figure) return this.#missing;
    const height = isOverTime ? CHART_HEIGHT : COMPLETION_HEIGHT;
    this.#board.show(figure, { theme, height, columns: isOverTime ? finished.map(({ label }) => label) : [] });
    return null;
  }

  #ask(asked: Question): void {
    this.#dialog.close();
    // The address names the question, so that the browser's Back returns to the one before.
    history.pushState(null, "", `#${asked.id}`);
    this.#page?.close();
    this.#page = null;
    this.#message = null;
    void this.#session.ask(asked);
    scrollTo({ top: 0 });
  }

  #openGallery(): void {
    this.#dialog.open(
      "Questions",
      gallery(this.#session.question, (asked) => this.#ask(asked)),
    );
  }

  #openDownloads(): void {
    this.#dialog.open(
      "Download",
      downloads(this.#session, (message) => this.#say(message)),
    );
  }

  #openLicences(): void {
    const text = document.getElementById("licences")?.textContent ?? "";
    this.#dialog.open("Licences", html`<pre class="licences" tabindex="0">${text}</pre>`);
  }

  async #share(): Promise<void> {
    try {
      const fragment = await toFragment(this.#session.shared);
      history.replaceState(null, "", fragment);
      const address = location.href;
      const isCopied = await navigator.clipboard?.writeText(address).then(
        () => true,
        () => false,
      );
      this.#dialog.open(
        "Share",
        html`<p>${isCopied ? "The address was copied. It" : "This address"} contains all variants. No server receives them.</p>
          <textarea readonly rows="5" aria-label="Address" @focus=${(event: Event) => (event.target as HTMLTextAreaElement).select()}>${address}</textarea>`,
      );
    } catch (cause) {
      this.#say(cause instanceof Error ? cause.message : String(cause));
    }
  }

  #pickFile(): void {
    const input = document.createElement("input");
    input.type = "file";
    input.accept = ".toml,text/plain";
    input.addEventListener("change", () => {
      const [file] = input.files ?? [];
      if (file) void this.#open(file);
    });
    input.click();
  }

  #acceptFiles(): void {
    const { body } = document;
    body.addEventListener("dragover", (event) => {
      event.preventDefault();
      body.classList.add("dropping");
    });
    body.addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) body.classList.remove("dropping");
    });
    body.addEventListener("drop", (event) => {
      event.preventDefault();
      body.classList.remove("dropping");
      const [file] = event.dataTransfer?.files ?? [];
      if (file) void this.#open(file);
    });
  }

  async #open(file: File): Promise<void> {
    try {
      const { label, toml } = await readScenario(file);
      this.#page?.close();
      this.#page = null;
      await this.#session.open(label, toml);
    } catch (cause) {
      this.#say(cause instanceof Error ? cause.message : String(cause));
    }
  }

  #say(message: string | null): void {
    this.#message = message;
    this.#draw();
  }
}

function skip(event: Event): void {
  event.preventDefault();
  const main = document.getElementById("main");
  main?.setAttribute("tabindex", "-1");
  main?.focus();
}
