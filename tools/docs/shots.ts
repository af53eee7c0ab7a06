import { globSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { root } from '../command.ts'
import { startServers } from '../servers/index.ts'
import { serve } from './serve.ts'

/** Screenshots of the built site, every page of it, for a person to look at: `tools/docs/shots.ts [FOLDER] [PAGE …]`. */
const [folder = join(root, 'dist/shots'), ...named] = process.argv.slice(2)
const written = globSync('**/*.md', { cwd: join(root, 'docs') }).map((name) => name.replace(/\.md$/, ''))
const pages = named.length > 0 ? named : [...written.toSorted(), 'api/index']
const looks = {
  light: { viewport: { width: 1440, height: 900 }, colorScheme: 'light' },
  dark: { viewport: { width: 1440, height: 900 }, colorScheme: 'dark' },
  phone: { viewport: { width: 390, height: 844 }, colorScheme: 'light' },
} as const

const servers = await startServers(['browser'])
const site = await serve(join(root, 'dist/site'))
const browser = await chromium.connectOverCDP(servers.env['ONCEONLY_TEST_BROWSER_URL'] ?? '')
mkdirSync(folder, { recursive: true })
try {
  for (const [look, options] of Object.entries(looks)) {
    const context = await browser.newContext(options)
    const page = await context.newPage()
    for (const path of pages) {
      await page.goto(`${site.url}/${path}.html`, { waitUntil: 'networkidle' })
      await page.screenshot({ path: join(folder, `${path.replaceAll('/', '-')}-${look}.png`) })
    }
    await context.close()
  }
} finally {
  await browser.close()
  await site.stop()
  await servers.stop()
}
console.log(`The screenshots are in ${folder}.`)
