import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DAY, MINUTE } from 'onceonly'
import { given } from 'onceonly/saga'
import { getOrCreateJob } from '../../../../service/imports/jobs.ts'
import { searchImportJob, UPLOAD_TIMEOUT_MS } from '../../../../service/imports/saga.ts'
import {
  faulted,
  metadata,
  notStarted,
  onEveryStage,
  parsed,
  type Replica,
  type Stage,
  saved,
  started,
} from './saga.ts'

const files = ['a.ris', 'b.csv']
const event = { searchId: 's', ...metadata }
const file = { searchId: 's', file: 'a.ris' }

for (const state of ['Completed', 'Error'] as const) {
  test(`all six events are ignored in ${state}`, async () => {
    await given(searchImportJob, { state })
      .when('SearchUploadStarted', event)
      .when('SearchUploadSaved', event)
      .when('ReferenceFileParsingCompleted', { ...file, references: 1, errors: 0 })
      .when('ReferenceFileFaulted', { ...file, reason: 'r' })
      .when('StartParsingFaulted', { ...file, reason: 'r' })
      .when('UploadTimeout', null)
      .expect({
        state,
        emitted: [],
        timeouts: [],
        warnings: [],
        ignored: Object.keys(searchImportJob.events).map((name) => ({ event: name, why: 'terminal' })),
      })
  })
}

test('every pair of state and event is decided, and none of them is a fault', () => {
  const rows = Object.values(searchImportJob.table)
  assert.equal(rows.length, 4)
  for (const row of rows) {
    assert.deepEqual(Object.keys(row).toSorted(), Object.keys(searchImportJob.events).toSorted())
    for (const cell of Object.values(row)) assert.notEqual('kind' in cell && cell.kind, 'fault')
  }
})

onEveryStage('the happy path', async ({ replica: { saga, sagaEvents }, state, statuses, asked }) => {
  await saga.handle(started('s'))
  assert.equal(await state('s'), 'Uploading')
  assert.deepEqual(await asked('s'), [])
  await saga.handle(saved('s'))
  assert.equal(await state('s'), 'Parsing')
  assert.deepEqual(await statuses('s'), ['parsing', 'parsing'])
  assert.deepEqual(await asked('s'), files)
  await saga.handle(parsed('s', 'b.csv'))
  await saga.handle(parsed('s', 'b.csv'))
  assert.equal(await state('s'), 'Parsing')
  await saga.handle(parsed('s', 'a.ris'))
  assert.equal(await state('s'), 'Completed')
  const view = await saga.get('s')
  assert.deepEqual([view?.state, view?.pending], ['Completed', []])
  assert.deepEqual(troubles(sagaEvents), [])
})

onEveryStage('saved first: the import begins with it, and a late start fills in what is missing', async (stage) => {
  const { saga, sagaEvents } = stage.replica
  await saga.handle(saved('s'))
  assert.equal(await stage.state('s'), 'Parsing')
  assert.deepEqual(await stage.asked('s'), files)
  await saga.handle(started('s'))
  assert.deepEqual((await saga.get('s'))?.pending, [], 'nothing is scheduled')
  await saga.handle(started('s', { searchName: ' ' }))
  const warnings = sagaEvents.flatMap((each) => (each.kind === 'warned' ? [each.warning] : []))
  assert.deepEqual(warnings, ['SearchUploadStarted has bad metadata: searchName is blank'])
  assert.equal(await stage.state('s'), 'Parsing')
  assert.deepEqual(await stage.asked('s'), files)
})

onEveryStage('two SearchUploadSaved give one parse command per file', async ({ replica, state, asked }) => {
  await replica.saga.handle(started('s'))
  await replica.saga.handle(saved('s'))
  await replica.saga.handle(saved('s'))
  assert.equal(await state('s'), 'Parsing')
  assert.deepEqual(await asked('s'), files)
})

