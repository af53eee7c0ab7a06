import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { RunOutput } from 'onceonly/run'
import { defineRun, eventsResponse, sendEvents } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore, untilState, watched } from '../../support/runs/world.ts'

const HOUR = 3_600_000

const progress = defineRun('progress', async (run, steps: number) => {
  for (let step = 1; step <= steps; step++) {
    await run.step('work', () => step)
    await run.emit('progress', { step, of: steps })
  }
  await run.waitFor('go')
  await run.emit('done', null)
})

async function collect(events: AsyncIterable<RunOutput>): Promise<RunOutput[]> {
  const all: RunOutput[] = []
  for await (const event of events) all.push(event)
  return all
}

onEveryRunStore('a run emits each event once and in order, read behind a cursor and to the end', async (world) => {
  const one = await world.engine({ runs: [progress], checkDeterminism: true })
  const handle = await one.start(progress, { runId: 'r', input: 3 })
  const reading = collect(handle.events())
  await until(
    'it waits',
    () => handle.view(),
    ({ steps }) => steps.at(-1)?.state === 'waiting',
  )
  await one.signal('r', 'go', null)
  const all = await reading
  assert.deepEqual(
    all.map(({ name, value }) => [name, value]),
    [...[1, 2, 3].map((step) => ['progress', { step, of: 3 }]), ['done', null]],
  )
  assert.deepEqual(
    (await collect(handle.events({ after: all[1]?.cursor ?? 0 }))).map(({ name }) => name),
    ['progress', 'done'],
  )
  const page = await one.events('r', { limit: 1 })
  assert.deepEqual([page.events.length, page.ended], [1, false])
  assert.equal((await one.replay('r')).verdict, 'identical')
  await assert.rejects(one.events('none'), { code: 'not_found' })
})

onEveryRunStore('no event is visible before one that was emitted earlier beside it', async (world) => {
  const held = Promise.withResolvers<void>()
  const isSent = Promise.withResolvers<void>()
  // The second one begins when the first is on its way: a write of its own, which would not wait for that one.
  const both = defineRun('both', (run) =>
    run.all('both', {
      a: (branch) => branch.emit('a', 'first'),
      b: (branch) => isSent.promise.then(() => branch.emit('b', 'second')),
    }),
  )
  const other = defineRun('other', async () => null)
  let isFirst = true
  const engine = await world.engine({ runs: [both, other] }, (store) =>
    watched(store, async (text, send) => {
      if (text.includes('insert into onceonly_run_steps') && isFirst) {
        isFirst = false
        isSent.resolve()
        await held.promise
      }
      return send()
    }),
  )
  const handle = await engine.start(both, { runId: 'r', input: null })
  await isSent.promise
  // What would not wait is written before a run that begins now has ended.
  await (await engine.start(other, { runId: 'o', input: null })).result()
  assert.deepEqual((await engine.events('r')).events, [])
  held.resolve()
  await handle.result()
  const { events } = await engine.events('r')
  assert.deepEqual(
    events.map(({ value }) => value),
    ['first', 'second'],
  )
})

