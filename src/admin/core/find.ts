import { keyOf } from '../../events/inbox/key.ts'
import { INBOX_ROOM } from '../../events/inbox/tables.ts'
import { OUTBOX_ROOM } from '../../events/outbox/tables.ts'
import { SAGA_ROOM } from '../../events/saga/tables.ts'
import type { SqlRow, SqlSeam, SqlValue } from '../../ledger/store/sql.ts'
import { DERIVED_KEY_DIGITS } from '../../runs/key.ts'
import { RUN_ROOM } from '../../runs/tables.ts'
import { STREAM_ROOM } from '../../streams/log/sql-tables.ts'
import type { Card } from './card.ts'
import { quoted } from './quoted.ts'

/** One thing that has the id which an operator has in the hand. */
export interface Found {
  /** `record`, `run`, `step`, `queue`, `schedule`, `outbox message`, `dead letter`, `saga`, `room`, and what a server adds. */
  readonly kind: string
  readonly id: string
  /** What it is, in one line and without stored contents. */
  readonly about: string
  readonly state: string | null
  /** By the store's clock, in milliseconds. */
  readonly at: number | null
  /** Its page, below the address of the console; null where it has none. */
  readonly page: string | null
  /** The command that shows it; null where there is none. */
  readonly look: string | null
}

/** Of each kind; an id that has more of them is no id. */
const FOUND_MOST = 20

/** Looks for an id in the tables of every wing but the records, of which there may be too many for one look. */
export function createFind(
  sql: SqlSeam,
  has: (room: string) => Promise<boolean>,
): (id: string) => Promise<readonly Found[]> {
  return async (id) => {
    const found = await Promise.all(
      places.map(async ({ room, text, values, found: of }) => {
        const given = values(id)
        if (given === null || !(await has(room))) return []
        const rows = await sql.query(`${text} LIMIT ${FOUND_MOST}`, given)
        return rows.flatMap((row) => of(row, id) ?? [])
      }),
    )
    return found.flat()
  }
}

export function foundRecord({ id, identity, state, expired, claimedAt }: Card): Found {
  const { tenant, caller, operation, key } = identity
  return {
    kind: 'record',
    id,
    about: `${operation} of ${tenant}/${caller} under the key ${key}`,
    state: expired ? `${state}, expired` : state,
    at: claimedAt,
    page: `/records/${id}`,
    look: `onceonly inspect --id ${id}`,
  }
}

interface Place {
  readonly room: string
  readonly text: string
  /** Null where such an id cannot be there. */
  values(id: string): readonly SqlValue[] | null
  found(row: SqlRow, id: string): Found | null
}

/** A server may put the owner before the name that its clients know: with a slash in ids of runs, a dot in names of rooms. */
function owned(
  separator: '/' | '.',
  column: string,
): Pick<Place, 'values'> & { isOf(row: SqlRow, id: string): boolean } {
  return {
    values: (id) => [id, `%${separator}${id.replaceAll(/[!%_]/g, '!$&')}`],
    // LIKE may ignore the case of letters.
    isOf: (row, id) => row[column] === id || String(row[column]).endsWith(separator + id),
  }
}

const ownedRuns = owned('/', 'id')
const ownedRooms = owned('.', 'room')

const runs: Place = {
  room: RUN_ROOM,
  text: `SELECT id, definition, state, started_at FROM onceonly_runs WHERE id = ? OR id LIKE ? ESCAPE '!'`,
  values: ownedRuns.values,
  found(row, asked) {
    if (!ownedRuns.isOf(row, asked)) return null
    const id = String(row['id'])
    return {
      kind: 'run',
      id,
      about: String(row['definition']),
      state: String(row['state']),
      at: Number(row['started_at']),
      ...linksOf(id),
    }
  },
}

