import assert from 'node:assert/strict'
import type { SqlStore } from 'onceonly'
import { createOutbox } from 'onceonly/outbox'
import { migrations } from '../../../../../service/imports/schema.ts'
import { insertSearch } from '../../../../../service/imports/searches.ts'
import { BUCKET, locateAnywhere, notificationOf } from '../../../../../service/imports/uploads/notification.ts'
import { createReceiver, type Receiver } from '../../../../../service/imports/uploads/receive.ts'
import { readNotification } from '../../../../../service/imports/uploads/s3.ts'
import { createLog } from '../../../../../service/logs.ts'
import type { Base } from '../../../../../service/store.ts'
import { onEveryPlace, sqlStore } from '../../../../support/place.ts'
import { quietLedger } from '../../../../support/quiet-ledger.ts'

const CALL = { timeoutMs: 5_000 }
const ROUNDS = 20
/** Every file is there. */
const file = { etag: 'e', bytes: 1, version: null }
const storage: Parameters<typeof createReceiver>[0]['storage'] = {
  kind: 'folder',
  look: async () => file,
  locate: ({ key }) => locateAnywhere(key),
}
const log = createLog({ logLevel: 'error' })
const files = ['a.ris', 'b.ris', 'c.ris']

function baseOf(store: SqlStore): Base {
  const { clock, sql } = store
  return { store, sql, now: () => clock.now(CALL), advance: (ms) => clock.advance(ms, CALL), stop: async () => {} }
}

onEveryPlace('of many last files at once one completes the set, and says so', async (place) => {
  const store = sqlStore(place.store)
  await store.sql.migrate('imports', migrations)
  const outbox = createOutbox({ ledger: quietLedger(store) })
  await outbox.prepare()
  const ledgers = [store, sqlStore(place.another()), sqlStore(place.another())].map((each) => ({
    base: baseOf(each),
    once: quietLedger(each, outbox),
  }))
  const receivers = ledgers.map((parts) => createReceiver({ ...parts, storage, on: () => {}, log }))
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const searchId = `s-${round}`
      const metadata = { workspaceId: 'demo', projectId: 'p', searchName: 's', referenceFiles: files }
      await insertSearch(store.sql, { searchId, ...metadata, createdAt: 1 })
      await Promise.all(receivers.flatMap((receiver) => files.map((name) => untilTaken(receiver, searchId, name))))
    }
    const said = await store.sql.query<{ topic: string; key: string }>('select topic, key from onceonly_outbox_rows')
    assert.deepEqual(new Set(said.map(({ topic }) => topic)), new Set(['SearchUploadSaved']))
    assert.deepEqual(
      said.map(({ key }) => key).toSorted(),
      Array.from({ length: ROUNDS }, (_, round) => `s-${round}`).toSorted(),
    )
  } finally {
    for (const receiver of receivers) await receiver.stop()
    for (const { once } of ledgers) await once.stop()
  }
})

async function untilTaken(receiver: Receiver, searchId: string, name: string): Promise<void> {
  const read = readNotification(
    JSON.stringify(
      notificationOf({ bucket: BUCKET, key: `imports/${searchId}/${name}`, file, storedAt: 1_700_000_000_000 }),
    ),
  )
  assert.ok('created' in read && read.created[0] !== undefined)
  for (let kind = 'later'; kind === 'later'; ) ({ kind } = await receiver.receive(read.created[0]))
}
