import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { capture, root } from '../../../../tools/command.ts'
import { serve } from '../../../../tools/docs/serve.ts'
import { openBrowser, skip } from '../../../support/browser.ts'

const site = join(root, 'dist/site')
const headingOf = (path: string) => /^# (.+)$/m.exec(readFileSync(join(root, 'docs', path), 'utf8'))?.[1] ?? path
const guides = globSync('{start,guides/*,migrating/*}.md', { cwd: join(root, 'docs') }).toSorted()

/** One script makes the whole site; a link that leads nowhere, or a page that cannot be read, fails it. */
before(async () => {
  const { ok, output } = await capture('node', ['--conditions=onceonly-source', 'tools/docs/main.ts'])
  assert.ok(ok, output)
})

let served: Awaited<ReturnType<typeof serve>> | undefined
after(() => served?.stop())

test('the site has the pages of `docs/`, pages made of the sources, and the reference', () => {
  for (const page of ['index', 'start', 'concepts/promises', 'reference/errors', 'reference/limits', 'api/index']) {
    assert.ok(globSync(`${page}.html`, { cwd: site }).length === 1, page)
  }
  const entries = globSync('api/modules/*.html', { cwd: site })
  assert.ok(entries.length > 30, `${entries.length} entries are described`)
})

test('a list of things to check has boxes to tick', () => {
  const text = readFileSync(join(site, 'guides/production.html'), 'utf8')
  assert.ok([...text.matchAll(/<li><input type="checkbox"/g)].length > 10)
  assert.doesNotMatch(text, /<li>\[ \]/)
})

test('its pages load nothing from another host', () => {
  const pages = globSync('{*,!(api)/**/*}.html', { cwd: site })
  assert.ok(pages.length > 20, `${pages.length} pages`)
  const foreign = pages.flatMap((page) => {
    const text = readFileSync(join(site, page), 'utf8')
    return [...text.matchAll(/<(?:script|link|img|iframe)\b[^>]*?(?:src|href)="(https?:[^"]+)"/g)].map(([, url]) => url)
  })
  assert.deepEqual(foreign, [])
})

test('its search finds every guide, and a phone does not scroll sideways', { skip }, async () => {
  served = await serve(site)
  await using browser = await openBrowser()
  const { page, assertClean } = await browser.open()
  await page.goto(`${served.url}/start.html`)
  await page.locator('.DocSearch-Button, .VPNavBarSearch button').first().click()
  const input = page.locator('.VPLocalSearchBox input.search-input')
  for (const guide of guides) {
    await input.fill(headingOf(guide))
    const result = page.locator(`.VPLocalSearchBox a.result[href*="/${guide.replace(/\.md$/, '.html')}"]`)
    await result.first().waitFor({ state: 'attached' })
  }
  assertClean()

  const phone = await browser.open({ viewport: { width: 390, height: 844 } })
  const names = guides.map((guide) => guide.replace(/\.md$/, ''))
  for (const path of ['index', 'comparison', 'reference/errors', 'reference/entries', ...names]) {
    await phone.page.goto(`${served.url}/${path}.html`)
    const fits = 'document.documentElement.scrollWidth <= document.documentElement.clientWidth'
    assert.ok(await phone.page.evaluate<boolean>(fits), `${path} fits a phone`)
  }
  phone.assertClean()
})
