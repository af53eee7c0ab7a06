import assert from 'node:assert/strict'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

/** The browser of the test run, or nothing: then a test says so and is skipped. */
const browserUrl = process.env['ONCEONLY_TEST_BROWSER_URL']
export const skip = browserUrl === undefined ? 'ONCEONLY_TEST_BROWSER_URL is not set' : false

/** A page that is watched for errors and foreign requests; every breach is kept until the test reads it. */
export interface WatchedPage {
  readonly page: Page
  /**
   * Fails when the page logged or threw an error, or sent a request to another host.
   * @param expected refusals that the page asks for on purpose: browsers log them
   */
  assertClean(expected?: RegExp): void
}

export interface TestBrowser extends AsyncDisposable {
  /** A window with cookies and storage of its own. */
  open(options?: BrowserContextOptions): Promise<WatchedPage>
}

export async function openBrowser(): Promise<TestBrowser> {
  assert.ok(browserUrl !== undefined)
  const browser = await chromium.connectOverCDP(browserUrl)
  return {
    open: (options) => open(browser, options),
    async [Symbol.asyncDispose]() {
      // The browser itself belongs to the run; only what we opened is closed.
      await Promise.all(browser.contexts().map((context) => context.close().catch(() => undefined)))
      await browser.close()
    },
  }
}

/** Long enough for a busy machine; a page that never shows its content fails. */
const LOADED_MS_MOST = 120_000

/** Waits until nothing of a page is being loaded; several parts of it may be, at once. */
export async function loaded(page: Page, timeout = LOADED_MS_MOST): Promise<void> {
  const busy = page.locator('[aria-busy]')
  while ((await busy.count()) > 0) await busy.first().waitFor({ state: 'detached', timeout })
}

async function open(browser: Browser, options: BrowserContextOptions = {}): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
  const page = await context.newPage()
  page.setDefaultTimeout(LOADED_MS_MOST)
  const breaches: string[] = []
  let ownHost: string | null = null
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') breaches.push(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => breaches.push(`thrown: ${error.message}`))
  page.on('request', (request) => {
    const { host, protocol } = new URL(request.url())
    if (protocol === 'data:') return
    ownHost ??= host
    if (host !== ownHost) breaches.push(`request to ${request.url()}`)
  })
  return {
    page,
    assertClean: (expected) =>
      assert.deepEqual(
        breaches.filter((each) => expected?.test(each) !== true),
        [],
      ),
  }
}
