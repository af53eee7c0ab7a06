import { OnceError } from './core/errors.ts'
import { limits } from './core/limits.ts'
import type { Note } from './core/record.ts'

/** Kept in every record that has one, so that each of its texts is short. */
export function checkNote(note: Note): Note {
  const { calls, guard, ...texts } = note
  if (calls !== undefined && (!Number.isSafeInteger(calls) || calls < 0)) {
    throw new OnceError('bad_input', `\`calls\` of a note is a whole number from 0 on, not ${String(calls)}.`)
  }
  for (const [name, value] of Object.entries({ ...texts, hash: guard?.hash, operation: guard?.operation })) {
    if (value === undefined) continue
    if (typeof value !== 'string' || value.length > limits.noteChars) {
      throw new OnceError('bad_input', `\`${name}\` of a note is not a text of at most ${limits.noteChars} characters.`)
    }
  }
  return note
}
