import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { OnceError, type SqlStore } from 'onceonly'
import type { IncomingMessage } from 'onceonly/inbox'
import { createOutbox } from 'onceonly/outbox'
import { filesOf, getOrCreateJob, markFilesReceived, startParsing } from '../../../../service/imports/jobs.ts'
import { RECORD_CHARS_MOST } from '../../../../service/imports/parse/entry.ts'
import { ris } from '../../../../service/imports/parse/test-files.ts'
import { CHARS_AT_ONCE, parseFile } from '../../../../service/imports/parse-file.ts'
import { createParser } from '../../../../service/imports/parser.ts'
import { migrations } from '../../../../service/imports/schema.ts'
import { acceptFile, insertSearch } from '../../../../service/imports/searches.ts'
import { openFolder } from '../../../../service/imports/uploads/folder.ts'
import type { Storage, StoredFile } from '../../../../service/imports/uploads/storage.ts'
import type { Base } from '../../../../service/store.ts'
import { until } from '../../../../src/testing/until.ts'
import { onEveryPlace, sqlStore } from '../../../support/place.ts'
import { quietLedger } from '../../../support/quiet-ledger.ts'

const CALL = { timeoutMs: 60_000 }
/** Longer than the lease of the reading process and its grace. */
const LEASE_MS = 36_000

interface Stage {
  readonly base: Base
  readonly storage: Storage
  /** Uploads a file, as far as a parser sees it. */
  put(searchId: string, name: string, content: AsyncIterable<Uint8Array>): Promise<StoredFile>
  /** Files that are to be parsed, without content yet. */
  job(searchId: string, ...files: readonly string[]): Promise<void>
  /** A parser as another process would have it; one that dies sends no more heartbeats. */
  parser(storage?: Storage, store?: SqlStore): ReturnType<typeof createParser> & { die(): Promise<void> }
  /** What is waiting to be published, by topic. */
  said(): Promise<readonly string[]>
}

function onEveryStage(title: string, body: (stage: Stage) => Promise<void>): void {
  onEveryPlace(title, async (place) => {
    const store = sqlStore(place.store)
    const folder = await mkdtemp(join(tmpdir(), 'onceonly-parser-'))
    const base: Base = {
      store,
      sql: store.sql,
      now: () => store.clock.now(CALL),
      advance: (ms) => store.clock.advance(ms, CALL),
      stop: async () => {},
    }
    await store.sql.migrate('imports', migrations)
    const outbox = createOutbox({ ledger: quietLedger(store) })
    await outbox.prepare()
    const storage = await openFolder(folder)
    const opened: { stop(): Promise<void> }[] = []
    try {
      await body({
        base,
        storage,
        async put(searchId, name, text) {
          const stored = await storage.put({ searchId, name }, text)
          assert.ok(stored.kind === 'stored')
          await acceptFile(store.sql, { searchId, name }, stored.file, 1)
          return stored.file
        },
        async job(searchId, ...files) {
          const metadata = { workspaceId: 'demo', projectId: 'p', searchName: 's', referenceFiles: files }
          await insertSearch(store.sql, { searchId, ...metadata, createdAt: 1 })
          await getOrCreateJob(store.sql, { searchId, ...metadata }, 1)
          await markFilesReceived(store.sql, searchId, 1)
          await startParsing(store.sql, searchId, 1)
        },
        parser(given = storage, over = store) {
          const once = quietLedger(over, outbox)
          const parser = createParser({ once, base, outbox, storage: given, on: () => {} })
          opened.push(parser, once)
          return { ...parser, die: () => once.stop() }
        },
        async said() {
          const rows = await store.sql.query<{ topic: string; body: string }>(
            'select topic, body from onceonly_outbox_rows order by position',
          )
          return rows.map(({ topic, body: text }) => `${topic} ${text}`)
        },
      })
    } finally {
      for (const each of opened) await each.stop()
      await rm(folder, { recursive: true, force: true })
    }
  })
}

const command = (searchId: string, file: string, deliveries = 1): IncomingMessage => ({
  id: `parse ${searchId} ${file}`,
  topic: 'StartParsingReferenceFile',
  key: null,
  sequence: null,
  body: JSON.stringify({ searchId, file }),
  headers: {},
  deliveries,
})

async function* content(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}

onEveryStage('copies of a command, also at once, give one result', async ({ put, job, parser, said, base }) => {
  await job('s', 'a.ris')
  await put('s', 'a.ris', content(ris(1) + ris(2)))
  const [one, two] = [parser(), parser()]
  const receipts = await Promise.all([one, two, one, two].map((each) => each.take(command('s', 'a.ris'))))
  for (const { kind } of receipts) assert.ok(kind === 'handled' || kind === 'duplicate' || kind === 'later', kind)
  assert.equal((await one.take(command('s', 'a.ris', 2))).kind, 'duplicate')
  // A second command for the same file, which should not exist.
  assert.equal((await two.take({ ...command('s', 'a.ris'), id: 'other' })).kind, 'handled')
  assert.deepEqual(await said(), [
    'ReferenceFileParsingCompleted {"searchId":"s","file":"a.ris","references":2,"errors":0}',
  ])
  const rows = await base.sql.query('select number from import_references')
  assert.equal(rows.length, 2)
})

