/** A list of tabs by the pattern of the ARIA Authoring Practices: arrow keys move, one tab is in the order of Tab. */

import { html, type TemplateResult } from "lit-html";

export interface Tab<Id extends string> {
  id: Id;
  title: string;
}

export function tabs<Id extends string>(
  label: string,
  panel: string,
  all: readonly Tab<Id>[],
  chosen: Id,
  choose: (id: Id) => void,
): TemplateResult {
  const onKey = (event: KeyboardEvent, index: number): void => {
    const moves: Record<string, number> = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: all.length - 1 };
    const next = moves[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const place = (next + all.length) % all.length;
    choose(all[place]!.id);
    const list = (event.currentTarget as HTMLElement).parentElement;
    (list?.children[place] as HTMLElement | undefined)?.focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label}>
    ${all.map(
      ({ id, title }, index) => html`<button
        type="button"
        role="tab"
        id=${`${panel}-tab-${id}`}
        aria-controls=${panel}
        aria-selected=${id === chosen ? "true" : "false"}
        tabindex=${id === chosen ? 0 : -1}
        @click=${() => choose(id)}
        @keydown=${(event: KeyboardEvent) => onKey(event, index)}
      >
        ${title}
      </button>`,
    )}
  </div>`;
}
