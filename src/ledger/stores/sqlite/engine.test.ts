import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemTime } from './clock.ts'
import type { Connection } from './connection.ts'
import { createEngine } from './engine.ts'
import { CALL, freshPath } from './test-store.ts'

const NORMAL = 1
const FULL = 2
const syncOf = ({ db }: Connection) => db.prepare('PRAGMA synchronous').get()?.['synchronous']

test('upkeep does not wait for the disk, and everything else does, whatever becomes of upkeep', async (t) => {
  const engine = createEngine(freshPath(t), systemTime)
  t.after(() => engine.stop())
  assert.equal(await engine.write('batch', CALL, syncOf), FULL)
  assert.equal(await engine.write('upkeep', CALL, syncOf), NORMAL)
  assert.equal(await engine.write('batch', CALL, syncOf), FULL)
  const failing = engine.write('upkeep', CALL, () => {
    throw new Error('No.')
  })
  await assert.rejects(failing, /No/)
  assert.equal(await engine.write('batch', CALL, syncOf), FULL)
  assert.equal(await engine.hold(1_000, async (connection) => syncOf(connection)), FULL)
})

test('a caller that is alone waits for the disk, also after renewals that did not', async (t) => {
  const engine = createEngine(freshPath(t), systemTime)
  t.after(() => engine.stop())
  assert.equal(await engine.write('batch', CALL, syncOf), FULL)
  for (const attempt of [engine.tryAlone, engine.tryWrite]) {
    assert.equal(await engine.writeQuietly(CALL, syncOf), NORMAL)
    assert.equal(await engine.writeQuietly(CALL, syncOf), NORMAL)
    assert.equal(attempt(syncOf, null), FULL)
  }
})

test('upkeep that finds the writer taken leaves it as durable as it was', async (t) => {
  const path = freshPath(t)
  const [engine, other] = [createEngine(path, systemTime), createEngine(path, systemTime)]
  t.after(() => Promise.all([engine.stop(), other.stop()]))
  await engine.write('batch', CALL, syncOf)
  const [taken, free] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = other.hold(1_000, async () => {
    taken.resolve()
    await free.promise
  })
  await taken.promise
  await assert.rejects(engine.write('upkeep', { timeoutMs: 20 }, syncOf))
  free.resolve()
  await holding
  assert.equal(await engine.write('batch', CALL, syncOf), FULL)
})
