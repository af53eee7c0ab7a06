import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import type { Declaration } from '../openapi/declaration.ts'
import { decorate } from '../workspaces/authenticate.ts'
import { admitCommands, createAdmission } from './admission.ts'

async function served(full: ReadonlySet<string>) {
  const server = Fastify()
  const asked: string[] = []
  decorate(server)
  const admission = createAdmission()
  admitCommands(server, { ...admission, mayEnter: (key) => !full.has(key) && admission.mayEnter(key) })
  const declaration = { access: 'api key', repeat: { kind: 'natural' } } as unknown as Declaration
  server.post('/commands', {
    config: { declaration },
    async onRequest(request) {
      const key = String(request.headers.authorization).replace('Bearer ', '')
      asked.push(key)
      request.caller = { workspaceId: key, caller: 'api', keyId: key, rights: null }
    },
    handler: async () => ({ done: true }),
  })
  const post = async (key: string, body = '{}') => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    return (await server.inject({ method: 'POST', url: '/commands', headers, body })).statusCode
  }
  return { post, asked, admission }
}

test('a workspace that has its share is refused before it is authenticated; others are not', async () => {
  const full = new Set<string>()
  const { post, asked } = await served(full)
  assert.deepEqual([await post('flood'), await post('quiet')], [200, 200])
  full.add('workspace flood')
  assert.deepEqual([await post('flood'), await post('flood'), await post('quiet')], [503, 503, 200])
  assert.deepEqual(asked, ['flood', 'quiet', 'quiet'])
  full.clear()
  assert.equal(await post('flood'), 200)
})

test('whatever becomes of a request, its place and its bytes come back', async () => {
  const { post, admission } = await served(new Set())
  assert.deepEqual(
    [await post('one'), await post('one', '{'), await post('one', '"'.repeat(2_000_000))],
    [200, 400, 413],
  )
  assert.deepEqual(admission.load, { underWay: 0, most: 1_000, waiting: 0, bodyBytes: 0 })
})
