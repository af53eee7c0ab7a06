import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { start } from '../../support/service/service.ts'

test('a server whose database file was removed ends on a signal, and reports the failure', async (t) => {
  const data = await mkdtemp(join(tmpdir(), 'onceonly-stop-'))
  const child = start({ ONCEONLY_DATA: data })
  t.after(() => child.kill('SIGKILL'))
  let printed = ''
  child.stdout?.on('data', (chunk) => (printed += String(chunk)))
  await until('it has started', () => printed.includes('server.started'))
  // The server still writes into it: a folder that is not empty any more is tried again.
  await rm(data, { recursive: true, force: true, maxRetries: 20 })
  await until('it has noticed', () => printed.includes('store_replaced'))
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  assert.deepEqual(await ended, [1, null])
  assert.match(printed, /server\.stop_failed/)
})
