import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { buildPages } from '../../console/build.ts'
import { demoKey, openedService, operatorToken } from '../../test/support/service/openapi/opened.ts'
import { root } from '../command.ts'
import { startServers } from '../servers/index.ts'

/**
 * Takes the picture of the README again: the real server, a command that is sent three times at once and once with another
 * body, and its record in the console. `node tools/docs/picture.ts` writes docs/images/record.png.
 */
const KEY = 'click-1001'
const servers = await startServers(['browser'])
await buildPages()
await using opened = await openedService()
const { url } = opened.service
const escalate = (reason: string) =>
  fetch(`${url}/case-escalations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${demoKey}`, 'content-type': 'application/json', 'idempotency-key': KEY },
    body: JSON.stringify({ caseId: 'CASE-100', targetQueue: 'LEGAL_REVIEW', reason }),
  })
await Promise.all(['A double click', 'A double click', 'A double click'].map(escalate))
await escalate('Another body under the same key')

const browser = await chromium.connectOverCDP(servers.env['ONCEONLY_TEST_BROWSER_URL'] ?? '')
const context = await browser.newContext({ viewport: { width: 1180, height: 500 }, colorScheme: 'light' })
const page = await context.newPage()
try {
  await page.goto(`${url}/console`)
  await page.getByLabel('Token').fill(operatorToken)
  await page.getByLabel('Your name').fill('Mira')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.goto(`${url}/console/records?key=${KEY}`)
  await page.getByRole('cell', { name: KEY }).click()
  await page.getByRole('heading', { name: /succeeded/ }).waitFor()
  await page.screenshot({ path: join(root, 'docs/images/record.png') })
} finally {
  await browser.close()
  await servers.stop()
}
