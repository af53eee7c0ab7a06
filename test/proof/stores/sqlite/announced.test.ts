import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemTime } from '../../../../src/ledger/stores/sqlite/clock.ts'
import { createEngine } from '../../../../src/ledger/stores/sqlite/engine.ts'
import { createFileWatch, type FileWatch } from '../../../../src/ledger/stores/sqlite/file-watch.ts'
import { createWatchers } from '../../../../src/ledger/stores/sqlite/watch.ts'
import { until } from '../../../../src/testing/until.ts'

const CALL = { timeoutMs: 60_000 }
/** Longer than the test: whatever is heard was announced. */
const CHECK_MS = 3_600_000
const COMMITS = 3

test('commits of another process are heard while the file sleeps, before any poll that checks on it', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-announced-'))
  const path = join(folder, 'records.db')
  const [own, other] = [createEngine(path, systemTime), createEngine(path, systemTime)]
  let polls = 0
  let file: FileWatch | null = null
  const counted: typeof own = {
    ...own,
    read: (call, work) => {
      polls += 1
      return own.read(call, work)
    },
  }
  const makeFileWatch: typeof createFileWatch = (name, changed) => (file = createFileWatch(name, changed))
  const watchers = createWatchers(counted, makeFileWatch, CHECK_MS)
  t.after(async () => {
    watchers.stop()
    await own.stop()
    await other.stop()
    await rm(folder, { recursive: true, force: true })
  })
  await own.write('batch', CALL, ({ db }) => db.exec('create table marks (n integer)'))
  let heard = 0
  await watchers.listen('due', () => (heard += 1)).ready
  const commit = () => other.write('batch', CALL, ({ db }) => db.exec('insert into marks (n) values (1)'))
  // From the first announcement on polls are rare. A commit that a poll found before its announcement came does not count.
  await until('the file sleeps', async () => {
    await commit()
    return (await asleep()) || (await asleep()) || (await asleep())
  })
  for (let n = 1; n <= COMMITS; n++) {
    const before = heard
    await commit()
    await until(`commit ${n} is heard`, () => heard > before)
    await until('the file sleeps again', asleep)
  }

  /** No poll in a second: those of a quiet file whose changes are not announced come five times as often. */
  async function asleep(): Promise<boolean> {
    const before = polls
    await new Promise((resolve) => void setTimeout(resolve, 1_000))
    return file?.isArmed() === true && polls === before
  }
})
