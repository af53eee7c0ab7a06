import assert from 'node:assert/strict'
import Fastify from 'fastify'
import { createLedger, MINUTE } from 'onceonly'
import { createProtect, onceonly } from 'onceonly/fastify'
import { memoryStore } from 'onceonly/memory'

interface Message {
  readonly to: string
  readonly text: string
}

const once = createLedger({ store: memoryStore() })
const sent: Message[] = []
const deliver = async (message: Message) => `m-${sent.push(message)}`

const app = Fastify()
await app.register(onceonly)
const protect = createProtect({
  ledger: once,
  who: (request) => ({ tenant: 'acme', caller: request.headers.from ?? 'anonymous' }),
})

app.post<{ Body: Message }>(
  '/messages',
  protect(
    {
      name: 'message.send',
      effect: 'external',
      key: 'optional',
      content: { of: (body) => [body.to, body.text], withinMs: 15 * MINUTE },
    },
    async (request, reply, context) => {
      const id = await deliver(request.body)
      // The message exists: should this process die now, its content is not sent again.
      await context?.attach({ type: 'message', id })
      return reply.code(201).send({ id })
    },
  ),
)
const url = await app.listen({ port: 0, host: '127.0.0.1' })

const post = (message: Message, headers = {}) =>
  fetch(`${url}/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(message),
  })

// A double click, without a key: one message, and the same answer twice.
const hello = { to: '+4915112345678', text: 'Hello!' }
const [first, second] = await Promise.all([post(hello), post(hello)])
assert.deepEqual(await second.json(), await first.json())
assert.equal(sent.length, 1)
// A colleague of the same tenant sends the same: it is the same content.
assert.equal((await post(hello, { from: 'bob' })).headers.get('idempotent-replayed'), 'true')
// Another text is another content, and a key decides alone.
await post({ ...hello, text: 'Hello?' })
await post(hello, { 'idempotency-key': 'on-purpose' })
assert.equal(sent.length, 3)

console.log(`five requests, ${sent.length} messages`)
await app.close()
await once.stop()
