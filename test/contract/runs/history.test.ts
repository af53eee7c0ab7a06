import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { isOnceError } from 'onceonly'
import type { RunDefinition } from 'onceonly/run'
import { defineRun, replayFixture } from 'onceonly/run'
import { onEveryRunStore } from '../../support/runs/world.ts'
import { journey } from './fixtures/journey.ts'
import { tour } from './fixtures/tour.ts'

const hello = journey()
/** Kept from an earlier version of this code: it must go on to replay, whatever becomes of the journal's tables. */
const kept = new URL('./fixtures/journey-1.json', import.meta.url)

onEveryRunStore('an exported run replays from a file, without its store', async (world) => {
  const engine = await world.engine({ runs: [hello] })
  const started = await engine.start(hello, { runId: 'trip', input: { to: 'Rome', on: new Date(0) } })
  await engine.signal('trip', 'confirmed', { seats: 2n })
  await started.result()
  const history = await engine.export('trip')
  await engine.stop()
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-history-'))
  try {
    const file = join(folder, 'trip.json')
    await writeFile(file, JSON.stringify(history, null, 2))
    for (const fixture of [history, JSON.parse(JSON.stringify(history)) as typeof history, file]) {
      const replay = await replayFixture(journey(), fixture)
      assert.equal(replay.verdict, 'identical')
      assert.deepEqual(replay.result.replayed, replay.result.original)
    }
    const changed = await replayFixture(journey('Ciao'), file)
    assert.equal(changed.verdict, 'diverged')
    assert.deepEqual(changed.steps.find(({ id }) => id === 'mail')?.diff, [
      { path: '$.text', original: 'Hello, Rome', replayed: 'Ciao, Rome' },
    ])
    const ignored = await replayFixture(journey('Ciao'), file, { ignore: ['mail: $.text'] })
    assert.equal(ignored.verdict, 'identical-but-for-ignored-paths')
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

onEveryRunStore('a run that waits is exported as it stands, and one that is not there is not found', async (world) => {
  const engine = await world.engine({ runs: [hello] })
  await engine.start(hello, { runId: 'trip', input: { to: 'Rome', on: new Date(0) } })
  const history = await engine.export('trip')
  assert.equal(history.run.endedAt, null)
  assert.notEqual((await replayFixture(journey(), history)).verdict, 'diverged')
  await assert.rejects(engine.export('nowhere'), (error) => isOnceError(error, 'not_found'))
})

test('a fixture of an earlier version replays under the code of today', async () => {
  const replay = await replayFixture(journey(), kept)
  assert.equal(replay.verdict, 'identical')
  assert.deepEqual(
    replay.steps.map(({ id, status }) => [id, status]),
    [
      ['book', 'same'],
      ['confirmed', 'same'],
      ['pause', 'same'],
      ['both/bus/ticket', 'same'],
      ['both/train/ticket', 'same'],
      ['mail', 'same'],
    ],
  )
})

/** The steps of a tour, as far as each of them came. */
const WAY = ['attributes', 'refund', 'way', 'way/train/ticket', 'leg', 'arrived', 'souvenir']
const tours: readonly [name: string, steps: readonly string[]][] = [
  ['continued', [...WAY, 'forget', 'card']],
  ['ended', [...WAY, 'forget', 'card']],
  ['failed', [...WAY, 'forget', 'card']],
  ['cancelled', [...WAY, 'forget', 'card', 'home', '$cancel/forget/burn cards', '$cancel/refund/pay back']],
  ['forked', [...WAY, 'forget', 'card']],
]

for (const [name, steps] of tours) {
  test(`a run of runs of an earlier version, which has ${name}, replays under the code of today`, async () => {
    const file = new URL(`./fixtures/tour-${name}.json`, import.meta.url)
    const replay = await replayFixture(tour(), file)
    assert.equal(replay.verdict, 'identical', JSON.stringify(replay, jsonable, 2))
    assert.deepEqual([replay.performed, replay.steps.map(({ id }) => id)], [0, steps])
    // And the fixture would show another way.
    const changed = await replayFixture(tour('Ciao'), file)
    assert.equal(changed.verdict, 'diverged')
    assert.deepEqual(
      changed.steps.find(({ id }) => id === 'card')?.diff.map(({ path }) => path),
      ['$.text'],
    )
  })
}

const jsonable = (_name: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value)

test('what is no fixture, or one of another definition, is refused with what to do', async () => {
  const cases: readonly [given: unknown, definition: RunDefinition<never, unknown>, text: RegExp][] = [
    ['/nowhere/fixture.json', journey() as never, /cannot be read as JSON/],
    [null, journey() as never, /it is null/],
    [{ format: 'another', run: {}, entries: [] }, journey() as never, /its format is "another"/],
    [kept, defineRun('other', async () => null) as never, /is of journey, version 1; this is other/],
  ]
  for (const [given, definition, text] of cases) {
    await assert.rejects(replayFixture(definition, given as never), (error) => {
      assert.ok(isOnceError(error, 'bad_option') && error.next !== undefined)
      assert.match(error.message, text)
      return true
    })
  }
  await assert.rejects(replayFixture(journey(), kept, { ignores: [] } as never), /no option `ignores`/)
})
