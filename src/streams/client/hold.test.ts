import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IDBFactory } from 'fake-indexeddb'
import { isOnceError } from '../../ledger/core/errors.ts'
import { type HoldOptions, holdStorage, type LocalStorage, type WebLocks } from './hold.ts'
import type { IndexedDb } from './indexeddb.ts'
import { createIndexedDbStorage } from './indexeddb-storage.ts'
import { listIndexedDbStorages, removeIndexedDbStorage } from './left-storages.ts'
import type { PendingSend } from './ports.ts'
import { createClientRuntime } from './runtime.ts'

const MINUTE = 60_000

/** A browser with several tabs, whose clock the test sets. */
function openSite() {
  const notes = new Map<string, string>()
  const storage: LocalStorage = {
    getItem: (key) => notes.get(key) ?? null,
    setItem: (key, value) => void notes.set(key, value),
    removeItem: (key) => void notes.delete(key),
  }
  const indexedDB = new IDBFactory() as unknown as IndexedDb
  const site = { indexedDB, nowMs: 0, tab }

  function tab() {
    const page = new EventTarget()
    const beats: (() => void)[] = []
    let lost = 0
    const options: HoldOptions = {
      locks: null,
      indexedDB,
      localStorage: storage,
      page: page as unknown as NonNullable<HoldOptions['page']>,
      nowMs: () => site.nowMs,
      onLost: () => void (lost += 1),
      runtime: {
        ...createClientRuntime(),
        setTimer(_ms, fire) {
          beats.push(fire)
          return { cancel: () => void beats.splice(beats.indexOf(fire), 1) }
        },
      },
    }
    return {
      hold: (name: string) => holdStorage(name, options),
      /** What its timers would do. */
      async beat() {
        for (const fire of beats.splice(0)) fire()
        await new Promise((resolve) => setTimeout(resolve, 20))
      },
      say: (event: 'pagehide' | 'pageshow') => void page.dispatchEvent(new Event(event)),
      get lost() {
        return lost
      },
    }
  }
  return site
}

function message(body: unknown): PendingSend {
  return { seen: {}, replyTo: null, body }
}

test('without locks a storage has one tab, for as long as that lives', async () => {
  const site = openSite()
  const [first, second] = [site.tab(), site.tab()]
  assert.notEqual(await first.hold('ann'), null)
  assert.equal(await second.hold('ann'), null)
  assert.notEqual(await second.hold('another'), null)
  // A hidden tab beats once a minute: that is often enough.
  for (let minute = 0; minute < 5; minute++) {
    site.nowMs += MINUTE
    await first.beat()
    assert.equal(await second.hold('ann'), null)
  }
  site.nowMs += 3 * MINUTE
  assert.notEqual(await second.hold('ann'), null)
  await first.beat()
  assert.equal(first.lost, 1)
})

test('of tabs that want one storage at once one gets it', async () => {
  const site = openSite()
  for (let round = 0; round < 10; round++) {
    const held = await Promise.all(Array.from({ length: 5 }, () => site.tab().hold(`storage ${round}`)))
    assert.equal(held.filter((each) => each !== null).length, 1)
  }
})

test('a tab that closes or releases its lock makes no other tab wait', async () => {
  const site = openSite()
  const [before, after, third] = [site.tab(), site.tab(), site.tab()]
  await before.hold('ann')
  before.say('pagehide')
  const held = await after.hold('ann')
  assert.notEqual(held, null)
  // A page that comes back out of the browser's cache has lost its storage.
  before.say('pageshow')
  await before.beat()
  assert.equal(before.lost, 1)
  assert.equal(await third.hold('ann'), null)
  await held?.release()
  assert.notEqual(await third.hold('ann'), null)
})

test('a clock that was set back makes no lease endless', async () => {
  const site = openSite()
  site.nowMs = 1_000 * MINUTE
  await site.tab().hold('ann')
  site.nowMs = 0
  assert.notEqual(await site.tab().hold('ann'), null)
})

test('where there are locks, the browser decides', async () => {
  const held = new Map<string, Promise<unknown>>()
  const locks: WebLocks = {
    async request(name, _options, granted) {
      if (held.has(name)) return granted(null)
      const over = Promise.resolve(granted({})).then(() => held.delete(name))
      held.set(name, over)
      return over
    },
  }
  const first = await holdStorage('ann', { locks })
  assert.equal(await holdStorage('ann', { locks }), null)
  await first?.release()
  assert.notEqual(await holdStorage('ann', { locks }), null)
})

test('two tabs that open one storage all the same never mix what is pending', async () => {
  const { indexedDB } = openSite()
  const [first, second] = [0, 1].map(() => createIndexedDbStorage({ name: 'ann', indexedDB }))
  assert.ok(first && second)
  await first.load()
  await first.identify({ client: 'ann', epoch: 1, generation: 1 })
  await first.save({ number: 1, message: message('of the first') })
  const record = await second.load()
  assert.deepEqual(
    record?.pending.map(({ message: { body } }) => body),
    ['of the first'],
  )
  const late = first.save({ number: 2, message: message('of the first, too late') })
  await assert.rejects(late, (error) => isOnceError(error, 'storage_taken'))
  await second.save({ number: 2, message: message('of the second') })
  const after = await createIndexedDbStorage({ name: 'ann', indexedDB }).load()
  assert.deepEqual(
    after?.pending.map(({ message: { body } }) => body),
    ['of the first', 'of the second'],
  )
})

test('storages are listed and removed, also one that another tab still has open', async () => {
  const { indexedDB } = openSite()
  const storage = createIndexedDbStorage({ name: 'ann', indexedDB })
  await storage.load()
  await storage.identify({ client: 'ann', epoch: 1, generation: 1 })
  assert.deepEqual(await listIndexedDbStorages(indexedDB), ['ann'])
  await removeIndexedDbStorage('ann', indexedDB)
  assert.deepEqual(await listIndexedDbStorages(indexedDB), [])
  assert.deepEqual(await createIndexedDbStorage({ name: 'ann', indexedDB }).load(), null)
})
