import { join } from 'node:path'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { buildPages } from '../../console/build.ts'
import { inState, say, sit } from '../../test/support/chat.ts'
import { demoKey, openedService, operatorToken } from '../../test/support/service/openapi/opened.ts'
import { root } from '../command.ts'
import { startServers } from '../servers/index.ts'

/**
 * Takes the pictures of README and guides again, of the real server: `npx node --conditions=onceonly-source
 * tools/docs/picture.ts` writes docs/images/record.png and chat.jpg.
 */
const servers = await startServers(['browser'])
await buildPages()
await using opened = await openedService()
const { url } = opened.service
const browser = await chromium.connectOverCDP(servers.env['ONCEONLY_TEST_BROWSER_URL'] ?? '')
try {
  await takeRecord(browser)
  await takeChat(browser)
} finally {
  await browser.close()
  await servers.stop()
}

/** A command that is sent three times at once and once with another body: its record in the console. */
async function takeRecord(from: Browser): Promise<void> {
  const key = 'click-1001'
  const escalate = (reason: string) =>
    fetch(`${url}/case-escalations`, {
      method: 'POST',
      headers: { authorization: `Bearer ${demoKey}`, 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify({ caseId: 'CASE-100', targetQueue: 'LEGAL_REVIEW', reason }),
    })
  await Promise.all(['A double click', 'A double click', 'A double click'].map(escalate))
  await escalate('Another body under the same key')
  const page = await openPage(from, { viewport: { width: 1280, height: 500 } })
  await page.goto(`${url}/console`)
  await page.getByLabel('Token').fill(operatorToken)
  await page.getByLabel('Your name').fill('Mira')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.goto(`${url}/console/records?key=${key}`)
  await page.getByRole('cell', { name: key }).click()
  await page.getByRole('heading', { name: /succeeded/ }).waitFor()
  await shoot(page, 'record.png')
}

/** Three people in three regions, of which one is cut off while both sides reply. */
async function takeChat(from: Browser): Promise<void> {
  const people = { Ada: 'frankfurt', Grace: 'tokyo', Radia: 'sydney' }
  const pages = new Map<string, Page>()
  for (const [name, region] of Object.entries(people)) {
    const page = await openPage(from, { viewport: { width: 1180, height: 560 } })
    await sit(page, url, 'lunch', name, region)
    pages.set(name, page)
  }
  const at = (name: string) => {
    const page = pages.get(name)
    if (page === undefined) throw new Error(`${name} has no page.`)
    return page
  }
  const everywhere = async (text: string) => {
    for (const page of pages.values()) await inState(page, text, 'final').waitFor()
  }
  await say(at('Ada'), 'Ada', 'Lunch?')
  await everywhere('Lunch?')
  await at('Ada').getByRole('button', { name: 'Cut tokyo' }).click()
  await at('Grace').getByRole('button', { name: 'Heal tokyo' }).waitFor()
  await say(at('Ada'), 'Ada', 'At noon?', 'Lunch?')
  await inState(at('Radia'), 'At noon?', 'accepted')
    .or(inState(at('Radia'), 'At noon?', 'final'))
    .waitFor()
  await say(at('Radia'), 'Radia', 'Noon is fine.', 'At noon?')
  await say(at('Grace'), 'Grace', 'Not today, I am afraid.', 'Lunch?')
  await at('Ada').getByRole('button', { name: 'Heal tokyo' }).click()
  for (const text of ['At noon?', 'Noon is fine.', 'Not today, I am afraid.']) await everywhere(text)
  await shoot(at('Ada'), 'chat.jpg')
}

/** Without its policy on content, which would refuse the style of the pictures. */
async function openPage(from: Browser, options: BrowserContextOptions): Promise<Page> {
  const context = await from.newContext({ colorScheme: 'light', bypassCSP: true, ...options })
  return await context.newPage()
}

async function shoot(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: join(root, 'docs/images', name), style: '::-webkit-scrollbar { display: none }' })
}