onEveryStage('nine copies of a command at once, over five replicas: one of them reads the file', async (stage) => {
  const { storage, put, job, parser, said, base } = stage
  await job('s', 'a.ris')
  await put('s', 'a.ris', content(ris(1) + ris(2)))
  const open = Promise.withResolvers<void>()
  let reads = 0
  const slow: Storage = {
    ...storage,
    async *read(...file) {
      reads++
      await open.promise
      yield* storage.read(...file)
    },
  }
  const replicas = Array.from({ length: 5 }, () => parser(slow))
  // As a broker does: a command that is put off is redelivered, and its deliveries are counted.
  const deliver = async (at: number) => {
    for (let deliveries = 1 + (at % 3); ; deliveries++) {
      const receipt = await replicas[at % replicas.length]?.take(command('s', 'a.ris', deliveries))
      // One replica reads until another one has put the command off.
      open.resolve()
      if (receipt?.kind !== 'later') return receipt?.kind
      // A broker that waits a moment; how long it waits changes nothing.
      await new Promise((resolve) => void setTimeout(resolve, 50))
    }
  }
  const kinds = await Promise.all(Array.from({ length: 9 }, (_, at) => deliver(at)))
  assert.deepEqual(new Set(kinds), new Set(['handled', 'duplicate']))
  assert.deepEqual(await said(), [
    'ReferenceFileParsingCompleted {"searchId":"s","file":"a.ris","references":2,"errors":0}',
  ])
  assert.equal(reads, 1)
  const [row] = await base.sql.query<{ beginnings: number }>('select beginnings from import_job_files')
  assert.equal(Number(row?.beginnings), 1)
})

onEveryStage('a store that is away when the file was read counts against nothing', async (stage) => {
  const { storage, put, job, parser, said, base } = stage
  await job('s', 'a.ris')
  await put('s', 'a.ris', content(ris(1)))
  let away = true
  const run: SqlStore['transactions']['run'] = (work, call) =>
    away ? Promise.reject(new OnceError('store_unavailable', 'It is away.')) : base.store.transactions.run(work, call)
  const one = parser(storage, { ...base.store, transactions: { ...base.store.transactions, run } })
  for (let deliveries = 1; deliveries <= 9; deliveries++) {
    assert.equal((await one.take(command('s', 'a.ris', deliveries))).kind, 'later')
  }
  away = false
  assert.equal((await one.take(command('s', 'a.ris', 10))).kind, 'handled')
  assert.deepEqual(await said(), [
    'ReferenceFileParsingCompleted {"searchId":"s","file":"a.ris","references":1,"errors":0}',
  ])
})

onEveryStage('a process that stops leaves a long file to another one, and nothing is counted', async (stage) => {
  const { storage, put, job, parser, said, base } = stage
  await job('s', 'a.ris')
  await put('s', 'a.ris', content(ris(1)))
  const begun = Promise.withResolvers<void>()
  const endless: Storage = {
    ...storage,
    async *read() {
      for (let number = 1; ; number++) {
        begun.resolve()
        yield Buffer.from(ris(1))
        // So that this process does something else, too.
        await new Promise((resolve) => void setTimeout(resolve, 1))
      }
    },
  }
  const one = parser(endless)
  const taken = one.take(command('s', 'a.ris'))
  await begun.promise
  await one.stop()
  assert.equal((await taken).kind, 'later')
  const [file] = await base.sql.query<{ beginnings: number }>('select beginnings from import_job_files')
  assert.equal(Number(file?.beginnings), 0)
  assert.equal((await parser().take(command('s', 'a.ris', 2))).kind, 'handled')
  assert.deepEqual(await said(), [
    'ReferenceFileParsingCompleted {"searchId":"s","file":"a.ris","references":1,"errors":0}',
  ])
})

onEveryStage('a large file is stored in pieces, and numbered', async ({ put, job, parser, base }) => {
  await job('s', 'a.ris')
  const text = Array.from({ length: 1_001 }, (_, number) => ris(number)).join('')
  await put('s', 'a.ris', content(`${text}TY  - JOUR\nER  -\n`))
  await parser().take(command('s', 'a.ris'))
  const [file] = await filesOf(base.sql, 's')
  assert.deepEqual([file?.status, file?.references, file?.brokenCount], ['parsed', 1_001, 1])
  const [row] = await base.sql.query<{ n: number; last: number }>(
    'select count(*) as n, max(number) as last from import_references',
  )
  assert.deepEqual([Number(row?.n), Number(row?.last)], [1_001, 1_001])
})

