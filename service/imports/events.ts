import { createHash } from 'node:crypto'
import Type, { type Static, type TSchema } from 'typebox'
import { checked, ruled } from '../http/input.ts'
import { sentenceOf } from '../http/problem.ts'
import { unstorable } from '../http/text.ts'
import { count } from '../openapi/declaration.ts'

/** The messages between the parts of an import, each with its schema. The names are the topics of their publication. */

const text = ruled(Type.String(), (value) => (value.trim() === '' ? 'is blank' : unstorable(value)))
const file = { searchId: text, file: text }

/** Of `SearchUploadStarted` and `SearchUploadSaved`. Metadata is not trusted here: the saga checks it again. */
const started = Type.Object({
  searchId: text,
  workspaceId: text,
  projectId: Type.Optional(Type.Unknown()),
  searchName: Type.Optional(Type.Unknown()),
  referenceFiles: Type.Optional(Type.Unknown()),
})
export type SearchUploadStarted = Static<typeof started>

const fileCommand = Type.Object(file)
export type StartParsingReferenceFile = Static<typeof fileCommand>

const parsed = Type.Object({ ...file, references: count, errors: count })

/** Of `ReferenceFileFaulted` (it cannot be read) and of `StartParsingFaulted` (parsing never began). */
const fault = Type.Object({
  ...file,
  reason: ruled(Type.String(), (reason) => (reason.trim() === '' ? 'is blank' : null)),
})
export type FileFault = Static<typeof fault>

export const topics = {
  storage: 'StorageNotification',
  started: 'SearchUploadStarted',
  saved: 'SearchUploadSaved',
  parse: 'StartParsingReferenceFile',
  parsed: 'ReferenceFileParsingCompleted',
  faulted: 'ReferenceFileFaulted',
  notStarted: 'StartParsingFaulted',
} as const

/** Of a message that no command adds: the same arguments give the same id, so that it is published once. */
export function messageId(kind: string, ...about: readonly string[]): string {
  return `${kind}:${createHash('sha256').update(JSON.stringify(about)).digest('hex')}`
}

/** @throws when the message lacks what every reader needs: it can only be set aside. */
function reader<S extends TSchema>(schema: S): (body: unknown) => Static<S> {
  return (body) => {
    const result = checked(schema, body)
    if ('errors' in result) throw new Error(sentenceOf(result.errors))
    return result.value
  }
}

export const readStarted = reader(started)
export const readFileCommand = reader(fileCommand)
export const readParsed = reader(parsed)

/** A reason may quote an uploaded file, and is only read by people. */
const REASON_CHARS_MOST = 1_000

export function readFault(body: unknown): FileFault {
  const { reason, ...rest } = reader(fault)(body)
  return { ...rest, reason: reason.slice(0, REASON_CHARS_MOST).toWellFormed().replaceAll('\0', '\ufffd') }
}
