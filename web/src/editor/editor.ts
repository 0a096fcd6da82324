/** The editor of a scenario's text: CodeMirror with the syntax of TOML and with marks at mistakes. */

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { type Diagnostic, lintGutter, setDiagnostics } from "@codemirror/lint";
import { EditorState, Transaction } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { Mistake } from "../engine/index.ts";

/** Colours come from the page's custom properties, so that they follow its theme. */
const LOOK = EditorView.theme({
  "&": { height: "100%", fontSize: "13px", backgroundColor: "var(--field)", color: "var(--ink)" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-gutters": { backgroundColor: "var(--field)", color: "var(--muted)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--shade)" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selection) !important" },
  ".cm-tooltip": { backgroundColor: "var(--paper)", color: "var(--ink)", border: "1px solid var(--line)" },
  ".cm-lintRange-error": {
    backgroundImage: "none",
    borderBottom: "2px wavy var(--error)",
    backgroundColor: "var(--error-shade)",
  },
});

const SYNTAX = HighlightStyle.define([
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
  { tag: tags.string, color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.atom], color: "var(--code-number)" },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--code-key)" },
]);

export class Editor {
  /** The element to insert. The editor is in its shadow tree, where its styles need no permission of the page's policy. */
  readonly element = document.createElement("div");
  readonly #view: EditorView;

  /** @param onChange is called with the whole text after each change by the user */
  constructor(onChange: (text: string) => void, onRun: () => void) {
    this.element.className = "editor";
    const root = this.element.attachShadow({ mode: "open" });
    const parent = document.createElement("div");
    // The policy of the page forbids attributes with styles, but not properties.
    parent.style.height = "100%";
    root.append(parent);
    this.#view = new EditorView({
      root,
      parent,
      state: EditorState.create({
        extensions: [
          lineNumbers(),
          lintGutter(),
          history(),
          drawSelection(),
          highlightActiveLine(),
          EditorView.lineWrapping,
          StreamLanguage.define(toml),
          syntaxHighlighting(SYNTAX),
          LOOK,
          // Tab is not bound: it moves on to the next control, for readers without a mouse.
          keymap.of([
            {
              key: "Mod-Enter",
              run: () => {
                onRun();
                return true;
              },
            },
            ...defaultKeymap,
            ...historyKeymap,
          ]),
          EditorView.contentAttributes.of({
            "aria-label": "Scenario as TOML text",
            spellcheck: "false",
            tabindex: "0",
          }),
          EditorView.updateListener.of((update) => {
            const isByUser = update.transactions.some((one) => one.annotation(Transaction.userEvent) !== undefined);
            if (update.docChanged && isByUser) onChange(update.state.doc.toString());
          }),
        ],
      }),
    });
  }

  get text(): string {
    return this.#view.state.doc.toString();
  }

  /** Shows a text, and changes only the part that differs, so that the cursor stays. */
  setText(text: string): void {
    const old = this.text;
    if (old === text) return;
    let start = 0;
    while (start < old.length && start < text.length && old[start] === text[start]) start += 1;
    let end = 0;
    const most = Math.min(old.length, text.length) - start;
    while (end < most && old.at(-1 - end) === text.at(-1 - end)) end += 1;
    this.#view.dispatch({
      changes: { from: start, to: old.length - end, insert: text.slice(start, text.length - end) },
    });
  }

  /** Marks the lines of mistakes. */
  setMistakes(mistakes: readonly Mistake[]): void {
    const { doc } = this.#view.state;
    const diagnostics = mistakes.map((mistake): Diagnostic => {
      const line = doc.line(Math.max(1, Math.min(mistake.line ?? 1, doc.lines)));
      const from = Math.min(line.to, line.from + Math.max(0, (mistake.column ?? 1) - 1));
      const to = mistake.endColumn === null ? line.to : Math.min(line.to, line.from + mistake.endColumn - 1);
      return { from, to: Math.max(from, to), severity: "error", message: mistake.message };
    });
    this.#view.dispatch(setDiagnostics(this.#view.state, diagnostics));
  }

  /** Moves the cursor to a line, and shows it. */
  goTo(line: number): void {
    const { from } = this.#view.state.doc.line(Math.max(1, Math.min(line, this.#view.state.doc.lines)));
    this.#view.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
    this.#view.focus();
  }
}
