import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { parseArgs } from 'node:util'
import { startGateway } from '../test/gateway/process.ts'

/**
 * `npm run lab -- gateway`: a gigabyte up and a gigabyte down, and how much memory the gateway needs for it. Twice: what a
 * fresh process takes is told only, because V8 lets 64 MiB of buffers come together before it first collects them.
 */
const { values } = parseArgs({ options: { megabytes: { type: 'string', default: '1024' } } })

const MIB = 1_024 * 1_024
const GROWTH_MOST_MIB = 64
const chunk = Buffer.alloc(MIB, 'x')
const megabytes = Number(values.megabytes)

async function* chunks(): AsyncGenerator<Buffer, undefined> {
  for (let at = 0; at < megabytes; at++) yield chunk
}

const service = createServer((request, response) => {
  if (request.method === 'GET') return void Readable.from(chunks(), { objectMode: false }).pipe(response)
  let bytes = 0
  request.on('data', (each: Buffer) => void (bytes += each.length))
  return void request.on('end', () => response.end(String(bytes)))
})
await once(service.listen(0, '127.0.0.1'), 'listening')
const upstream = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
const folder = await mkdtemp(join(tmpdir(), 'onceonly-lab-'))
const ends: (() => Promise<unknown>)[] = []
const gateway = await startGateway({ after: (end) => void ends.push(end) }, folder, {
  config: { upstream },
  store: 'memory',
})

const rssMib = () => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${gateway.pid}/status`, 'utf8'))?.[1]) / 1_024

async function watched(what: string, isFresh: boolean, work: () => Promise<void>): Promise<void> {
  const before = rssMib()
  let most = before
  const watch = setInterval(() => void (most = Math.max(most, rssMib())), 20)
  const startedMs = performance.now()
  await work()
  clearInterval(watch)
  const seconds = (performance.now() - startedMs) / 1_000
  console.log(
    `${what}: ${megabytes} MiB in ${seconds.toFixed(1)} s, memory ${before.toFixed(0)} + ${(most - before).toFixed(0)} MiB`,
  )
  assert.ok(isFresh || most - before <= GROWTH_MOST_MIB, `${what}: more than ${GROWTH_MOST_MIB} MiB`)
}

async function upload(): Promise<void> {
  const request = httpRequest({ port: gateway.port, method: 'PUT', path: '/large' })
  Readable.from(chunks(), { objectMode: false }).pipe(request)
  const [response] = await once(request, 'response')
  assert.equal(Number((await response.toArray()).join('')), megabytes * MIB)
}

async function download(): Promise<void> {
  const [response] = await once(httpRequest({ port: gateway.port, path: '/large' }).end(), 'response')
  let bytes = 0
  for await (const each of response) bytes += (each as Buffer).length
  assert.equal(bytes, megabytes * MIB)
}

try {
  for (let at = 0; at < 20; at++) await gateway.ask({ method: 'PATCH' })
  for (const isFresh of [true, false]) {
    await watched(isFresh ? 'first upload' : 'upload', isFresh, upload)
    await watched(isFresh ? 'first download' : 'download', isFresh, download)
  }
} finally {
  for (const end of ends) await end()
  service.close()
  service.closeAllConnections()
  await rm(folder, { recursive: true, force: true })
}
