import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import { createLedger } from 'onceonly'
import type { HttpEventV1, HttpEventV2, HttpReturn, LambdaContext } from 'onceonly/lambda'
import { createProtect } from 'onceonly/lambda'
import { memoryStore } from 'onceonly/memory'

/** As the documentation of API Gateway shows them, with the fields that a function gets. */
const v1: HttpEventV1 = {
  httpMethod: 'POST',
  path: '/my/path',
  headers: { 'Content-Type': 'application/json', 'Idempotency-Key': 'k1', From: 'ann' },
  multiValueHeaders: { 'Content-Type': ['application/json'], 'Idempotency-Key': ['k1'], From: ['ann'] },
  queryStringParameters: { parameter1: 'value2', parameter2: 'a b' },
  multiValueQueryStringParameters: { parameter1: ['value1', 'value2'], parameter2: ['a b'] },
  requestContext: { domainName: 'id.execute-api.us-east-1.amazonaws.com' },
  body: '{"item":"pen"}',
  isBase64Encoded: false,
}
const v2: HttpEventV2 = {
  version: '2.0',
  rawPath: '/my/path',
  rawQueryString: 'parameter1=value1&parameter1=value2&parameter2=value',
  cookies: ['cookie1=a', 'cookie2=b'],
  headers: { 'content-type': 'application/json', 'idempotency-key': 'k1', from: 'ann' },
  requestContext: { domainName: 'id.lambda-url.us-east-1.on.aws', stage: '$default', http: { method: 'POST' } },
  body: '{"item":"pen"}',
  isBase64Encoded: false,
}

function invocation(leftMs = 30_000): LambdaContext {
  return { awsRequestId: 'c6af9ac6', getRemainingTimeInMillis: () => leftMs }
}

function open(context: TestContext, reserveMs?: number) {
  const ledger = createLedger({ store: memoryStore(), background: false })
  context.after(() => ledger.stop())
  const errors: unknown[] = []
  const protect = createProtect({
    ledger,
    who: () => ({ tenant: 'acme', caller: 'ann' }),
    onError: (error) => void errors.push(error),
    ...(reserveMs === undefined ? {} : { reserveMs }),
  })
  return { ledger, protect, errors }
}

for (const [format, event] of [
  ['1.0', v1],
  ['2.0', v2],
] as const) {
  test(`format ${format}: a retry gets the stored response, another payload 409`, async (context) => {
    const { protect } = open(context)
    let runs = 0
    const handler = protect({ name: 'order.place', effect: 'external' }, async (given) => {
      runs += 1
      return { statusCode: 201, headers: { Location: '/orders/1' }, body: given.body ?? '' }
    })
    const first = await handler(event, invocation())
    assert.deepEqual([first.statusCode, first.body, first.headers['location']], [201, '{"item":"pen"}', '/orders/1'])
    const again = await handler(event, invocation())
    assert.deepEqual([again.statusCode, again.body, again.isBase64Encoded], [201, '{"item":"pen"}', false])
    assert.equal(again.headers['idempotent-replayed'], 'true')
    assert.equal(again.multiValueHeaders?.['location']?.[0], format === '1.0' ? '/orders/1' : undefined)
    assert.equal((await handler({ ...event, body: '{"item":"ink"}' }, invocation())).statusCode, 409)
    assert.equal(runs, 1)
  })

  test(`format ${format}: the same bytes are the same request, in base64 too`, async (context) => {
    const { protect } = open(context)
    const handler = protect({ name: 'order.place', effect: 'external' }, () => ({ ok: true }))
    await handler(event, invocation())
    const body = Buffer.from(event.body ?? '').toString('base64')
    const again = await handler({ ...event, body, isBase64Encoded: true }, invocation())
    assert.deepEqual([again.statusCode, again.body, again.headers['idempotent-replayed']], [200, '{"ok":true}', 'true'])
  })

  test(`format ${format}: bytes and cookies leave as Lambda wants them`, async (context) => {
    const { protect } = open(context)
    const bytes = Uint8Array.of(0, 255)
    const handler = protect({ name: 'order.file', effect: 'external' }, () => {
      const response = new Response(bytes, { headers: { 'content-type': 'image/png' } })
      response.headers.append('set-cookie', 'a=1')
      response.headers.append('set-cookie', 'b=2')
      return response
    })
    const first = await handler(event, invocation())
    assert.deepEqual([first.isBase64Encoded, first.body], [true, 'AP8='])
    const cookies = format === '1.0' ? first.multiValueHeaders?.['set-cookie'] : first.cookies
    assert.deepEqual(cookies, ['a=1', 'b=2'])
    assert.deepEqual([(await handler(event, invocation())).body], ['AP8='])
  })
}

