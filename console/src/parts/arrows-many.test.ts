import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drawn } from './arrows.ts'

/** Each host speaks once, and has seen all hosts before it; every read of a clock is counted. */
function chain(hosts: number) {
  let looks = 0
  const history = Array.from({ length: hosts }, (_, at) => {
    const counts = Object.fromEntries(Array.from({ length: at + 1 }, (_unused, host) => [`h${host}`, 1]))
    const clock = new Proxy(counts, {
      get: (target, name) => {
        looks += 1
        return Reflect.get(target, name) as number
      },
    })
    return { host: `h${at}`, clock, text: String(at) }
  })
  return { history, looks: () => looks }
}

test('of many causes only the unseen ones are compared, so that a room of hundreds draws its diagram', () => {
  const hosts = 200
  const { history, looks } = chain(hosts)
  const { arrows, rows } = drawn(history)
  assert.deepEqual(
    arrows,
    Array.from({ length: hosts - 1 }, (_, at) => ({ from: at, to: at + 1 })),
  )
  assert.deepEqual(
    rows,
    history.map((_, at) => at),
  )
  // Everyone with everyone would be millions.
  assert.ok(looks() < 4 * hosts * hosts, `${looks()} looks`)
})
