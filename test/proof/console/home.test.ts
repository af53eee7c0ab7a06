import assert from 'node:assert/strict'
import { test } from 'node:test'
import { skip } from '../../support/browser.ts'
import { systems } from '../../support/console/home.ts'
import { openPages } from '../../support/service/pages.ts'

const pages = openPages()

test('each of the five systems keeps its promise when its button is pressed, and again', { skip }, async () => {
  const { page, assertClean } = await pages.browser.open()
  await page.goto(pages.url)
  for (const { name, button, verdict, repeat } of systems) {
    const system = page.getByRole('region', { name })
    for (const turn of [1, 2]) {
      await system.getByRole('button', { name: button }).click()
      const shown = page.locator(`section[data-turn="${turn}"]`).filter({ has: page.getByRole('heading', { name }) })
      await shown.locator('.verdict').waitFor()
      const text = (await shown.locator('.verdict').textContent()) ?? ''
      const [, kept, said = ''] = /^(Kept|Not kept) (.*?)(?:(?:The|This|Runs)[\w ]* in the \w+)?$/.exec(text) ?? []
      assert.equal(kept, 'Kept', `${name}: ${text}`)
      assert.match(said, verdict, name)
      const badges = await shown.locator('.answers .badge').allTextContents()
      assert.ok(badges.includes(repeat), `${name} shows ${badges.join(', ')}`)
    }
  }
  for (const [name, address] of [
    ['Console', '/console'],
    ['Chat', '/chat'],
    ['API', '/docs'],
  ] as const) {
    const link = page.getByRole('navigation').getByRole('link', { name })
    assert.equal(await link.getAttribute('href'), address)
    assert.equal((await fetch(pages.url + address)).status, 200)
  }
  // The same case under another key is refused.
  assertClean(/status of 409 \(Conflict\)$/)
})

test('by keyboard alone: the first button is reached and pressed', { skip }, async () => {
  const { page, assertClean } = await pages.browser.open()
  await page.goto(pages.url)
  await page.getByRole('button', { name: 'Send twice' }).waitFor()
  const focused = async () => String(await page.evaluate('document.activeElement.textContent'))
  for (let step = 0; step < 10 && (await focused()) !== 'Send twice'; step++) await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.getByText('Three requests, one message').waitFor()
  assertClean()
})

test('where the server gives no key away, the page says so', { skip }, async () => {
  const { page } = await pages.browser.open()
  await page.route('**/chat/demo', (route) => route.fulfill({ status: 404, body: '{}' }))
  await page.goto(pages.url)
  await page.getByText('This server gives no demo key to this page').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Send twice' }).isDisabled(), true)
})
