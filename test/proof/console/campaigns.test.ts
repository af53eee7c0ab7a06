import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Page } from 'playwright-core'
import { buildPages } from '../../../console/build.ts'
import { until } from '../../../src/testing/until.ts'
import { openBrowser, skip, type TestBrowser } from '../../support/browser.ts'
import { type Cluster, openCluster, type TestServer } from '../../support/service/cluster.ts'
import { begin } from '../../support/service/outreach/campaigns.ts'
import { type KeyedProvider, type Mood, startKeyedProvider } from '../../support/service/outreach/keyed-provider.ts'
import { makeLead, store } from '../../support/service/outreach/outreach.ts'

const LEADS = 6
const LET_BY = 2

let browser: TestBrowser
let cluster: Cluster
let server: TestServer
let provider: KeyedProvider
/** Requests beyond the first ones wait for it. */
const doors = Promise.withResolvers<void>()
let came = 0

async function moodOf(): Promise<Mood> {
  if (++came > LET_BY) await doors.promise
  return 'answer'
}

before(async () => {
  if (skip !== false) return
  await buildPages()
  provider = await startKeyedProvider(moodOf)
  cluster = await openCluster('sqlite', { env: { ONCEONLY_WEBHOOK_HOSTS: '127.0.0.1' } })
  ;[server] = cluster.servers as [TestServer]
  browser = await openBrowser()
})
after(async () => {
  if (skip !== false) return
  await browser[Symbol.asyncDispose]()
  doors.resolve()
  await cluster[Symbol.asyncDispose]()
  await provider[Symbol.asyncDispose]()
})

async function openCampaigns(page: Page): Promise<void> {
  await page.goto(`${server.url}/console`)
  await page.getByLabel('Token').fill('operator-token-of-tests')
  await page.keyboard.press('Enter')
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Campaigns' }).click()
}

async function countOf(page: Page, state: string): Promise<number> {
  const shown = page.locator(`[data-state="${state}"]`)
  return (await shown.count()) === 0 ? 0 : Number(await shown.textContent())
}

test('the page of a campaign follows it without being loaded again, and ends with what the provider has done', {
  skip,
}, async () => {
  const addresses = Array.from({ length: LEADS }, (_, at) => `live${at}@example.com`)
  const leadIds = await Promise.all(addresses.map((recipientEmail) => makeLead(server, { recipientEmail })))
  const steps = [{ id: 'hook', type: 'webhook', url: `${provider.url}/in`, template: 'Live' }]
  const sequenceId = await store(server, 'Live', steps)

  const { page, assertClean } = await browser.open()
  await openCampaigns(page)
  await page.getByText('No campaign was started yet.').waitFor()

  await begin(server, { sequenceId, leadIds, campaignId: 'live' })
  await page.goto(`${server.url}/console/campaigns`)
  await page.getByRole('link', { name: 'live' }).click()
  await until(
    'those that were let by have ended on the page',
    () => countOf(page, 'succeeded'),
    (count) => count === LET_BY,
  )
  assert.equal(await page.getByText('live', { exact: true }).last().isVisible(), true)
  assert.equal(provider.effects.size, LET_BY)
  doors.resolve()
  await until(
    'all have ended on the page',
    () => countOf(page, 'succeeded'),
    (count) => count === LEADS,
  )
  assert.equal(provider.effects.size, LEADS)
  const bar = page.getByRole('progressbar', { name: `${LEADS} of ${LEADS} leads have ended` })
  await bar.waitFor()
  await page.locator('h1 .badge', { hasText: 'succeeded' }).waitFor()
  assertClean()

  // Nothing of it is for a visitor who is not signed in, or for the key of a workspace.
  const path = `/api/console/campaigns/${page.url().split('/campaigns/')[1]}/events`
  for (const headers of [{}, { authorization: `Bearer ${server.apiKey}` }]) {
    assert.equal((await fetch(server.url + path, { headers })).status, 401)
  }
})

test('a campaign is cancelled and resumed on its page, which follows it again', { skip }, async () => {
  const leadIds = [await makeLead(server, { recipientEmail: 'later@example.com' })]
  const steps = [{ id: 'hook', type: 'webhook', url: `${provider.url}/in`, template: 'Later' }]
  const sequenceId = await store(server, 'Later', steps)
  const startAt = new Date(Date.now() + 3_600_000).toISOString()
  await begin(server, { sequenceId, leadIds, campaignId: 'later', startAt })

  const { page, assertClean } = await browser.open()
  await openCampaigns(page)
  await page.getByRole('link', { name: 'later' }).click()
  const state = (name: string) => page.locator('h1 .badge', { hasText: name }).waitFor()
  await state('sleeping')
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel the campaign' }).click()
  await state('cancelled')
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Resume the campaign' }).click()
  await state('sleeping')
  assertClean()
})
