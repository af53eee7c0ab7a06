import type { Ledger } from '../../ledger/ledger.ts'
import type { SqlTx } from '../../ledger/store/sql.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { IncomingMessage } from '../inbox/port.ts'
import type { InboxContext } from '../inbox/settle.ts'
import type { Ignore, Move, Stay } from './definition.ts'
import { SagaError } from './errors.ts'
import type { Entry, History, IgnoredWhy } from './history.ts'
import { handledEntry } from './history.ts'
import type { Instance, Instances } from './instances.ts'
import { sagaLimits } from './limits.ts'
import type { Machine } from './machine.ts'
import { INITIAL } from './machine.ts'
import type { Pending } from './pending.ts'
import type { Reaction } from './react.ts'
import { misuse, react } from './react.ts'
import type { Arrival } from './route.ts'

/** The shared parts of one saga. */
export interface Parts {
  readonly machine: Machine
  readonly ledger: Pick<Ledger<SqlTx>, 'unique'>
  readonly runtime: Runtime
  readonly instances: Instances
  readonly pending: Pending
  readonly history: History
}

/** One message inside its transaction. */
export interface Turn {
  readonly arrival: Arrival
  readonly message: IncomingMessage
  /** Its `tx` may be the handle of an ORM. */
  readonly tools: InboxContext<unknown>
  /** The same transaction, for the tables of the saga. */
  readonly sql: SqlTx
}

/** With the instance as this try found it. */
interface Found extends Turn {
  readonly instance: Instance | null
  readonly state: string
  readonly now: number
}

/** Loads, handles, saves and emits, in one transaction: either all of it happened, or nothing did. */
export async function handleInside(parts: Parts, turn: Turn): Promise<Entry> {
  const { machine, instances, pending } = parts
  const { arrival, sql: tx } = turn
  // 1. The current instance. Every try reads it again.
  const { now, instance } = await instances.load(tx, arrival.id)
  const state = instance?.state ?? INITIAL
  const found: Found = { ...turn, instance, state, now }
  // 2. A timeout or a deferred event means something only while its row is there.
  const { token } = arrival
  if (token !== null && !(await pending.holds(tx, { ...arrival, token }))) {
    return await ignored(parts, found, 'stale', null)
  }
  // 3. What finished stays finished.
  if (machine.isTerminal(state)) return await ignored(parts, found, 'terminal', null)
  // 4. The table decides.
  const cell = machine.cell(state, arrival.event)
  if (typeof cell === 'function' || 'to' in cell) return await handled(parts, found, cell)
  switch (cell.kind) {
    case 'ignore':
      return await ignored(parts, found, instance === null ? 'no_instance' : 'declared', cell)
    case 'defer':
      return await deferred(parts, found)
    case 'fault':
      throw notAccepted(machine, arrival, state, cell.because)
  }
}

function cameTo({ arrival, message, state }: Found) {
  return { id: arrival.id, event: arrival.event, messageId: message.id, state }
}

/** Changes nothing, so a concurrent save meets no conflict. */
async function ignored(
  { pending, history }: Parts,
  found: Found,
  why: IgnoredWhy,
  cell: Ignore | null,
): Promise<Entry> {
  const { arrival, sql, instance, now } = found
  const because = cell?.because ?? null
  const entry = { ...cameTo(found), did: 'ignored', why, because } as const
  if (arrival.token !== null && why !== 'stale') await pending.drop(sql, arrival.token)
  if (instance !== null && !(await history.add(sql, arrival.id, now, entry))) throw conflict(arrival)
  return entry
}

async function deferred(parts: Parts, found: Found): Promise<Entry> {
  const { machine, instances, pending, history, runtime } = parts
  const { arrival, message, sql: tx, instance, now } = found
  const { id, event, token } = arrival
  // The instance changes its version with every event that it keeps, or is created with the first one. So a concurrent
  // transition that would not see the event among those that it frees meets a conflict.
  // An instance that has not begun ends when the last of these events has waited long enough.
  const endsAt = instance === null || instance.state === INITIAL ? now + machine.deferMs : instance.endsAt
  const kept =
    instance === null
      ? await instances.insert(tx, { ...placeholder(machine, id), endsAt }, now)
      : await instances.touch(tx, { ...instance, endsAt }, now)
  if (!kept) throw conflict(arrival)
  if (token !== null) await pending.deferAgain(tx, token, runtime.newId())
  else {
    if ((await pending.deferred(tx, id)) >= sagaLimits.deferred)
      throw misuse(machine, `deferred too many events of ${id}`)
    await pending.defer(tx, { token: runtime.newId(), id, event, body: message.body }, now)
  }
  const entry = { ...cameTo(found), did: 'deferred' } as const
  await history.add(tx, id, now, entry)
  return entry
}

