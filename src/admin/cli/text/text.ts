import { jsonText } from '../../../ledger/core/json-text.ts'
import type { CommandName } from '../../commands/table.ts'
import type { Shown } from '../output.ts'
import { eventTexts, inboxText, outboxText, redrivenText } from './events.ts'
import { erasableText, privacyTexts } from './privacy.ts'
import { explanationText, recordTexts } from './records.ts'
import { bulkText, runText, runTexts } from './runs.ts'
import type { TextContext, Texts } from './texts.ts'
import { upkeepTexts } from './upkeep.ts'

const texts: Texts = { ...recordTexts, ...eventTexts, ...runTexts, ...upkeepTexts, ...privacyTexts }

/** Previews that a table of rows shows; all others are JSON. */
const previews: Readonly<Record<string, (preview: never) => string>> = {
  release: explanationText,
  forget: explanationText,
  resolve: explanationText,
  erase: erasableText,
  'outbox.redrive': outboxText,
  'outbox.purge': outboxText,
  'inbox.redrive': redrivenText,
  'inbox.purge': inboxText,
  'run.cancel': runText,
  'run.resume': runText,
  'run.retry': runText,
  'runs.cancel': bulkText,
  'runs.resume': bulkText,
  'runs.retry': bulkText,
}

export function shownOf(name: string, answer: unknown, context: TextContext & { readonly isPreview: boolean }): Shown {
  const write = (context.isPreview ? previews[name] : texts[name as CommandName]) as
    | ((answer: unknown, context: TextContext) => ReturnType<NonNullable<Texts['status']>>)
    | undefined
  const shown = write === undefined ? jsonText(answer) : write(answer, context)
  const data = dataOf(answer)
  return typeof shown === 'string' ? { data, text: shown } : { data, ...shown }
}

/** Programs get the rows of a list: all that were asked for are in it. */
function dataOf(answer: unknown): unknown {
  return typeof answer === 'object' && answer !== null && 'rows' in answer ? answer.rows : answer
}
