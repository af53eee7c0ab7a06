import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import type { Type } from '@nestjs/common'
import { Controller, Module, Post, UploadedFile, UseInterceptors, ValidationPipe } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { FileInterceptor } from '@nestjs/platform-express'
import { createLedger, isOnceError } from 'onceonly'
import { memoryStore } from 'onceonly/memory'
import type { LeasedRouteContext } from 'onceonly/nest'
import { Idempotent, Once, OnceonlyModule } from 'onceonly/nest'
import { sqliteStore } from 'onceonly/sqlite'
import type { Platform } from './platforms.ts'
import { platforms, start } from './platforms.ts'
import { Journal, Order, OrdersController, shopModule } from './shop.ts'

async function open(context: TestContext, platform: Platform, rawBody = true) {
  const folder = mkdtempSync(join(tmpdir(), 'onceonly-nest-'))
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  const store = sqliteStore(join(folder, 'shop.db'))
  const ledger = createLedger({ store, background: false })
  const journal = new Journal()
  await store.sql.query('create table orders (item text)')
  const { port, app } = await start(
    platform,
    shopModule(ledger, journal),
    (each) => each.useGlobalPipes(new ValidationPipe({ transform: true, whitelist: true })),
    { rawBody },
  )
  context.after(() => app.close())
  const post = async (path: string, body: unknown, key: string | null = 'k', user: string | null = 'ann') =>
    fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      redirect: 'manual',
      body: JSON.stringify(body),
      headers: {
        'content-type': 'application/json',
        ...(key === null ? {} : { 'idempotency-key': key }),
        ...(user === null ? {} : { 'x-user': user }),
      },
    })
  const rows = async () => (await store.sql.query<{ item: string }>('select item from orders')).map(({ item }) => item)
  return { post, rows, journal, ledger, app, port }
}

const pen = { item: 'pen', count: 1 }

async function assertReplay(first: Response, second: Response): Promise<void> {
  assert.equal(second.headers.get('idempotent-replayed'), 'true')
  assert.equal(second.status, first.status)
  assert.equal(await second.text(), await first.text())
  for (const name of ['content-type', 'location', 'etag', 'content-disposition']) {
    assert.equal(second.headers.get(name), first.headers.get(name), name)
  }
}

for (const platform of platforms) {
  const on = (name: string, body: (context: TestContext) => Promise<void>) => test(`nest on ${platform}: ${name}`, body)

  on('a write and its record commit together, and a retry is answered from the record', async (context) => {
    const { post, rows, journal } = await open(context, platform)
    const first = await post('/orders', pen)
    assert.equal(first.status, 201)
    await assertReplay(first, await post('/orders', pen))
    assert.deepEqual([await rows(), journal.ran], [['pen'], ['pen']])
  })

  on('guards and pipes refuse before anything is claimed', async (context) => {
    const { post, rows } = await open(context, platform)
    assert.equal((await post('/orders', pen, 'k', null)).status, 403)
    assert.equal((await post('/orders', { item: 'pen', count: 'many' })).status, 400)
    assert.equal((await post('/orders', pen)).status, 201)
    assert.deepEqual(await rows(), ['pen'])
  })

  on('another payload under the same key is refused, also without raw bodies', async (context) => {
    for (const rawBody of [true, false]) {
      const { post, rows } = await open(context, platform, rawBody)
      assert.equal((await post('/orders', pen)).status, 201)
      const other = await post('/orders', { item: 'ink', count: 1 })
      assert.equal(other.status, 409)
      assert.match(other.headers.get('content-type') ?? '', /problem\+json/)
      assert.equal((await post('/orders', pen, null)).status, 400)
      assert.deepEqual(await rows(), ['pen'])
    }
  })

  on('an HttpException is recorded by its status, and what the method wrote is undone', async (context) => {
    const { post, rows, journal } = await open(context, platform)
    const first = await post('/orders', { item: 'nothing', count: 1 })
    assert.equal(first.status, 409)
    await assertReplay(first, await post('/orders', { item: 'nothing', count: 1 }))
    assert.deepEqual([await rows(), journal.ran], [[], ['nothing']])
  })

  on('an error rolls back, and the retry runs again', async (context) => {
    const { post, rows, journal } = await open(context, platform)
    for (const _ of [1, 2]) assert.equal((await post('/orders', { item: 'broken', count: 1 })).status, 500)
    assert.deepEqual([await rows(), journal.ran], [[], ['broken', 'broken']])
  })

  on('status, headers and what interceptors made of the value are recorded once', async (context) => {
    const { post, journal } = await open(context, platform)
    const first = await post('/orders/wrapped', pen)
    const body = (await first.clone().json()) as { data: { item: string; effectKey: string } }
    assert.deepEqual([first.status, first.headers.get('etag'), body.data.item], [202, '"7"', 'pen'])
    await assertReplay(first, await post('/orders/wrapped', pen))
    assert.deepEqual(journal.ran, ['pen'])
  })

  on('a redirect, a file, and a response by hand are replayed', async (context) => {
    const { post, journal } = await open(context, platform)
    const expected = { elsewhere: 303, file: 201, 'by-hand': 409 }
    for (const [path, status] of Object.entries(expected)) {
      const first = await post(`/orders/${path}`, pen)
      assert.equal(first.status, status, path)
      await assertReplay(first, await post(`/orders/${path}`, pen))
    }
    assert.equal(journal.ran.length, 3)
  })

  on('what an exception filter answers is recorded by its status', async (context) => {
    const { post, journal } = await open(context, platform)
    const first = await post('/orders/filtered', pen)
    assert.deepEqual([first.status, await first.clone().json()], [422, { reason: 'sold out' }])
    await assertReplay(first, await post('/orders/filtered', pen))
    assert.deepEqual(journal.ran, ['pen'])
  })

  on('a time limit in an interceptor does not give the claim back while the method runs', async (context) => {
    const { post, journal } = await open(context, platform)
    assert.equal((await post('/orders/slow', pen)).status, 408)
    const retry = await post('/orders/slow', pen)
    assert.equal(retry.status, 409)
    assert.match(await retry.text(), /unknown/)
    journal.open.resolve()
    assert.deepEqual(journal.ran, ['pen'])
  })

  on('a pipe on the whole method sees only what the method declares', async (context) => {
    const { post } = await open(context, platform)
    assert.deepEqual(await (await post('/orders/piped', pen)).json(), { item: 'pen', attemptNumber: 1 })
  })

  on('without a key the content is one', async (context) => {
    const { post, journal } = await open(context, platform)
    const first = await post('/orders/alike', pen, null)
    assert.deepEqual(await first.clone().json(), { item: 'pen', protected: true })
    await assertReplay(first, await post('/orders/alike', { ...pen, count: 2 }, null))
    assert.deepEqual(journal.ran, ['pen'])
  })

  on('controllers per request, and those that inherit, are protected too', async (context) => {
    const { post, rows } = await open(context, platform)
    const first = await post('/scoped/again', pen)
    await assertReplay(first, await post('/scoped/again', pen))
    assert.equal((await post('/scoped', pen, 'k2')).status, 201)
    assert.equal((await post('/scoped', pen, 'k2')).headers.get('idempotent-replayed'), 'true')
    assert.deepEqual(await rows(), ['pen'])
  })

  on('the outcome of a request is shown to its caller', async (context) => {
    const { post, ledger, port } = await open(context, platform)
    await post('/orders', pen)
    const view = await ledger.get({ tenant: 'acme', caller: 'ann', operation: 'order.place', key: 'k' })
    const url = `http://127.0.0.1:${port}/operations/${view?.record.id}`
    const shown = await fetch(url, { headers: { 'x-user': 'ann' } })
    assert.deepEqual([shown.status, ((await shown.json()) as { status: string }).status], [200, 'succeeded'])
    assert.equal((await fetch(url, { headers: { 'x-user': 'bob' } })).status, 404)
  })

  on('the ledger stops with the application', async (context) => {
    const { post, app, ledger } = await open(context, platform)
    await post('/orders', pen)
    await app.close()
    await assert.rejects(
      async () => ledger.operation({ name: 'late', effect: 'external' }),
      (error) => isOnceError(error, 'stopped'),
    )
  })
}

