import type { RunContext } from 'onceonly/run'
import { defineRun } from 'onceonly/run'
import { MINUTE, SECOND } from '../../../../src/ledger/core/limits.ts'
import type { Random } from '../../../../src/testing/random.ts'
import type { SimulatedProcess } from '../../../support/simulation.ts'
import type { ChannelKind, Outside } from './provider.ts'
import { channelKinds } from './provider.ts'

/** One thing that a run does; a run is a list of them. */
export type Part =
  | { readonly kind: 'plain' | 'emit' | 'label'; readonly id: string }
  /** Declares a clean-up for the case of a cancel. */
  | { readonly kind: 'undo'; readonly id: string; readonly parts: readonly Part[] }
  /** In a queue, or at once; ended with its parent, or not. */
  | {
      readonly kind: 'child'
      readonly id: string
      readonly ms: number
      readonly waits?: boolean
      readonly stays?: boolean
    }
  | { readonly kind: 'send'; readonly id: string; readonly channel: ChannelKind; readonly cursed: boolean }
  | { readonly kind: 'sleep'; readonly id: string; readonly ms: number }
  | { readonly kind: 'wait'; readonly id: string; readonly timeoutMs?: number }
  | { readonly kind: 'all' | 'race'; readonly id: string; readonly branches: Readonly<Record<string, readonly Part[]>> }

const ATTEMPTS = 4
const retry = { attempts: ATTEMPTS, baseMs: 20 * SECOND, capMs: 3 * MINUTE }
const timeoutMs = 30 * SECOND

export function makeProgram(random: Random, depth = 2, prefix = ''): readonly Part[] {
  return Array.from({ length: 1 + random.below(3) }, (_, index) => makePart(random, depth, `${prefix}${index}`))
}

function makePart(random: Random, depth: number, id: string): Part {
  const kind = random.pick([
    'plain',
    'send',
    'send',
    'send',
    'send',
    'sleep',
    'wait',
    'all',
    'race',
    'approval',
    'emit',
    'label',
    'undo',
    'undo',
    'child',
    'child',
  ] as const)
  switch (kind) {
    case 'plain':
    case 'emit':
    case 'label':
    case 'wait':
      return { kind, id }
    case 'child':
      return {
        kind,
        id,
        ms: random.pick([0, SECOND, 2 * MINUTE]),
        waits: random.chance(0.5),
        stays: random.chance(0.3),
      }
    case 'send': {
      return { kind, id, channel: random.pick(channelKinds), cursed: random.chance(0.05) }
    }
    case 'sleep':
      return { kind, id, ms: random.pick([0, SECOND, 2 * MINUTE, 12 * MINUTE]) }
    case 'all':
    case 'race': {
      if (depth === 0) return { kind: 'plain', id }
      const branches = ['left', 'right'].map((name) => [name, makeProgram(random, depth - 1, `${id}${name}`)] as const)
      return { kind, id, branches: Object.fromEntries(branches) }
    }
    case 'approval':
      return makeApproval(random, id)
    case 'undo':
      return { kind, id, parts: makeUndo(random, id) }
  }
}

/** Short programs that declare clean-ups, label themselves, and wait in between: where cancels and forks find them. */
export function makeUndone(random: Random): readonly Part[] {
  const undo = (id: string): Part => ({ kind: 'undo', id, parts: makeUndo(random, id) })
  const send = (id: string): Part => ({ kind: 'send', id, channel: random.pick(channelKinds), cursed: false })
  const nap = (id: string): Part => ({ kind: 'sleep', id, ms: random.pick([2 * MINUTE, 12 * MINUTE]) })
  const race: Part = { kind: 'race', id: 'r', branches: { left: [nap('rl'), send('rs')], right: [send('rr')] } }
  const child: Part = { kind: 'child', id: 'c', ms: 12 * MINUTE, stays: random.chance(0.3) }
  const left = random.pick([race, race, child])
  const beside: Part = { kind: 'all', id: 'b', branches: { left: [left], right: [nap('bn'), send('bs')] } }
  const middle = random.pick([beside, beside, beside, child, nap('m')])
  return [undo('u'), { kind: 'label', id: 'l' }, send('s'), undo('v'), middle, nap('n'), send('t')]
}