onEveryRunStore(
  'events are served as a stream, and a client that was cut off continues behind the last it saw',
  async (world) => {
    const engine = await world.engine({ runs: [progress] })
    const handle = await engine.start(progress, { runId: 'r', input: 2 })
    const server = createServer((request, response) => void sendEvents(handle, request, response))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    try {
      const cut = new AbortController()
      const first = await fetch(url, { signal: cut.signal })
      assert.equal(first.headers.get('content-type'), 'text/event-stream; charset=utf-8')
      const reader = first.body?.pipeThrough(new TextDecoderStream()).getReader()
      let text = ''
      while (!text.includes('"step":2')) text += (await reader?.read())?.value ?? ''
      cut.abort()
      const id = /id: (\d+)/.exec(text)?.[1] ?? ''
      await engine.signal('r', 'go', null)
      const rest = await (await fetch(url, { headers: { 'last-event-id': id } })).text()
      assert.deepEqual(
        [...rest.matchAll(/event: (\S+)\ndata: (.*)\n/g)].map(([, name, data]) => [name, data]),
        [
          ['progress', '{"step":2,"of":2}'],
          ['done', 'null'],
          [':ended', '{"state":"succeeded"}'],
        ],
      )
      const last = [...rest.matchAll(/id: (\d+)/g)].at(-1)?.[1] ?? ''
      assert.equal((await fetch(url, { headers: { 'last-event-id': last } })).status, 204)
      const again = await eventsResponse(handle, new Request(url, { headers: { 'last-event-id': 'not ours' } }))
      assert.equal([...(await again.text()).matchAll(/event: /g)].length, 4)
    } finally {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
  },
)

onEveryRunStore('an event may have any value that is recorded, and JSON has words for', async (world) => {
  const rich = defineRun('rich', async (run) => {
    await run.emit('rich', { big: 2n ** 64n, map: new Map([['a', 1n]]), bytes: new Uint8Array([255]) })
    await run.emit('nothing', undefined)
  })
  const engine = await world.engine({ runs: [rich] })
  const handle = await engine.start(rich, { runId: 'r', input: null })
  await handle.result()
  const stream = await eventsResponse(handle, new Request('http://127.0.0.1/'))
  const found = [...(await stream.text()).matchAll(/data: (.*)\n/g)].map(([, data]) => data)
  assert.deepEqual(found, [
    '{"big":"18446744073709551616","map":{"a":"1"},"bytes":"/w=="}',
    'null',
    '{"state":"succeeded"}',
  ])
})

onEveryRunStore('events of runs that continue a run follow its own, behind one cursor', async (world) => {
  const counter = defineRun('counter', async (run, count: number): Promise<string> => {
    // One of them emits nothing.
    if (count !== 2) await run.emit('count', count)
    if (count === 4) {
      await run.waitFor('end')
      await run.emit('end', null)
      return 'done'
    }
    return run.continueAsNew(count + 1)
  })
  const one = await world.engine({ runs: [counter] })
  const other = await world.engine({ runs: [counter], work: false })
  const handle = await one.start(counter, { runId: 'c', input: 1 })
  const near = collect(handle.events())
  const far = collect(other.handle('c').events())
  await untilState(one, 'c#4', 'sleeping')
  const page = await other.events('c', { limit: 1 })
  assert.deepEqual([page.runId, page.events.length, page.ended], ['c', 1, false])
  const next = await other.events('c', { after: page.cursor })
  assert.deepEqual([next.runId, next.events.map(({ value }) => value), next.ended], ['c#3', [3], false])
  const stream = await eventsResponse(other.handle('c'), new Request('http://127.0.0.1/'))
  await one.signal('c', 'end', null)
  const text = await stream.text()
  assert.deepEqual(
    [...text.matchAll(/event: (\S+)/g)].map(([, name]) => name),
    ['count', 'count', 'count', 'end', ':ended'],
  )
  for (const events of [await near, await far])
    assert.deepEqual(
      events.map(({ name, value }) => [name, value]),
      [
        ['count', 1],
        ['count', 3],
        ['count', 4],
        ['end', null],
      ],
    )
  const cursors = (await near).map(({ cursor }) => cursor)
  assert.deepEqual(
    cursors,
    cursors.toSorted((a, b) => a - b),
  )
  const rest = await collect(other.handle('c').events({ after: cursors[1] ?? 0 }))
  assert.deepEqual(
    rest.map(({ value }) => value),
    [4, null],
  )
  const last = (await other.events('c', { after: cursors.at(-1) ?? 0 })).cursor
  const again = new Request('http://127.0.0.1/', { headers: { 'last-event-id': String(last) } })
  assert.equal((await eventsResponse(other.handle('c'), again)).status, 204)
})

onEveryRunStore('runs are listed by attributes, time and parent, page by page', async (world) => {
  const leaf = defineRun('leaf', async () => null)
  const tagged = defineRun('tagged', async (run, n: number) => {
    await run.setAttributes({ customer: n % 2 === 0 ? 'even' : 'odd', n, draft: true })
    await run.setAttributes({ draft: null })
    await run.child(leaf, { input: null })
  })
  const { start, list, get, replay } = await world.engine({ runs: [tagged, leaf] })
  for (let n = 0; n < 6; n++) await (await start(tagged, { runId: `r${n}`, input: n })).result()
  const idsOf = async (query: Parameters<typeof list>[0]) => (await list(query)).runs.map(({ runId }) => runId).sort()
  assert.deepEqual(await idsOf({ attributes: { customer: 'odd' } }), ['r1', 'r3', 'r5'])
  assert.deepEqual(await idsOf({ attributes: { customer: 'even', n: 4 } }), ['r4'])
  assert.deepEqual(await idsOf({ attributes: { n: '4' } }), [], 'a number is no text')
  assert.deepEqual(await idsOf({ attributes: { draft: true } }), [])
  assert.deepEqual(await idsOf({ parent: 'r2' }), ['r2~leaf'])
  assert.deepEqual((await get('r3')).attributes, { customer: 'odd', n: 3 })
  const first = await list({ attributes: { customer: 'odd' }, limit: 2 })
  assert.equal(first.runs.length, 2)
  const second = await list({ attributes: { customer: 'odd' }, limit: 2, cursor: first.cursor })
  assert.equal(second.runs.length, 1)
  const { startedAt } = await get('r5')
  assert.deepEqual(await idsOf({ startedFrom: startedAt + HOUR }), [])
  assert.equal((await idsOf({ startedBefore: startedAt + HOUR })).length, 12)
  assert.equal((await replay('r3')).verdict, 'identical')
  await assert.rejects(list({ atributes: {} } as never), { code: 'bad_option' })
})

onEveryRunStore('a dry replay publishes nothing and sets no attributes, and shows other ones', async (world) => {
  const coded = (of: number, more: boolean) =>
    defineRun('told', async (run) => {
      await run.setAttributes({ of })
      await run.emit('progress', { step: 1, of })
      if (more) await run.emit('more', null)
      return run.step('end', () => 'end')
    })
  const old = coded(2, false)
  const one = await world.engine({ runs: [old] })
  await (await one.start(old, { runId: 'r', input: null })).result()
  const before = [await one.events('r'), (await one.get('r')).attributes]
  const two = await world.engine({ runs: [coded(3, true)], work: false })
  const { verdict, performed, steps } = await two.replay('r')
  assert.deepEqual([verdict, performed], ['diverged', 0])
  assert.deepEqual(
    steps.map(({ id, status, diff }) => [id, status, ...diff.map(({ path, replayed }) => [path, replayed])]),
    [
      ['attributes', 'changed', ['$.of', 3]],
      ['progress', 'changed', ['$.of', 3]],
      ['more', 'added'],
      ['end', 'same'],
    ],
  )
  const ignored = await (await world.engine({ runs: [coded(3, false)], work: false })).replay('r', {
    ignore: ['*: $.of'],
  })
  assert.equal(ignored.verdict, 'identical-but-for-ignored-paths')
  assert.deepEqual([await one.events('r'), (await one.get('r')).attributes], before)
})
