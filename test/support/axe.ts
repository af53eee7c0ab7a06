import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { installOwnPackages } from './own-packages.ts'

const folder = join(import.meta.dirname, '../proof/console/axe')

interface Finding {
  readonly id: string
  readonly impact: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
}

export interface Axe {
  /** Every finding on the page as it stands, one text for each element. */
  findings(page: Page, where: string): Promise<readonly string[]>
}

/** The checks of axe, for pages whose policy lets no foreign script in; or why they could not be had. */
export async function openAxe(): Promise<Axe | string> {
  const missing = await installOwnPackages(folder)
  if (missing !== false) return missing
  const script = await readFile(join(folder, 'node_modules/axe-core/axe.min.js'), 'utf8')
  return {
    async findings(page, where) {
      // By the debugger, which no policy of the page concerns.
      if ((await page.evaluate('typeof window.axe')) === 'undefined') await page.evaluate(script)
      const found = await page.evaluate(
        `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations)`,
      )
      return (found as readonly Finding[]).flatMap(({ id, impact, nodes }) =>
        nodes.map(({ html, failureSummary }) => `${where}: ${id} (${impact}): ${html.slice(0, 200)} ${failureSummary}`),
      )
    },
  }
}
