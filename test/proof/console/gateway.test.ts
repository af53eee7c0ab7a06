import assert from 'node:assert/strict'
import { join } from 'node:path'
import { before, type TestContext, test } from 'node:test'
import { buildPages } from '../../../console/build.ts'
import { until } from '../../../src/testing/until.ts'
import { openBrowser, skip } from '../../support/browser.ts'
import { startGateway, temporaryFolder } from '../../support/gateway/process.ts'
import { openCounting, things } from '../../support/gateway/world.ts'

before(() => buildPages())

const operatorToken = 'the-token-of-operators'
const viewerToken = 'the-token-of-viewers'
const own = { 'x-onceonly-console': '1', 'content-type': 'application/json' }

interface Answered {
  readonly status: number
  readonly headers: Headers
  // oxlint-disable-next-line typescript/no-explicit-any -- what a page reads depends on the page.
  readonly body: any
}

/** A gateway with a console, in front of a service that closes the connection on `/pay` and has a console of its own. */
async function openWorld(context: TestContext, tokens: object) {
  const folder = await temporaryFolder(context)
  const upstream = await openCounting(context, (request, response, { url }) => {
    if (url === '/pay') return void request.socket.destroy()
    return void response.writeHead(201, { 'content-type': 'application/json' }).end('{"of":"the service"}')
  })
  const routes = [
    { ...things, path: '/pay', operation: 'pay' },
    { ...things, path: '/say', operation: 'say', key: 'optional' as const, content: {} },
    { ...things, path: '/write', operation: 'write', key: 'optional' as const, content: {} },
  ]
  const config = { upstream: upstream.url, routes, console: { port: 0, ...tokens } }
  const gateway = await startGateway(context, folder, { config, store: join(folder, 'onceonly.db') })
  const [, url = '', rest = ''] = /^Its console is (http:\S+)\/console, (.*)$/.exec(await lineOf(gateway.lines)) ?? []
  async function ask(path: string, init: RequestInit = {}): Promise<Answered> {
    const response = await fetch(url + path, { redirect: 'manual', ...init })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text.startsWith('{') ? JSON.parse(text) : text }
  }
  async function signIn(token: string, name: string): Promise<string> {
    const body = JSON.stringify({ token, name })
    const { status, headers } = await ask('/api/console/session', { method: 'POST', headers: own, body })
    assert.equal(status, 200)
    return headers.get('set-cookie')?.split(';')[0] ?? ''
  }
  return { gateway, upstream, url, rest, ask, signIn }
}

/** The line about the console comes right after the one that says where the gateway listens. */
function lineOf(lines: readonly string[]): Promise<string> {
  return until('the gateway prints where its console is', () => lines.find((line) => line.startsWith('Its console')))
}

test('the gateway has a console on a port of its own: an unknown outcome is resolved there, and every path of the service is still its own', async (context) => {
  const { gateway, upstream, ask, signIn } = await openWorld(context, { operatorToken, viewerToken })
  assert.equal((await gateway.ask({ path: '/pay', key: 'order-1' })).status, 502)
  for (const path of ['/say', '/write']) for (let n = 0; n < 2; n++) await gateway.ask({ path, key: null })

  assert.equal((await ask('/api/console/status')).status, 401)
  const viewer = { cookie: await signIn(viewerToken, '') }
  const ada = { cookie: await signIn(operatorToken, 'ada') }
  const session = await ask('/api/console/session', { headers: viewer })
  assert.deepEqual(session.body.pages, ['overview', 'records', 'guard', 'checklist', 'data', 'audit'])
  assert.equal((await ask('/api/console/runs', { headers: ada })).status, 404)

  const { body: unknowns } = await ask('/api/console/unknowns', { headers: viewer })
  const [{ id, fence }] = unknowns.rows
  const body = JSON.stringify({ action: 'resolve', id, to: 'rerun', ifFence: fence })
  const act = (headers: object) => ask('/api/console/actions', { method: 'POST', headers: { ...headers }, body })
  assert.equal((await act({ ...own, ...viewer })).status, 403)
  assert.equal((await act(ada)).status, 403, 'not a page of the console')
  assert.equal((await act({ ...own, ...ada, origin: 'http://evil.example' })).status, 403)
  assert.equal((await act({ ...own, ...ada })).status, 200)
  assert.equal((await act({ ...own, ...ada })).status, 409, 'it was resolved before')
  const { body: audit } = await ask('/api/console/audit', { headers: viewer })
  const acts = audit.rows.map(({ by, what, result }: Record<string, string>) => `${by} ${what} ${result}`)
  assert.deepEqual(acts, ['ada resolve refused', 'ada resolve done'])
  assert.equal(gateway.lines.filter((line) => line.includes('"operator.action"')).length, 2)

  const guards: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { body: guarded } = await ask(`/api/console/guard?limit=1&cursor=${cursor}`, { headers: ada })
    for (const { identity } of guarded.rows) guards.push(identity.operation)
    cursor = guarded.cursor
  }
  assert.deepEqual(guards, ['guard.say', 'guard.write'])
  const { body: checklist } = await ask('/api/console/checklist', { headers: ada })
  assert.equal(checklist.routes.length, 3)

  const heads = upstream.heads
  for (const path of ['/console', '/api/console/session', '/console/records']) {
    assert.match((await gateway.ask({ method: 'GET', path, key: null, body: null })).body, /of":"the service/)
  }
  assert.equal(upstream.heads, heads + 3)
  const page = await ask('/console/records')
  assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'.*trusted-types 'none'/)
  assert.equal((await ask('/')).headers.get('location'), '/console')
  assert.equal((await ask('/pay')).status, 404, 'nothing of the service is here')
  const broken = { method: 'POST', headers: { ...own, ...ada }, body: '{' }
  assert.equal((await ask('/api/console/actions', broken)).status, 400)
  assert.equal((await ask('/api/console/actions', { ...broken, body: 'x'.repeat(300_000) })).status, 413)
  assert.equal(await gateway.terminate(), 0)
})

test('without a token the console prints one at the start, for this machine; its pages show what the gateway has', {
  skip,
}, async (context) => {
  const { gateway, url, rest, ask } = await openWorld(context, {})
  const [, token = ''] = /^for this machine only, with the token (\S{32})$/.exec(rest) ?? []
  assert.equal((await ask('/api/console/session', { headers: { 'x-forwarded-for': '192.0.2.1' } })).status, 403)
  await gateway.ask({ path: '/pay', key: 'order-2' })
  await using browser = await openBrowser()
  const { page, assertClean } = await browser.open()
  await page.goto(url)
  await page.getByLabel('Token').fill(token)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  const links = await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allInnerTexts()
  assert.deepEqual(
    links.map((text) => text.split('\n')[0]),
    ['Overview', 'Records', 'Guard', 'Checklist', 'Data', 'Audit'],
  )
  await page.getByText('answers this machine only').waitFor()
  await page.getByRole('link', { name: /Unknown outcomes/ }).click()
  await page.getByRole('cell', { name: 'order-2' }).click()
  await page.getByRole('heading', { name: /unknown/ }).waitFor()
  await page.goto(`${url}/console/runs`)
  await page.getByText('There is no such page').waitFor()
  assertClean()
  // The end of the gateway does not wait for open pages.
  assert.equal(await gateway.terminate(), 0)
})
