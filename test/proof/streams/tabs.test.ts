import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import type { Page } from 'playwright-core'
import { until } from '../../../src/testing/until.ts'
import { openBrowser, skip } from '../../support/browser.ts'
import { bundle } from '../../support/bundle.ts'

const program = `
  import { createIndexedDbStorage } from 'onceonly/stream'
  import { holdStorage } from 'onceonly/stream/browser'
  globalThis.lost = 0
  globalThis.hold = async (name, options) => {
    const held = await holdStorage(name, { ...options, onLost: () => (globalThis.lost += 1) })
    globalThis.held = held
    return held !== null
  }
  globalThis.open = async (name) => {
    globalThis.storage = createIndexedDbStorage({ name })
    const record = await globalThis.storage.load()
    if (record === null) await globalThis.storage.identify({ client: 'ann', epoch: 1, generation: 1 })
    return record?.pending.map(({ message }) => message.body) ?? []
  }
  globalThis.save = (number, body) =>
    globalThis.storage.save({ number, message: { seen: {}, replyTo: null, body } }).then(() => 'saved', ({ code }) => code)
`

interface Tab {
  hold(name: string, options: object): Promise<boolean>
  open(name: string): Promise<readonly unknown[]>
  save(number: number, body: string): Promise<string>
  reload(): Promise<void>
  close(): Promise<void>
}

async function tabOf(page: Page, url: string): Promise<Tab> {
  const begin = async () => {
    await page.goto(url)
    await page.waitForFunction('typeof globalThis.save === "function"')
  }
  const call = <T>(name: string, ...given: readonly unknown[]) =>
    page.evaluate(`globalThis.${name}(...${JSON.stringify(given)})`) as Promise<T>
  await begin()
  return {
    hold: (name, options) => call('hold', name, options),
    open: (name) => call('open', name),
    save: (number, body) => call('save', number, body),
    reload: begin,
    close: () => page.close({ runBeforeUnload: false }),
  }
}

// `locks: null` is what a page on plain HTTP has.
for (const [what, locks] of [
  ['locks', {}],
  ['a lease', { locks: null }],
] as const) {
  test(`tabs of a browser, by ${what}: one has the storage, a reload keeps it, a closed tab leaves it`, {
    skip,
  }, async () => {
    const code = await bundle(program)
    const server = createServer((request, response) => {
      const isCode = request.url === '/bundle.js'
      response.setHeader('content-type', isCode ? 'text/javascript' : 'text/html')
      response.end(isCode ? code : '<!doctype html><title>tab</title><script type="module" src="/bundle.js"></script>')
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    after(() => void server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    await using browser = await openBrowser()
    const { page } = await browser.open()
    const another = async () => tabOf(await page.context().newPage(), url)
    const [first, second] = [await tabOf(page, url), await another()]
    assert.equal(await first.hold('ann', locks), true)
    assert.equal(await second.hold('ann', locks), false)
    assert.equal(await second.hold('bob', locks), true)
    // A few reloads; the previous page may take a moment to end.
    for (let times = 0; times < 3; times++) {
      await first.reload()
      assert.equal(await first.hold('ann', { ...locks, waitMs: 60_000 }), true)
      assert.equal(await second.hold('ann', locks), false)
    }
    await first.open('ann')
    assert.equal(await first.save(1, 'kept by the first'), 'saved')
    // A tab that opens it without asking has it from then on.
    assert.deepEqual(await second.open('ann'), ['kept by the first'])
    assert.equal(await first.save(2, 'too late'), 'storage_taken')
    assert.equal(await second.save(2, 'kept by the second'), 'saved')
    await first.close()
    await until('the storage is free', () => second.hold('ann', locks))
    const third = await another()
    assert.equal(await third.hold('ann', locks), false)
    assert.deepEqual(await third.open('ann'), ['kept by the first', 'kept by the second'])
  })
}
