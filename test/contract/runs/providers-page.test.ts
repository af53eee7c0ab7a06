import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { HOUR } from 'onceonly'
import { type ProviderProfile, providers } from 'onceonly/run'

test('the page of the providers says what the profiles say', async () => {
  const page = await readFile(join(import.meta.dirname, '../../../docs/reference/providers.md'), 'utf8')
  const profiles: Readonly<Record<string, ProviderProfile>> = providers
  for (const [name, { offer, keyChars, body = 'json', carries }] of Object.entries(profiles)) {
    const rows = page.split('\n').filter((line) => line.startsWith(`| \`${name}\` |`))
    assert.equal(rows.length, 2, `${name} stands in both tables`)
    const cells = (rows[0] ?? '').split('|').map((cell) => cell.trim())
    assert.equal(cells[2], offer.kind, name)
    assert.equal(cells[4], offer.kind === 'native' ? `${offer.windowMs / HOUR} h` : '–', name)
    if (offer.kind === 'native') {
      assert.equal(cells[5], offer.comparesBody ? 'refused' : 'not compared', name)
      assert.match(cells[6] ?? '', offer.keepsFailures ? /^yes/ : /^no$/, name)
    }
    if (carries !== null && 'header' in carries) assert.ok(cells[3]?.includes(carries.header), name)
    if (keyChars > 0) assert.match(cells[7] ?? '', new RegExp(`^up to ${keyChars}\\b`), name)
    if (name !== 'smtp') assert.equal(cells[8]?.toLowerCase(), body, name)
  }
})
