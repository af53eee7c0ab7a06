import assert from 'node:assert/strict'
import { test } from 'node:test'
import { transition } from '../core/transition.ts'
import { createRemembered } from './remembered.ts'
import { claimOf, DONE, settleOf } from './test-requests.ts'

const NOW = 1_000

function granted(key: string, fence: number) {
  const request = claimOf(key)
  const { record, decision } = transition(null, request, { now: NOW, fence })
  assert.ok(record !== null && decision.kind === 'first_attempt')
  return { record, grant: decision.lease }
}

test('a record that is missing, older, or open again is lost, once', () => {
  const remembered = createRemembered()
  const [missing, older, open, kept] = ['missing', 'older', 'open', 'kept'].map((key, at) => granted(key, 10 + at))
  assert.ok(missing && older && open && kept)
  for (const { record } of [missing, older, open, kept]) remembered.note(record)
  const settled = transition(open.record, settleOf(open.grant, DONE), { now: NOW, fence: 99 })
  remembered.note(settled.record)
  const present = [
    { id: older.record.id, fence: 5, open: true },
    { id: open.record.id, fence: open.record.fence, open: true },
    { id: kept.record.id, fence: kept.record.fence, open: true },
  ]
  assert.deepEqual(
    new Set(remembered.lost(present, NOW)),
    new Set([missing, older, open].map(({ record }) => record.id)),
  )
  assert.deepEqual(remembered.lost(present, NOW), [], 'each is named once')
})

test('a record past its end may be missing', () => {
  const remembered = createRemembered()
  const { record, grant } = granted('a', 10)
  const settled = transition(record, settleOf(grant, DONE), { now: NOW, fence: 99 }).record
  remembered.note(record)
  remembered.note(settled)
  assert.ok(settled?.state === 'succeeded')
  assert.deepEqual(remembered.lost([], settled.goneAt), [])
  assert.deepEqual(remembered.lost([], settled.goneAt - 1), [record.id])
})

test('only the latest records are remembered', () => {
  const remembered = createRemembered(4)
  for (let at = 0; at < 10; at++) remembered.note(granted(`k${at}`, at + 1).record)
  assert.deepEqual(
    remembered.all().map(({ fence }) => fence),
    [7, 8, 9, 10],
  )
})
