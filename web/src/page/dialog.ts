/** A modal dialog whose content is drawn when it opens. */

import { html, render } from "lit-html";

export class Dialog {
  readonly element = document.createElement("dialog");

  constructor(className: string) {
    this.element.className = className;
    // A click beside the content closes the dialog, as the Escape key does.
    this.element.addEventListener("click", (event) => {
      if (event.target === this.element) this.close();
    });
  }

  open(title: string, content: unknown): void {
    render(
      html`<div class="dialog-body">
        <header>
          <h2 id="dialog-title">${title}</h2>
          <button type="button" class="quiet" @click=${() => this.close()}>Close</button>
        </header>
        ${content}
      </div>`,
      this.element,
    );
    this.element.setAttribute("aria-labelledby", "dialog-title");
    if (!this.element.open) this.element.showModal();
  }

  close(): void {
    this.element.close();
    // The names of its elements are free for the next dialog.
    render(html``, this.element);
  }
}