/** The key of a step, and keys that are derived from it for a provider. */
const steps: Place = {
  room: RUN_ROOM,
  text: `SELECT s.run_id, s.key, s.step_id, s.tick, s.state, s.at, r.definition
    FROM onceonly_run_steps AS s JOIN onceonly_runs AS r ON r.id = s.run_id WHERE substr(s.key, 1, ${DERIVED_KEY_DIGITS}) = ?`,
  values: (id) => (/^[0-9a-f]{64}$/.test(id) ? [id.slice(0, DERIVED_KEY_DIGITS)] : null),
  found(row) {
    const runId = String(row['run_id'])
    return {
      kind: 'step',
      id: `${runId} ${String(row['key'])}`,
      about: `${String(row['definition'])}, step ${String(row['step_id'])}, tick ${Number(row['tick'])}`,
      state: String(row['state']),
      at: Number(row['at']),
      ...linksOf(runId),
    }
  },
}

/** What runs wait in, or are started by: known by the name that alerts show. */
function named(kind: 'queue' | 'schedule', table: string, page: string, look: string): Place {
  return {
    room: RUN_ROOM,
    text: `SELECT name, paused FROM ${table} WHERE name = ?`,
    values: (id) => [id],
    found: ({ name, paused }) => ({
      kind,
      id: String(name),
      about: `${kind} of runs`,
      state: Number(paused) === 1 ? 'paused' : 'active',
      at: null,
      page,
      look,
    }),
  }
}

function linksOf(runId: string): Pick<Found, 'page' | 'look'> {
  return { page: `/runs/${encodeURIComponent(runId)}`, look: `onceonly run ${quoted(runId)}` }
}

function inOutbox(table: string, at: string, state: string, look: string): Place {
  return {
    room: OUTBOX_ROOM,
    text: `SELECT id, topic, ${at} AS at FROM ${table} WHERE id = ?`,
    values: (id) => [id],
    found: (row) => ({
      kind: 'outbox message',
      id: String(row['id']),
      about: `topic ${String(row['topic'])}`,
      state,
      at: Number(row['at']),
      page: '/events',
      look,
    }),
  }
}

const deadLetters: Place = {
  room: INBOX_ROOM,
  text: `SELECT consumer, letter, topic, reason, parked_at FROM onceonly_inbox_dead_letters
    WHERE letter = ? OR message = ?`,
  values: (id) => [id, keyOf(id)],
  found(row) {
    const consumer = String(row['consumer'])
    return {
      kind: 'dead letter',
      id: String(row['letter']),
      about: `topic ${String(row['topic'])}, given up by ${consumer}`,
      state: String(row['reason']),
      at: Number(row['parked_at']),
      page: `/events/inbox/${encodeURIComponent(consumer)}`,
      look: `onceonly inbox dead ${quoted(consumer)}`,
    }
  },
}

const sagas: Place = {
  room: SAGA_ROOM,
  text: 'SELECT saga, id, state, updated_at FROM onceonly_saga_instances WHERE id = ?',
  values: (id) => [id],
  found(row) {
    const [saga, id] = [String(row['saga']), String(row['id'])]
    return {
      kind: 'saga',
      id,
      about: saga,
      state: String(row['state']),
      at: Number(row['updated_at']),
      page: `/sagas/${encodeURIComponent(saga)}/${encodeURIComponent(id)}`,
      look: `onceonly saga instance ${quoted(saga)} ${quoted(id)}`,
    }
  },
}

const rooms: Place = {
  room: STREAM_ROOM,
  text: `SELECT room, count(*) AS regions FROM onceonly_stream_rooms WHERE room = ? OR room LIKE ? ESCAPE '!' GROUP BY room`,
  values: ownedRooms.values,
  found(row, asked) {
    if (!ownedRooms.isOf(row, asked)) return null
    const id = String(row['room'])
    const about = `${Number(row['regions'])} regions`
    return { kind: 'room', id, about, state: null, at: null, page: `/streams/${encodeURIComponent(id)}`, look: null }
  },
}

const places: readonly Place[] = [
  runs,
  steps,
  named('queue', 'onceonly_run_queues', '/runs?view=queues', 'onceonly queue list'),
  named('schedule', 'onceonly_run_schedules', '/runs?view=schedules', 'onceonly schedules'),
  inOutbox('onceonly_outbox_rows', 'added_at', 'waiting to be published', 'onceonly events'),
  inOutbox('onceonly_outbox_dead', 'parked_at', 'dead letter', 'onceonly outbox dead'),
  deadLetters,
  sagas,
  rooms,
]
