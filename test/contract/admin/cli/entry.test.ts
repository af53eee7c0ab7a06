import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'node:test'

const root = resolve(import.meta.dirname, '../../../..')
const { bin, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  bin: { onceonly: string }
  version: string
}

/** As `npx onceonly` does: the file itself is run, from wherever one is. */
function onceonly(...args: string[]) {
  const env = { ...process.env, PATH: `${join(process.execPath, '..')}:${process.env['PATH']}` }
  return spawnSync(join(root, bin.onceonly), args, { cwd: tmpdir(), env, encoding: 'utf8' })
}

test('the command of the package runs in a checkout, and prints the version of its sources', () => {
  const { status, stdout, stderr } = onceonly('--version')
  assert.deepEqual([status, stdout, stderr], [0, `${version}\n`, ''])
  assert.equal(onceonly('no-such-command').status, 2, 'its status is passed on')
})
