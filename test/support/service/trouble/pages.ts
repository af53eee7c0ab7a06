import assert from 'node:assert/strict'
import { until } from '../../../../src/testing/until.ts'
import { loaded, type TestBrowser } from '../../browser.ts'

/** A console, as an operator has it open in a browser. */
export interface ConsolePages {
  /** Opens a page, again and again, until its readers see the text; without an address it stays where it is. */
  see(address: string | null, text: string): Promise<void>
  /** The cards of the overview: the address of the page that each leads to, by its title. */
  cards(): Promise<ReadonlyMap<string, string>>
}

export async function openPages(browser: TestBrowser, url: string, token: string): Promise<ConsolePages> {
  const { page } = await browser.open()
  await page.goto(`${url}/console`)
  await page.getByLabel('Token').fill(token)
  await page.keyboard.press('Enter')
  await page.getByRole('navigation', { name: 'Pages' }).waitFor()

  async function open(address: string | null): Promise<string> {
    if (address !== null) {
      await page.goto(`${url}/console${address}`)
      await page.locator('main h1, main .failed').first().waitFor()
      await loaded(page)
    }
    // With the texts that only narrow windows and screen readers have.
    return (await page.locator('main').textContent()) ?? ''
  }

  return {
    async see(address, text) {
      const bare = (shown: string) => shown.replaceAll(/\s/g, '')
      const shows = (shown: string) => bare(shown).includes(bare(text))
      await until(`the page ${address ?? 'that is open'} shows ${text}`, () => open(address), shows)
    },
    async cards() {
      assert.notEqual(await open('/'), '')
      const cards = await page.getByRole('list', { name: 'What needs attention' }).getByRole('link').all()
      return new Map(
        await Promise.all(
          cards.map(async (card): Promise<[string, string]> => {
            const title = await card.locator('span').first().innerText()
            return [title, ((await card.getAttribute('href')) ?? '').replace(/^\/console/, '')]
          }),
        ),
      )
    },
  }
}
