import { inspect, styleText } from 'node:util'
import type { Replay, ReplayStep } from '../run/replay.ts'

type Colour = Parameters<typeof styleText>[0]

function paint(colour: Colour, text: string): string {
  return process.stdout.isTTY && process.env['NO_COLOR'] === undefined ? styleText(colour, text) : text
}

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

export function summary(replays: readonly Replay[], isolated: boolean): string {
  const count = (verdict: Replay['verdict']) => replays.filter((replay) => replay.verdict === verdict).length
  const unevaluated = replays.reduce((sum, replay) => sum + replay.unevaluated, 0)
  const blocked = replays.reduce((sum, replay) => sum + replay.blocked.length, 0)
  const network = isolated ? 'in a process without a network' : 'in a process of its own, network calls refused'
  return [
    `${replays.length} replayed: ${count('identical')} identical, ${count('identical-but-for-ignored-paths')} but for ignored paths, ${count('diverged')} diverged`,
    `performed 0 actions (${network}; ${blocked} refused); ${unevaluated} steps could not be evaluated`,
  ].join('\n')
}
