import assert from 'node:assert/strict'
import { type Channel, defineRun, type RunContext } from 'onceonly/run'
import { onEveryRunStore } from '../../support/runs/world.ts'

const channel: Channel<{ readonly text: string }, string> = {
  name: 'mail',
  offer: { kind: 'native', windowMs: 60_000, comparesBody: false, keepsFailures: false },
  send: async ({ text }) => `sent ${text}`,
}

const letters = (text: string) =>
  defineRun('letters', async (run: RunContext) => {
    const name = await run.step('name', () => 'Ann')
    await run.step('first', { channel }, () => ({ text: `dear ${name}` }))
    return run.step('second', { channel }, () => ({ text }))
  })

onEveryRunStore('a dry replay shows of every step what was and what would be', async (world) => {
  const yesterday = letters('bye')
  const first = await world.engine({ runs: [yesterday] })
  await (await first.start(yesterday, { runId: 'r', input: null })).result()
  await first.stop()
  const today = await world.engine({ runs: [letters('goodbye')], work: false })
  const { steps, performed, result } = await today.replay('r', { dryRun: true })
  assert.deepEqual(
    steps.map(({ id, originalResult, replayedResult, identical }) => [id, originalResult, replayedResult, identical]),
    [
      // A dry run does not perform a plain step: its record stands for it.
      ['name', 'Ann', 'Ann', null],
      [
        'first',
        { plan: { text: 'dear Ann' }, result: 'sent dear Ann' },
        { plan: { text: 'dear Ann' }, result: 'sent dear Ann' },
        true,
      ],
      [
        'second',
        { plan: { text: 'bye' }, result: 'sent bye' },
        { plan: { text: 'goodbye' }, result: 'sent bye' },
        false,
      ],
    ],
  )
  assert.deepEqual([performed, result.original, result.identical], [0, 'sent bye', true])
})
