import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isOnceError } from 'onceonly'
import type { Channel, RunContext, RunDefinition } from 'onceonly/run'
import { defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore, type RunWorld } from '../../support/runs/world.ts'

interface Mail {
  readonly to: string
  readonly text: string
  readonly at: number
}

function mailbox(): { readonly sent: Mail[]; readonly channel: Channel<Mail, string> } {
  const sent: Mail[] = []
  const send = async (mail: Mail) => `mail ${sent.push(mail)}`
  return {
    sent,
    channel: {
      name: 'mail',
      offer: { kind: 'native', windowMs: 60_000, comparesBody: false, keepsFailures: false },
      send,
    },
  }
}

type Body = (run: RunContext, channel: Channel<Mail, string>) => Promise<unknown>

/** Runs one body to its end, and replays it with another one. */
async function replayed(world: RunWorld, before: Body, after: Body, ignore: readonly string[] = []) {
  const { sent, channel } = mailbox()
  const yesterday = defineRun('letters', (run) => before(run, channel))
  const today = defineRun('letters', (run) => after(run, channel))
  const first = await world.engine({ runs: [yesterday] })
  await (await first.start(yesterday, { runId: 'r', input: null })).result()
  await first.stop()
  const count = sent.length
  const second = await world.engine({ runs: [today], work: false })
  const replay = await second.replay('r', { ignore })
  assert.equal(sent.length, count, 'a replay sends nothing')
  assert.equal(replay.performed, 0)
  return replay
}

const letter =
  (text: string, more: Body = async () => 'done'): Body =>
  async (run, channel) => {
    const name = await run.step('name', () => 'Ann')
    const at = run.now()
    await run.step('welcome', { channel }, () => ({ to: name, text, at }))
    await run.sleep('pause', 0)
    return more(run, channel)
  }

onEveryRunStore('unchanged code is identical: plain steps are not called, recorded times come back', async (world) => {
  let called = 0
  const body = letter('hello', (run) => run.step('count', () => ++called))
  const replay = await replayed(world, body, body)
  assert.equal(replay.verdict, 'identical')
  assert.equal(called, 1)
  assert.equal(replay.unevaluated, 2)
  assert.deepEqual(
    replay.steps.map(({ id, evaluated, identical, status }) => [id, evaluated, identical, status]),
    [
      ['name', false, null, 'same'],
      ['welcome', true, true, 'same'],
      ['pause', true, true, 'same'],
      ['count', false, null, 'same'],
    ],
  )
})

onEveryRunStore('a changed template is shown by its place, unless it was declared', async (world) => {
  const replay = await replayed(world, letter('hello'), letter('welcome'))
  assert.equal(replay.verdict, 'diverged')
  const step = replay.steps.find(({ id }) => id === 'welcome')
  assert.deepEqual(step?.diff, [{ path: '$.text', original: 'hello', replayed: 'welcome' }])
  assert.equal(step?.status, 'changed')
})

onEveryRunStore('declared paths may differ, and the verdict says so', async (world) => {
  const replay = await replayed(world, letter('hello'), letter('welcome'), ['welcome: $.text'])
  assert.equal(replay.verdict, 'identical-but-for-ignored-paths')
})

onEveryRunStore('steps added, removed and moved are distinguished', async (world) => {
  const steps =
    (...names: string[]): Body =>
    async (run, channel) => {
      for (const to of names) await run.step(to, { channel }, () => ({ to, text: '', at: 0 }))
    }
  // Only what must have been put elsewhere counts as moved; the steps after a removed one keep their place.
  for (const [after, expected] of [
    ['bad', { b: 'moved', a: 'same', d: 'added', c: 'removed' }],
    ['bc', { b: 'same', c: 'same', a: 'removed' }],
    ['cab', { c: 'moved', a: 'same', b: 'same' }],
    ['abcd', { a: 'same', b: 'same', c: 'same', d: 'added' }],
    ['zabc', { z: 'added', a: 'same', b: 'same', c: 'same' }],
    ['azbc', { a: 'same', z: 'added', b: 'same', c: 'same' }],
    ['dbc', { d: 'added', b: 'same', c: 'same', a: 'removed' }],
  ] as const) {
    const replay = await replayed(world, steps('a', 'b', 'c'), steps(...after.split('')))
    assert.equal(replay.verdict, 'diverged', after)
    assert.deepEqual(Object.fromEntries(replay.steps.map((step) => [step.id, step.status])), expected)
  }
})

onEveryRunStore('steps behind an unrecorded one are not reported as removed', async (world) => {
  const after: Body = async (run, channel) => {
    await run.step('b', { channel }, () => ({ to: 'b', text: '', at: 0 }))
  }
  const wanting: readonly Body[] = [
    // It needs what was never recorded: a field of a new result, a signal, a result that never comes.
    async (run, channel) => {
      const { name } = (await run.step('new', async () => ({ name: 'x' }))) as { name: string }
      await after(run, channel)
      return name
    },
    async (run, channel) => {
      await run.waitFor('new')
      await after(run, channel)
    },
    async (run, channel) => {
      while ((await run.step('new', async () => 'done')) !== 'done');
      await after(run, channel)
    },
  ]
  for (const body of wanting) {
    const replay = await replayed(world, after, body)
    assert.equal(replay.verdict, 'diverged')
    const statuses = Object.fromEntries(replay.steps.map((step) => [step.id, step.status]))
    assert.deepEqual(statuses, { new: 'added', b: 'unreached' })
  }
})

