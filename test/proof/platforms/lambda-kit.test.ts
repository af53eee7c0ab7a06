import { test } from 'node:test'
import { httpConformance } from 'onceonly/testing'
import { serveOn } from './gateway.ts'

/** What needs a connection: a function of Lambda sees none, and runs no longer than its answer takes. */
const needsConnection = /^async:|^lost: .*(stream|writes|a client that (hangs up before|leaves)|a client that left)/
const reason = 'a function of Lambda sees no connection'

for (const format of ['1.0', '2.0'] as const) {
  httpConformance({
    test: (name, body) =>
      test(`lambda, format ${format}: ${name}`, { skip: needsConnection.test(name) ? reason : false }, body),
    serve: serveOn(format),
  })
}