onEveryStage('four replicas at once, the same news in every order: one job, one command per file', async (stage) => {
  const replicas = [stage.replica, stage.another(), stage.another(), stage.another()]
  for (let round = 0; round < 5; round++) {
    const id = `s-${round}`
    const events = replicas.flatMap(({ saga }, at) => [
      () => (at % 2 === 0 ? saga.handle(started(id)) : saga.handle(saved(id))),
      () => saga.handle(saved(id)),
    ])
    await untilTaken(events)
    assert.equal(await stage.state(id), 'Parsing')
    assert.deepEqual(await stage.asked(id), files)
    await untilTaken(replicas.flatMap(({ saga }) => files.map((name) => () => saga.handle(parsed(id, name)))))
    assert.equal(await stage.state(id), 'Completed')
  }
  assert.deepEqual(
    replicas.flatMap(({ sagaEvents }) => troubles(sagaEvents)),
    [],
  )
  assert.deepEqual(
    replicas.flatMap(({ inboxEvents }) => inboxEvents.filter(({ kind }) => kind === 'failed')),
    [],
  )
})

onEveryStage('the loser of a race is handled again on fresh state, and ignored there', async (stage) => {
  const [one, two] = [stage.replica, stage.another()]
  await one.saga.handle(started('s'))
  await untilTaken([() => one.saga.handle(saved('s')), () => two.saga.handle(saved('s'))])
  const entries = (await one.saga.history('s')).filter((entry) => entry.event === 'SearchUploadSaved')
  assert.deepEqual(
    entries.map(({ did, state }) => `${state} ${did}`),
    ['Uploading handled', 'Parsing ignored'],
  )
  assert.deepEqual(await stage.asked('s'), files)
})

onEveryStage('bad metadata is fatal when everything is saved', async ({ replica: { saga }, state, sql, asked }) => {
  await saga.handle(saved('unknown', { projectId: '' }))
  await saga.handle(started('known'))
  await saga.handle(saved('known', { referenceFiles: ['../a.ris'] }))
  assert.deepEqual([await state('unknown'), await state('known')], ['Error', 'Error'])
  assert.deepEqual([...(await asked('unknown')), ...(await asked('known'))], [])
  const rows = await sql.query<{ reason: string }>('select reason from import_jobs order by search_id')
  assert.deepEqual(
    rows.map(({ reason }) => reason),
    [
      'SearchUploadSaved has bad metadata: referenceFiles[0] is not a plain file name',
      'SearchUploadSaved has bad metadata: projectId is blank',
    ],
  )
})

onEveryStage('bad metadata at the start is a warning', async ({ replica: { saga, sagaEvents }, state }) => {
  await saga.handle(started('s', { searchName: undefined }))
  await saga.handle(started('s', { projectId: 7 }))
  assert.equal(await state('s'), 'Uploading')
  assert.equal(sagaEvents.filter(({ kind }) => kind === 'warned').length, 2)
  await saga.handle(saved('s'))
  assert.equal((await saga.get('s'))?.data.searchName, metadata.searchName)
  assert.equal(await state('s'), 'Parsing')
})

onEveryStage('bad metadata never becomes part of an import, whatever it holds', async (stage) => {
  const { replica, state, asked, sql } = stage
  const { saga, sagaEvents, inboxEvents } = replica
  // Invalid values of the start are missing, and come with the rest.
  await saga.handle(
    started('s', { projectId: 'a\0b', searchName: 'x'.repeat(500), referenceFiles: ['../a.ris', 'a.ris', 'a.ris'] }),
  )
  assert.deepEqual([await state('s'), sagaEvents.filter(({ kind }) => kind === 'warned').length], ['Uploading', 1])
  await saga.handle(saved('s'))
  assert.deepEqual([await state('s'), await asked('s')], ['Parsing', files])
  const [job] = await sql.query('select project_id from import_jobs')
  assert.deepEqual({ ...job }, { project_id: metadata.projectId })
  assert.equal((await saga.get('s'))?.data.searchName, metadata.searchName)
  assert.equal((await sql.query('select 1 from import_job_files')).length, files.length)
  // What no database can hold ends an import like any other bad metadata, and so does a reason that quotes it.
  for (const [at, change] of [
    { searchName: 'a\0b' },
    { projectId: '\ud800' },
    { referenceFiles: ['a\0.ris'] },
    { referenceFiles: Array.from({ length: 10_000 }, (_, n) => `${n}.ris`) },
    { referenceFiles: [{}], projectId: [], searchName: null },
  ].entries()) {
    const receipt = await saga.handle(saved(`bad-${at}`, change))
    assert.deepEqual(
      [receipt.kind, await state(`bad-${at}`)],
      ['handled', 'Error'],
      JSON.stringify(change).slice(0, 99),
    )
  }
  await saga.handle(saved('quoted'))
  await saga.handle(faulted('quoted', 'a.ris', `line 1: \0\ud800${'x'.repeat(5_000)}`))
  assert.equal(await state('quoted'), 'Error')
  // An event without an import is parked at once: a retry cannot change that.
  const lost = [saved('t', { workspaceId: 'a\0b' }), saved('a\0b'), saved('\ud800'), parsed('t', 'a\0.ris')]
  for (const each of lost) assert.equal((await saga.handle(each)).kind, 'parked', each.body)
  assert.deepEqual(
    inboxEvents.filter(({ kind }) => kind === 'failed'),
    [],
  )
})

