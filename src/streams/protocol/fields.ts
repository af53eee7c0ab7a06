import { sessionLimits } from '../session-limits.ts'
import type { LogPlace, MessageContent, MessageIdentity, Position } from './protocol.ts'

/** Readers of what came from outside: each says what is wrong with it, or gives what it is. */

/** Thrown by the readers of frames and of peers' words, and caught where these are decoded. */
export class FrameProblem extends Error {}

export function readPlace(from: Fields): LogPlace {
  return { log: name(from, 'log'), n: count(from, 'n', 1) }
}

export function readIdentity(from: Fields): MessageIdentity {
  return { client: name(from, 'client'), epoch: count(from, 'epoch', 1), cseq: count(from, 'cseq', 1) }
}

export function readContent(from: Fields): MessageContent {
  const content = {
    seen: position(from, 'seen'),
    replyTo: orNull(from, 'replyTo', readIdentity),
    body: json(from, 'body'),
  }
  return from['writtenAtMs'] === undefined ? content : { ...content, writtenAtMs: count(from, 'writtenAtMs', 0) }
}

export type Fields = Readonly<Record<string, unknown>>

export function fields(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new FrameProblem(`\`${what}\` is not an object`)
  }
  return value as Fields
}

export function orNull<T>(from: Fields, member: string, read: (from: Fields) => T): T | null {
  const value = from[member]
  return value === null ? null : read(fields(value, member))
}

export function list(from: Fields, member: string, most: number): readonly unknown[] {
  const value = from[member]
  if (!Array.isArray(value)) throw new FrameProblem(`\`${member}\` is not a list`)
  if (value.length > most) throw new FrameProblem(`\`${member}\` has more than ${most} elements`)
  return value
}

export function count(from: Fields, member: string, least: number): number {
  return whole(from[member], member, least)
}

function whole(value: unknown, member: string, least: number): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= least) return value
  throw new FrameProblem(`\`${member}\` is not a whole number from ${least} on`)
}

/** Names become keys of objects, parts of keys and columns: no character in them means anything anywhere. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._~-]*$/

export function name(from: Fields, member: string): string {
  const value = from[member]
  if (isStreamName(value)) return value
  throw new FrameProblem(`\`${member}\` is not a name`)
}

/** Whether it is a valid name of a room, a region or a client. */
export function isStreamName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= sessionLimits.nameChars && NAME.test(value)
}

export function position(from: Fields, member: string): Position {
  const given = fields(from[member], member)
  const counts: Record<string, number> = {}
  let logs = 0
  // Without lists and pairs in between: every entry of every frame has a position.
  for (const log in given) {
    if (++logs > sessionLimits.logs) throw new FrameProblem(`\`${member}\` names more than ${sessionLimits.logs} logs`)
    if (!isStreamName(log)) throw new FrameProblem(`\`${member}\` has something that names no log`)
    const checked = whole(given[log], member, 0)
    if (checked > 0) counts[log] = checked
  }
  return counts
}

export function text(from: Fields, member: string): string {
  const value = from[member]
  if (typeof value === 'string') return value
  throw new FrameProblem(`\`${member}\` is not a text`)
}

/** Any JSON value, but it must be there: a frame that was cut off must not pass for one that says null. */
export function json(from: Fields, member: string): unknown {
  if (!(member in from)) throw new FrameProblem(`\`${member}\` is missing`)
  return from[member]
}
