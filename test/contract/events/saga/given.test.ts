import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HOUR, isOnceError, MINUTE } from 'onceonly'
import { given } from 'onceonly/saga'
import { defineImports, UPLOAD_MS } from '../../../support/events/saga/imports.ts'

const definition = defineImports()
const files = ['a', 'b']
const s1 = { searchId: 's1' }

test('given nothing, when a search starts, then it uploads under a timeout', async () => {
  await given(definition)
    .when('Started', s1)
    .expect({
      state: 'Uploading',
      emitted: [],
      timeouts: [{ name: 'UploadTimeout', event: 'UploadTimeout', inMs: UPLOAD_MS }],
    })
})

test('given an upload, when its time is over, then it failed, and a second late event is ignored', async () => {
  const late = given(definition)
    .when('Started', s1)
    .elapse(HOUR - 1)
  await late.expect({ state: 'Uploading' })
  const after = await late
    .elapse(1)
    .when('Saved', { ...s1, files })
    .outcome()
  assert.deepEqual([after.state, after.data.reason, after.timeouts], ['Error', 'too slow', []])
  assert.deepEqual(after.ignored, [{ event: 'Saved', why: 'terminal' }])
})

test('a timeout that was replaced fires at its new time, one that was unscheduled never', async () => {
  const twice = given(definition)
    .when('Started', s1)
    .elapse(30 * MINUTE)
    .when('Started', s1)
  await twice.elapse(45 * MINUTE).expect({ state: 'Uploading', warnings: ['started twice'] })
  assert.equal((await twice.elapse(HOUR).outcome()).data.reason, 'too slow, again')
  await twice
    .when('Saved', { ...s1, files })
    .elapse(5 * HOUR)
    .expect({ state: 'Parsing', timeouts: [] })
})

test('deferred events are delivered again after the next transition', async () => {
  const early = given(definition, { id: 's1' })
    .when('FileParsed', { ...s1, name: 'b' })
    .when('Started', s1)
  await early.expect({ state: 'Uploading', deferred: ['FileParsed'] })
  const after = await early
    .when('Saved', { ...s1, files })
    .when('FileParsed', { ...s1, name: 'a' })
    .outcome()
  assert.deepEqual([after.state, after.deferred], ['Completed', []])
  assert.deepEqual(
    after.emitted.map(({ how, topic, key, body }) => [how, topic, key, body]),
    [
      ['sent', 'StartParsing', 's1', { searchId: 's1', file: 'a' }],
      ['sent', 'StartParsing', 's1', { searchId: 's1', file: 'b' }],
      ['published', 'ImportCompleted', 's1', { searchId: 's1', files: 2 }],
    ],
  )
})

test('a rehearsal may begin in the middle, and leaves the data it was given alone', async () => {
  const data = { files, parsed: new Set(['a']), reason: null }
  const middle = given(definition, { state: 'Parsing', data })
  await middle.when('FileParsed', { ...s1, name: 'b' }).expect({ state: 'Completed' })
  assert.deepEqual(data.parsed, new Set(['a']))
})

test('what the table calls a fault is an error that names everything', async () => {
  await assert.rejects(
    given(definition, { id: 's9' })
      .when('Faulted', { ...s1, reason: 'x' })
      .outcome(),
    (error) => {
      assert.ok(isOnceError(error, 'saga_not_accepted'))
      assert.deepEqual(error.details, { saga: 'imports', id: 's9', state: 'initial', event: 'Faulted' })
      return true
    },
  )
})

test('an expectation that is not met shows both sides', async () => {
  const wrong = given(definition).when('Started', s1).expect({ state: 'Parsing' })
  await assert.rejects(wrong, { name: 'AssertionError', actual: 'Uploading', expected: 'Parsing' })
})
