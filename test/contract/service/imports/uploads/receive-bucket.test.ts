import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createLedger } from 'onceonly'
import type { IncomingMessage, Receive } from 'onceonly/inbox'
import { createOutbox } from 'onceonly/outbox'
import { migrations } from '../../../../../service/imports/schema.ts'
import { insertSearch, uploadsOf } from '../../../../../service/imports/searches.ts'
import { startAnnouncer } from '../../../../../service/imports/uploads/announce.ts'
import { openBucket } from '../../../../../service/imports/uploads/bucket.ts'
import { createReceiver } from '../../../../../service/imports/uploads/receive.ts'
import { createLog } from '../../../../../service/logs.ts'
import type { Base } from '../../../../../service/store.ts'
import { createPlace, sqlStore } from '../../../../support/place.ts'
import { byEventBridge, bySns, direct } from '../../../../support/service/imports/bucket-events.ts'
import { BUCKET_OF_TESTS, openTestBucket, PREFIX_OF_TESTS } from '../../../../support/service/imports/s3.ts'

const CALL = { timeoutMs: 60_000 }
const log = createLog({ logLevel: 'fatal' })

test('a bucket that publishes to the broker: absent, away, there, replaced, foreign', async () => {
  await using s3 = await openTestBucket()
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-receive-'))
  const place = await createPlace('sqlite')
  try {
    const store = sqlStore(place.store)
    await store.sql.migrate('imports', migrations)
    const once = createLedger({ store, background: false })
    const outbox = createOutbox({ ledger: once })
    await outbox.prepare()
    const now = () => store.clock.now(CALL)
    const base: Base = { store, sql: store.sql, now, advance: async () => {}, stop: async () => {} }
    const storage = await openBucket({
      client: s3.client,
      place: { name: BUCKET_OF_TESTS, prefix: PREFIX_OF_TESTS },
      spoolFolder: folder,
    })
    const receiver = createReceiver({ once, base, storage, on: () => {}, log })
    let take: Receive | undefined
    await receiver.consume({
      name: 'test',
      redeliveryHorizonMs: 1,
      subscribe: async (_options, receive) => {
        take = receive
        return { stop: async () => {} }
      },
    })
    let ids = 0
    const notify = async (body: object) => {
      const message: IncomingMessage = {
        id: `m${ids++}`,
        topic: 'StorageNotification',
        key: null,
        sequence: null,
        body: JSON.stringify(body),
        headers: {},
        deliveries: 1,
      }
      return (await take?.(message))?.kind
    }
    const received = async () => (await uploadsOf(store.sql, 's')).filter((row) => row.received_at !== null).length
    const metadata = { workspaceId: 'demo', projectId: 'p', searchName: 's', referenceFiles: ['a.ris', 'b.ris'] }
    await insertSearch(store.sql, { searchId: 's', ...metadata, createdAt: await now() })

    const object = { searchId: 's', name: 'a.ris', etag: 'e', bytes: 1 }
    assert.equal(await notify(byEventBridge(object)), 'done')
    assert.equal(await received(), 0)

    async function* content() {
      yield Buffer.from('x')
    }
    const stored = await storage.put({ searchId: 's', name: 'a.ris' }, content())
    assert.ok(stored.kind === 'stored')
    const there = { ...object, etag: stored.file.etag }
    s3.away = true
    assert.equal(await notify(bySns(there)), 'later')
    s3.away = false
    assert.equal(await notify(direct({ ...object, etag: 'older' })), 'done', 'it is not what the bucket has')
    assert.equal(await received(), 0)
    assert.equal(await notify(byEventBridge(there)), 'done')
    assert.equal(await received(), 1)
    assert.equal(await notify(direct({ ...object, etag: 'newer', sequencer: '0099' })), 'done')
    assert.equal((await uploadsOf(store.sql, 's'))[0]?.etag, stored.file.etag)
    assert.equal(await notify(direct({ ...there, bucket: 'foreign' })), 'done', 'it is parked')
    const parked = await store.sql.query('select 1 from onceonly_inbox_dead_letters')
    assert.equal(parked.length, 1)

    // Nothing announced the second one: it is found by looking, and announced as if the bucket had.
    await storage.put({ searchId: 's', name: 'b.ris' }, content())
    const announcer = startAnnouncer({ base, outbox, storage, log })
    assert.equal(await announcer.round(), 1)
    assert.equal(await announcer.round(), 0)
    await announcer.stop()
    const [row] = await store.sql.query<{ body: string }>('select body from onceonly_outbox_rows')
    assert.equal(await notify(JSON.parse(row?.body ?? '{}') as object), 'done')
    assert.equal(await received(), 2)
    const topics = await store.sql.query<{ topic: string }>('select topic from onceonly_outbox_rows order by position')
    assert.deepEqual(
      topics.map(({ topic }) => topic),
      ['StorageNotification', 'SearchUploadSaved'],
    )
    await receiver.stop()
    await once.stop()
  } finally {
    await place.end()
    await rm(folder, { recursive: true, force: true })
  }
})
