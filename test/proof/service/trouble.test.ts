import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { allTroubles, tableOfTroubles } from '../../support/service/trouble/trouble.ts'

const docs = join(import.meta.dirname, '../../../docs/operating')

test('the runbook has a line for every alert, with the command that shows it; the documentation has the table', async () => {
  const runbook = await readFile(join(docs, 'runbook.md'), 'utf8')
  const rules = await readFile(join(docs, '../../ops/alerts.yaml'), 'utf8')
  for (const [name, { alert, command }] of allTroubles) {
    if (alert === null) continue
    const look = new RegExp(`^\\| \`${alert}\` \\| [^|]*\`onceonly ${command}\``, 'm')
    assert.match(runbook, look, `${name}: the runbook tells to look with \`onceonly ${command}\``)
    const rule = rules.slice(rules.indexOf(`alert: ${alert}`)).split('- alert:')[0] ?? ''
    assert.ok(rule.includes(`onceonly ${command}`), `${name}: the alert tells the same as the runbook: ${rule}`)
  }
  const made = new Set(allTroubles.map(([, { alert }]) => alert))
  for (const [, name = ''] of rules.matchAll(/- alert: (\w+)/g)) assert.ok(made.has(name), `no trouble fires ${name}`)
  const table = tableOfTroubles()
  const page = await readFile(join(docs, 'trouble.md'), 'utf8')
  assert.ok(page.includes(table), `docs/operating/trouble.md must have this table:\n${table}`)
})
