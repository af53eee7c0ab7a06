import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { createProtect } from 'onceonly/node'
import { own } from './own.ts'

test('node: an answer that was given before the handler threw stays, and the error is reported', async (context) => {
  const { options, to } = own(context)
  const errors: unknown[] = []
  const protect = createProtect({ ...options, onError: (error) => errors.push(error) })
  const listener = protect({ effect: 'external' }, (_request, response) => {
    response.writeHead(201).end('done')
    throw new Error('too late')
  })
  const ask = await to(createServer((request, response) => void listener(request, response)))
  for (const _turn of [1, 2]) {
    const answer = await ask()
    assert.deepEqual([answer.status, await answer.text()], [201, 'done'])
  }
  assert.deepEqual(errors.map(String), ['Error: too late'])
})

test('node: what fails outside of the handler is answered too, and claims nothing', async (context) => {
  const { options, ledger, to } = own(context)
  const errors: unknown[] = []
  const broken = { ...options, onError: (error: unknown) => void errors.push(error) }
  const who = () => {
    throw new Error('no session')
  }
  const blank = () => ({ tenant: ' ', caller: 'ann' })
  const handler = () => assert.fail('the handler ran')
  const listeners = [who, blank].map((each) => createProtect({ ...broken, who: each })({ effect: 'external' }, handler))
  const ask = await to(
    createServer((request, response) => {
      const listener = listeners[request.url === '/blank' ? 1 : 0]
      void listener?.(request, response)
    }),
  )
  for (const path of ['/who', '/blank']) {
    const answer = await ask({ path })
    assert.equal(answer.status, 500)
    assert.ok(!(await answer.text()).includes('session'))
  }
  assert.equal(errors.length, 2)
  assert.equal((await ledger.list()).rows.length, 0)
})

test('node: keep-alive connections carry responses and replays, also after unread bodies', async (context) => {
  const { options, to } = own(context)
  const protect = createProtect(options)
  const listener = protect({ effect: 'external' }, (_request, response) => void response.end('done'))
  const server = createServer((request, response) => void listener(request, response))
  const sockets = new Set<unknown>()
  server.on('connection', (socket) => sockets.add(socket))
  const ask = await to(server)
  for (let turn = 0; turn < 5; turn++) {
    assert.equal(await (await ask()).text(), 'done')
    const missing = await ask({ key: null })
    assert.equal(missing.status, 400)
    await missing.text()
  }
  // Clients may open a second one while the first is busy; a closed one per answer would be ten.
  assert.ok(sockets.size <= 3, `${sockets.size} connections`)
})
