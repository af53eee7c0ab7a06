import type { MessageState } from './message.ts'
import { bodyOf, type Said, saidOf } from './said.ts'

/** A message that is not sent by itself: its outcome is unknown, or it was refused. Its author decides what becomes of it. */
export interface Unsettled {
  readonly state: Extract<MessageState, 'doubtful' | 'refused'>
  readonly said: Said
}

/** The client has let go of such messages, so that the page keeps them, until they are sent again or discarded. */
export interface UnsettledStore {
  load(): readonly Unsettled[]
  /** Of one database: those that are left, in place of those from before. */
  save(all: readonly Unsettled[]): void
}

const prefix = 'onceonly-chat-unsettled:'
/** The oldest make room: a person who has so many looks at none of them. */
const UNSETTLED_MOST = 100

/** Beside the database of the same name. */
export function createUnsettledStore(storageName: string): UnsettledStore {
  return {
    load: () => parsed(localStorage.getItem(prefix + storageName)),
    save(all) {
      const kept = all.slice(-UNSETTLED_MOST).map(({ state, said }) => ({ state, body: bodyOf(said) }))
      if (kept.length === 0) localStorage.removeItem(prefix + storageName)
      else localStorage.setItem(prefix + storageName, JSON.stringify(kept))
    },
  }
}

/** The names of all databases, of those that are deleted, too, beside which something is kept. */
export function unsettledStorages(): readonly string[] {
  return Object.keys(localStorage).flatMap((key) => (key.startsWith(prefix) ? [key.slice(prefix.length)] : []))
}

function parsed(text: string | null): readonly Unsettled[] {
  try {
    const all: unknown = JSON.parse(text ?? '[]')
    return Array.isArray(all) ? all.flatMap(unsettledOf) : []
  } catch {
    return []
  }
}

function unsettledOf(kept: unknown): readonly Unsettled[] {
  if (typeof kept !== 'object' || kept === null || !('state' in kept) || !('body' in kept)) return []
  const { state, body } = kept
  return state === 'doubtful' || state === 'refused' ? [{ state, said: saidOf(body) }] : []
}
