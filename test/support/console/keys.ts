import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'

/** More stops than any page has. */
const STOPS = 600

/** What has the focus, as a person would name it. */
export const focused = `(() => {
  const at = document.activeElement
  if (at === null || at === document.body) return ''
  return at.getAttribute('aria-label') ?? at.labels?.[0]?.innerText ?? at.innerText ?? ''
})()`

/** Presses Tab until something of this name has the focus. */
export async function tabTo(page: Page, name: RegExp): Promise<void> {
  for (let stop = 0; stop < STOPS; stop++) {
    if (name.test(String(await page.evaluate(focused)))) return
    await page.keyboard.press('Tab')
  }
  assert.fail(`Tab never reached ${name}`)
}

/** Reaches something by Tab, and presses it. */
export async function press(page: Page, name: RegExp): Promise<void> {
  await tabTo(page, name)
  await page.keyboard.press('Enter')
}

/** All that one can act on, where it can be seen; of radio buttons that belong together Tab reaches one. */
const controls = `(() => {
  const place = document.querySelector('dialog[open]') ?? document
  const isFirst = (each) => {
    if (each.type !== 'radio') return true
    const group = [...place.querySelectorAll('input[type=radio]')].filter(({ name }) => name === each.name)
    return each === (group.find(({ checked }) => checked) ?? group[0])
  }
  const all = 'a[href], button:enabled, input:enabled, select:enabled, textarea:enabled, summary, [tabindex="0"]'
  return [...place.querySelectorAll(all)].filter(
    (each) => each.checkVisibility({ visibilityProperty: true }) && isFirst(each))
})()`

const nameOf = `(each) => each.tagName + ' ' + (each.getAttribute('aria-label') || each.innerText || each.id || each.className)`

/** Where Tab has come to: the browser's own bar, a place where it was already, or a new one. */
const visit = `(() => {
  const at = document.activeElement
  if (at === null || at === document.body) return { kind: 'browser' }
  if (window.walkedLast === at) return { kind: 'same' }
  if (at.dataset.walked !== undefined) return { kind: 'again' }
  window.walkedLast = at
  at.dataset.walked = ''
  const rings = (each) => {
    const { boxShadow, outlineStyle } = getComputedStyle(each)
    return boxShadow !== 'none' || outlineStyle !== 'none'
  }
  const { top, bottom, left, right } = at.getBoundingClientRect()
  const isInSight = bottom > 0 && top < innerHeight && right > 0 && left < innerWidth
  // The link of a row reaches over all of it, and the row shows the focus.
  const isShown = isInSight && (rings(at) || rings(at.closest('.row') ?? at))
  return { kind: 'new', fault: isShown ? null : (${nameOf})(at) + (isInSight ? ' shows no focus' : ' is out of sight') }
})()`

type Visit =
  /** `same`: another part of one control, such as a date. */
  { readonly kind: 'browser' | 'again' | 'same' } | { readonly kind: 'new'; readonly fault: string | null }

/** Tabs through a page, or through the dialog that is open: what is not reached, and what does not show its focus. */
export async function faultsByTab(page: Page): Promise<readonly string[]> {
  const faults: string[] = []
  await page.evaluate(`{ window.walkedLast = null
    for (const each of document.querySelectorAll('[data-walked]')) delete each.dataset.walked }`)
  // It begins wherever the focus was, and comes by the browser's own bar once.
  for (let stop = 0, bars = 0; stop < STOPS && bars < 2; stop++) {
    await page.keyboard.press('Tab')
    const at = (await page.evaluate(visit)) as Visit
    if (at.kind === 'again') break
    if (at.kind === 'browser') bars++
    if (at.kind === 'new' && at.fault !== null) faults.push(at.fault)
  }
  const missed = await page.evaluate(
    `${controls}.filter((each) => each.dataset.walked === undefined).map((each) => (${nameOf})(each) + ' is not reached')`,
  )
  return [...faults, ...(missed as readonly string[])]
}