/** Stands for an instance that events wait for. */
function placeholder(machine: Machine, id: string) {
  return { id, state: INITIAL, data: machine.data(id), completedAt: null }
}

async function handled(
  parts: Parts,
  found: Found,
  cell: Move<unknown, unknown, string> | Stay<unknown, unknown>,
): Promise<Entry> {
  const { machine } = parts
  const { arrival, tools, sql, instance, state, now } = found
  const { id } = arrival
  // 5. An id that was used before its tombstone was swept must not begin again.
  if (state === INITIAL && machine.oneShot && !(await claimId(parts, found))) {
    return await ignored(parts, found, 'late_after_ttl', null)
  }
  // 6. The author's handlers. What they emit and schedule is only noted.
  const subject = { id, state, data: instance?.data ?? machine.data(id) }
  const { effectKey, derive } = tools
  // Handlers of a definition without an ORM get `tx.query`, whatever the transaction is one of.
  const tx = machine.transactions === null ? sql : (tools.tx as SqlTx)
  const ground = { now, tx, effectKey, derive }
  const reaction = await react(machine, subject, { name: arrival.event, body: arrival.body }, cell, ground)
  // 7. The new state, under the version that was read.
  await save(parts, found, subject.data, reaction)
  // 8. Only now what follows from it: timeouts, deferred events, messages.
  await follow(parts, found, reaction)
  const entry = handledEntry(cameTo(found), reaction, now)
  await parts.history.add(sql, id, now, entry)
  return entry
}

/** Claims belong to the saga, not to a tenant. */
const ANY_TENANT = '*'

/** A claim without expiry, owned by this transaction alone. */
async function claimId({ machine, ledger, runtime, instances }: Parts, { arrival, sql, instance }: Found) {
  const owner = runtime.newId()
  const answer = await ledger.unique(ANY_TENANT, `saga.${machine.name}`, arrival.id, { owner })
  if (answer.kind === 'claimed') return true
  // A racing twin may have begun it just now: it is waited for by the claim, and then to be seen.
  const { instance: latest } = await instances.load(sql, arrival.id)
  if (latest !== null && latest.version !== instance?.version) throw conflict(arrival)
  return false
}

async function save(
  { machine, instances }: Parts,
  { arrival, sql, instance, state: before, now }: Found,
  data: unknown,
  { path }: Reaction,
): Promise<void> {
  const { id } = arrival
  const state = path.at(-1) ?? before
  const completed = machine.isTerminal(state)
  const saving = {
    id,
    state,
    data,
    completedAt: completed ? now : null,
    endsAt: completed ? now + machine.keepMs : null,
  }
  const saved =
    instance === null
      ? await instances.insert(sql, saving, now)
      : await instances.update(sql, instance.version, saving, now)
  if (!saved) throw conflict(arrival)
}

async function follow(
  { machine, pending, runtime }: Parts,
  { arrival, tools, sql: tx, now }: Found,
  reaction: Reaction,
) {
  const { id, token } = arrival
  const { outbox } = tools
  const { path, timeouts, emitted } = reaction
  if (token !== null) await pending.drop(tx, token)
  const state = path.at(-1)
  if (state !== undefined && machine.isTerminal(state)) await pending.unscheduleAll(tx, id)
  else {
    for (const [name, to] of timeouts) {
      if (to === null) await pending.unschedule(tx, id, name)
      else await pending.schedule(tx, { ...to, token: runtime.newId(), id }, now + to.afterMs)
    }
  }
  if (state !== undefined) await pending.release(tx, id, now)
  for (const { topic, key, body, headers } of emitted) {
    await outbox.add({ topic, body, headers, ...(key === null ? {} : { key }) })
  }
}

function conflict({ id, event }: Arrival): SagaError<'saga_conflict'> {
  const text = `Another event changed ${id} while ${event} was handled.`
  return new SagaError('saga_conflict', text, { details: { id, event } })
}

export function notAccepted(
  { name }: Machine,
  { id, event }: Pick<Arrival, 'id' | 'event'>,
  state: string,
  because: string | undefined,
): SagaError<'saga_not_accepted'> {
  const why = because === undefined ? '' : ` (${because})`
  const text = `The saga ${name} does not accept ${event} in the state ${state}, for the instance ${id}${why}.`
  return new SagaError('saga_not_accepted', text, { details: { saga: name, id, state, event } })
}
