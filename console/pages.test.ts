import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Opened, openedService } from '../service/openapi/test-opened.ts'
import { buildPages } from './build.ts'
import { openBrowser, skip, type TestBrowser } from './test-browser.ts'

let opened: Opened
let browser: TestBrowser | null = null

before(async () => {
  await buildPages()
  opened = await openedService()
  if (skip === false) browser = await openBrowser()
})
after(async () => {
  await browser?.[Symbol.asyncDispose]()
  await opened[Symbol.asyncDispose]()
})

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

test('nothing runs on a page but files of the same host', async () => {
  for (const path of ['/console', '/chat']) {
    const response = await fetch(opened.service.url + path)
    const policy = response.headers.get('content-security-policy') ?? ''
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/)
    assert.doesNotMatch(policy, /unsafe/)
    assert.doesNotMatch(await response.text(), /<script(?![^>]* src=)|<style| style=| on\w+=/)
  }
})

test('the console can be walked with the keyboard, in the dark and on a phone', { skip }, async () => {
  assert.ok(browser !== null)
  const { page, assertClean } = await browser.open({ colorScheme: 'dark' })
  await page.goto(`${opened.service.url}/console`)
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  assert.equal(await page.locator('html').getAttribute('data-theme'), 'dark')
  await page.getByRole('button', { name: /^Colours: system/ }).click()
  assert.equal(await page.locator('html').getAttribute('data-theme'), 'light')

  await page.getByRole('link', { name: 'Overview' }).focus()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Records' }).waitFor()
  assert.equal(new URL(page.url()).pathname, '/console/records')
  await page.goBack()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()

  await page.setViewportSize({ width: 360, height: 640 })
  const overflow = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
  assert.equal(overflow, 0)
  assertClean()
})