onEveryRunStore('another branch and another result diverge; losers of a race are not missed', async (world) => {
  const race: Body = async (run, channel) => {
    const first = await run.race('first', {
      slow: async (branch) => {
        await branch.sleep('long', 86_400_000)
        return 'slow'
      },
      quick: (branch) => branch.step('send', { channel }, () => ({ to: 'q', text: '', at: 0 })),
    })
    return first.winner
  }
  assert.equal((await replayed(world, race, race)).verdict, 'identical')
})

onEveryRunStore('a sleep that is over holds no replay of a run that sleeps again', async (world) => {
  const run = defineRun('r', async (context) => {
    await context.sleep('nap', 0)
    await context.all('both', {
      left: async (branch) => {
        await branch.step('count', () => 1)
        await branch.sleep('short', 0)
        await branch.step('again', () => 2)
        await branch.sleep('long', 3_600_000)
      },
      right: (branch) => branch.sleep('brief', 0),
    })
    return 'done'
  })
  const engine = await world.engine({ runs: [run] })
  await engine.start(run, { runId: 'r', input: null })
  await until(
    'it sleeps for long',
    () => engine.get('r'),
    ({ state, steps }) => state === 'sleeping' && steps.some(({ id }) => id.endsWith('long')),
  )
  const { verdict, steps } = await engine.replay('r')
  assert.equal(verdict, 'identical')
  assert.deepEqual(
    steps.filter(({ status }) => status !== 'same'),
    [],
  )
})

onEveryRunStore('the network is refused and counted, also on connections that are already open', async (world) => {
  const server = createServer((_request, response) => response.end('x'))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  let live = true
  let requests = 0
  server.on('request', () => void requests++)
  const ask = () =>
    new Promise<void>((resolve, reject) => {
      const request = get({ host: '127.0.0.1', port, agent }, (response) => {
        response.resume()
        response.on('end', resolve)
      })
      request.on('error', reject)
    })
  const sneaky: Body = async (run) => {
    // What no body should do: it talks to the world between its steps.
    await ask().catch(() => {})
    if (!live) await fetch(`http://127.0.0.1:${port}/`).catch(() => {})
    return run.step('done', () => 'done')
  }
  try {
    const replay = await replayed(world, sneaky, async (run, channel) => {
      live = false
      const before = requests
      const value = await sneaky(run, channel)
      assert.equal(requests, before)
      return value
    })
    assert.ok(replay.blocked.length >= 2, `${replay.blocked}`)
    assert.equal(replay.verdict, 'identical')
  } finally {
    agent.destroy()
    server.close()
  }
})

onEveryRunStore('a replay that is not dry continues under the same keys, and refuses what diverges', async (world) => {
  const { sent, channel } = mailbox()
  const keys: string[] = []
  const two =
    (text: string): RunDefinition<null, string>['body'] =>
    async (run) => {
      await run.step('one', { channel }, () => ({ to: 'a', text, at: 0 }))
      await run.waitFor('go')
      return run.step('two', ({ effectKey: key }) => {
        keys.push(key)
        return 'end'
      })
    }
  const yesterday = defineRun('two', two('x'))
  const first = await world.engine({ runs: [yesterday] })
  const handle = await first.start(yesterday, { runId: 'r', input: null })
  await until('the run sleeps', handle.view, ({ state }) => state === 'sleeping')
  await first.stop()
  const changed = await world.engine({ runs: [defineRun('two', two('y'))], work: false })
  await assert.rejects(changed.replay('r', { dryRun: false }), (error) => isOnceError(error, 'run_diverged'))
  const second = await world.engine({ runs: [yesterday] })
  const waiting = await second.replay('r', { dryRun: false })
  assert.equal(waiting.performed, 0)
  await second.signal('r', 'go', null)
  assert.equal(await second.handle('r').result(), 'end')
  const again = await second.replay('r', { dryRun: false })
  assert.equal(again.verdict, 'identical')
  assert.equal(again.performed, 0)
  assert.equal(sent.length, 1)
  assert.equal(keys.length, 1)
})

onEveryRunStore('a replay that waits forever is ended, and what it left behind has no effect', async (world) => {
  const reached: string[] = []
  const waiting = Promise.withResolvers<void>()
  const done = Promise.withResolvers<unknown>()
  await using server = createServer((_, answer) => {
    reached.push('the network')
    answer.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const patient: Body = async (run) => {
    await run.step('one', () => 1)
    await waiting.promise
    done.resolve(await fetch(`http://127.0.0.1:${port}/`).catch((error: unknown) => error))
  }
  const short = defineRun('patient', async (run: RunContext) => run.step('one', () => 1))
  const engine = await world.engine({ runs: [short] })
  await (await engine.start(short, { runId: 'r', input: null })).result()
  await engine.stop()
  const changed = await world.engine({
    runs: [defineRun('patient', (run) => patient(run, mailbox().channel))],
    work: false,
  })
  await assert.rejects(
    changed.replay('r', { timeoutMs: 50 }),
    (error) => isOnceError(error, 'replay_timed_out') && error.details['behind'] === 'one',
  )
  await assert.rejects(changed.replay('r', { timeoutMs: 0 }), (error) => isOnceError(error, 'bad_option'))
  waiting.resolve()
  assert.match(String(await done.promise), /NetworkRefused/)
  assert.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 200, 'others are not touched')
  assert.deepEqual(reached, ['the network'])
})
