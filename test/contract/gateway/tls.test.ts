import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import { temporaryFolder } from '../../support/gateway/process.ts'
import { openGateway, things } from '../../support/gateway/world.ts'

/** A service behind a certificate of its own, for its address alone. */
async function openSecure(context: TestContext) {
  const folder = await temporaryFolder(context)
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const names = ['-subj', '/CN=upstream', '-addext', 'subjectAltName=IP:127.0.0.1']
  const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  execFileSync('openssl', [...made, ...names, '-keyout', key, '-out', cert], { stdio: 'ignore' })
  const ca = await readFile(cert, 'utf8')
  let count = 0
  const server = createServer({ key: await readFile(key), cert: ca }, (request, response) => {
    count++
    request.resume().once('end', () => response.writeHead(201, { 'content-type': 'text/plain' }).end('secure'))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  context.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, ca, count: () => count }
}

const hasOpenssl = () => {
  try {
    execFileSync('openssl', ['version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

test('an upstream with a certificate: trusted by it, by its address, and by nothing else', {
  skip: !hasOpenssl() && 'no openssl',
}, async (context) => {
  const upstream = await openSecure(context)
  const warnings: string[] = []
  const heed = (warning: Error) => void warnings.push(warning.message)
  process.on('warning', heed)
  context.after(() => process.off('warning', heed))

  const trusting = await openGateway(context, upstream.url, [things], { ca: upstream.ca })
  const first = await trusting.ask()
  assert.deepEqual([first.status, first.body], [201, 'secure'])
  assert.equal((await trusting.ask()).replayed, true)
  assert.equal((await trusting.ask({ method: 'GET', path: '/other', key: null, body: null })).body, 'secure')
  assert.equal(upstream.count(), 2)

  // Nothing is sent to an untrusted upstream, so a retry is allowed.
  const strict = await openGateway(context, upstream.url)
  for (let times = 0; times < 2; times++) assert.equal((await strict.ask()).problem, 'upstream-unreachable')
  const wrongName = upstream.url.replace('127.0.0.1', 'localhost')
  const named = await openGateway(context, wrongName, [things], { ca: upstream.ca })
  assert.equal((await named.ask()).problem, 'upstream-unreachable')
  assert.equal(upstream.count(), 2)
  assert.deepEqual(warnings, [])
})
