import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../../src/testing/until.ts'
import { startGateway, temporaryFolder } from '../../support/gateway/process.ts'
import { openCounting, things } from '../../support/gateway/world.ts'

test('two processes on one store: a key is forwarded once; one is ended in mid-load and loses no request', async (context) => {
  const folder = await temporaryFolder(context)
  const upstream = await openCounting(context, async (_request, response, { body }) => {
    await sleep(20)
    response.writeHead(201, { 'content-type': 'text/plain' }).end(`made ${body}`)
  })
  const options = { config: { upstream: upstream.url, routes: [things] }, store: join(folder, 'shared.db') }
  const [one, two] = await Promise.all([startGateway(context, folder, options), startGateway(context, folder, options)])

  const twins = Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? one : two).ask({ key: 'twins' }))
  const answers = await Promise.all(twins)
  assert.deepEqual(new Set(answers.map(({ status, body }) => `${status} ${body}`)), new Set(['201 made {"amount":1}']))
  assert.equal(upstream.heads, 1)

  // Clients in a loop, each on a connection of its own, while the first process stops.
  let running = true
  let answered = 0
  const lost: string[] = []
  async function client(name: number): Promise<void> {
    for (let at = 0; running; at++) {
      const key = `load-${name}-${at}`
      try {
        const { status } = await one.ask({ key })
        if (status === 201) answered++
        else lost.push(`${key}: ${status}`)
      } catch (error) {
        // A refused connection loses nothing, because nothing was sent. Any other error does.
        const { code } = (error as Error).cause as { code?: string }
        if (code !== 'ECONNREFUSED') lost.push(`${key}: ${code}`)
        return
      }
    }
  }
  const clients = Array.from({ length: 10 }, (_, name) => client(name))
  await until(
    'the load is under way',
    () => answered,
    (seen) => seen >= 30,
  )
  assert.equal(await one.terminate(), 0)
  running = false
  await Promise.all(clients)
  assert.deepEqual(lost, [])
  assert.equal(upstream.heads, answered + 1)
  // What the first has answered, the second knows.
  assert.equal((await two.ask({ key: 'load-0-0' })).replayed, true)
})

test('a process that is killed while its upstream works: no other process forwards its request', async (context) => {
  const folder = await temporaryFolder(context)
  const upstream = await openCounting(context, () => {})
  const options = { config: { upstream: upstream.url, routes: [things] }, store: join(folder, 'killed.db') }
  const [one, two] = await Promise.all([startGateway(context, folder, options), startGateway(context, folder, options)])
  const lost = one.ask().catch((error: unknown) => error)
  await until('the upstream works', () => upstream.seen.length > 0)
  await one.kill()
  assert.ok((await lost) instanceof Error)
  const impatient = {
    ...options,
    config: { ...options.config, routes: [{ ...things, whileRunning: 'conflict' as const }] },
  }
  await two.terminate()
  const three = await startGateway(context, folder, impatient)
  assert.equal((await three.ask()).problem, 'request-in-progress')
  assert.equal(upstream.heads, 1)
})
