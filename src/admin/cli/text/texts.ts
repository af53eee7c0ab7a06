import type { AnswerOf, CommandName } from '../../commands/table.ts'

export interface TextContext {
  /** By the store's clock. */
  readonly now: number
}

/** The text of an answer, and the exit status where it is not 0. */
export type Texts = {
  readonly [Name in CommandName]?: (
    answer: AnswerOf<Name>,
    context: TextContext,
  ) => string | { readonly text: string; readonly status: 0 | 1 }
}
