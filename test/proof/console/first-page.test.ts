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
  await page.goto(`${opened.service.url}/docs`)
  await page.locator('#filter').fill('escalations')
  await page.locator('nav li[hidden]').first().waitFor({ state: 'attached' })
  assertClean()
})
