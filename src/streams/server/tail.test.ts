import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Tail } from './tail.ts'

test('a tail keeps the newest, and never more than twice its bounds, in number and in bytes', () => {
  const tail = new Tail<string>({ most: 4, mostBytes: 100, sizeOf: (item) => item.length }, 0)
  const kept = () => {
    let back = 0
    while (tail.after(tail.head - back - 1, 1) !== null) back += 1
    assert.deepEqual(tail.newest(1_000), tail.after(tail.head - back, 1_000))
    return tail.newest(1_000)
  }
  for (let n = 0; n < 100; n++) {
    tail.push('x'.repeat((n * 37) % 90))
    const bytes = kept().reduce((sum, item) => sum + item.length, 0)
    assert.ok(kept().length < 8 && bytes < 200, `${kept().length} items, ${bytes} bytes`)
    assert.equal(kept().at(-1)?.length, (n * 37) % 90)
  }
  assert.equal(tail.head, 100)
  tail.push('x'.repeat(1_000))
  assert.deepEqual([tail.head, tail.after(101, 1), tail.after(100, 1)], [101, [], null])
  tail.restart(200)
  assert.deepEqual([tail.head, tail.after(200, 1), tail.after(199, 1)], [200, [], null])
})