function makeUndo(random: Random, id: string): readonly Part[] {
  const send: Part = { kind: 'send', id: `${id}undo`, channel: random.pick(channelKinds), cursed: false }
  const before: Part = random.pick([
    { kind: 'plain', id: `${id}before` },
    { kind: 'sleep', id: `${id}before`, ms: 2 * MINUTE },
    { kind: 'child', id: `${id}before`, ms: 2 * MINUTE },
  ])
  return random.chance(0.5) ? [send] : [before, send]
}

/** A signal, or two timers, against time: a race between waits, with or without a step before them. */
function makeApproval(random: Random, id: string): Part {
  const before = (name: string): Part[] => (random.chance(0.3) ? [{ kind: 'plain', id: `${id}${name}before` }] : [])
  const timer = (name: string): Part => ({
    kind: 'sleep',
    id: `${id}${name}`,
    ms: random.pick([2 * MINUTE, 12 * MINUTE]),
  })
  const wait = (name: string): Part => {
    const timeoutMs = random.pick([null, MINUTE, 9 * MINUTE])
    return { kind: 'wait', id: `${id}${name}`, ...(timeoutMs === null ? {} : { timeoutMs }) }
  }
  const makers = random.pick([
    [wait, timer],
    [timer, wait],
    [timer, timer],
  ] as const)
  const [left, right] = makers.map((make, index) => [...before(`${index}`), make(`${index}`)])
  return { kind: 'race', id, branches: { left: left ?? [], right: right ?? [] } }
}

/** The parts of a program, with those in its branches. */
export function everyPart(parts: readonly Part[]): readonly Part[] {
  return parts.flatMap((part) => {
    if ('parts' in part) return [part, ...everyPart(part.parts)]
    return 'branches' in part ? [part, ...Object.values(part.branches).flatMap(everyPart)] : [part]
  })
}

/** The run that a run repeats or continues: `run 1` of `run 1#2` and `run 1.fork`; null for a child. */
export function originOf(runId: string): string | null {
  return runId.includes('~') ? null : (/^[^.#]*/.exec(runId)?.[0] ?? null)
}

export interface Stage {
  readonly process: SimulatedProcess
  readonly outside: Outside
  /** What a run knows at a place: it must be the same for every worker and every replay. */
  saw(place: string, value: unknown): void
}

/** What children do: they fall asleep, and their result can be recognized. */
export const leaf = defineRun('leaf', async (run, { id, ms }: { readonly id: string; readonly ms: number }) => {
  await run.sleep('rest', ms)
  return run.step('answer', () => `${id} of ${run.runId}`)
})

/** Follows a program. Its ids are unique, so that sends can be distinguished without the keys. */
export async function follow(run: RunContext, parts: readonly Part[], stage: Stage): Promise<unknown> {
  const known: unknown[] = [run.now()]
  for (const part of parts) {
    known.push(await followPart(run, part, stage))
    stage.saw(`${run.runId} after ${part.id}`, known)
  }
  return [known.length, run.uuid()]
}

async function followPart(run: RunContext, part: Part, stage: Stage): Promise<unknown> {
  switch (part.kind) {
    case 'plain': {
      const id = run.uuid()
      return run.step(part.id, { retry, timeoutMs }, () => id)
    }
    case 'send': {
      const channel = stage.outside.channel(stage.process, part.channel)
      const letter = { step: `${run.runId} ${part.id}`, cursed: part.cursed }
      return run.step(part.id, { channel, retry, timeoutMs }, () => letter)
    }
    case 'emit':
      return run.emit(part.id, part.id)
    case 'label':
      return run.setAttributes({ [`${part.id} of ${run.runId.replaceAll('#', '+')}`]: part.id, last: part.id })
    case 'undo':
      return run.onCancel(part.id, (cleanUp) => follow(cleanUp, part.parts, stage))
    case 'child':
      return run.child(leaf, {
        input: { id: part.id, ms: part.ms },
        ifParentEnds: part.stays === true ? 'continue' : 'cancel',
        ...(part.waits === true ? { queue: 'aside' } : {}),
      })
    case 'sleep':
      return run.sleep(part.id, part.ms)
    case 'wait':
      return run.waitFor(part.id, part.timeoutMs === undefined ? {} : { timeoutMs: part.timeoutMs })
    case 'all':
    case 'race': {
      const branches = Object.entries(part.branches).map(
        ([name, below]) => [name, (branch: RunContext) => follow(branch, below, stage)] as const,
      )
      return run[part.kind](part.id, Object.fromEntries(branches))
    }
  }
}
