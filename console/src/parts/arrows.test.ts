import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { fromShiViz, type ShivizEvent, toShiViz, VectorClock } from 'onceonly/stream/parts'
import { drawn } from './arrows.ts'

/** Hosts that send to each other by a list of dice: each event is a local step, or takes the clock of another event. */
function play(dice: readonly (readonly [number, number])[]): readonly ShivizEvent[] {
  const clocks = ['a', 'b', 'c', 'd'].map((node) => new VectorClock(node))
  const history: ShivizEvent[] = []
  for (const [who, from] of dice) {
    const clock = clocks[who % clocks.length]
    if (clock === undefined) continue
    const source = history[from]
    const counts = source === undefined || source.host === clock.node ? clock.tick() : clock.receive(source.clock)
    history.push({ host: clock.node, clock: counts, text: `${history.length}` })
  }
  return history
}

/** Straight from the meaning: an event causes another when it is before it and nothing lies between. */
function meant(history: readonly ShivizEvent[]): Set<string> {
  const isBefore = (a: ShivizEvent, b: ShivizEvent) => a !== b && (b.clock[a.host] ?? 0) >= (a.clock[a.host] ?? 0)
  const arrows = new Set<string>()
  for (const [to, event] of history.entries()) {
    const past = history.filter((other) => isBefore(other, event))
    for (const cause of past) {
      const isDirect = !past.some((other) => isBefore(cause, other))
      if (isDirect && cause.host !== event.host) arrows.add(`${history.indexOf(cause)}→${to}`)
    }
  }
  return arrows
}

test('the arrows are those between direct causes, and survive the way through a ShiViz log', () => {
  const die = fc.tuple(fc.nat({ max: 3 }), fc.nat({ max: 40 }))
  fc.assert(
    fc.property(fc.array(die, { maxLength: 40 }), (dice) => {
      const history = play(dice)
      const { arrows, rows } = drawn(fromShiViz(toShiViz(history)))
      assert.deepEqual(new Set(arrows.map(({ from, to }) => `${from}→${to}`)), meant(history))
      for (const { from, to } of arrows) assert.ok((rows[from] ?? 0) < (rows[to] ?? 0))
    }),
    { numRuns: 300 },
  )
})