test('nest on express: another file under the same key is refused', async (context) => {
  @Controller('files')
  class FilesController {
    @Post()
    @UseInterceptors(FileInterceptor('file'))
    @Idempotent({ name: 'file.keep', effect: 'external' })
    keep(@UploadedFile() file: { readonly size: number }) {
      return { size: file.size }
    }
  }
  const ledger = createLedger({ store: memoryStore(), background: false })
  const who = () => ({ tenant: 'acme', caller: 'shared' })
  @Module({ imports: [OnceonlyModule.forRoot({ ledger, who })], controllers: [FilesController] })
  class FilesModule {}
  const { port, app } = await start('express', FilesModule)
  context.after(() => app.close())
  const send = (text: string) => {
    const body = new FormData()
    body.set('file', new Blob([text]), 'notes.txt')
    return fetch(`http://127.0.0.1:${port}/files`, { method: 'POST', headers: { 'idempotency-key': 'k' }, body })
  }
  const first = await send('one')
  assert.equal(first.status, 201)
  await assertReplay(first, await send('one'))
  assert.equal((await send('two')).status, 409)
})

test('an instance that Nest did not make calls its method directly', async () => {
  const journal = new Journal()
  const controller = new OrdersController(journal)
  assert.deepEqual(controller.file(Object.assign(new Order(), pen)).options.type, 'text/plain')
  assert.deepEqual(journal.ran, ['pen'])
})

const boot = (module: Type<unknown>) =>
  NestFactory.create(module, { logger: false, abortOnError: false }).then((app) => app.init())

test('an application without the module does not start', async () => {
  @Module({ controllers: [OrdersController], providers: [Journal] })
  class Bare {}
  await assert.rejects(boot(Bare), /OnceonlyHost/)
})

test('@Once() without @Idempotent is named when the application starts', async () => {
  @Controller()
  class Half {
    @Post()
    place(@Once() _once: LeasedRouteContext): void {}
  }
  const ledger = createLedger({ store: memoryStore(), background: false })
  const who = () => ({ tenant: 'acme', caller: 'shared' })
  @Module({ imports: [OnceonlyModule.forRoot({ ledger, who })], controllers: [Half] })
  class HalfModule {}
  await assert.rejects(boot(HalfModule), {
    message: 'Half.place has a parameter with @Once(), but no @Idempotent({ name, effect }).',
  })
})

test('wrong first uses get one sentence', () => {
  const who = () => ({ tenant: 'acme', caller: 'shared' })
  const ledger = createLedger({ store: memoryStore(), background: false })
  const loose = OnceonlyModule as unknown as { forRoot(options: unknown): void; forRootAsync(options: unknown): void }
  assert.throws(() => loose.forRoot({ who }), {
    message: 'OnceonlyModule.forRoot needs a `ledger`: pass createLedger({ store }).',
  })
  assert.throws(() => loose.forRoot({ ledger, who, stopledger: true }), /has no option `stopledger`.*`stopLedger`/)
  assert.throws(() => loose.forRootAsync({ factory: () => ({}) }), /has no option `factory`/)
  const Loose = Idempotent as unknown as (definition: unknown) => unknown
  assert.throws(() => Loose({ name: 'x', effect: 'external', ttl: 5 }), /has no option `ttl`/)
})
