import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { createLedger, final } from 'onceonly'
import { createInbox } from 'onceonly/inbox'
import { Client } from 'pg'
import { startCommands } from '../../support/admin/cli/commands.ts'
import {
  type Cluster,
  onEveryPlace,
  openCluster,
  type PlaceName,
  type TestServer,
} from '../../support/service/cluster.ts'
import { foundIn, foundInFolder, secrets, work } from '../../support/service/secrets.ts'

/** A gateway's, and what goes with the sending. */
const elsewhere: readonly string[] = ['amount', 'gatewayKey', 'upstream', 'attachment', 'attachmentName']

/** What a store without encryption shows, past every interface. */
async function shown(cluster: Cluster, place: PlaceName): Promise<readonly string[]> {
  if (place === 'sqlite') return foundInFolder(cluster.folder)
  const client = new Client({ connectionString: cluster.address })
  await client.connect()
  try {
    const { rows } = await client.query<{ name: string }>(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = 'public'`,
    )
    const found: string[] = []
    for (const { name } of rows) {
      const table = await client.query<{ row: string }>(`select t::text as row from ${name} as t`)
      found.push(...foundIn(Buffer.from(table.rows.map(({ row }) => row).join('\n')), name))
    }
    return [...found, ...foundInFolder(cluster.folder)]
  } finally {
    await client.end()
  }
}

const nameIn = (found: string) => found.split(' ')[0] ?? ''

/** SQLite keeps what was removed until its room is needed. */
function vacuum(file: string): void {
  const db = new DatabaseSync(file)
  db.exec('VACUUM; PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
}

/** A message that a consumer gave up, and one that no broker took. */
async function makeDeadLetters({ store }: Cluster): Promise<void> {
  const ledger = createLedger({ store, background: false })
  const inbox = createInbox({ ledger, consumer: 'escalations.notices', background: false })
  const body = JSON.stringify({ tenant: 'demo', caseId: 'CASE-100', reason: secrets.escalationReason })
  const message = { id: 'm-1', topic: 'CaseEscalated', key: null, sequence: null, headers: {}, deliveries: 1, body }
  await inbox.receive(message, () => Promise.reject(final(new Error(secrets.escalationReason))))
  await inbox.stop()
  await ledger.stop()
  await store.sql?.query(
    `insert into onceonly_outbox_dead
       (position, partition, number, added_at, bytes, line, id, topic, key, headers, body, parked_at, attempts, reason)
     values (1000000, 0, null, 1, 1, 'i:m-2', 'm-2', 'CaseEscalated', null, '{}', ?, 1, 9, 'no route')`,
    [body],
  )
}

onEveryPlace('erasing on a server', (place) => {
  test('leaves nothing of a workspace in the store, and nothing of its keys and rights', async () => {
    await using cluster = await openCluster(place)
    const [server] = cluster.servers as [TestServer]
    await work(server)
    await makeDeadLetters(cluster)
    const before = new Set((await shown(cluster, place)).map(nameIn))
    const missing = Object.keys(secrets).filter((name) => !before.has(name) && !elsewhere.includes(name))
    assert.deepEqual(missing, [], 'all of it is there to be found')
    const act = (given: object) => server.asOperator('POST', '/api/console/actions', { action: 'erase', ...given })
    const person = await act({ what: 'person', id: `+1${secrets.phone}` })
    assert.equal(person.status, 200, person.text)
    for (const id of ['demo', 'bank']) {
      const preview = JSON.parse((await act({ what: 'workspace', id, preview: true })).text)
      const erased = await act({ what: 'workspace', id })
      assert.equal(erased.status, 200, erased.text)
      assert.deepEqual(JSON.parse(erased.text).result.own, preview.result.own, 'what the preview showed')
    }
    assert.equal((await server.get('/api/messages/any')).status, 401, 'its keys are gone')
    assert.match((await server.console('/audit')).text, /digest/)
    await server.stop()
    if (place === 'sqlite') vacuum(cluster.address)
    // Keys stay taken until their window ends.
    const left = (await shown(cluster, place)).filter((each) => nameIn(each) !== 'key')
    assert.deepEqual(left, [])
  })

  test('is refused on the command line, which knows the records alone', async () => {
    await using cluster = await openCluster(place)
    const [server] = cluster.servers as [TestServer]
    const sent = await server.send({ message: 'kept', recipientPhone: '+15550001111' }, { key: 'kept-1' })
    assert.equal(sent.status, 201, sent.text)
    await using commands = startCommands(process.cwd(), { ...process.env, ONCEONLY_STORE: cluster.address })
    const erase = ['erase', 'workspace', 'demo', '--yes']
    const refused = await commands.run(...erase)
    assert.equal(refused.status, 2)
    assert.match(refused.stderr, /A program keeps more in this store .*messages.*Nothing was erased/)
    const replayed = await server.send({ message: 'kept', recipientPhone: '+15550001111' }, { key: 'kept-1' })
    assert.equal(replayed.status, 201, 'nothing was erased')
    const records = await commands.run(...erase, '--records-only')
    assert.equal(records.status, 0, records.stderr)
  })
})
