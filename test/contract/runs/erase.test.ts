import assert from 'node:assert/strict'
import { final } from 'onceonly'
import { defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

const HOUR = 3_600_000

onEveryRunStore('what has ended or only waits is erased, and its id begins nothing again', async (world) => {
  let sent = 0
  const mail = defineRun('mail', async (run, to: string) => {
    await run.setAttributes({ to })
    await run.step('send', () => `mail ${++sent} to ${to}`)
  })
  const later = defineRun('later', async (run, _to: string) => {
    await run.sleep('a while', HOUR)
    await run.step('send', () => ++sent)
  })
  const over = defineRun('over', async (run) => {
    await run.step('fail', () => Promise.reject(final(new Error('ann@example.com is away'))))
  })
  const engine = await world.engine({ runs: [mail, later, over] })
  const input = 'ann@example.com'
  await (await engine.start(mail, { runId: 'sent', input })).result()
  await assert.rejects((await engine.start(over, { runId: 'failed', input: null })).result())
  const waits = await engine.start(later, { runId: 'waits', input })
  await until('it waits', waits.view, ({ state }) => state === 'sleeping')
  for (const id of ['sent', 'failed', 'waits']) {
    assert.equal(await engine.erase(id, { preview: true }), 'erased')
    assert.notEqual((await engine.get(id)).definition, '(erased)', 'a preview changes nothing')
    assert.equal(await engine.erase(id), 'erased')
    assert.equal(await engine.erase(id), 'empty')
    const { steps, input: left, result, failure, attributes } = await engine.get(id)
    assert.deepEqual(
      { steps, left, result, failure, attributes },
      { steps: [], left: null, result: undefined, failure: null, attributes: {} },
    )
    await assert.rejects(engine.resume(id), /was erased|is succeeded/)
  }
  await assert.rejects(engine.start(mail, { runId: 'sent', input }), { code: 'run_conflict' })
  await assert.rejects(engine.start(later, { runId: 'waits', input }), { code: 'run_conflict' })
  assert.equal(sent, 1)
  assert.equal(await engine.erase('never there'), 'gone')
})

onEveryRunStore('what a worker does, and what may have happened, is left', async (world) => {
  const step = Promise.withResolvers<string>()
  const busy = defineRun('busy', (run) => run.step('call', { semantics: 'keyed' }, () => step.promise))
  const doubt = defineRun('doubt', (run) =>
    run.step('call', { semantics: 'once', retry: { attempts: 1 } }, () => Promise.reject(new Error('the line is cut'))),
  )
  const engine = await world.engine({ runs: [busy, doubt] })
  const works = await engine.start(busy, { runId: 'works', input: 'ann' })
  const cut = await engine.start(doubt, { runId: 'cut', input: 'ann' })
  await until('its outcome is unknown', cut.view, ({ state }) => state === 'unknown')
  assert.deepEqual([await engine.erase('works'), await engine.erase('cut')], ['running', 'unknown'])
  step.resolve('called')
  assert.equal(await works.result(), 'called')
  const [asked] = (await cut.view()).steps
  await engine.resolve('cut', asked?.key ?? '', { kind: 'succeeded', result: 'it had' })
  assert.equal(await cut.result(), 'it had')
  assert.deepEqual([await engine.erase('works'), await engine.erase('cut')], ['erased', 'erased'])
})

onEveryRunStore(
  'a parent continues without a child that was erased, and erased itself cancels none of doubt',
  async (world) => {
    const nap = defineRun('nap', (run) => run.sleep('nap', HOUR))
    const doubt = defineRun('doubt', (run) =>
      run.step('call', { semantics: 'once', retry: { attempts: 1 } }, () =>
        Promise.reject(new Error('the line is cut')),
      ),
    )
    const parent = defineRun('parent', async (run) => {
      const missed = await run.child(nap, { input: null, id: 'nap' }).catch(({ code }) => code)
      await run.child(doubt, { input: null, id: 'doubt' })
      return missed
    })
    const engine = await world.engine({ runs: [parent, nap, doubt] })
    const handle = await engine.start(parent, { runId: 'p', input: null })
    await until(
      'the child waits',
      () => engine.get('nap').catch(() => null),
      (view) => view?.state === 'sleeping',
    )
    assert.equal(await engine.erase('nap'), 'erased')
    await until(
      'the next one is in doubt',
      () => engine.get('doubt').catch(() => null),
      (view) => view?.state === 'unknown',
    )
    const [first] = (await handle.view()).steps
    assert.equal(first?.failures[0]?.code, 'child_failed')
    await until(
      'its parent waits',
      () => engine.erase('p'),
      (erased) => erased === 'erased',
    )
    assert.equal((await engine.get('doubt')).state, 'unknown')
  },
)
