import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLedger } from 'onceonly'
import { createProtect as express } from 'onceonly/express'
import { createProtect as fastify } from 'onceonly/fastify'
import { createProtect as fetch } from 'onceonly/fetch'
import { createProtect as hono } from 'onceonly/hono'
import { createBulk } from 'onceonly/http'
import { createProtect as koa } from 'onceonly/koa'
import { memoryStore } from 'onceonly/memory'
import { createProtect as node } from 'onceonly/node'
import { describe, openAnswers, openapi } from 'onceonly/openapi'

/** A protected route of any adapter can be described and documented as it is. */
test('every adapter’s protected route carries its definition', async () => {
  await using ledger = createLedger({ store: memoryStore() })
  const options = { ledger, who: () => ({ tenant: 't', caller: 'c' }) }
  const definition = (name: string) => ({ name, effect: 'repeatable' as const })
  const routes = [
    express(options)(definition('express'), () => {}),
    fastify(options)(definition('fastify'), async () => {}),
    hono(options)(definition('hono'), () => new Response()),
    koa(options)(definition('koa'), () => {}),
    fetch(options)(definition('fetch'), () => new Response()),
    node(options)(definition('node'), () => {}),
  ].map(({ definition }) => ({ kind: 'command' as const, method: 'POST', path: `/${definition.name}`, definition }))
  assert.deepEqual(
    routes.map(({ path }) => path),
    ['/express', '/fastify', '/hono', '/koa', '/fetch', '/node'],
  )
  assert.deepEqual(
    Object.keys(openapi({ openapi: '3.1.1' }, routes).paths),
    routes.map(({ path }) => path),
  )
  for (const route of routes) assert.equal(describe(route).length, 14)
  const bulk = createBulk(ledger, { name: 'bulk', effect: 'repeatable' })
  const batch = { kind: 'batch' as const, method: 'POST', path: '/bulk', definition: bulk.definition }
  assert.equal(openAnswers([batch]).length, 4)
})
