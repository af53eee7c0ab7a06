import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { releaseNotes } from './release-notes.ts'

const changelog = `# Changelog

What changed for you, newest first.

## 0.3.0 (not released yet)

- Not out.

## 0.2.0 (2026-02-01)

### Ledger

- New.

## 0.1.1

## 0.1.0

- First.
`

test('the notes of a release are the section of its version', () => {
  assert.equal(releaseNotes(changelog, '0.2.0'), '### Ledger\n\n- New.')
  assert.equal(releaseNotes(changelog, '0.1.0'), '- First.')
})

test('a version that is not there, not released or empty is refused', () => {
  assert.throws(
    () => releaseNotes(changelog, '0.1'),
    /no section for 0\.1, only for 0\.3\.0, 0\.2\.0, 0\.1\.1, 0\.1\.0/,
  )
  assert.throws(() => releaseNotes('# Changelog\n', '1.0.0'), /only for no version/)
  assert.throws(() => releaseNotes(changelog, '0.3.0'), /"0\.3\.0 \(not released yet\)": write the day/)
  assert.throws(() => releaseNotes(changelog, '0.1.1'), /is empty/)
})

test('the changelog has a section for the version of the package', () => {
  const root = join(import.meta.dirname, '..')
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { readonly version: string }
  const dated = readFileSync(join(root, 'CHANGELOG.md'), 'utf8').replace(' (not released yet)', '')
  assert.match(releaseNotes(dated, version), /^- /m)
})
