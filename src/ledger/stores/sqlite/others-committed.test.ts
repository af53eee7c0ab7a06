import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { systemTime } from './clock.ts'
import { createEngine } from './engine.ts'
import { CALL, freshPath } from './test-store.ts'

const mark = 'insert into marks (n) values (1)'

async function scene(t: TestContext) {
  const path = freshPath(t)
  const [own, other] = [createEngine(path, systemTime), createEngine(path, systemTime)]
  t.after(async () => {
    await own.stop()
    await other.stop()
  })
  await own.write('batch', CALL, ({ db }) => db.exec('create table marks (n integer)'))
  const commit = (engine: typeof own) => ({
    write: () => engine.write('batch', CALL, ({ db }) => db.exec(mark)),
    quietly: () => engine.writeQuietly(CALL, ({ db }) => db.exec(mark)),
    hold: () =>
      engine.hold(1_000, async ({ db }) => {
        db.exec(mark)
        db.exec('COMMIT')
      }),
  })
  own.othersCommitted()
  return { own, mine: commit(own), theirs: commit(other) }
}

test('what this process commits alone is not taken for a commit of another', async (t) => {
  const { own, mine } = await scene(t)
  await mine.write()
  assert.equal(own.othersCommitted(), false)
  await mine.hold()
  assert.equal(own.othersCommitted(), false)
  await mine.quietly()
  await mine.quietly()
  assert.equal(own.othersCommitted(), false)
  await mine.hold()
  assert.equal(own.othersCommitted(), false)
})

test('a commit of another process is noticed, whatever this one commits beside it', async (t) => {
  const { own, mine, theirs } = await scene(t)
  const ways = ['write', 'quietly', 'hold'] as const
  for (const before of ways) {
    for (const after of ways) {
      // Known to be alone.
      await mine.quietly()
      own.othersCommitted()
      await mine[before]()
      await theirs.write()
      await mine[after]()
      assert.equal(own.othersCommitted(), true, `${before}, ${after}`)
    }
  }
  await theirs.hold()
  assert.equal(own.othersCommitted(), true)
})
