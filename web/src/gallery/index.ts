/** The gallery: the questions that the page answers by runs. */

import type { Question } from "./question.ts";
import { QUEUES } from "./queues.ts";
import { SHARING } from "./sharing.ts";
import { SYSTEMS } from "./systems.ts";

export type { Question, QuestionVariant, Setting, View } from "./question.ts";

/** All questions, in the order of the gallery. The page opens with the first one. */
export const QUESTIONS: readonly Question[] = [...SHARING, ...QUEUES, ...SYSTEMS];

export function question(id: string): Question | undefined {
  return QUESTIONS.find((one) => one.id === id);
}
