import { isDeepStrictEqual } from 'node:util'
import { decodeValue, encodeValue } from '../../ledger/core/codec.ts'
import type { SqlTx } from '../../ledger/store/sql.ts'
import type { BodyOf, SagaDefinition, Specs } from './definition.ts'
import { SagaError } from './errors.ts'
import { notAccepted } from './handle.ts'
import type { IgnoredWhy } from './history.ts'
import type { Machine } from './machine.ts'
import { INITIAL, machineOf } from './machine.ts'
import type { Emitted, Reaction, Scheduled } from './react.ts'
import { react } from './react.ts'

/** The result of an instance, and what it sent on the way. */
export interface Rehearsal<Data = unknown, State extends string = string> {
  readonly state: State | typeof INITIAL
  readonly data: Data
  readonly emitted: readonly Emitted[]
  /** Timeouts that are still scheduled, and how long from now. */
  readonly timeouts: readonly { readonly name: string; readonly event: string; readonly inMs: number }[]
  readonly ignored: readonly { readonly event: string; readonly why: IgnoredWhy }[]
  /** Events that still wait for a transition. */
  readonly deferred: readonly string[]
  readonly warnings: readonly string[]
}

export interface GivenOptions<Data, State extends string> {
  /** Where it stands. It has not begun, when left out. */
  readonly state?: State
  readonly data?: Data
  readonly id?: string
  /** For handlers that write: whatever stands for the database, or for your ORM's handle, in this test. */
  readonly tx?: object
  readonly now?: number
}

/** Given an instance, when these events come, then expect this: without a store, a broker or a clock. */
export interface Given<Data, Events extends Specs, State extends string> {
  when<E extends keyof Events & string>(event: E, body: BodyOf<Events[E]>): Given<Data, Events, State>
  /** Time passes, and the timeouts that fall due in it fire in their order. */
  elapse(ms: number): Given<Data, Events, State>
  /** Runs it. Rejects with what a handler threw, or with `saga_not_accepted` where the table says fault. */
  outcome(): Promise<Rehearsal<Data, State>>
  /** Runs it, and throws when one of the named parts is not as expected. */
  expect(expected: Partial<Rehearsal<Data, State>>): Promise<Rehearsal<Data, State>>
}

type Step = { readonly event: string; readonly body: unknown } | { readonly ms: number }

/** Rehearses a saga without a database: `given(saga).when(event, body).expect({ state })`. */
export function given<Data, Events extends Specs, State extends string, Terminal extends string>(
  definition: SagaDefinition<Data, Events, State, Terminal>,
  options: GivenOptions<Data, State | Terminal> = {},
): Given<Data, Events, State | Terminal> {
  const machine = machineOf(definition)
  const after = (steps: readonly Step[]): Given<Data, Events, State | Terminal> => {
    const outcome = async () => (await rehearse(machine, options, steps)) as Rehearsal<Data, State | Terminal>
    return {
      when: (event, body) => after([...steps, { event, body }]),
      elapse: (ms) => after([...steps, { ms }]),
      outcome,
      async expect(expected) {
        const result = await outcome()
        for (const part of Object.keys(expected) as (keyof typeof expected)[]) {
          if (!isDeepStrictEqual(result[part], expected[part])) throw unexpected(part, expected[part], result[part])
        }
        return result
      },
    }
  }
  return after([])
}

function unexpected(part: string, expected: unknown, actual: unknown): Error {
  const error = new Error(`\`${part}\` is ${JSON.stringify(actual)}, and not ${JSON.stringify(expected)}.`)
  // Test runners show the difference of an error that carries both sides.
  return Object.assign(error, { name: 'AssertionError', code: 'ERR_ASSERTION', expected, actual })
}

interface Stage {
  readonly machine: Machine
  readonly id: string
  readonly tx: object
  now: number
  state: string
  data: unknown
  readonly emitted: Emitted[]
  readonly timeouts: Map<string, Scheduled & { readonly dueAt: number }>
  readonly ignored: { event: string; why: IgnoredWhy }[]
  deferred: { readonly event: string; readonly body: unknown }[]
  readonly warnings: string[]
}

async function rehearse(
  machine: Machine,
  { id = 'instance', state = INITIAL, data, tx = noTx, now = 0 }: GivenOptions<unknown, string>,
  steps: readonly Step[],
): Promise<Rehearsal> {
  const stage: Stage = {
    machine,
    id,
    tx,
    now,
    state,
    // A copy as the store would give it: what handlers change must not reach the test's own objects.
    data: copyOf(data === undefined ? machine.data(id) : data),
    emitted: [],
    timeouts: new Map(),
    ignored: [],
    deferred: [],
    warnings: [],
  }
  for (const step of steps) await ('ms' in step ? elapse(stage, step.ms) : arrive(stage, step.event, step.body))
  const timeouts = [...stage.timeouts.values()].map(({ name, event, dueAt }) => ({
    name,
    event,
    inMs: dueAt - stage.now,
  }))
  return { ...stage, timeouts, deferred: stage.deferred.map(({ event }) => event) }
}

function copyOf(data: unknown): unknown {
  const encoded = encodeValue(data)
  if ('problem' in encoded) throw new SagaError('saga_misused', `This cannot be stored: ${encoded.problem}.`)
  return decodeValue(encoded.text)
}

async function arrive(stage: Stage, event: string, body: unknown): Promise<void> {
  const { machine, state, id } = stage
  if (machine.isTerminal(state)) return void stage.ignored.push({ event, why: 'terminal' })
  const cell = machine.cell(state, event)
  if (typeof cell === 'object' && 'kind' in cell) {
    switch (cell.kind) {
      case 'ignore':
        return void stage.ignored.push({ event, why: state === INITIAL ? 'no_instance' : 'declared' })
      case 'defer':
        return void stage.deferred.push({ event, body })
      case 'fault':
        throw notAccepted(machine, { id, event }, state, cell.because)
    }
  }
  const subject = { id, state, data: copyOf(stage.data) }
  const key = `rehearsal-${stage.emitted.length}`
  const ground = { now: stage.now, tx: stage.tx as SqlTx, effectKey: key, derive: (name: string) => `${key}-${name}` }
  const reaction = await react(machine, subject, { name: event, body: copyOf(body) }, cell, ground)
  stage.data = copyOf(subject.data)
  apply(stage, reaction)
  if (reaction.path.length === 0) return
  const waiting = stage.deferred
  stage.deferred = []
  for (const each of waiting) await arrive(stage, each.event, each.body)
}

function apply(stage: Stage, { path, emitted, timeouts, warnings }: Reaction): void {
  stage.state = path.at(-1) ?? stage.state
  stage.emitted.push(...emitted)
  stage.warnings.push(...warnings)
  for (const [name, to] of timeouts) {
    if (to === null) stage.timeouts.delete(name)
    else stage.timeouts.set(name, { ...to, dueAt: stage.now + to.afterMs })
  }
  if (stage.machine.isTerminal(stage.state)) stage.timeouts.clear()
}

async function elapse(stage: Stage, ms: number): Promise<void> {
  const until = stage.now + ms
  for (;;) {
    const [next] = [...stage.timeouts.values()].toSorted((a, b) => a.dueAt - b.dueAt)
    if (next === undefined || next.dueAt > until) break
    stage.now = Math.max(stage.now, next.dueAt)
    stage.timeouts.delete(next.name)
    await arrive(stage, next.event, JSON.parse(next.body))
  }
  stage.now = until
}

const noTx: SqlTx = {
  query: () => Promise.reject(new SagaError('saga_misused', 'This rehearsal has no `tx`: pass one.')),
  inSavepoint: (work) => work(),
}
