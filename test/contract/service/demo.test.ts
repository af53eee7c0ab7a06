import assert from 'node:assert/strict'
import { once } from 'node:events'
import { access, mkdtemp, readFile, rm } from 'node:fs/promises'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { readConfig } from '../../../service/config.ts'
import { type Service, startService } from '../../../service/service.ts'
import { start } from '../../support/service/service.ts'
import { raw } from '../gateway/wire.ts'

type Env = Readonly<Record<string, string>>

async function folderFor(t: TestContext): Promise<string> {
  const data = await mkdtemp(join(tmpdir(), 'onceonly-demo-'))
  t.after(() => rm(data, { recursive: true, force: true }))
  return data
}

async function started(data: string, env: Env = {}): Promise<Service & AsyncDisposable> {
  const service = await startService(
    readConfig({ PORT: '0', ONCEONLY_DATA: data, ONCEONLY_LOG_LEVEL: 'silent', ...env }),
  )
  return { ...service, [Symbol.asyncDispose]: () => service.stop() }
}

async function statusOf(url: string, headers: Env = {}): Promise<number | undefined> {
  const request = get(url, { headers })
  const [response] = (await once(request, 'response')) as [{ statusCode?: number; resume(): void }]
  response.resume()
  return response.statusCode
}

const asked = (url: string, key: string) => statusOf(`${url}/api/chat/regions`, { authorization: `Bearer ${key}` })

/** What proxies say about their client and about the requested host. */
const passedOn: readonly Env[] = [
  { 'x-forwarded-for': '203.0.113.9' },
  { 'x-forwarded-host': 'shop.example' },
  { 'x-forwarded-proto': 'https' },
  { 'x-real-ip': '203.0.113.9' },
  { forwarded: 'for=203.0.113.9' },
  { via: '1.1 caddy' },
  { 'cf-connecting-ip': '203.0.113.9' },
  { 'true-client-ip': '203.0.113.9' },
  { 'x-amzn-trace-id': 'Root=1' },
  { 'x-envoy-external-address': '203.0.113.9' },
  { host: 'shop.example' },
]

test('behind a reverse proxy neither the demo key nor the metrics are shown', async (t) => {
  await using service = await started(await folderFor(t))
  for (const path of ['/chat/demo', '/metrics']) {
    const refused = path === '/metrics' ? 403 : 404
    assert.equal(await statusOf(service.url + path), 200)
    for (const headers of passedOn) {
      assert.equal(await statusOf(service.url + path, headers), refused, `${path} ${JSON.stringify(headers)}`)
    }
    // The request of an nginx that has only proxy_pass configured.
    const { port } = new URL(service.url)
    const nginx = `GET ${path} HTTP/1.0\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`
    assert.match(await raw(Number(port), nginx), new RegExp(`^HTTP/1.1 ${refused} `))
  }
})

for (const env of [{ NODE_ENV: 'production' }, { ONCEONLY_DEMO: 'off' }]) {
  test(`with ${Object.entries(env).join()} there is no demo, and metrics need a token`, async (t) => {
    const data = await folderFor(t)
    const key = 'key-of-an-earlier-demo'
    {
      await using before = await started(data, { ONCEONLY_DEMO_KEY: key })
      assert.equal(await asked(before.url, key), 200)
    }
    await using service = await started(data, env)
    const { url } = service
    assert.equal(service.demoKey, null)
    assert.equal(await asked(url, key), 401)
    assert.equal(await statusOf(`${url}/chat/demo`), 404)
    assert.equal(await statusOf(`${url}/metrics`), 401)
    const token = await readFile(join(data, 'operator-token'), 'utf8')
    assert.equal(await statusOf(`${url}/metrics`, { authorization: `Bearer ${token}` }), 200)
    await assert.rejects(access(join(data, 'demo-key')))
  })
}

test('a demo on a public address, and a key for a demo that is not there, stop the start', () => {
  const wrong = { name: 'BadSetting', message: /^ONCEONLY_DEMO: "on" needs a HOST of this machine/ }
  assert.throws(() => readConfig({ HOST: '0.0.0.0', ONCEONLY_DEMO: 'on' }), wrong)
  const unused = { name: 'BadSetting', message: /^ONCEONLY_DEMO_KEY: the value is not used/ }
  assert.throws(() => readConfig({ NODE_ENV: 'production', ONCEONLY_DEMO_KEY: 'secret-key' }), unused)
  assert.equal(readConfig({ NODE_ENV: 'production', ONCEONLY_DEMO: 'on' }).demo, true)
  assert.deepEqual(
    ['', '127.0.0.1', 'localhost', '::1', '0.0.0.0', '::', '10.0.0.5', 'shop.example'].map(
      (HOST) => readConfig({ HOST }).demo,
    ),
    [true, true, true, true, false, false, false, false],
  )
})

test('the demo has one key: another one ends the last one, and no other of the workspace', async (t) => {
  const data = await folderFor(t)
  let made = ''
  {
    await using before = await started(data, { ONCEONLY_DEMO_KEY: 'first-key' })
    const token = await readFile(join(data, 'operator-token'), 'utf8')
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ caller: 'colleague' })
    const response = await fetch(`${before.url}/api/admin/workspaces/demo/keys`, { method: 'POST', headers, body })
    made = ((await response.json()) as { key: string }).key
  }
  await using service = await started(data, { ONCEONLY_DEMO_KEY: 'second-key' })
  const statuses = await Promise.all(['first-key', 'second-key', made].map((key) => asked(service.url, key)))
  assert.deepEqual(statuses, [401, 200, 200])
})

test('what a started server prints does not hold the key', async (t) => {
  const data = await folderFor(t)
  const child = start({ ONCEONLY_DATA: data, ONCEONLY_DEMO_KEY: '' })
  // Before its folder is removed: a server that still writes there would keep it, and this process with it.
  await using _server = {
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
  }
  const lines: string[] = []
  assert.ok(child.stdout)
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line)
    if (line.startsWith('curl ')) break
  }
  const key = await readFile(join(data, 'demo-key'), 'utf8')
  assert.doesNotMatch(lines.join('\n'), new RegExp(key))
  assert.ok(lines.some((line) => line.includes(join(data, 'demo-key'))))
})
