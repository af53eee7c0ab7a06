import type { OpenSession } from './session-host.ts'

/** The sessions of a region, found by their rooms: with thousands of them none is looked for among all. */
export interface SessionTable {
  readonly count: number
  /** A copy, as below. */
  all(): readonly OpenSession[]
  began(session: OpenSession): void
  /** It is in a room now. */
  entered(room: string, session: OpenSession): void
  /** A copy: a session may end while they are gone through. */
  in(room: string): readonly OpenSession[]
  ended(session: OpenSession): void
}

export function createSessionTable(): SessionTable {
  /** Null: in no room yet. */
  const rooms = new Map<OpenSession, string | null>()
  const byRoom = new Map<string, Set<OpenSession>>()

  return {
    get count() {
      return rooms.size
    },
    all: () => [...rooms.keys()],
    began: (session) => void rooms.set(session, null),
    entered(room, session) {
      rooms.set(session, room)
      const sessions = byRoom.get(room) ?? new Set()
      byRoom.set(room, sessions.add(session))
    },
    in: (room) => [...(byRoom.get(room) ?? [])],
    ended(session) {
      const room = rooms.get(session) ?? null
      rooms.delete(session)
      if (room === null) return
      const sessions = byRoom.get(room)
      sessions?.delete(session)
      if (sessions?.size === 0) byRoom.delete(room)
    },
  }
}
