import { createHash } from 'node:crypto'
import { unstorable } from '../http/text.ts'

/** What the systems of an import tell each other. The names are the topics that they are published under. */

/** Of `SearchUploadStarted` and `SearchUploadSaved`. Metadata is not trusted here: whoever acts on it checks it again. */
export interface SearchUploadStarted {
  readonly searchId: string
  readonly workspaceId: string
  readonly projectId?: unknown
  readonly searchName?: unknown
  readonly referenceFiles?: unknown
}

export interface StartParsingReferenceFile {
  readonly searchId: string
  readonly file: string
}

export interface ReferenceFileParsingCompleted {
  readonly searchId: string
  readonly file: string
  readonly references: number
  readonly errors: number
}

/** Of `ReferenceFileFaulted` (it cannot be read) and of `StartParsingFaulted` (nobody could even try). */
export interface FileFault {
  readonly searchId: string
  readonly file: string
  readonly reason: string
}

export const topics = {
  storage: 'StorageNotification',
  started: 'SearchUploadStarted',
  saved: 'SearchUploadSaved',
  parse: 'StartParsingReferenceFile',
  parsed: 'ReferenceFileParsingCompleted',
  faulted: 'ReferenceFileFaulted',
  notStarted: 'StartParsingFaulted',
} as const

/** Of a message that is not said by a command: the same words give the same id, so that it is said once. */
export function messageId(kind: string, ...about: readonly string[]): string {
  return `${kind}:${createHash('sha256').update(JSON.stringify(about)).digest('hex')}`
}

type Fields = Readonly<Record<string, unknown>>

/** Without these an event belongs to nobody, so it can only be put aside. */
export function readStarted(body: unknown): SearchUploadStarted {
  const fields = fieldsOf(body)
  return { ...fields, searchId: text(fields, 'searchId'), workspaceId: text(fields, 'workspaceId') }
}

export function readFileCommand(body: unknown): StartParsingReferenceFile {
  const fields = fieldsOf(body)
  return { searchId: text(fields, 'searchId'), file: text(fields, 'file') }
}

export function readParsed(body: unknown): ReferenceFileParsingCompleted {
  const fields = fieldsOf(body)
  return { ...readFileCommand(body), references: count(fields, 'references'), errors: count(fields, 'errors') }
}

/** A reason may quote what somebody uploaded, and is only read by people. */
const REASON_CHARS_MOST = 1_000

export function readFault(body: unknown): FileFault {
  const { reason } = fieldsOf(body)
  if (typeof reason !== 'string' || reason.trim() === '') throw new Error('reason is not a non-blank string')
  const shown = reason.slice(0, REASON_CHARS_MOST).toWellFormed().replaceAll('\0', '\ufffd')
  return { ...readFileCommand(body), reason: shown }
}

function fieldsOf(body: unknown): Fields {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw new Error('The body is not an object')
  return { ...body }
}

function text(fields: Fields, name: string): string {
  const value = fields[name]
  if (typeof value !== 'string' || value.trim() === '') throw new Error(`${name} is not a non-blank string`)
  const wrong = unstorable(value)
  if (wrong !== null) throw new Error(`${name} ${wrong}`)
  return value
}

function count(fields: Fields, name: string): number {
  const value = fields[name]
  if (!Number.isSafeInteger(value) || Number(value) < 0) throw new Error(`${name} is not a count`)
  return Number(value)
}
