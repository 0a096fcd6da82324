/** The gallery of questions. */

import { html, type TemplateResult } from "lit-html";
import { QUESTIONS, type Question } from "../gallery/index.ts";

export function gallery(chosen: Question | null, ask: (question: Question) => void): TemplateResult {
  return html`<ul class="gallery">
    ${QUESTIONS.map(
      (one) => html`<li>
        <button type="button" data-question=${one.id} aria-current=${one === chosen ? "true" : "false"} @click=${() => ask(one)}>
          <span class="topic">${one.topic}</span>
          <span class="title">${one.title}</span>
          <span class="variants">${one.variants.map(({ label }) => label).join(" · ")}</span>
        </button>
      </li>`,
    )}
  </ul>`;
}
