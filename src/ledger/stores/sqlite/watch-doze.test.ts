import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Engine } from './engine.ts'
import { createWatchers } from './watch.ts'

/** An engine whose file changes when the test says so, under a clock of the test. */
function world(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let version = 1
  let polls = 0
  let isOther = true
  let wrote = (_topics: ReadonlySet<string>, _isQuiet: boolean) => {}
  const reader = {
    statements: { prepared: () => ({ get: () => ({ data_version: version }) }) },
    meta: { read: () => ({ wakes: 0 }) },
  }
  const engine = {
    read: async (_call: unknown, work: (given: unknown) => unknown) => {
      polls += 1
      return work(reader)
    },
    onWrite: (listener: typeof wrote) => void (wrote = listener),
    othersCommitted: () => isOther,
  }
  const file = { isArmed: false, announces: true, changed: () => {} }
  const watchers = createWatchers(engine as unknown as Engine, (_path, changed) => {
    file.changed = changed
    return {
      isArmed: () => file.isArmed,
      arm: () => void (file.isArmed = true),
      disarm: () => void (file.isArmed = false),
    }
  })
  t.after(() => watchers.stop())
  return {
    watchers,
    write: (...topics: readonly string[]) => wrote(new Set(topics), false),
    renew: () => wrote(new Set(), true),
    /** From now on only this process changes the file. */
    alone: () => void (isOther = false),
    change: () => {
      version += 1
      if (file.isArmed && file.announces) file.changed()
    },
    file,
    /** How often the file was looked at in this time. */
    async pass(ms: number): Promise<number> {
      const before = polls
      for (let at = 0; at < ms; at += 10) {
        t.mock.timers.tick(10)
        await new Promise(setImmediate)
      }
      return polls - before
    },
  }
}

test('a quiet file whose changes are not announced is looked at five times a second, and as often as ever once it changes', async (t) => {
  const { watchers, pass, change, file } = world(t)
  file.announces = false
  let heard = 0
  await watchers.listen('due', () => (heard += 1)).ready
  await pass(2_000)
  heard = 0
  assert.equal(await pass(10_000), 50)
  change()
  await pass(200)
  assert.equal(heard, 1, 'a commit of another process is heard within 200 ms')
  assert.equal(await pass(500), 25, 'more commits probably follow')
})

test('a quiet file whose changes are announced is looked at rarely, and at once when it changes', async (t) => {
  const { watchers, pass, change } = world(t)
  let heard = 0
  await watchers.listen('due', () => (heard += 1)).ready
  await pass(2_000)
  change()
  await pass(2_000)
  heard = 0
  assert.equal(await pass(60_000), 12)
  change()
  await pass(10)
  assert.equal(heard, 1)
  assert.equal(await pass(500), 25, 'more commits probably follow')
})

test('a commit that comes some time after its log was written is heard soon', async (t) => {
  const { watchers, pass, change, file } = world(t)
  let heard = 0
  await watchers.listen('due', () => (heard += 1)).ready
  await pass(2_000)
  change()
  await pass(10_000)
  heard = 0
  file.changed()
  await pass(300)
  file.announces = false
  change()
  await pass(20)
  assert.equal(heard, 1)
  await pass(2_000)
  assert.equal(await pass(10_000), 2, 'it was announced')
  file.changed()
  await pass(2_000)
  assert.equal(await pass(10_000), 2, 'one that does not come is not waited for')
})

test('a renewal of this process takes one poll, and nothing is heard of it', async (t) => {
  const { watchers, pass, change, renew, alone } = world(t)
  let heard = 0
  await watchers.listen('due', () => (heard += 1)).ready
  await pass(2_000)
  change()
  await pass(10_000)
  alone()
  heard = 0
  renew()
  change()
  assert.equal(await pass(1_000), 1)
  await pass(5_000)
  assert.equal(heard, 0)
})

test('a change that was not announced is found all the same, and from then on the file is looked at more often', async (t) => {
  const { watchers, pass, change, file } = world(t)
  let heard = 0
  await watchers.listen('due', () => (heard += 1)).ready
  await pass(2_000)
  change()
  await pass(10_000)
  heard = 0
  file.announces = false
  change()
  await pass(5_000)
  assert.equal(heard, 1)
  await pass(2_000)
  assert.equal(await pass(10_000), 50)
})

test('a process that writes much does not listen to announcements of its own writes', async (t) => {
  const { watchers, pass, change, write, alone, file } = world(t)
  await watchers.listen('due', () => {}).ready
  await pass(2_000)
  alone()
  change()
  write()
  await pass(100)
  assert.ok(file.isArmed)
  for (let n = 0; n < 10; n++) {
    change()
    write()
  }
  await pass(100)
  assert.ok(!file.isArmed)
  await pass(1_000)
  assert.ok(file.isArmed)
})

test('a commit of this process that wakes no topic is heard a second later, unless it changed nothing', async (t) => {
  const { watchers, pass, change, write, alone } = world(t)
  let heard: string[] = []
  await watchers.listen('due', (cause) => heard.push(cause)).ready
  await pass(2_000)
  alone()
  heard = []
  for (let n = 0; n < 10; n++) {
    change()
    write('other')
    await pass(50)
  }
  assert.deepEqual(heard, [])
  await pass(500)
  assert.deepEqual(heard, ['change'])
  write()
  await pass(2_000)
  assert.deepEqual(heard, ['change'])
})

test('a write of this process is noticed as soon as ever, and does not keep a file awake that it did not change', async (t) => {
  const { watchers, pass, change, write } = world(t)
  let heard = 0
  await watchers.listen('due', () => (heard += 1)).ready
  await pass(2_000)
  heard = 0
  change()
  write()
  await pass(20)
  assert.equal(heard, 1)
  await pass(2_000)
  write()
  assert.equal(await pass(20), 1)
  await pass(1_000)
  assert.equal(await pass(10_000), 2)
})

test('a commit of this process wakes the listeners of its topics, at once, and no others', async (t) => {
  const { watchers, pass, change, write, alone } = world(t)
  alone()
  let heard = 0
  await watchers.listen('due', () => (heard += 1)).ready
  change()
  write()
  write('other')
  await pass(100)
  assert.equal(heard, 0)
  write('due')
  await Promise.resolve()
  assert.equal(heard, 1)
})

test('a caller that waits for a record keeps the watch awake', async (t) => {
  const { watchers, pass } = world(t)
  await watchers.listen('due', () => {}).ready
  await pass(2_000)
  const watch = watchers.watch(() => {})
  await watch.ready
  await pass(20)
  assert.equal(await pass(10_000), 500)
  watch.stop()
  await pass(40)
  assert.equal(await pass(1_000), 5, 'no change was ever announced')
})
