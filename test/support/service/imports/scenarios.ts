import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ris } from '../../../../service/imports/parse/test-files.ts'
import { until } from '../../../../src/testing/until.ts'
import type { Cluster, TestServer } from '../cluster.ts'
import {
  commandsIn,
  ended,
  inWorlds,
  notification,
  notify,
  type ReferencePage,
  referencesOf,
  scandals,
  see,
  startImport,
  untilSeen,
  upload,
  type WorldName,
} from './imports.ts'

const minutes = 60_000
const csv = 'title,year\nOne,1999\n\nTwo,2001\nThree\n'
const nbib = 'PMID- 1\nTI  - A paper\n\nPMID- 2\nTI  - Another one\n'

/** What imports promise, in the worlds that the tier has time for. */
export function describeImports(names: readonly WorldName[]): void {
  inWorlds(names, 'imports', (open) => {
    let cluster: Cluster
    let one: TestServer
    let two: TestServer
    before(async () => {
      cluster = await open(2)
      ;[one, two] = cluster.servers as [TestServer, TestServer]
    })
    after(() => assert.deepEqual(scandals(cluster.servers), []))

    test('the happy path: files of every format, uploaded to both servers', async () => {
      const started = await startImport(one, ['a.ris', 'b c.csv', 'd.nbib'])
      const first = await see(two, started.searchId)
      assert.equal(first.state, 'Uploading')
      assert.deepEqual(
        first.files.map(({ status }) => status),
        ['waiting', 'waiting', 'waiting'],
      )
      assert.equal((await upload(one, started, 'a.ris', ris(1) + ris(2))).status, 201)
      assert.equal((await upload(two, started, 'b c.csv', csv)).status, 201)
      assert.equal((await upload(one, started, 'd.nbib', nbib)).status, 201)
      const seen = await ended(two, started.searchId)
      assert.equal(seen.state, 'Completed', JSON.stringify(seen))
      assert.deepEqual(seen.files, [
        { name: 'a.ris', status: 'parsed', references: 2, errors: [], errorCount: 0 },
        {
          name: 'b c.csv',
          status: 'parsed',
          references: 2,
          errors: [{ line: 5, reason: 'has 1 fields where the header has 2' }],
          errorCount: 1,
        },
        { name: 'd.nbib', status: 'parsed', references: 2, errors: [], errorCount: 0 },
      ])
      assert.deepEqual([seen.references, commandsIn(seen)], [6, 3])
      const pages: ReferencePage[] = []
      for (let cursor: string | null = ''; cursor !== null; cursor = pages.at(-1)?.cursor ?? null) {
        pages.push(await referencesOf(one, started.searchId, `?limit=3${cursor === '' ? '' : `&cursor=${cursor}`}`))
      }
      assert.deepEqual(
        pages.map(({ references }) => references.map(({ file, number, title }) => `${file} ${number} ${title}`)),
        [
          ['a.ris 1 The effect of retries, part 1', 'a.ris 2 The effect of retries, part 2', 'b c.csv 1 One'],
          ['b c.csv 2 Two', 'd.nbib 1 A paper', 'd.nbib 2 Another one'],
        ],
      )
      const ofOne = await referencesOf(two, started.searchId, '?file=b%20c.csv')
      assert.deepEqual([ofOne.references.map(({ title }) => title), ofOne.cursor], [['One', 'Two'], null])
    })

    for (const replicas of [2, 4]) {
      test(`duplicate notifications, at once and late, on ${replicas} servers: one job, one command per file`, async () => {
        const more = await Promise.all(Array.from({ length: replicas - 2 }, () => cluster.add()))
        await duplicateNotifications([one, two, ...more])
        await Promise.all(more.map((server) => server.stop()))
      })
    }

    async function duplicateNotifications(servers: readonly TestServer[]): Promise<void> {
      const started = await startImport(two, ['a.ris', 'b.ris'])
      await Promise.all(['a.ris', 'b.ris'].map((name) => upload(one, started, name, ris(1))))
      const storm = [...servers, ...servers].flatMap((server, at) =>
        ['a.ris', 'b.ris'].map((name) => notify(server, notification(started.searchId, name, 'e', `00${at % 2}`))),
      )
      for (const answer of await Promise.all(storm)) assert.equal(answer.status, 200, answer.text)
      const seen = await ended(one, started.searchId)
      assert.deepEqual([seen.state, commandsIn(seen)], ['Completed', 2])
      const late = await notify(two, notification(started.searchId, 'a.ris', 'e', '001'))
      assert.deepEqual([late.status, late.body], [200, { received: 0, duplicates: 1, ignored: 0 }])
      // A new notification about the same file.
      assert.equal((await notify(two, notification(started.searchId, 'a.ris', 'e', '00F'))).status, 200)
      assert.deepEqual(await see(two, started.searchId), seen)
      assert.deepEqual(scandals(servers), [])
    }

    test('an upload may be repeated; other content is refused, and the first stays', async () => {
      const started = await startImport(one, ['a.ris', 'b.ris'])
      const first = await upload(one, started, 'a.ris', ris(1))
      const again = await upload(two, started, 'a.ris', ris(1))
      assert.deepEqual([first.status, again.status], [201, 200])
      assert.deepEqual(again.body, first.body)
      const other = await upload(two, started, 'a.ris', ris(2))
      assert.deepEqual([other.status, other.body.type], [409, '/problems/file-already-uploaded'])
      await upload(two, started, 'b.ris', ris(3))
      const seen = await ended(one, started.searchId)
      assert.deepEqual([seen.state, seen.references, commandsIn(seen)], ['Completed', 2, 2])
      // Even now.
      assert.equal((await upload(one, started, 'b.ris', ris(3))).status, 200)
      assert.deepEqual(await see(two, started.searchId), seen)
    })

    test('a file that cannot be read ends the import with the reason', async () => {
      const started = await startImport(one, ['a.ris', 'holiday.jpg'])
      await upload(one, started, 'a.ris', ris(1))
      await upload(two, started, 'holiday.jpg', new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 0, 0, 0]))
      const seen = await ended(two, started.searchId)
      assert.deepEqual([seen.state, seen.reason], ['Error', 'holiday.jpg: The file is not text'])
      const settled = await untilSeen('no file is being read', one, started.searchId, ({ files }) =>
        files.every(({ status }) => status !== 'parsing'),
      )
      assert.deepEqual(settled.files.map(({ status }) => status).toSorted(), ['failed', 'parsed'])
      assert.deepEqual(settled.files[1]?.errors, [{ line: null, reason: 'The file is not text' }])
      const { references } = await referencesOf(two, started.searchId)
      assert.deepEqual(
        references.map(({ file }) => file),
        ['a.ris'],
      )
    })

    test('an import whose files never come ends after an hour, and takes no more', async () => {
      const started = await startImport(one, ['a.ris', 'b.ris'])
      await upload(one, started, 'a.ris', ris(1))
      await untilSeen('the import has begun', two, started.searchId, ({ history }) => history.length > 0)
      // The storage's notification has to arrive before the hour is over, or this file counts as missing, too.
      const arrived = `select name from import_uploads where search_id = '${started.searchId}' and received_at is not null`
      await until('the first file is known', async () => (await cluster.sql(arrived)).length === 1)
      await cluster.advance(61 * minutes)
      const seen = await ended(two, started.searchId)
      assert.equal(seen.state, 'Error')
      assert.match(seen.reason ?? '', /within 60 minutes; missing: b\.ris$/)
      const late = await upload(one, started, 'b.ris', ris(1))
      assert.deepEqual([late.status, late.body.type], [409, '/problems/import-closed'])
      assert.equal(commandsIn(await see(one, started.searchId)), 0)
    })

    test('a key makes the start safe to repeat; without one every request is another import', async () => {
      const body = { projectId: 'p-1', searchName: 'Keyed', files: ['a.ris'] }
      const first = await one.post('/api/imports', body, { key: `start-${cluster.servers[0]?.url}` })
      const again = await two.post('/api/imports', body, { key: `start-${cluster.servers[0]?.url}` })
      assert.deepEqual([first.status, again.status, again.text], [201, 201, first.text])
      assert.equal(again.headers.get('idempotent-replayed'), 'true')
      assert.equal(first.headers.get('location'), `/api/imports/${String(first.body['searchId'])}`)
      const other = await two.post('/api/imports', body)
      assert.notEqual(other.body['searchId'], first.body['searchId'])
    })
  })
}
