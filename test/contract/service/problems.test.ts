import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { problems } from '../../../service/http/problems.ts'
import { demoKey, openedService } from '../../support/service/openapi/opened.ts'

const { service, ...opened } = await openedService()
after(() => opened[Symbol.asyncDispose]())

interface Document {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly instance?: string
  readonly retryable: boolean
}

async function send(path: string, init: { key?: string; apiKey?: string; body?: unknown; method?: string } = {}) {
  const { key, apiKey = demoKey, body } = init
  const { method = body === undefined ? 'GET' : 'POST' } = init
  return fetch(`${service.url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${apiKey}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
}

const page = (type: string, accept: string) => fetch(new URL(type, service.url), { headers: { accept } })

/** The page says what the document says: they are made of one table. */
async function explained({ type, title, status, retryable }: Document): Promise<void> {
  const browser = await page(type, 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8')
  assert.equal(browser.status, 200, type)
  assert.match(browser.headers.get('content-type') ?? '', /^text\/html/)
  assert.match(browser.headers.get('content-security-policy') ?? '', /default-src 'none'/)
  const html = await browser.text()
  const curl = await page(type, '*/*')
  assert.deepEqual([curl.status, curl.headers.get('content-type')], [200, 'text/plain; charset=utf-8'], type)
  const plain = await curl.text()
  for (const shown of [html, plain]) {
    assert.ok(shown.includes(title), type)
    assert.match(shown, new RegExp(`\\b${status}\\b`), type)
    assert.match(shown, retryable ? /Send the same request again/ : /Do not retry/, type)
    assert.match(shown, /What to do/, type)
  }
  const program = await page(type, 'application/json')
  assert.equal(program.headers.get('content-type'), 'application/json')
  const problem = (await program.json()) as Document & { next: string }
  assert.deepEqual([problem.type, problem.title, problem.retryable], [type, title, retryable])
  assert.ok(problem.next.length > 20, type)
}

test('the type of a problem is the address of a page that explains it', async () => {
  const escalation = { caseId: 'CASE-100', targetQueue: 'LEGAL_REVIEW' }
  await send('/case-escalations', { key: 'page-1', body: escalation })
  const long = `/${'x'.repeat(3_000)}`
  for (const [path, init, name] of [
    ['/case-escalations', { body: escalation }, 'idempotency-key-missing'],
    ['/case-escalations', { key: 'page-1', body: { ...escalation, caseId: 'CASE-101' } }, 'idempotency-key-reused'],
    ['/case-escalations', { key: 'page-2', body: escalation }, 'already-escalated'],
    ['/case-escalations', { key: 'page-3', body: { ...escalation, caseId: 'CASE-0' } }, 'case-not-found'],
    ['/api/messages', { body: {} }, 'invalid-input'],
    ['/api/messages', { body: '{' }, 'bad-request'],
    ['/api/messages', { apiKey: 'wrong', body: {} }, 'unauthorized'],
    ['/nowhere', {}, 'not-found'],
    [`/api/messages${long}`, {}, 'address-too-long'],
  ] as const) {
    const answer = await send(path, init)
    const document = (await answer.json()) as Document
    assert.equal(document.type, `/problems/${name}`, path)
    assert.equal(document.status, answer.status, name)
    // Where it happened: the request, or the operation that it is about.
    assert.equal(document.instance, path, name)
    await explained(document)
  }
})

test('so does what is refused before it is a request', async () => {
  const { port, hostname } = new URL(service.url)
  const socket = connect(Number(port), hostname)
  socket.end('NONSENSE\r\n\r\n')
  const answer = await text(socket)
  assert.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n/)
  await explained(JSON.parse(answer.slice(answer.indexOf('{'))) as Document)
})

test('every problem of the table has its page, and a name that is none has none', async () => {
  for (const [name, row] of Object.entries(problems)) {
    await explained({ type: `/problems/${name}`, ...row })
  }
  for (const name of ['nothing', '__proto__', 'constructor', '<script>']) {
    assert.equal((await page(`/problems/${encodeURIComponent(name)}`, '*/*')).status, 404, name)
  }
})
