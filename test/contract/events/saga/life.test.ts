import assert from 'node:assert/strict'
import { DAY, MINUTE } from 'onceonly'
import {
  cancelled,
  faulted,
  handled,
  message,
  onEveryStage,
  parsed,
  saved,
  started,
  stateOf,
} from '../../../support/events/saga/stage.ts'

onEveryStage('a saga goes its way, and everything that it sends leaves once', async ({ replica, sent }) => {
  const one = replica()
  const messages = [started('s1'), saved('s1', ['a', 'b']), parsed('s1', 'a'), parsed('s1', 'b')]
  for (const each of messages) await handled(one, each)
  assert.deepEqual(await sent(), [
    'ImportCompleted {"searchId":"s1","files":2}',
    'StartParsing {"searchId":"s1","file":"a"}',
    'StartParsing {"searchId":"s1","file":"b"}',
  ])
  const view = await one.saga.get('s1')
  assert.equal(view?.state, 'Completed')
  assert.deepEqual(view?.data, { files: ['a', 'b'], parsed: new Set(['a', 'b']), reason: null })
  assert.deepEqual([view?.version, view?.pending], [4, []])
  // Copies are known by their ids, also on a replica that never saw the first ones.
  for (const each of messages) assert.equal((await one.saga.handle(each)).kind, 'duplicate')
  assert.equal((await sent()).length, 3)
  const history = await one.saga.history('s1')
  assert.deepEqual(
    history.map((entry) => [entry.event, entry.state, entry.did, entry.did === 'handled' ? entry.path : null]),
    [
      ['Started', 'initial', 'handled', ['Uploading']],
      ['Saved', 'Uploading', 'handled', ['Parsing']],
      ['FileParsed', 'Parsing', 'handled', []],
      ['FileParsed', 'Parsing', 'handled', ['Completed']],
    ],
  )
  const [first, second] = history
  assert.ok(first?.did === 'handled' && second?.did === 'handled')
  assert.deepEqual(
    first.scheduled.map(({ name, dueAt }) => [name, dueAt - first.at]),
    [['UploadTimeout', 60 * MINUTE]],
  )
  assert.deepEqual(second.unscheduled, ['UploadTimeout'])
  assert.deepEqual(second.emitted, [{ how: 'sent', topic: 'StartParsing', count: 2 }])
})

onEveryStage('the same event twice under two ids sends one set of commands', async ({ replica, sent }) => {
  const one = replica()
  await handled(one, started('s1'), saved('s1', ['a']), saved('s1', ['a']), started('s1'))
  assert.deepEqual(await sent(), ['StartParsing {"searchId":"s1","file":"a"}'])
  const ignored = one.events.filter((event) => event.kind === 'ignored')
  assert.deepEqual(
    ignored.map(({ event, state, why }) => [event, state, why]),
    [
      ['Saved', 'Parsing', 'declared'],
      ['Started', 'Parsing', 'declared'],
    ],
  )
})

onEveryStage('a finished instance ignores every event, and says so', async ({ replica, sent }) => {
  const one = replica()
  await handled(one, started('done'), saved('done', ['a']), parsed('done', 'a'))
  await handled(one, started('bad'), saved('bad', []))
  assert.deepEqual([await stateOf(one, 'done'), await stateOf(one, 'bad')], ['Completed', 'Error'])
  const before = [await one.saga.get('done'), await one.saga.get('bad'), await sent()]
  for (const id of ['done', 'bad']) {
    await handled(one, started(id), saved(id, ['x']), parsed(id, 'x'), faulted(id, 'x'), cancelled(id))
    const late = (await one.saga.history(id)).slice(-5)
    assert.deepEqual(
      late.map((entry) => (entry.did === 'ignored' ? entry.why : entry.did)),
      Array.from({ length: 5 }, () => 'terminal'),
    )
  }
  assert.deepEqual([await one.saga.get('done'), await one.saga.get('bad'), await sent()], before)
})

