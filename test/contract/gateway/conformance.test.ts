import { test } from 'node:test'
import { httpConformance } from 'onceonly/testing'
import { serveGateway } from './serve.ts'

/** What differs in a gateway: it knows only the upstream's response, and cannot authenticate. */
const otherwise: readonly (readonly [RegExp, string])[] = [
  [/^transaction: |of a transaction|in a transaction/, 'no transaction reaches through HTTP'],
  [/^async: /, 'the gateway offers no `Prefer: respond-async`'],
  [/^content: a failed original/, 'a refusal of the upstream frees its content: guard.test.ts'],
  [/pointer|3 MB as/, 'an upstream attaches no pointer'],
  [/marks as|marked|after the mark/, 'an upstream marks nothing'],
  [/thrown|refused connection|failed before its effect/, 'an upstream throws nothing: broken.test.ts has its faults'],
  [/a missing one runs the handler/, 'the handler cannot know whether it is protected: pass.test.ts'],
  [/a HEAD has no body/, 'safe methods are passed on untouched: pass.test.ts'],
  [/404/, 'a 404 is never final: access.test.ts'],
  [/snapshot keeps/, 'a 401 is never final, whatever the profile: access.test.ts'],
  [/breaks in the middle/, 'an answer that was cut settles by its status: broken.test.ts'],
]

httpConformance({
  test: (name, body) => {
    const [, why] = otherwise.find(([pattern]) => pattern.test(name)) ?? []
    return why === undefined ? test(name, body) : test(name, { skip: why }, () => {})
  },
  serve: serveGateway,
})
