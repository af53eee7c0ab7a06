import type { Page } from 'playwright-core'
import { loaded } from '../browser.ts'

/** Every page, and what stands on it once it is there. */
export const places = [
  ['/console', 'Overview'],
  ['/console?range=24h', 'Overview'],
  ['/console/records', 'Records'],
  ['/console/records?view=unknowns', /Unknown outcomes/],
  ['/console/records?view=conflicts', 'Conflicts'],
  ['/console/records?view=stale', 'Stale leases'],
  ['/console/guard', 'Guard'],
  ['/console/events', 'Events'],
  ['/console/events/inbox/escalations.notices', 'Events'],
  ['/console/sagas', 'Sagas'],
  ['/console/sagas/SearchImportJob', 'SearchImportJob'],
  ['/console/runs', 'Runs'],
  ['/console/runs?state=failed&since=1d', 'Runs'],
  ['/console/runs?parent=shop%2Ffamily-1', 'Runs'],
  ['/console/runs?view=queues', 'Queues'],
  ['/console/runs?view=schedules', 'Schedules'],
  ['/console/runs/shop%2Fdeliver-1', /deliver-1/],
  ['/console/runs/shop%2Fcharge-1', /charge-1/],
  ['/console/runs/shop%2Ffamily-1', /family-1/],
  ['/console/campaigns', 'Campaigns'],
  ['/console/streams', 'Streams'],
  ['/console/checklist', 'Checklist'],
  ['/console/data', 'Data'],
  ['/console/audit', 'Audit'],
  ['/console/find?id=seen-1', 'Find'],
  ['/console/nothing', 'Not found'],
  ['/chat?room=axe', /Chat/],
  ['/', /Retries/],
  ['/docs#case.escalate', /Onceonly/],
] as const

/** Lists whose first row leads to a page with an id that the server has made. */
export const details = [
  ['/console/sagas/SearchImportJob', 'one saga'],
  ['/console/campaigns', 'one campaign'],
  ['/console/streams', 'one room'],
  ['/console/records?key=lost', 'one record'],
] as const

/** Buttons that open a dialog, where they stand, and what is in it once it has loaded. */
export const dialogs = [
  ['/console/records?key=lost', 'Resolve', 'It happened'],
  ['/console/records?key=lost', 'Forget', 'The key is free again'],
  ['/console/runs?definition=deliver', 'Resume several', 'Preview: '],
  ['/console/runs?definition=deliver', 'Cancel several', 'No run that matches'],
  ['/console/runs/shop%2Fdeliver-1', 'Fork', 'From the step'],
  ['/console/runs/shop%2Fdeliver-1', 'Resume', 'Continues from the journal'],
  ['/console/runs/shop%2Fcharge-1', 'Resolve this step', 'It happened'],
  ['/console/runs/shop%2Ffamily-1', 'Cancel', 'No further step begins'],
  ['/console/runs?view=queues', 'Pause mail', 'No run of it begins'],
  ['/console/runs?view=schedules', 'Run now: nightly', 'beside its ticks'],
  ['/console/events', 'Redrive', 'Preview: '],
  ['/console/events', 'Purge', 'Preview: '],
  ['/console/data', 'Show what there is', 'Nothing brings it back'],
] as const

/** Goes to the page of one thing by the first link of its list. */
export async function openFirst(page: Page, url: string, address: string): Promise<void> {
  await page.goto(url + address)
  await loaded(page)
  const before = page.url()
  await page.getByRole('main').getByRole('table').last().getByRole('link').first().click()
  await page.waitForURL((url) => url.href !== before)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await loaded(page)
}

/** What has to be chosen before the dialog can be opened. */
async function prepare(page: Page, address: string): Promise<void> {
  if (address === '/console/events') await page.getByRole('button', { name: 'Choose all' }).click()
  if (address !== '/console/data') return
  await page.getByText('A person').click()
  await page.getByLabel('Its id').fill('+491510002')
}

/** The page of a dialog, with everything chosen that has to be. */
export async function openForDialog(page: Page, url: string, address: string): Promise<void> {
  if (address.includes('?key=')) await openFirst(page, url, address)
  else await page.goto(url + address)
  await loaded(page)
  await prepare(page, address)
}
