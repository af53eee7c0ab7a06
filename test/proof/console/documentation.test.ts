import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { openBrowser, skip } from '../../support/browser.ts'
import { openedService } from '../../support/service/openapi/opened.ts'

test('the documentation shows every operation', { skip }, async () => {
  await using opened = await openedService()
  await using browser = await openBrowser()
  const { page, assertClean } = await browser.open()
  const document = (await (await fetch(`${opened.service.url}/docs/openapi.json`)).json()) as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly operationId?: string }>>>>
  }
  const wanted = Object.values(document.paths).flatMap((path) =>
    Object.values(path).flatMap(({ operationId }) => operationId ?? []),
  )
  assert.ok(wanted.length > 30, String(wanted.length))
  await page.goto(`${opened.service.url}/docs`)
  const shown = page.locator('.opblock')
  await until(
    'all are drawn',
    () => shown.count(),
    (count) => count === wanted.length,
  )
  const ids = await shown.evaluateAll((blocks) => blocks.map(({ id }) => id))
  assert.equal(new Set(ids).size, wanted.length)
  assertClean()
})

test('an operation of the documentation can be tried, twice, from the link to it', { skip }, async () => {
  await using opened = await openedService()
  await using browser = await openBrowser()
  const { page, assertClean } = await browser.open()
  await page.goto(`${opened.service.url}/docs#case.escalate`)
  const operation = page.locator('.opblock.is-open')
  await operation.getByText('Safe to repeat.').waitFor()
  await operation.getByPlaceholder('Idempotency-Key').fill('tried-in-the-browser')
  await operation.getByRole('button', { name: 'Execute' }).click()
  const live = operation.locator('.live-responses-table')
  await live.getByText('201', { exact: true }).waitFor()
  assert.doesNotMatch(await live.innerText(), /idempotent-replayed: true/)
  await operation.getByRole('button', { name: 'Execute' }).click()
  await live.getByText('idempotent-replayed: true').waitFor()
  assertClean()
})
