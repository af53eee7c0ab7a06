import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildPages } from '../../../console/build.ts'
import { openBrowser, skip } from '../../support/browser.ts'
import { demoKey, openedService, operatorToken } from '../../support/service/openapi/opened.ts'

test('in a real browser the console shows a sent message as a record, and the chat shows it to another window', {
  skip,
}, async () => {
  await buildPages()
  await using opened = await openedService()
  await using browser = await openBrowser()
  const { url } = opened.service
  const sent = await fetch(`${url}/case-escalations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${demoKey}`, 'content-type': 'application/json', 'idempotency-key': 'smoke-1' },
    body: JSON.stringify({ caseId: 'CASE-100', targetQueue: 'LEGAL_REVIEW', reason: 'smoke' }),
  })
  assert.equal(sent.status, 201, await sent.text())

  const operator = await browser.open()
  await operator.page.goto(`${url}/console`)
  await operator.page.getByLabel('Token').fill(operatorToken)
  await operator.page.keyboard.press('Enter')
  await operator.page.getByRole('heading', { name: 'Overview' }).waitFor()
  await operator.page.goto(`${url}/console/records?key=smoke-1`)
  await operator.page.getByRole('cell', { name: 'smoke-1' }).click()
  await operator.page.getByRole('heading', { name: /succeeded/ }).waitFor()
  operator.assertClean()

  const people = { Ada: await browser.open(), Grace: await browser.open() }
  for (const [name, { page }] of Object.entries(people)) {
    await page.goto(`${url}/chat?room=smoke&as=${name}&region=frankfurt`)
    await page.locator(`[aria-label="${name}"][data-link="online"]`).waitFor()
  }
  await people.Ada.page.getByRole('textbox', { name: 'Ada says' }).fill('lunch?')
  await people.Ada.page.getByRole('button', { name: 'Send' }).click()
  await people.Grace.page.locator('[data-message="lunch?"]').waitFor()
  for (const { assertClean } of Object.values(people)) assertClean()
})
