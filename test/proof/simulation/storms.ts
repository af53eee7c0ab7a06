import type { RunOptions, RunResult } from '../../../lab/simulation/run.ts'
import { simulateLedger } from '../../../lab/simulation/run.ts'

const LINES = 120

// Errors are part of the game here: where each of them was made is not worth the time.
Error.stackTraceLimit = 0

/** Everything that the runs saw together: a simulation in which nothing happens proves nothing. */
export interface Seen {
  effects: number
  crashes: number
  unknowns: number
  lostReports: number
  readonly answers: Map<string, number>
  /** The story of the first run that broke a promise, after which there is none. */
  broken: string | null
}

export async function storms(from: number, seeds: number, options: RunOptions = {}): Promise<Seen> {
  const seen: Seen = { effects: 0, crashes: 0, unknowns: 0, lostReports: 0, answers: new Map(), broken: null }
  for (let seed = from; seed < from + seeds; seed++) {
    const result = await simulateLedger(seed, options)
    if (result.failure !== null) return { ...seen, broken: story(result, options) }
    const { effects, crashes, unknowns, lostReports, answers } = result.tally
    seen.effects += effects
    seen.crashes += crashes
    seen.unknowns += unknowns
    seen.lostReports += lostReports
    for (const [kind, count] of Object.entries(answers)) seen.answers.set(kind, (seen.answers.get(kind) ?? 0) + count)
  }
  return seen
}

/** What each run was, event by event. */
export async function traces(seeds: number): Promise<{ hash: string; events: number }[]> {
  const all: { hash: string; events: number }[] = []
  for (let seed = 1; seed <= seeds; seed++) {
    const { hash, events } = await simulateLedger(seed)
    all.push({ hash, events })
  }
  return all
}

function story({ seed, failure, tail }: RunResult, { reset = false }: RunOptions): string {
  const replay = `npm run lab -- simulation --seed ${seed}${reset ? ' --reset' : ''}`
  return `${tail(LINES).join('\n')}\n\n${failure?.rule}: ${failure?.text}\nReplay: ${replay}`
}
