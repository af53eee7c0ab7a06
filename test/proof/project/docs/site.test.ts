import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { capture, root } from '../../../../tools/command.ts'

/** One script makes the whole site; a link that leads nowhere, or a page that cannot be read, fails it. */
test('the documentation site is built without a complaint', async () => {
  const { ok, output } = await capture('node', ['--conditions=onceonly-source', 'tools/docs/main.ts'])
  assert.ok(ok, output)
  const pages = globSync('documents/*.html', { cwd: join(root, 'dist/site') })
  for (const page of ['Start', 'What_we_cannot_promise', 'Errors', 'Defaults_and_limits', 'Runbook']) {
    assert.ok(pages.includes(`documents/${page}.html`), page)
  }
})
