import { streamLimits } from '../limits.ts'
import type { ExchangedEntry, FenceAnswer, FenceRequest, PullRequest, RegionHint, SessionClaim } from '../ports.ts'
import type { Fields } from '../protocol/fields.ts'
import {
  count,
  FrameProblem,
  fields,
  list,
  name,
  orNull,
  position,
  readContent,
  readIdentity,
  readPlace,
} from '../protocol/fields.ts'
import { ExchangeError } from './errors.ts'

/** Messages between regions over a network. They are decoded like those of clients: nothing is trusted. */

export function encodeWord(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value))
}

/** Returns null for any malformed message of a peer. */
export function decodeWord<T>(data: Uint8Array, read: (from: Fields) => T): T {
  try {
    return read(fields(JSON.parse(new TextDecoder().decode(data)), 'word'))
  } catch (cause) {
    throw new ExchangeError('unreadable_message', 'A region sent an unreadable message.', { cause })
  }
}

export function readHint(from: Fields): RegionHint {
  const { kind } = from
  const region = name(from, 'region')
  const room = name(from, 'room')
  switch (kind) {
    case 'position': {
      const entries = readEntries(from, streamLimits.writeEntries)
      if (!entries.every(({ log }) => isLogOf(log, region))) throw new FrameProblem('an entry is of another region')
      return { kind, region, room, position: position(from, 'position'), entries }
    }
    case 'entered':
      return { kind, region, room, claim: readClaim(from) }
    default:
      throw new FrameProblem('the kind of the hint is not known')
  }
}

/** The name of a log is that of its region, a dot and an epoch. */
function isLogOf(log: string, region: string): boolean {
  return log.startsWith(`${region}.`) && !log.slice(region.length + 1).includes('.')
}

export function readPull(from: Fields): PullRequest & { readonly parts: string | null } {
  const { all, parts } = from
  return {
    room: name(from, 'room'),
    position: position(from, 'position'),
    all: all === true,
    parts: typeof parts === 'string' ? parts : null,
  }
}

export function readFence(from: Fields): FenceRequest {
  return { room: name(from, 'room'), claim: readClaim(from) }
}

export function readFenceAnswer(from: Fields): FenceAnswer {
  const { kind } = from
  switch (kind) {
    case 'entered':
    case 'cloned':
      return { kind }
    case 'fenced':
      return { kind, generation: count(from, 'generation', 1) }
    default:
      throw new FrameProblem('the kind of the answer is not known')
  }
}

export function readEntries(from: Fields, most: number): readonly ExchangedEntry[] {
  return list(from, 'entries', most).map((each) => readEntry(fields(each, 'entries')))
}

function readEntry(from: Fields): ExchangedEntry {
  const { digest } = from
  if (typeof digest !== 'string' || digest.length > streamLimits.nameChars) throw new FrameProblem('`digest` is none')
  return {
    ...readContent(from),
    ...readPlace(from),
    ...readIdentity(from),
    after: orNull(from, 'after', readPlace),
    acceptedAtMs: count(from, 'acceptedAtMs', 0),
    digest,
  }
}

function readClaim(from: Fields): SessionClaim {
  const claim = fields(from['claim'], 'claim')
  return {
    client: name(claim, 'client'),
    epoch: count(claim, 'epoch', 1),
    generation: count(claim, 'generation', 1),
    instance: name(claim, 'instance'),
  }
}