onEveryStage('a file that is not there, or cannot be read, is a fault', async ({ put, job, parser, said }) => {
  await job('s', 'a.ris', 'b.ris')
  await put('s', 'b.ris', content('Dear colleague,\n'))
  const one = parser()
  await one.take(command('s', 'a.ris'))
  await one.take(command('s', 'b.ris'))
  assert.deepEqual(await said(), [
    'ReferenceFileFaulted {"searchId":"s","file":"a.ris","reason":"The file is not in the storage"}',
    'ReferenceFileFaulted {"searchId":"s","file":"b.ris","reason":"The file is neither RIS, nor NBIB (PubMed), nor CSV with a title column"}',
  ])
})

onEveryStage('a command that fails too often is reported as not started, once', async (stage) => {
  const { storage, put, job, parser, said, base } = stage
  await job('s', 'a.ris')
  await put('s', 'a.ris', content(ris(1)))
  const broken: Storage = {
    ...storage,
    async *read() {
      yield await Promise.reject(new Error('The disk is on fire'))
    },
  }
  const one = parser(broken)
  let deliveries = 0
  for (let kind = 'later'; kind === 'later'; await base.advance(600_000)) {
    assert.deepEqual(await said(), [])
    ;({ kind } = await one.take(command('s', 'a.ris', ++deliveries)))
    assert.ok(deliveries < 20)
  }
  // A redelivery: its process may have ended before the acknowledgement, or before the report.
  assert.equal((await parser().take(command('s', 'a.ris', deliveries + 1))).kind, 'duplicate')
  assert.deepEqual(await said(), [
    'StartParsingFaulted {"searchId":"s","file":"a.ris","reason":"Parsing was given up (The disk is on fire)"}',
  ])
})

onEveryStage('a file under which every process ends is given up', async ({ storage, put, job, parser, said, base }) => {
  await job('s', 'a.ris')
  await put('s', 'a.ris', content(ris(1)))
  const { promise: never } = Promise.withResolvers<never>()
  const hanging: Storage = {
    ...storage,
    async *read() {
      yield await never
    },
  }
  for (let process = 0; process < 8; process++) {
    const victim = parser(hanging)
    void victim.take(command('s', 'a.ris'))
    await begun(base, process + 1)
    await victim.die()
    assert.equal((await parser().take(command('s', 'a.ris', 2))).kind, 'later', 'its lease is not over')
    await base.advance(LEASE_MS)
  }
  await parser().take(command('s', 'a.ris', 9))
  const [reported] = await said()
  assert.match(reported ?? '', /^ReferenceFileFaulted .*begun 8 times, and never read to its end/)
})

async function begun({ sql }: Base, times: number): Promise<void> {
  await until(
    `the file was begun ${times} times`,
    () => sql.query<{ beginnings: number }>('select beginnings from import_job_files'),
    ([row]) => Number(row?.beginnings) >= times,
  )
}

onEveryStage(
  'commands for unknown imports, and messages that are no commands, block nothing',
  async ({ parser, said }) => {
    const one = parser()
    assert.equal((await one.take(command('unknown', 'a.ris'))).kind, 'handled')
    assert.equal((await one.take({ ...command('s', 'x'), id: 'n', body: '{"searchId":7}' })).kind, 'parked')
    assert.deepEqual(await said(), [
      'StartParsingFaulted {"searchId":"unknown","file":"a.ris","reason":"The file belongs to no import"}',
    ])
  },
)

onEveryStage(
  'the longest records there are fill neither a statement nor the memory',
  async ({ base, storage, put, job }) => {
    const abstract = 'x'.repeat(900_000).replaceAll(/.{1000}/g, (line) => `${line}\n      `)
    const record = (n: number) => `TY  - JOUR\nTI  - Long ${n}\nAB  - ${abstract}\nER  - \n`
    async function* content() {
      for (let n = 0; n < 12; n++) yield Buffer.from(record(n))
    }
    await job('s', 'long.ris')
    const file = await put('s', 'long.ris', content())
    let longest = 0
    const query: Base['sql']['query'] = (text, values = []) => {
      const chars = values.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0)
      longest = Math.max(longest, chars)
      return base.sql.query(text, values)
    }
    const read = await parseFile(
      { base: { ...base, sql: { ...base.sql, query } }, storage },
      { searchId: 's', name: 'long.ris', file },
    )
    assert.deepEqual([read.references, read.brokenCount], [12, 0])
    assert.ok(longest > 800_000 && longest < CHARS_AT_ONCE + RECORD_CHARS_MOST, String(longest))
  },
)
