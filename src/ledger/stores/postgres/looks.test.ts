import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createLooks, DOZE_MS } from './looks.ts'

/** What looks at a server, as the watch does, under a clock of the test. */
function world(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const stopping = new AbortController()
  t.after(() => stopping.abort())
  let count = 0
  const server = { hasChanged: false, isAwaited: false }
  const looks = createLooks(() => server.isAwaited)
  const look = async () => {
    for (;;) {
      await looks.due(stopping.signal)
      if (stopping.signal.aborted) return
      count += 1
      looks.looked(server.hasChanged)
      server.hasChanged = false
    }
  }
  void look()
  return {
    looks,
    server,
    /** How often it was looked at in this time. */
    async pass(ms: number): Promise<number> {
      const before = count
      for (let at = 0; at < ms; at += 100) {
        t.mock.timers.tick(100)
        await new Promise(setImmediate)
      }
      return count - before
    },
  }
}

test('a quiet server is looked at every five seconds, and every second once it changes', async (t) => {
  const { server, pass } = world(t)
  assert.equal(await pass(3_000), 3)
  assert.equal(await pass(60_000), 12)
  server.hasChanged = true
  await pass(DOZE_MS)
  assert.equal(server.hasChanged, false, 'a change that nothing announced is found within one doze')
  assert.equal(await pass(3_000), 3, 'more commits probably follow')
  assert.equal(await pass(10_000), 2)
})

test('a notification ends a doze', async (t) => {
  const { looks, pass } = world(t)
  await pass(10_000)
  looks.rouse()
  assert.equal(await pass(100), 1)
  assert.equal(await pass(2_900), 2)
})

test('what waits for a record keeps the look at a second', async (t) => {
  const { looks, server, pass } = world(t)
  await pass(10_000)
  server.isAwaited = true
  looks.rouse()
  assert.equal(await pass(100), 1)
  assert.equal(await pass(60_000), 60)
})