test('a key that stands there twice is refused', async (context) => {
  const { protect } = open(context)
  const handler = protect({ name: 'order.place', effect: 'external' }, () => assert.fail('it ran'))
  const twice = { ...v1, multiValueHeaders: { ...v1.multiValueHeaders, 'Idempotency-Key': ['k1', 'k2'] } }
  assert.equal((await handler(twice, invocation())).statusCode, 400)
})

test('without a name the path is the operation, whatever stage serves it', async (context) => {
  const { protect, ledger } = open(context)
  const handler = protect({ effect: 'external' }, () => 'done')
  const { requestContext } = v2
  const staged = { ...v2, rawPath: '/prod/my/path', requestContext: { ...requestContext, stage: 'prod' } }
  for (const event of [staged, v2]) await handler(event, invocation())
  const view = await ledger.get({ tenant: 'acme', caller: 'ann', operation: 'POST /my/path', key: 'k1' })
  assert.equal(view?.record.state, 'succeeded')
})

test('before Lambda ends the invocation, the signal fires and the caller is answered', async (context) => {
  const { protect, errors } = open(context, 20)
  let runs = 0
  const waiting = (signal: AbortSignal) =>
    new Promise<HttpReturn>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error))
    })
  const repeatable = protect({ name: 'order.again', effect: 'repeatable' }, async (_event, _context, { signal }) => {
    runs += 1
    return runs === 1 ? waiting(signal) : { runs }
  })
  assert.equal((await repeatable(v2, invocation(60))).statusCode, 500)
  assert.match(String(errors[0]), /DeadlineError: Lambda ends this invocation in 20 ms/)
  assert.equal((await repeatable(v2, invocation())).body, '{"runs":2}')
  const external = protect({ name: 'order.once', effect: 'external' }, () => new Promise<HttpReturn>(() => {}))
  assert.equal((await external(v2, invocation(60))).statusCode, 500)
  const retry = await external(v2, invocation())
  assert.equal(retry.statusCode, 409)
  assert.match(retry.body, /outcome-unknown/)
})

test('a twin does not wait beyond the end of its invocation', { timeout: 20_000 }, async (context) => {
  const { protect } = open(context, 20)
  const gate = Promise.withResolvers<HttpReturn>()
  const handler = protect(
    { name: 'order.slow', effect: 'external', whileRunning: { waitMs: 60_000 } },
    () => gate.promise,
  )
  const first = handler(v2, invocation())
  const twin = await handler(v2, invocation(60))
  assert.equal(twin.statusCode, 409)
  assert.match(twin.body, /retry-later/)
  gate.resolve({ ok: true })
  assert.equal((await first).statusCode, 200)
})

test('what the function forgot, or what is no request, is named', async (context) => {
  const { protect, errors } = open(context)
  const handler = protect({ name: 'order.place', effect: 'repeatable' }, () => undefined as unknown as HttpReturn)
  assert.equal((await handler(v2, invocation())).statusCode, 500)
  assert.match(String(errors[0]), /returned no response: return \{ statusCode, body \}/)
  await assert.rejects(handler({ Records: [] } as unknown as HttpEventV2, invocation()), /is no request of API Gateway/)
  const bare = handler as unknown as (event?: unknown, context?: unknown) => Promise<unknown>
  await assert.rejects(bare(undefined, invocation()), /This event \(undefined\) is no request of API Gateway/)
  await assert.rejects(bare(v2), /needs Lambda's context, not undefined/)
  const loose = createProtect as unknown as (options: unknown) => unknown
  const { ledger } = open(context)
  const who = () => ({ tenant: 'acme', caller: 'ann' })
  assert.throws(() => loose({ ledger, who, reserveMS: 5 }), /has no option `reserveMS`.*`reserveMs`/)
  assert.throws(() => loose({ ledger, who, reserveMs: 0 }), /`reserveMs`/)
})
