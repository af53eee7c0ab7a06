import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import type { Declaration } from '../openapi/declaration.ts'
import { decorate, enforceAccess } from './authenticate.ts'
import type { Workspaces } from './workspaces.ts'

const OPERATOR = 'the-operator-token'

/** One key, whose caller may use messages only. */
const workspaces = {
  authenticate: async (key: string) =>
    key === 'the-key' ? { workspaceId: 'demo', caller: 'ann', keyId: 'key_1', rights: ['messages'] } : null,
} satisfies Partial<Workspaces> as Workspaces

function declared(access: Declaration['access'], system: string): Declaration {
  return { id: system, system: { name: system, about: '' }, summary: '', access, answers: {} }
}

test('a route cannot forget to check the access that it declares, in a scope of its own either', async () => {
  const server = Fastify()
  decorate(server)
  enforceAccess(server, workspaces, OPERATOR)
  const add = (path: string, declaration: Declaration | 'page') =>
    server.get(path, { config: { declaration } }, async () => 'in')
  add('/messages', declared('api key', 'messages'))
  add('/chat', declared('api key', 'chat'))
  add('/operations', declared('api key', 'operations'))
  add('/anyone', declared('anyone', 'health'))
  add('/page', 'page')
  add('/console', { ...declared('operator', 'console'), hasSessions: true })
  const operators = { config: { declaration: declared('operator', 'admin') } }
  server.register(async (scope) => void scope.get('/admin', operators, async () => 'in'))

  const statuses = async (token: string | null) => {
    const headers = token === null ? {} : { authorization: `Bearer ${token}` }
    const paths = ['/messages', '/chat', '/operations', '/admin', '/anyone', '/page', '/console']
    return await Promise.all(paths.map(async (url) => (await server.inject({ url, headers })).statusCode))
  }
  assert.deepEqual(await statuses(null), [401, 401, 401, 401, 200, 200, 200])
  assert.deepEqual(await statuses('another-key'), [401, 401, 401, 401, 200, 200, 200])
  assert.deepEqual(await statuses('the-key'), [200, 403, 200, 401, 200, 200, 200])
  assert.deepEqual(await statuses(OPERATOR), [401, 401, 401, 200, 200, 200, 200])
  await server.close()
})
