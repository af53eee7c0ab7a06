import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { curlOf } from '../../../../service/docs/curl.ts'
import { html, prose } from '../../../../service/docs/html.ts'
import { servedRoutes } from '../../../../service/openapi/collect.ts'
import { openedService } from '../../../support/service/openapi/opened.ts'

const { service, document, ...opened } = await openedService()
after(() => opened[Symbol.asyncDispose]())

const response = await fetch(`${service.url}/docs`)
const page = await response.text()

test('the page shows every operation, with a line to try', () => {
  assert.equal(response.headers.get('content-type'), 'text/html; charset=utf-8')
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const { operationId } of Object.values(methods)) {
      assert.ok(page.includes(`<article id="${operationId}">`), operationId)
      assert.ok(page.includes(`<a href="#${operationId}">`), operationId)
    }
    assert.ok(page.includes(`<code>${path}</code>`), path)
  }
  assert.equal(page.match(/<article /g)?.length, page.match(/curl -i /g)?.length)
})

test('where a route says that it is documented, it is', () => {
  const answers = servedRoutes(service.routes).map((route) =>
    route.kind === 'natural' ? route.about.documentation : route.definition.about?.documentation,
  )
  assert.ok(answers.length > 10)
  for (const answer of answers) {
    const id = /^\/docs#(.+)$/.exec(answer ?? '')?.[1]
    assert.ok(page.includes(`<article id="${id}">`), answer)
  }
})

test('the page loads nothing from other hosts, and only its own script may run', () => {
  assert.doesNotMatch(page, /(?:src|href)="(?:https?:)?\/\//)
  assert.doesNotMatch(page, /@import|url\(/)
  const policy = response.headers.get('content-security-policy') ?? ''
  assert.match(policy, /^default-src 'none'; style-src 'sha256-[\w+/]+=*'; script-src 'sha256-[\w+/]+=*'/)
})

test('what is put into the page cannot become a part of it', () => {
  assert.equal(html`<p title="${'"'}">${'<script>'}</p>`.text, '<p title="&quot;">&lt;script&gt;</p>')
  assert.equal(prose('`a` & <b>').text, '<code>a</code> &amp; &lt;b&gt;')
})

test('a line to try survives the shell', () => {
  const operation = {
    operationId: 'o',
    tags: [],
    summary: '',
    security: [{ apiKey: [] }],
    parameters: [{ name: 'Idempotency-Key', in: 'header' }],
    requestBody: { content: { 'application/json': { schema: {}, example: { text: "it's" } } } },
    responses: {},
  }
  const lines = [
    `curl -i "$URL/things/ID"`,
    `  -H "Authorization: Bearer $KEY"`,
    `  -H 'Idempotency-Key: o-1'`,
    `  -H 'Content-Type: application/json'`,
    `  -d '{"text":"it'\\''s"}'`,
  ]
  assert.equal(curlOf('POST', '/things/{id}', operation), lines.join(' \\\n'))
  assert.equal(
    curlOf('DELETE', '/things/{id}', { ...operation, security: [], parameters: [], requestBody: undefined as never }),
    'curl -i -X DELETE "$URL/things/ID"',
  )
})
