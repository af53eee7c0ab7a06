import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { digestOfLarge, download, growthMib, largeService, upload } from '../test/contract/gateway/large.ts'
import { startGateway } from '../test/support/gateway/process.ts'

/** `npm run lab -- gateway`: a gigabyte up and a gigabyte down, and how much memory a fresh gateway needs for it. */
const { values } = parseArgs({ options: { megabytes: { type: 'string', default: '1024' } } })

const GROWTH_MOST_MIB = 64
const mebibytes = Number(values.megabytes)

const service = createServer(largeService(mebibytes))
await once(service.listen(0, '127.0.0.1'), 'listening')
const upstream = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
const folder = await mkdtemp(join(tmpdir(), 'onceonly-lab-'))
const ends: (() => Promise<unknown>)[] = []

async function watched(what: string, pid: number, expected: string, work: () => Promise<string>): Promise<void> {
  const startedMs = performance.now()
  const { value, mib } = await growthMib(pid, work)
  const seconds = (performance.now() - startedMs) / 1_000
  console.log(`${what}: ${mebibytes} MiB in ${seconds.toFixed(1)} s, memory grew by ${mib.toFixed(0)} MiB`)
  assert.equal(value, expected, `${what}: other bytes`)
  assert.ok(mib <= GROWTH_MOST_MIB, `${what}: more than ${GROWTH_MOST_MIB} MiB`)
}

try {
  const expected = await digestOfLarge(mebibytes)
  const { port, pid } = await startGateway({ after: (end) => void ends.push(end) }, folder, {
    config: { upstream },
    store: 'memory',
  })
  for (const time of ['first', 'second']) {
    await watched(`${time} upload`, pid, expected, () => upload(port, mebibytes))
    await watched(`${time} download`, pid, expected, () => download(port))
  }
} finally {
  for (const end of ends) await end()
  service.close()
  service.closeAllConnections()
  await rm(folder, { recursive: true, force: true })
}