onEveryStage('what comes before an instance exists is decided too', async ({ replica, store }) => {
  const one = replica()
  await handled(one, cancelled('s1'))
  assert.equal(await one.saga.get('s1'), null)
  assert.deepEqual(
    one.events.map((event) => (event.kind === 'ignored' ? [event.why, event.because] : event.kind)),
    [['no_instance', 'there is nothing to cancel']],
  )
  const receipt = await one.saga.handle(faulted('s1', 'x'))
  assert.ok(receipt.kind === 'parked', 'a fault is parked by the inbox')
  assert.match(
    String(receipt.failure?.message),
    /imports does not accept Faulted in the state initial, for the instance s1/,
  )
  assert.equal(await one.saga.get('s1'), null)
  assert.ok(store.name)
})

onEveryStage(
  'tombstones stay for seven days, then they are swept, and the id is used up',
  async ({ place, replica, sent }) => {
    const one = replica()
    const first = started('s1')
    await handled(one, first, saved('s1', ['a']), parsed('s1', 'a'), started('open'))
    await place.advance(7 * DAY - MINUTE)
    assert.equal(await one.saga.upkeep.sweep(), 0)
    await handled(one, saved('s1', ['a']))
    assert.equal(await stateOf(one, 's1'), 'Completed')
    await place.advance(2 * MINUTE)
    assert.equal(await one.saga.upkeep.sweep(), 1)
    assert.equal(await one.saga.get('s1'), null)
    assert.deepEqual(await one.saga.history('s1'), [])
    assert.equal(await stateOf(one, 'open'), 'Uploading', 'what has not finished has no end')
    const already = await sent()
    // Also the very message that began it, which the inbox has forgotten by now.
    await handled(one, saved('s1', ['a']), started('s1'), { ...first, deliveries: 2 })
    assert.deepEqual(
      one.events.flatMap((event) => (event.kind === 'ignored' && event.why === 'late_after_ttl' ? [event.event] : [])),
      ['Saved', 'Started', 'Started'],
    )
    assert.equal(await one.saga.get('s1'), null)
    assert.deepEqual(await sent(), already)
  },
)

onEveryStage('an id that may be used again begins anew after its tombstone', async ({ place, replica }) => {
  const one = replica({ oneShot: false })
  await handled(one, started('s1'), cancelled('s1'))
  await place.advance(8 * DAY)
  assert.equal(await one.saga.upkeep.sweep(), 1)
  await handled(one, started('s1'))
  const view = await one.saga.get('s1')
  assert.deepEqual([view?.state, view?.version], ['Uploading', 1])
})

onEveryStage('a message that cannot be read is parked at once, with the reason', async ({ replica }) => {
  const one = replica()
  const strange = { ...started('s1'), topic: 'Nonsense' }
  const unnamed = message('Started', { searchId: '' })
  const reasons = []
  for (const each of [strange, unnamed, { ...started('s1'), body: 'null' }]) {
    const receipt = await one.saga.handle(each)
    assert.ok(receipt.kind === 'parked' && receipt.reason === 'final')
    reasons.push(receipt.failure?.message ?? '')
  }
  assert.match(reasons[0] ?? '', /no event under the topic Nonsense/)
  assert.match(reasons[1] ?? '', /Started names no instance of the saga imports/)
  assert.match(reasons[2] ?? '', /null/)
  assert.equal(await one.saga.deadLetters.count(), 3)
})

onEveryStage(
  'a handler that fails leaves nothing, and its message succeeds later',
  async ({ place, replica, sent }) => {
    let failures = 2
    let calls = 0
    const inside = async (event: string, { tx }: { tx: { query(text: string): Promise<unknown> } }) => {
      if (event !== 'Saved') return
      calls++
      await tx.query("insert into business (key, value) values ('k', 'v')")
      if (failures-- > 0) throw new Error('not today')
    }
    const one = replica({ inside }, { inbox: { maxFailures: 3 } })
    await handled(one, started('s1'))
    const late = saved('s1', ['a'])
    for (const deliveries of [1, 2]) {
      const receipt = await one.saga.handle({ ...late, deliveries })
      assert.ok(receipt.kind === 'later' && receipt.counted)
      assert.equal(calls, deliveries, 'a business error is not tried again here')
      assert.deepEqual([await stateOf(one, 's1'), await sent(), await place.business()], ['Uploading', [], []])
      await place.advance(10 * MINUTE)
    }
    await handled(one, { ...late, deliveries: 3 })
    assert.deepEqual([await stateOf(one, 's1'), (await sent()).length], ['Parsing', 1])
    assert.equal((await place.business()).length, 1)
  },
)
