import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { openCluster } from '../../support/service/cluster.ts'

const own = { 'x-onceonly-console': '1', 'content-type': 'application/json' }
const viewerToken = 'the-token-of-viewers-only'
const operatorToken = 'the-token-of-operators'

async function signIn(url: string, token: string): Promise<{ readonly status: number; readonly cookie: string }> {
  const body = JSON.stringify({ token, name: 'ada' })
  const response = await fetch(`${url}/api/console/session`, { method: 'POST', headers: own, body })
  await response.arrayBuffer()
  return { status: response.status, cookie: response.headers.get('set-cookie')?.split(';')[0] ?? '' }
}

async function look(url: string, headers: Readonly<Record<string, string>>, path = '/status'): Promise<number> {
  const response = await fetch(`${url}/api/console${path}`, { headers })
  await response.arrayBuffer()
  return response.status
}

test('a session holds on every server of the store, ends with sign-out, and says nothing by itself', async () => {
  await using cluster = await openCluster('sqlite', {
    processes: 2,
    env: { ONCEONLY_OPERATOR_TOKEN: operatorToken, ONCEONLY_VIEWER_TOKEN: viewerToken },
  })
  const [one, two] = cluster.servers as [(typeof cluster.servers)[0], (typeof cluster.servers)[0]]
  const { cookie } = await signIn(one.url, operatorToken)
  assert.deepEqual([await look(one.url, { cookie }), await look(two.url, { cookie })], [200, 200])
  const rows = await cluster.sql<Record<string, unknown>>('select * from onceonly_operator_sessions')
  assert.equal(rows.length, 1)
  const value = cookie.split('=')[1] ?? ''
  for (const secret of [value, operatorToken]) assert.ok(!JSON.stringify(rows).includes(secret), 'no secret is stored')
  // A client that knows every token still cannot make a cookie.
  const payload = Buffer.from(JSON.stringify({ role: 'operator', name: 'eve', until: Date.now() + 60_000 })).toString(
    'base64url',
  )
  for (const secret of [viewerToken, operatorToken, `${operatorToken} ${viewerToken}`, ` ${viewerToken}`]) {
    const signature = createHmac('sha256', `console ${secret}`).update(payload).digest('base64url')
    assert.equal(await look(one.url, { cookie: `onceonly_console=${payload}.${signature}` }), 401)
  }
  const signOut = { method: 'DELETE', headers: { 'x-onceonly-console': '1', cookie } }
  assert.equal((await fetch(`${two.url}/api/console/session`, signOut)).status, 204)
  assert.deepEqual([await look(one.url, { cookie }), await look(two.url, { cookie })], [401, 401], 'also a copy of it')

  const kept = (await signIn(one.url, operatorToken)).cookie
  const renewed = await cluster.add({ ONCEONLY_OPERATOR_TOKEN: 'another-token-of-operators' })
  assert.equal(await look(renewed.url, { cookie: kept }), 401, 'a token that was replaced ends its sessions')
  assert.equal(await look(one.url, { cookie: kept }), 200)
})

test('a client that guesses tokens is rate limited on every route, and other clients are not', async () => {
  await using cluster = await openCluster('sqlite', {
    env: { ONCEONLY_OPERATOR_TOKEN: operatorToken, ONCEONLY_VIEWER_TOKEN: viewerToken },
  })
  const [{ url }] = cluster.servers as [(typeof cluster.servers)[0]]
  const guess = { authorization: 'Bearer a-guess-that-is-wrong' }
  for (const path of ['/session', '/status']) {
    const answers: number[] = []
    for (let tries = 0; tries < 12; tries++) answers.push(await look(url, guess, path))
    assert.equal(answers.at(-1), 429, path)
  }
  assert.equal((await signIn(url, 'a-guess-that-is-wrong')).status, 429)
  assert.equal((await signIn(url, operatorToken)).status, 200, 'from the same address')
  assert.equal(await look(url, { authorization: `Bearer ${viewerToken}` }), 200)
})
