import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { readable } from '../../../../service/docs/readable.ts'
import { servedRoutes } from '../../../../service/openapi/collect.ts'
import { openedService } from '../../../support/service/openapi/opened.ts'

const { service, document, ...opened } = await openedService()
after(() => opened[Symbol.asyncDispose]())

const response = await fetch(`${service.url}/docs`)
const page = await response.text()
const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods))

test('the page loads nothing from other hosts, and only files of this one may run', () => {
  assert.equal(response.headers.get('content-type'), 'text/html; charset=utf-8')
  assert.doesNotMatch(page, /(?:src|href)="(?:https?:)?\/\//)
  const policy = response.headers.get('content-security-policy') ?? ''
  assert.match(
    policy,
    /^default-src 'none'; script-src 'self'; style-src 'self'; .*connect-src 'self'; .*frame-ancestors 'none'$/,
  )
})

test('every file that the page names is there, compressed for those who take it so', async () => {
  const files = [...page.matchAll(/(?:src|href)="(\/docs\/[^"]+)"/g)].map(([, file = '']) => file)
  assert.equal(files.length, 4)
  for (const file of files) {
    for (const encoding of ['gzip', 'identity']) {
      const answer = await fetch(`${service.url}${file}`, { headers: { 'accept-encoding': encoding } })
      assert.equal(answer.status, 200, file)
      assert.match(answer.headers.get('content-type') ?? '', file.endsWith('.js') ? /javascript/ : /css/)
      assert.equal(answer.headers.get('content-encoding'), encoding === 'gzip' ? 'gzip' : null)
      assert.ok((await answer.text()).length > 0, file)
    }
  }
})

test('where a route says that it is documented, it is', () => {
  const ids = new Set(operations.map(({ operationId }) => operationId))
  const answers = servedRoutes(service.routes).map((route) =>
    route.kind === 'natural' ? route.about.documentation : route.definition.about?.documentation,
  )
  assert.ok(answers.length > 10)
  for (const answer of answers) assert.ok(ids.has(/^\/docs#(.+)$/.exec(answer ?? '')?.[1] ?? ''), answer)
})

test('what a repeated request does stands in the description of every operation that changes something', async () => {
  const shown = (await (await fetch(`${service.url}/docs/openapi.json`)).json()) as typeof document
  const described = Object.values(shown.paths).flatMap((methods) => Object.values(methods))
  const promised = operations.filter((operation) => 'x-onceonly' in operation)
  assert.ok(promised.length > 10)
  for (const { operationId } of promised) {
    const found = described.find((each) => each.operationId === operationId)
    assert.match(
      String(found?.['description']),
      /\*\*(?:Safe to repeat\.|Repeating it)\*\*[^]*<summary>Design checklist</,
      operationId,
    )
  }
})

test('no answer can become markup', () => {
  const checklist = [
    { topic: 'key', question: 'a < b?', answer: null },
    { topic: 'scope', question: 'c?', answer: '<script>' },
  ]
  const operation = { 'x-onceonly': { kind: 'natural', repeats: 'nothing happens', checklist } }
  const { paths } = readable({ paths: { '/': { put: operation } } })
  const rows = '<tr><td>a &lt; b?</td><td><b>open</b></td></tr><tr><td>c?</td><td>&lt;script&gt;</td></tr>'
  const folded = `<details><summary>Design checklist</summary><table>${rows}</table></details>`
  assert.deepEqual(paths, { '/': { put: { description: `**Repeating it**: nothing happens.\n\n${folded}` } } })
})
