import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLedger, isOnceError } from 'onceonly'
import { createInbox } from 'onceonly/inbox'
import { sqliteStore } from 'onceonly/sqlite'
import { readStripeWebhook, stripeFingerprint } from 'onceonly/webhooks'

const folder = mkdtempSync(join(tmpdir(), 'onceonly-example-'))
const store = sqliteStore(join(folder, 'shop.db'))
const once = createLedger({ store })
await store.sql.query('create table payments (id text primary key, cents integer not null)')

interface PaymentEvent {
  readonly type: string
  readonly data: { readonly object: { readonly id: string; readonly amount: number } }
}

const secret = 'whsec_of_your_dashboard'
const payments = createInbox({ ledger: once, consumer: 'stripe', fingerprint: stripeFingerprint })

// A route of any framework that answers `Response`: Hono, Next.js, Bun, Deno.
async function POST(request: Request): Promise<Response> {
  const body = await request.text()
  try {
    const message = readStripeWebhook({ headers: request.headers, body }, { secrets: secret })
    const receipt = await payments.receive<PaymentEvent>(message, async (event, { tx }) => {
      if (event.type !== 'payment_intent.succeeded') return
      const { id, amount } = event.data.object
      await tx.query('insert into payments (id, cents) values (?, ?)', [id, amount])
    })
    // Stripe delivers again after anything but 2xx. A failure is tried again; what was parked waits for an operator here.
    return new Response(receipt.kind, { status: receipt.kind === 'later' ? 503 : 200 })
  } catch (error) {
    // Neither signed by Stripe, nor recent.
    if (isOnceError(error, 'bad_signature')) return new Response(error.message, { status: 400 })
    throw error
  }
}

const event = {
  id: 'evt_1',
  type: 'payment_intent.succeeded',
  pending_webhooks: 2,
  data: { object: { id: 'pi_1', amount: 4200 } },
}
function delivered(content: object, key = secret): Request {
  const body = JSON.stringify(content)
  const seconds = Math.floor(Date.now() / 1_000)
  const signature = createHmac('sha256', key).update(`${seconds}.${body}`).digest('hex')
  const headers = { 'stripe-signature': `t=${seconds},v1=${signature}` }
  return new Request('https://shop.example/hooks/stripe', { method: 'POST', headers, body })
}

assert.equal(await (await POST(delivered(event))).text(), 'handled')
// Delivered again, with another count of pending webhooks: the same event.
assert.equal(await (await POST(delivered({ ...event, pending_webhooks: 1 }))).text(), 'duplicate')
// Another content under the same id is reported, and not run.
assert.equal(
  await (await POST(delivered({ ...event, data: { object: { id: 'pi_2', amount: 1 } } }))).text(),
  'conflict',
)
assert.equal((await POST(delivered(event, 'whsec_of_another_sender'))).status, 400)
assert.deepEqual({ ...(await store.sql.query('select id, cents from payments'))[0] }, { id: 'pi_1', cents: 4200 })

console.log('three deliveries of one event, one payment')
await once.stop()
rmSync(folder, { recursive: true })
