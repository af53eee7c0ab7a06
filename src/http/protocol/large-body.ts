import type { BodyMeaning } from './body.ts'
import { readMeaning } from './body.ts'
import type { KeyFound } from './key.ts'
import { keyFromBody } from './key.ts'

/** What is asked about a body, without any function: another thread can be asked the same. */
export interface BodyQuestion {
  readonly contentType: string | null
  readonly contentEncoding: string | null
  readonly body: Uint8Array
  readonly shape: number
  /** The field that has the key; null where a header has it. */
  readonly keyField: string | null
}

export interface BodyAnswer {
  readonly meaning: string
  /** Null where it was not asked for. */
  readonly key: KeyFound | null
}

/** Throws `bad_input` for a body that is not what it says it is. */
export function answerBody({ keyField, ...input }: BodyQuestion): BodyAnswer {
  const { meaning, json } = readMeaning({ ...input, parse: keyField !== null })
  return { meaning, key: keyField === null ? null : keyInBody(json, keyField) }
}

export function keyInBody(json: BodyMeaning['json'], field: string): KeyFound {
  return json === undefined ? { problem: 'missing' } : keyFromBody(json, field)
}
