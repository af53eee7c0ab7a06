import assert from 'node:assert/strict'
import { createLedger } from 'onceonly'
import { createProtect } from 'onceonly/fetch'
import { webhookIdHeaders } from 'onceonly/http'
import { memoryStore } from 'onceonly/memory'

const once = createLedger({ store: memoryStore() })
const protect = createProtect({ ledger: once, who: () => ({ tenant: 'acme', caller: 'github' }) })

// Anything of the shape `(Request) => Response`: a worker, a route of a framework, a function in a cloud. Senders of
// webhooks deliver again when they hear nothing, under an id that stays the same.
const stars: string[] = []
const receive = protect(
  { name: 'webhook.star', effect: 'external', keyFrom: { header: webhookIdHeaders.github } },
  async (request) => {
    stars.push(await request.text())
    return new Response(null, { status: 204 })
  },
)

const deliver = () =>
  receive(
    new Request('https://example.com/hooks/github', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958' },
      body: '{"who":"Ann"}',
    }),
  )

assert.equal((await deliver()).status, 204)
const again = await deliver()
assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [204, 'true'])
assert.deepEqual(stars, ['{"who":"Ann"}'])

console.log('one webhook, delivered twice, counted once')
await once.stop()
