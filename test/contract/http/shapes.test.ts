import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { type TestContext, test } from 'node:test'
import { createLedger } from 'onceonly'
import type { RouteDefinition } from 'onceonly/http'
import { memoryStore } from 'onceonly/memory'
import { createProtect } from 'onceonly/node'
import { listen } from './listen.ts'

interface Payment {
  readonly amount: number
  readonly note?: string
}

type Shaped = Pick<RouteDefinition<unknown>, 'fingerprint' | 'shape' | 'shapes'>

const byAmount = { fingerprint: ({ amount }: Payment) => ({ amount }) }
const wholeBody = (body: Payment) => body

/** Versions of one route, deployed one after the other on one store. */
function deployments(context: TestContext) {
  const store = memoryStore({ testClock: true })
  let paid = 0
  async function deploy(shaped: Shaped, effect: 'external' | 'transaction' = 'external') {
    const ledger = createLedger({ store, background: false })
    context.after(() => ledger.stop())
    const protect = createProtect({ ledger, who: () => ({ tenant: 'acme', caller: 'ann' }) })
    const pay = protect({ name: 'payment.create', effect, ...shaped }, (_request, response) => {
      response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ payment: ++paid }))
    })
    const { port, stop } = await listen(createServer((request, response) => void pay(request, response)))
    context.after(stop)
    return async (key: string, body: Payment) => {
      const answer = await fetch(`http://127.0.0.1:${port}/payments`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': key },
        body: JSON.stringify(body),
      })
      const { payment, type } = (await answer.json()) as { payment?: number; type?: string }
      return payment ?? type?.split('/').at(-1)
    }
  }
  return deploy
}

for (const effect of ['external', 'transaction'] as const) {
  test(`${effect}: a new shape compares an older record under its own form`, async (context) => {
    const deploy = deployments(context)
    const first = await deploy({}, effect)
    assert.equal(await first('one', { amount: 10, note: 'a' }), 1)
    const second = await deploy({ ...byAmount, shape: 2, shapes: { 1: wholeBody } }, effect)
    assert.equal(await second('one', { amount: 10, note: 'a' }), 1, 'the same payload is replayed')
    assert.equal(await second('one', { amount: 10, note: 'b' }), 'idempotency-key-reused', 'by the older form')
    assert.equal(await second('one', { amount: 99_999, note: 'a' }), 'idempotency-key-reused')
    assert.equal(await second('two', { amount: 20, note: 'a' }), 2)
    assert.equal(await second('two', { amount: 20, note: 'b' }), 2, 'a record of now is compared by the form of now')
  })

  test(`${effect}: a record of a shape that the route does not know is never replayed`, async (context) => {
    const deploy = deployments(context)
    const first = await deploy(byAmount, effect)
    assert.equal(await first('one', { amount: 10 }), 1)
    const second = await deploy({ shape: 2 }, effect)
    assert.equal(await second('one', { amount: 99_999 }), 'idempotency-key-reused')
    assert.equal(await second('one', { amount: 10 }), 'idempotency-key-reused', 'the two cannot be distinguished')
    assert.equal(await second('two', { amount: 20 }), 2)
    assert.equal(await first('two', { amount: 99_999 }), 'idempotency-key-reused', 'after a rollback')
    assert.equal(await first('one', { amount: 10 }), 1)
  })
}

test('every old form has to be a function, and none may be the current one', async (context) => {
  const deploy = deployments(context)
  await assert.rejects(deploy({ shape: 2, shapes: { 2: wholeBody } }), /shapes/)
  await assert.rejects(deploy({ shape: 2, shapes: { 1: 'whole' as never } }), /shapes/)
})
