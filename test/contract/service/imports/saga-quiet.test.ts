import assert from 'node:assert/strict'
import { test } from 'node:test'
import { given } from 'onceonly/saga'
import { searchImportJob } from '../../../../service/imports/saga.ts'
import { metadata, onEveryStage, saved, started } from './saga.ts'

const event = { searchId: 's', ...metadata }

for (const state of ['Uploaded', 'Parsing'] as const) {
  test(`files that are saved again, or an hour that is over, mean nothing in ${state}`, async () => {
    await given(searchImportJob, { state })
      .when('SearchUploadSaved', event)
      .when('UploadTimeout', null)
      .expect({
        state,
        emitted: [],
        timeouts: [],
        warnings: [],
        ignored: ['SearchUploadSaved', 'UploadTimeout'].map((name) => ({ event: name, why: 'declared' })),
      })
  })
}

onEveryStage('the hour is scheduled with the start, and unscheduled when the files have come', async ({ replica }) => {
  const { saga } = replica
  const names = async () => (await saga.get('s'))?.pending.map(({ event: name }) => name)
  await saga.handle(started('s'))
  assert.deepEqual(await names(), ['UploadTimeout'])
  await saga.handle(saved('s'))
  assert.deepEqual(await names(), [])
})
