import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { createLedger } from 'onceonly'
import { memoryStore } from 'onceonly/memory'
import { createProtect } from 'onceonly/node'
import { createRegionRouter } from 'onceonly/region'
import { closedUrl } from '../../../support/closed-url.ts'
import { ask } from '../../../support/gateway/ask.ts'
import { freePort } from '../../../support/gateway/process.ts'

test('where the home of a key is away it is refused, and nothing runs elsewhere; other keys are not touched', async (context) => {
  const port = await freePort()
  const regions = { eu: `http://127.0.0.1:${port}`, us: await closedUrl() }
  const region = createRegionRouter({ self: 'eu', regions, secret: 'a secret of two regions, long enough' })
  const ledger = createLedger({ store: memoryStore(), background: false })
  const who = { tenant: 'acme', caller: 'ann' }
  let runs = 0
  const listener = createProtect({ ledger, who: () => who, region })({ effect: 'external' }, (_request, response) => {
    runs += 1
    response.writeHead(201).end('made')
  })
  const server = createServer((request, response) => void listener(request, response))
  await new Promise<void>((resolve) => void server.listen(port, '127.0.0.1', resolve))
  context.after(async () => {
    region.stop()
    server.close()
    server.closeAllConnections()
    await ledger.stop()
  })
  const keys = Array.from({ length: 50 }, (_, at) => `away-${at}`)
  const homeOf = (key: string) => region.home({ ...who, operation: 'POST /things', key })
  const [lost = ''] = keys.filter((key) => homeOf(key) === 'us')
  const [kept = ''] = keys.filter((key) => homeOf(key) === 'eu')
  const refused = await ask(port, { key: lost })
  assert.deepEqual([refused.status, refused.problem, runs], [503, 'home-unreachable', 0])
  assert.match(refused.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
  assert.equal((await ask(port, { key: kept })).status, 201)
  assert.equal(runs, 1)
})
