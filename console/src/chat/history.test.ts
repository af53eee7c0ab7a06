import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Entry, type Position } from 'onceonly/stream'
import { fromShiViz, toShiViz } from 'onceonly/stream/parts'
import { createHistory } from './history.ts'

interface Die {
  readonly who: number
  readonly region: number
  /** How much of each log they look at before they say something. */
  readonly look: readonly number[]
}

/** People who look around and then say something in some region; what was seen stays seen. */
function talk(dice: readonly Die[]): readonly Entry[] {
  const logs = [0, 0]
  const seen: Position[] = [{}, {}, {}]
  const entries: Entry[] = []
  const contexts = new Map<string, Position>()
  const counts = [0, 0, 0]
  for (const { who, region, look } of dice) {
    const looked: Record<string, number> = { ...seen[who] }
    for (const [at, length] of logs.entries()) {
      const log = `r${at}.1`
      looked[log] = Math.max(looked[log] ?? 0, Math.min(length, look[at] ?? 0))
    }
    // A reader of a message has seen what it answers.
    for (const [place, context] of contexts) {
      const [log = '', n] = place.split('#')
      if ((looked[log] ?? 0) < Number(n)) continue
      for (const [other, count] of Object.entries(context)) looked[other] = Math.max(looked[other] ?? 0, count)
    }
    const log = `r${region}.1`
    const n = (logs[region] ?? 0) + 1
    logs[region] = n
    counts[who] = (counts[who] ?? 0) + 1
    contexts.set(`${log}#${n}`, { ...looked })
    const author = { client: `c${who}`, epoch: 1, cseq: counts[who] ?? 0 }
    entries.push({ ...author, log, n, seen: looked, after: null, replyTo: null, body: said(who), acceptedAtMs: 0 })
    seen[who] = { ...looked, [log]: Math.max(looked[log] ?? 0, 0) }
  }
  return entries
}

const said = (who: number) => ({ by: ['Ada', 'Bob', 'Bob'][who], text: 'hm' })

test('the history is one that ShiViz accepts, and knows what each person had seen', () => {
  const die = fc.record({
    who: fc.nat({ max: 2 }),
    region: fc.nat({ max: 1 }),
    look: fc.array(fc.nat({ max: 20 }), { minLength: 2, maxLength: 2 }),
  })
  fc.assert(
    fc.property(fc.array(die, { maxLength: 20 }), (dice) => {
      const entries = talk(dice)
      const history = createHistory()
      for (const entry of entries) assert.ok(history.add(entry))
      for (const entry of entries) assert.ok(!history.add(entry))
      const read = fromShiViz(toShiViz(history.events))
      for (const [at, { seen }] of entries.entries()) {
        const { clock } = read[at] ?? assert.fail()
        for (const [other, entry] of entries.entries()) {
          const { host, clock: theirs } = read[other] ?? assert.fail()
          if ((seen[entry.log] ?? 0) >= entry.n) assert.ok((clock[host] ?? 0) >= (theirs[host] ?? 0))
        }
      }
    }),
    { numRuns: 200 },
  )
})
