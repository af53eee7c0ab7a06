import assert from 'node:assert/strict'
import { sagaLimits } from 'onceonly/saga'
import {
  cancelled,
  handled,
  message,
  onEveryStage,
  parsed,
  saved,
  started,
  stateOf,
} from '../../../support/events/saga/stage.ts'
import { sqlOf } from '../../../support/place.ts'

onEveryStage('the history of one instance makes room for what is new', async ({ store, replica }) => {
  const one = replica()
  await handled(one, started('s1'), started('s2'))
  const old = JSON.stringify({ id: 's1', event: 'Old', messageId: 'm', state: 'Uploading', did: 'deferred' })
  const rows = Array.from({ length: sagaLimits.historyEntries }, () => "('imports', 's1', 1, ?)")
  await sqlOf(store).query(
    `insert into onceonly_saga_history (saga, id, at, entry) values ${rows.join(', ')}`,
    rows.map(() => old),
  )
  await handled(one, saved('s1', ['a']), saved('s1', ['a']))
  const history = await one.saga.history('s1')
  assert.equal(history.length, sagaLimits.historyEntries)
  assert.deepEqual(
    history.slice(-3).map(({ event, did }) => [event, did]),
    [
      ['Old', 'deferred'],
      ['Saved', 'handled'],
      ['Saved', 'ignored'],
    ],
  )
  assert.equal((await one.saga.history('s2')).length, 1, 'others keep theirs')
})

onEveryStage('an instance that defers without end fails instead of growing', async ({ store, replica }) => {
  const one = replica()
  await handled(one, parsed('s1', 'a'))
  for (let rows = 1; rows < sagaLimits.deferred; ) {
    const more = Array.from({ length: Math.min(200, sagaLimits.deferred - rows) }, (_, index) => `t${rows + index}`)
    const values = more.map(() => "(?, 'imports', 's1', 'FileParsed', '{}', 1, 9007199254740991, 0)")
    await sqlOf(store).query(
      `insert into onceonly_saga_pending (token, saga, id, event, body, due_at, free_at, deliveries)
       values ${values.join(', ')}`,
      more,
    )
    rows += more.length
  }
  const receipt = await one.saga.handle(parsed('s1', 'b'))
  assert.ok(receipt.kind === 'parked')
  assert.match(String(receipt.failure?.message), /deferred too many events of s1/)
  assert.equal((await one.saga.get('s1'))?.pending.length, sagaLimits.deferred)
})

onEveryStage('data that cannot be kept fails before anything is sent', async ({ replica, sent }) => {
  const one = replica()
  await handled(one, started('s1'))
  const huge = saved('s1', ['x'.repeat(sagaLimits.dataBytes)])
  const receipt = await one.saga.handle(huge)
  assert.ok(receipt.kind === 'parked')
  assert.match(String(receipt.failure?.message), /data of more than \d+ bytes/)
  assert.deepEqual([await stateOf(one, 's1'), await sent()], ['Uploading', []])
})

onEveryStage('instances are listed by their ids, page after page', async ({ replica }) => {
  const one = replica()
  const ids = ['a', 'b', 'c', 'd', 'e']
  for (const id of ids) await handled(one, started(id))
  await handled(one, cancelled('c'))
  const seen: string[] = []
  let cursor: string | null = null
  do {
    const page: Awaited<ReturnType<typeof one.saga.list>> = await one.saga.list({ limit: 2, cursor })
    seen.push(...page.rows.map(({ id, state }) => `${id} ${state}`))
    cursor = page.cursor
  } while (cursor !== null)
  assert.deepEqual(seen, ['a Uploading', 'b Uploading', 'c Error', 'd Uploading', 'e Uploading'])
})

onEveryStage('ids and bodies that look dangerous are just text', async ({ replica }) => {
  const one = replica()
  const ids = ["'; drop table onceonly_saga_instances; --", '__proto__', 'ümläut 🦉', '%_', '\\u0041', 'x'.repeat(512)]
  for (const id of ids) {
    await handled(one, message('Saved', { searchId: id, files: ['__proto__', '\u0000', '\ud800', '"\\'] }))
    assert.deepEqual((await one.saga.get(id))?.data.files, ['__proto__', '\u0000', '\ud800', '"\\'])
  }
})
