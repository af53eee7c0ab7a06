import type { AnswerOf } from '../../commands/table.ts'
import { plain, table } from '../output.ts'
import type { Texts } from './texts.ts'

const listed = (ids: readonly string[]) => (ids.length === 0 ? 'none' : ids.join(', '))

type Erased = AnswerOf<'erase'>

const amounts = (records: number, own: Erased['own']) =>
  `${records} records${Object.entries(own)
    .map(([name, n]) => `, ${n} ${name}`)
    .join('')}`

function leftText({ count, some }: Erased['left']): string {
  if (count === 0) return ''
  const names = some.map(({ what, id, why }) => `${what} ${id} (${why})`)
  return ` Left, until their outcome is known: ${count}, such as ${listed(names)}.`
}

/** The preview. */
export function erasableText({ records, running, own, left }: Erased): string {
  const still = running === 0 ? '' : ` ${running} attempts still run, and would be left.`
  return plain(`Would be erased: ${amounts(records, own)}.${still}${leftText(left)}`)
}

export const privacyTexts: Texts = {
  encryption: (answer) => {
    if (!answer.encrypted) return 'The store is not encrypted.'
    const lines = [
      `Writes with ${answer.writeWith}; keys: ${listed(answer.keys)}.`,
      `Data is encrypted with: ${listed(answer.writers)}. Keys that can be removed: ${listed(answer.removable)}.`,
    ]
    if (answer.plain) lines.push('Data from before encryption may be left: run `onceonly rekey`.')
    return lines.map((line) => plain(line)).join('\n')
  },
  rekey: ({ changed, left, finished, removable }) => {
    const done = `${changed} records and rows are encrypted again.`
    if (!finished)
      return { text: `${done} ${left} were in use or could not be decrypted: run it again later.`, status: 1 }
    return `${done} Keys that can be removed now: ${plain(listed(removable))}.`
  },
  erase: ({ records, running, own, left }) => {
    const still = running === 0 ? '' : ` ${running} attempts still run: erase again when they have ended.`
    return plain(`${amounts(records, own)} are erased; their keys stay taken.${still}${leftText(left)}`)
  },
  retention: ({ rows }) =>
    table(
      ['what', 'kept', 'setting'],
      rows.map(({ what, kept, setting }) => [what, kept, setting]),
      'Nothing is kept.',
    ),
}
