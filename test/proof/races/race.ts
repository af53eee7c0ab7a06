import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HistoryEvent } from 'onceonly/testing'
import { checkHistory } from 'onceonly/testing'
import type { ChildLine } from '../../support/crew.ts'
import { createCrew } from '../../support/crew.ts'
import type { ArenaAddress, ArenaKind } from './arena.ts'
import { createArena, openArena } from './arena.ts'

export interface RaceTask {
  readonly address: ArenaAddress
  readonly process: number
  readonly attempts: number
  readonly identities: number
  readonly historyFile: string
  readonly effectsFile: string
  readonly answersFile: string
}

export interface Finished extends ChildLine {
  readonly kind: 'finished'
  readonly counts: Readonly<Record<string, number>>
}

export interface RaceOptions {
  readonly kind: ArenaKind
  readonly processes: number
  readonly attemptsPerProcess: number
  readonly identities: number
  readonly progress?: (line: string) => void
}

/** What came of a race, with everything checked that must hold; it throws when something does not. */
export interface RaceResult {
  readonly effects: number
  readonly answers: number
  readonly events: number
  readonly counts: Readonly<Record<string, number>>
  readonly seconds: number
}

export async function race(options: RaceOptions): Promise<RaceResult> {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-race-'))
  const arena = await createArena(options.kind, folder)
  try {
    return await raceIn(folder, arena.address, options)
  } finally {
    await arena.end()
    await rm(folder, { recursive: true, force: true })
  }
}

async function raceIn(folder: string, address: ArenaAddress, options: RaceOptions): Promise<RaceResult> {
  const files = { effectsFile: join(folder, 'effects'), answersFile: join(folder, 'answers') }
  const historyFiles = Array.from({ length: options.processes }, (_, index) => join(folder, `history-${index}`))
  // The schema is there before the start, so that no process is late because it made it.
  const opened = openArena(address)
  await opened.store.clock.now({ timeoutMs: 60_000 })
  await opened.close()
  const { counts, ended } = await run(address, options, files, historyFiles)
  const effects = linesOf<{ key: string; token: string }>(files.effectsFile)
  const answers = linesOf<{ key: string; token: string }>(files.answersFile)
  const events = historyFiles.flatMap((file) => linesOf<HistoryEvent>(file))
  checkEffects(effects, answers, options.identities)
  options.progress?.(`checking ${events.length} recorded calls`)
  const verdict = checkHistory(events)
  assert.ok(
    verdict.fits,
    verdict.fits ? '' : `no order fits: ${JSON.stringify(verdict.problems[0], null, 1).slice(0, 4_000)}`,
  )
  assert.equal(verdict.identities, options.identities)
  return { effects: effects.length, answers: answers.length, events: events.length, counts, seconds: ended }
}

async function run(
  address: ArenaAddress,
  { processes, attemptsPerProcess, identities, progress }: RaceOptions,
  files: { readonly effectsFile: string; readonly answersFile: string },
  historyFiles: readonly string[],
): Promise<{ counts: Record<string, number>; ended: number }> {
  const crew = createCrew()
  try {
    const racers = historyFiles.map((historyFile, index) => {
      const task: RaceTask = {
        address,
        process: index,
        attempts: attemptsPerProcess,
        identities,
        historyFile,
        ...files,
      }
      return crew.start({ file: import.meta.resolve('./racer.ts'), task })
    })
    for (const racer of racers) await racer.heard('ready')
    const startedMs = performance.now()
    for (const racer of racers) racer.order('go')
    const counts: Record<string, number> = {}
    await Promise.all(
      racers.map(async (racer, index) => {
        const { counts: own } = await racer.heard<Finished>('finished')
        progress?.(`process ${index} of ${processes} has finished: ${JSON.stringify(own)}`)
        for (const [what, times] of Object.entries(own)) counts[what] = (counts[what] ?? 0) + times
      }),
    )
    return { counts, ended: (performance.now() - startedMs) / 1_000 }
  } finally {
    await crew.end()
  }
}

/** One effect for every identity, and every caller was given its result. */
function checkEffects(
  effects: readonly { key: string; token: string }[],
  answers: readonly { key: string; token: string }[],
  identities: number,
): void {
  const tokens = new Map(effects.map(({ key, token }) => [key, token]))
  assert.equal(effects.length, identities, 'one effect for each identity')
  assert.equal(tokens.size, identities, 'and none twice')
  for (const { key, token } of answers) assert.equal(token, tokens.get(key), `an answer for ${key}`)
}

function linesOf<T>(file: string): T[] {
  const text = readFileSync(file, 'utf8')
  return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as T]))
}