for (const [name, fault] of [
  ['a file that cannot be read', faulted],
  ['a file that could not be begun', notStarted],
] as const) {
  onEveryStage(`${name} ends the import, with the reason`, async ({ replica: { saga }, state, sql }) => {
    await saga.handle(saved('s'))
    await saga.handle(fault('s', 'a.ris'))
    assert.equal(await state('s'), 'Error')
    const [row] = await sql.query<{ reason: string }>('select reason from import_jobs')
    assert.match(row?.reason ?? '', /^a\.ris: /)
    await saga.handle(parsed('s', 'a.ris'))
    await saga.handle(parsed('s', 'b.csv'))
    assert.equal(await state('s'), 'Error')
  })
}

onEveryStage('events of unknown imports are dropped and reported', async ({ replica: { saga, sagaEvents } }) => {
  for (const each of [parsed('s', 'a.ris'), faulted('s', 'a.ris'), notStarted('s', 'a.ris')]) {
    assert.equal((await saga.handle(each)).kind, 'handled')
  }
  assert.equal(await saga.get('s'), null)
  assert.deepEqual(
    sagaEvents.map((each) => each.kind === 'ignored' && [each.why, each.because]),
    Array.from({ length: 3 }, () => ['no_instance', 'there is no such import']),
  )
})

onEveryStage('too early news of parsing changes nothing', async ({ replica: { saga }, state, asked }) => {
  await saga.handle(started('s'))
  for (const each of [parsed('s', 'a.ris'), faulted('s', 'a.ris'), notStarted('s', 'a.ris')]) await saga.handle(each)
  assert.equal(await state('s'), 'Uploading')
  await saga.handle(saved('s'))
  assert.deepEqual([await state('s'), await asked('s')], ['Parsing', files])
})

onEveryStage('an hour without the last file ends the import', async ({ replica: { saga }, state, sql, advance }) => {
  await saga.handle(started('s'))
  await advance(UPLOAD_TIMEOUT_MS - MINUTE)
  // A duplicate does not buy time.
  await saga.handle(started('s'))
  assert.equal(await saga.upkeep.deliver(), 0)
  await advance(MINUTE)
  assert.equal(await saga.upkeep.deliver(), 1)
  assert.equal(await state('s'), 'Error')
  const [row] = await sql.query<{ reason: string }>('select reason from import_jobs')
  assert.match(row?.reason ?? '', /within 60 minutes/)
  await saga.handle(saved('s'))
  assert.equal(await state('s'), 'Error')
})

onEveryStage('a timeout that is in flight when the files come is harmless', async (stage) => {
  const [one, two] = [stage.replica, stage.another()]
  // 1. Due, not delivered yet: it was unscheduled.
  await one.saga.handle(started('late'))
  await stage.advance(UPLOAD_TIMEOUT_MS)
  await one.saga.handle(saved('late'))
  await one.saga.upkeep.deliver()
  assert.deepEqual([await stage.state('late'), await stage.asked('late')], ['Parsing', files])
  // 2. At the very same time: one of them wins, and nothing is half done.
  for (let round = 0; round < 5; round++) {
    const id = `race-${round}`
    await one.saga.handle(started(id))
    await stage.advance(UPLOAD_TIMEOUT_MS)
    await untilTaken([() => two.saga.handle(saved(id))], one.saga.upkeep.deliver())
    const state = await stage.state(id)
    assert.ok(state === 'Parsing' || state === 'Error', String(state))
    assert.deepEqual(await stage.asked(id), state === 'Parsing' ? files : [])
  }
  assert.deepEqual([...troubles(one.sagaEvents), ...troubles(two.sagaEvents)], [])
})

