import { inspect } from 'node:util'
import type { Replay, ReplayStep } from '../../runs/replay.ts'
import { type Colour, paint } from './output.ts'

const colours: Readonly<Record<Replay['verdict'], Colour>> = {
  identical: 'green',
  'identical-but-for-ignored-paths': 'yellow',
  diverged: 'red',
}

/** One run, step by step: what is the same in a word, what differs with both sides. */
export function shown(replay: Replay): string {
  const lines = [`${replay.runId}: ${paint(colours[replay.verdict], replay.verdict)}`]
  for (const step of replay.steps) lines.push(...stepLines(step))
  if (replay.result.identical === false) {
    lines.push(`  ${paint('red', 'result')}`, ...sides(replay.result.original, replay.result.replayed))
  }
  if (replay.blocked.length > 0) lines.push(`  refused while replaying: ${[...new Set(replay.blocked)].join(', ')}`)
  return lines.join('\n')
}

function stepLines(step: ReplayStep): string[] {
  const name = step.tick === 0 ? step.id : `${step.id} #${step.tick + 1}`
  if (step.status === 'same' && step.identical !== false) {
    return [`  ${paint('gray', `= ${name}${step.evaluated ? '' : ' (not evaluated)'}`)}`]
  }
  const mark = { added: '+', removed: '-', changed: '~', moved: '⇅', pending: '…', unreached: '?', same: '~' }[
    step.status
  ]
  const head = `  ${paint(step.status === 'pending' || step.status === 'unreached' ? 'gray' : 'red', `${mark} ${name} ${step.status}`)}`
  const diff = step.diff.flatMap(({ path, original, replayed }) => [`      ${path}`, ...sides(original, replayed)])
  return [head, ...diff]
}

const SHORT = { depth: 4, breakLength: 100, maxStringLength: 400 }

function sides(original: unknown, replayed: unknown): string[] {
  return [
    `        ${paint('red', `- ${inspect(original, SHORT)}`)}`,
    `        ${paint('green', `+ ${inspect(replayed, SHORT)}`)}`,
  ]
}

/** What many replays came to. Only numbers are kept: there may be a hundred thousand of them. */
export interface ReplayTally {
  readonly verdicts: Record<Replay['verdict'], number>
  /** Runs that could not be replayed. */
  failed: number
  /** Runs whose results are not kept any more. */
  gone: number
  blocked: number
  unevaluated: number
}

export function createTally(): ReplayTally {
  const verdicts = { identical: 0, 'identical-but-for-ignored-paths': 0, diverged: 0 }
  return { verdicts, failed: 0, gone: 0, blocked: 0, unevaluated: 0 }
}

export function count(tally: ReplayTally, { verdict, blocked, unevaluated }: Replay): void {
  tally.verdicts[verdict] += 1
  tally.blocked += blocked.length
  tally.unevaluated += unevaluated
}

function replayedOf({ verdicts }: ReplayTally): number {
  return Object.values(verdicts).reduce((sum, number) => sum + number, 0)
}

/** 0 when all are identical, 1 when one is not or could not be replayed, 2 when none could be. */
export function statusOf(tally: ReplayTally): number {
  if (tally.verdicts.diverged > 0) return 1
  return tally.failed === 0 ? 0 : replayedOf(tally) === 0 ? 2 : 1
}

export function summary(tally: ReplayTally, isolated: boolean): string {
  const { verdicts, failed, gone, blocked, unevaluated } = tally
  const network = isolated ? 'in a process without a network' : 'in a process of its own, network calls refused'
  const left = [
    ...(failed === 0 ? [] : [`${failed} could not be replayed`]),
    ...(gone === 0 ? [] : [`${gone} not kept any more`]),
  ]
  return [
    `${replayedOf(tally)} replayed: ${verdicts.identical} identical, ${verdicts['identical-but-for-ignored-paths']} but for ignored paths, ${verdicts.diverged} diverged`,
    ...(left.length === 0 ? [] : [paint('yellow', left.join(', '))]),
    `performed 0 actions (${network}; ${blocked} refused); ${unevaluated} steps could not be evaluated`,
  ].join('\n')
}
