import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { openBrowser, skip } from '../../support/browser.ts'
import { demoKey, openedService } from '../../support/service/openapi/opened.ts'

test('the first page and the documentation work under their policies', { skip }, async () => {
  await using opened = await openedService()
  await using browser = await openBrowser()
  const { page, assertClean } = await browser.open()
  const answers: string[] = []
  page.on('response', (response) => void answers.push(`${response.request().method()} ${response.status()}`))
  await page.goto(opened.service.url)
  await until('the key is filled in', async () => (await page.getByLabel('API key').inputValue()) === demoKey)
  for (const replayed of ['no', 'yes']) {
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('row', { name: new RegExp(`^201 ${replayed} `) }).waitFor()
  }
  assert.deepEqual(
    answers.filter((each) => each.startsWith('POST')),
    ['POST 201', 'POST 201'],
  )
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
