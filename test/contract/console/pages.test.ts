import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { buildPages } from '../../../console/build.ts'
import { type Opened, openedService } from '../../support/service/openapi/opened.ts'

let opened: Opened

before(async () => {
  await buildPages()
  opened = await openedService()
})
after(() => opened[Symbol.asyncDispose]())

test('a page is asked for every time, its files never again', async () => {
  const page = await fetch(`${opened.service.url}/console/records/anything`)
  const html = await page.text()
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
  assert.equal(page.headers.get('cache-control'), 'no-cache')
  const again = { headers: { 'if-none-match': page.headers.get('etag') ?? '' } }
  assert.equal((await fetch(`${opened.service.url}/console`, again)).status, 304)

  const [, script = ''] = /src="(\/console\/assets\/[^"]+\.js)"/.exec(html) ?? []
  const file = await fetch(opened.service.url + script)
  assert.equal(file.headers.get('cache-control'), 'public, max-age=31536000, immutable')
  assert.equal(file.headers.get('content-type'), 'text/javascript; charset=utf-8')
  assert.equal(file.headers.get('content-encoding'), 'gzip')
  for (const missing of ['/console/assets/none.js', '/console/assets/..%2f..%2fpackage.json']) {
    assert.equal((await fetch(opened.service.url + missing)).status, 404, missing)
  }
})

/** In KB: the charts and the layout of diagrams come later, where they are shown. */
const SCRIPT_KB_MOST = 70

for (const path of ['/console', '/chat', '/']) {
  test(`what ${path} loads before it shows something is below ${SCRIPT_KB_MOST} KB`, async (t) => {
    const html = await (await fetch(opened.service.url + path)).text()
    const scripts = [...html.matchAll(/(?:src|href)="(\/console\/assets\/[^"]+\.js)"/g)].map(([, each = '']) => each)
    assert.ok(scripts.length > 0)
    const files = await Promise.all(scripts.map(async (each) => (await fetch(opened.service.url + each)).arrayBuffer()))
    const bytes = files.reduce((sum, file) => sum + gzipSync(file).length, 0)
    t.diagnostic(`${bytes} bytes`)
    assert.ok(bytes < SCRIPT_KB_MOST * 1_000, `${bytes} bytes`)
  })
}

test('nothing runs on a page but files of the same host', async () => {
  for (const path of ['/console', '/chat', '/']) {
    const response = await fetch(opened.service.url + path)
    const policy = response.headers.get('content-security-policy') ?? ''
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/)
    assert.doesNotMatch(policy, /unsafe/)
    assert.doesNotMatch(await response.text(), /<script(?![^>]* src=)|<style| style=| on\w+=/)
  }
})
