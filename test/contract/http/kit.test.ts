import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Serve, Site, SiteRoute } from 'onceonly/testing'
import { httpCases, memoryGround } from 'onceonly/testing'
import { serveNode } from './node.ts'

/** Servers broken on purpose, one way each: a kit that passes them proves nothing. */

const routesBy = (change: (route: SiteRoute) => SiteRoute): Serve => {
  return (site) => serveNode({ ...site, routes: site.routes.map(change) })
}

const definedBy = (change: (definition: SiteRoute['definition']) => Partial<SiteRoute['definition']>): Serve =>
  routesBy((route) => ({
    ...route,
    definition: { ...route.definition, ...change(route.definition) } as SiteRoute['definition'],
  }))

const optionsBy = (change: (options: Site['options']) => Partial<Site['options']>): Serve => {
  return (site) => serveNode({ ...site, options: { ...site.options, ...change(site.options) } })
}

let unique = 0

const broken: readonly [what: string, serve: Serve, notice: readonly string[]][] = [
  [
    'every request is a new one',
    optionsBy(() => ({ who: () => ({ tenant: 't', caller: `c${++unique}` }) })),
    ['replay: JSON, byte for byte', 'lost: twenty twins at once are one effect and twenty equal answers'],
  ],
  [
    'all requests have the same caller',
    optionsBy(() => ({ who: () => ({ tenant: 't', caller: 'shared' }) })),
    ['key: another tenant or caller with the same key never meets the record'],
  ],
  [
    'the payload does not count',
    definedBy(() => ({ fingerprint: () => null })),
    ['fingerprint: another body is another request', 'fingerprint: only the chosen fields count'],
  ],
  [
    'no authorization before a replay',
    definedBy(() => ({ authorize: () => true })),
    [
      'answers: a caller that lost access is refused, and sees nothing else',
      'status: the route is asked whether the caller may see it',
    ],
  ],
  [
    'effects are taken for repeatable',
    definedBy(() => ({ effect: 'repeatable' })),
    ['answers: an unknown outcome is never tried again by itself', 'finality: 500 of an external effect is unknown'],
  ],
  [
    'transactions are taken for repeatable effects',
    definedBy(({ effect }) => ({ effect: effect === 'transaction' ? 'repeatable' : effect })),
    ['transaction: the write and the record commit together, once for twenty twins'],
  ],
  [
    'every answer is final',
    definedBy(() => ({ finality: 'snapshot' })),
    ['finality: 500 of a repeatable effect may be tried again'],
  ],
  [
    'only successes are final',
    definedBy(() => ({ finality: 'success-only' })),
    ['finality: 422 is final', 'replay: a refusal, byte for byte'],
  ],
  [
    'nothing is kept',
    definedBy(() => ({ maxAnswerBytes: 0 })),
    ['replay: bytes, byte for byte', 'replay: an answer just within the cap is kept, one byte more is not'],
  ],
  [
    'bodies are never kept',
    definedBy(() => ({ keep: 'outcome' })),
    ['replay: a text, byte for byte', 'keep: a pointer rebuilds the answer with the rights of now'],
  ],
  ['keys are optional', definedBy(() => ({ key: 'optional' })), ['key: a missing one is refused where it is required']],
  [
    'twins never wait',
    definedBy(() => ({ whileRunning: 'conflict' })),
    [
      'answers: a twin waits for the first attempt and gets its answer',
      'answers: accept answers with the place of the status',
    ],
  ],
  [
    'mounted routes do not know where they are',
    routesBy((route) => ({ ...route, definition: { name: `fixed-${++unique}`, ...route.definition } })),
    ['request: a mounted router is known by the whole path'],
  ],
  [
    'nothing is protected',
    definedBy(() => ({ key: 'optional', keyFrom: { header: 'x-never-sent' } })),
    ['key: a bare key is accepted and equal', 'lost: twenty twins at once are one effect and twenty equal answers'],
  ],
  [
    'contents do not count',
    definedBy(() => ({ content: undefined })),
    [
      'content: without a key the same content runs once',
      'content: while the original is in flight, its duplicate gets 409 after its wait',
      'content: while the store is down a closed route answers 503',
    ],
  ],
  [
    'every caller has contents of its own',
    definedBy(({ content }) => (content === undefined ? {} : { content: { ...content, scope: 'caller' } })),
    ['content: callers of a tenant share it, unless its scope is the caller'],
  ],
  [
    'a tenant has no contents of one caller',
    definedBy(({ content }) => (content === undefined ? {} : { content: { ...content, scope: 'tenant' } })),
    ['content: callers of a tenant share it, unless its scope is the caller'],
  ],
  [
    'contents are kept for longer than their window',
    definedBy(({ content }) => (content === undefined ? {} : { content: { ...content, withinMs: 3_600_000 } })),
    ['content: the window counts from the claim, and no duplicate extends it'],
  ],
]

for (const [what, serve, notice] of broken) {
  test(`a server where ${what} is noticed`, async () => {
    for (const name of notice) {
      const found = httpCases.find((each) => each.name === name)
      assert.ok(found !== undefined, `there is no case "${name}"`)
      await assert.rejects(found.run(serve, memoryGround), `"${name}" noticed nothing`)
    }
  })
}
