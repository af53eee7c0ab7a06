import { exceedsBytes } from '../../ledger/core/identity.ts'
import { limits } from '../../ledger/core/limits.ts'
import type { SqlTx } from '../../ledger/store/sql.ts'
import type { Move, MoveTools, SagaSendOptions, ScheduleOptions, Stay } from './definition.ts'
import { SagaError } from './errors.ts'
import { sagaLimits } from './limits.ts'
import type { Machine } from './machine.ts'
import { INITIAL } from './machine.ts'

/** What a handler stands on while it runs. */
export interface Ground {
  readonly now: number
  readonly tx: SqlTx
  readonly effectKey: string
  derive(name: string): string
}

export interface Subject {
  readonly id: string
  readonly state: string
  /** Fresh for every attempt: handlers change it in place. */
  readonly data: unknown
}

export interface Emitted {
  readonly how: 'published' | 'sent'
  readonly topic: string
  readonly key: string | null
  readonly body: unknown
  readonly headers: Readonly<Record<string, string>>
}

export interface Scheduled {
  readonly name: string
  readonly event: string
  readonly afterMs: number
  /** JSON text. */
  readonly body: string
}

/** Everything that a handler wanted. Nothing of it has happened yet, except for its writes in the transaction. */
export interface Reaction {
  /** The states that were entered, in order; empty when it stayed. */
  readonly path: readonly string[]
  readonly emitted: readonly Emitted[]
  /** By the name of the timeout: its last state, or null when it was unscheduled. */
  readonly timeouts: ReadonlyMap<string, Scheduled | null>
  readonly warnings: readonly string[]
}

interface Notes {
  readonly emitted: Emitted[]
  readonly timeouts: Map<string, Scheduled | null>
  readonly warnings: string[]
}

/** Runs the handler, then `onEnter` of every state that is entered. Pure but for what the handlers themselves do. */
export async function react(
  machine: Machine,
  subject: Subject,
  event: { readonly name: string; readonly body: unknown },
  handler: Move<unknown, unknown, string> | Stay<unknown, unknown>,
  ground: Ground,
): Promise<Reaction> {
  const notes: Notes = { emitted: [], timeouts: new Map(), warnings: [] }
  const path: string[] = []
  const bench = { machine, subject, ground, notes }
  let next = await step(bench, subject.state, handler, (handle, tools) => handle(subject.data, event.body, tools))
  if (next === null && subject.state === INITIAL) {
    throw misuse(machine, `${event.name} made no transition, so that no instance begins; decide it as ignored instead`)
  }
  while (next !== null) {
    const state: string = next
    path.push(state)
    if (path.length > sagaLimits.steps) throw misuse(machine, `entered ${sagaLimits.steps} states and found no rest`)
    const enter = machine.enter(state)
    next = enter === null ? null : await step(bench, state, enter, (handle, tools) => handle(subject.data, tools))
  }
  return { path, ...notes }
}

interface Bench {
  readonly machine: Machine
  readonly subject: Subject
  readonly ground: Ground
  readonly notes: Notes
}

/** One function of the author. Answers the state that it wants to go to. */
async function step<H extends (...given: never[]) => void | Promise<void>>(
  bench: Bench,
  state: string,
  cell: H | { readonly to: readonly string[]; readonly handle: H },
  run: (handle: H, tools: MoveTools<string>) => void | Promise<void>,
): Promise<string | null> {
  const [handle, to] = typeof cell === 'function' ? [cell, []] : [cell.handle, cell.to]
  const turn = { open: true, next: null as string | null }
  try {
    await run(handle, toolsOf(bench, state, to, turn))
    return turn.next
  } finally {
    turn.open = false
  }
}

function toolsOf(
  { machine, subject, ground, notes }: Bench,
  state: string,
  to: readonly string[],
  turn: { open: boolean; next: string | null },
): MoveTools<string> {
  const check = () => {
    if (!turn.open) throw misuse(machine, 'used its tools after its handler had ended; wait for everything it begins')
  }
  const emit = (how: Emitted['how'], topic: string, body: unknown, options: SagaSendOptions) => {
    check()
    const { key = subject.id, headers = {} } = options
    if (notes.emitted.length >= sagaLimits.messages) throw misuse(machine, 'emitted more messages than one event may')
    notes.emitted.push({ how, topic, key, body, headers })
  }
  return {
    id: subject.id,
    state,
    now: ground.now,
    tx: ground.tx,
    effectKey: ground.effectKey,
    derive: (name) => ground.derive(name),
    publish: (topic, body, options = {}) => emit('published', topic, body, options),
    send: (topic, body, options = {}) => emit('sent', topic, body, options),
    schedule(event: string, body: unknown, options: ScheduleOptions) {
      check()
      const scheduled = scheduledOf(machine, event, body, options)
      notes.timeouts.set(scheduled.name, scheduled)
      if (notes.timeouts.size > sagaLimits.timeouts) throw misuse(machine, 'scheduled more timeouts than one event may')
    },
    unschedule(name) {
      check()
      notes.timeouts.set(name, null)
    },
    warn(text) {
      check()
      if (notes.warnings.length < sagaLimits.warnings) notes.warnings.push(text.slice(0, limits.failureMessageChars))
    },
    transitionTo(next) {
      check()
      if (turn.next !== null) throw misuse(machine, `went to ${turn.next} and then to ${next} in one handler`)
      if (!to.includes(next)) throw misuse(machine, `went from ${state} to ${next}, which the table does not show`)
      turn.next = next
    },
  }
}

function scheduledOf(machine: Machine, event: string, body: unknown, options: ScheduleOptions): Scheduled {
  const { afterMs, name = event } = options
  if (machine.events.get(event)?.kind !== 'timeout') throw misuse(machine, `scheduled ${event}, which is no timeout`)
  if (!Number.isSafeInteger(afterMs) || afterMs < 0 || afterMs > limits.longestMs) {
    throw misuse(machine, `scheduled ${event} after ${afterMs}, which is no whole number of milliseconds`)
  }
  if (name === '' || exceedsBytes(name, limits.identityPartBytes)) throw misuse(machine, 'named a timeout badly')
  return { name, event, afterMs, body: JSON.stringify(body ?? null) }
}

export function misuse(machine: Machine, what: string): SagaError<'saga_misused'> {
  return new SagaError('saga_misused', `The saga ${machine.name} ${what}.`, { details: { saga: machine.name } })
}