onEveryStage('a late duplicate after days is ignored, and after the tombstone is gone, too', async (stage) => {
  const { saga, sagaEvents } = stage.replica
  await finish(stage, 's')
  await stage.advance(6 * DAY)
  assert.equal(await saga.upkeep.sweep(), 0)
  await saga.handle(saved('s'))
  await stage.advance(1 * DAY + MINUTE)
  assert.ok((await saga.upkeep.sweep()) > 0)
  assert.equal(await saga.get('s'), null, 'the tombstone is gone by itself')
  for (const late of [started('s'), saved('s'), parsed('s', 'a.ris'), faulted('s', 'a.ris')]) await saga.handle(late)
  assert.equal(await stage.state('s'), 'Completed')
  assert.deepEqual(await stage.asked('s'), files)
  const why = sagaEvents.flatMap((each) => (each.kind === 'ignored' ? [each.why] : []))
  assert.deepEqual(why, ['terminal', 'late_after_ttl', 'late_after_ttl', 'no_instance', 'no_instance'])
})

onEveryStage(
  'the job outlives everything else: a finished one is not parsed again',
  async ({ replica, sql, asked }) => {
    await getOrCreateJob(sql, { searchId: 's', ...metadata }, 1)
    await sql.query(`update import_jobs set state = 'Completed'`)
    await replica.saga.handle(saved('s'))
    assert.deepEqual([(await replica.saga.get('s'))?.state, await asked('s')], ['Completed', []])
  },
)

onEveryStage('a save that fails sends nothing', async ({ replica: { saga }, sql, state, asked }) => {
  await saga.handle(started('s'))
  await sql.query('alter table onceonly_saga_instances rename to hidden')
  const receipt = await saga.handle(saved('s'))
  await sql.query('alter table hidden rename to onceonly_saga_instances')
  assert.equal(receipt.kind, 'parked')
  assert.deepEqual([await state('s'), await asked('s')], ['Uploading', []])
  await saga.handle(saved('s'))
  assert.deepEqual([await state('s'), await asked('s')], ['Parsing', files])
})

/** As large as the one that once made handling so slow that two replicas started the same import. */
const QUESTIONS = 2_023
const DOCUMENT_BYTES = 1_450_000

onEveryStage('the widened race: a project document of 1.45 MB, four replicas, nothing doubles', async (stage) => {
  const question = 'x'.repeat(Math.floor(DOCUMENT_BYTES / QUESTIONS) - 40)
  const questions = Array.from({ length: QUESTIONS }, (_, number) => ({ number, question }))
  const document = JSON.stringify({ questions })
  assert.ok(Math.abs(document.length - DOCUMENT_BYTES) < 50_000, String(document.length))
  await stage.sql.query('insert into import_projects (workspace_id, project_id, document) values (?, ?, ?)', [
    metadata.workspaceId,
    metadata.projectId,
    document,
  ])
  const replicas = [stage.replica, stage.another(), stage.another(), stage.another()]
  await untilTaken(replicas.flatMap(({ saga }) => [() => saga.handle(started('s')), () => saga.handle(saved('s'))]))
  const [job] = await stage.sql.query<{ state: string; questions: number }>('select state, questions from import_jobs')
  assert.deepEqual({ ...job }, { state: 'Parsing', questions: QUESTIONS })
  assert.deepEqual(await stage.asked('s'), files)
  assert.deepEqual(
    replicas.flatMap(({ sagaEvents }) => troubles(sagaEvents)),
    [],
  )
})

async function finish({ replica: { saga }, state }: Stage, searchId: string): Promise<void> {
  await saga.handle(started(searchId))
  await saga.handle(saved(searchId))
  for (const name of files) await saga.handle(parsed(searchId, name))
  assert.equal(await state(searchId), 'Completed')
}

/** As a broker does: redelivers a postponed event until it is taken. */
async function untilTaken(
  deliveries: readonly (() => ReturnType<Replica['saga']['handle']>)[],
  beside: Promise<unknown> = Promise.resolve(),
): Promise<void> {
  const receipts = await Promise.all(deliveries.map((deliver) => deliver()))
  await beside
  const again = deliveries.filter((_, at) => receipts[at]?.kind === 'later')
  if (again.length > 0) await untilTaken(again)
}

/** What an operator would be woken by. */
function troubles(sagaEvents: Replica['sagaEvents']) {
  return sagaEvents.filter(({ kind }) => kind === 'failed' || kind === 'background_failed')
}
