import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { Client } from 'pg'
import { createDatabase } from '../../../tools/servers/database.ts'
import { openProject } from './project.ts'

const guide = (name: string) => readFileSync(join(import.meta.dirname, 'app', 'nest-guide', name), 'utf8')
const files = ['orders.controller.ts', 'app.module.ts', 'main.ts', 'more.ts', 'typeorm.ts']
const project = await openProject(['trpc-guide.ts'], Object.fromEntries(files.map((name) => [name, guide(name)])))
const postgres = process.env['ONCEONLY_TEST_POSTGRES_URL']

if (project.missing !== false) test('guides with packages of their own', { skip: project.missing }, () => {})
else {
  await project.load('trpc-guide.ts')
  test('the guides compile', () => assert.deepEqual(project.complaints(), []))
  test(
    'the guide of Nest ends with a protected route',
    { skip: postgres === undefined && 'no PostgreSQL server' },
    nest,
  )
}

async function nest(): Promise<void> {
  await using database = await createDatabase(postgres ?? '')
  const client = new Client({ connectionString: database.url })
  await client.connect()
  await client.query('create table orders (item text not null, count int not null)')
  const env = { ...process.env, DATABASE_URL: database.url, PORT: '0' }
  const server = spawn(process.execPath, ['--conditions=onceonly-source', project.path('main.ts')], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const url = await listening(server.stdout)
    const place = (body: object) =>
      fetch(`${url}/orders`, {
        method: 'POST',
        headers: { 'idempotency-key': 'order-1', 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    assert.equal((await place({ item: 'pen', count: 0 })).status, 400)
    assert.equal((await place({ item: 'pen', count: 2 })).status, 201)
    assert.equal((await place({ item: 'pen', count: 2 })).headers.get('idempotent-replayed'), 'true')
    assert.equal((await place({ item: 'ink', count: 2 })).status, 409)
    assert.deepEqual((await client.query('select item, count from orders')).rows, [{ item: 'pen', count: 2 }])
  } finally {
    server.kill('SIGTERM')
    await once(server, 'exit')
    await client.end()
  }
}

async function listening(output: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface(output)) {
    const [, url] = /^Listening at (http:\S+)/.exec(line) ?? []
    if (url !== undefined) {
      output.resume()
      return url.replace('[::1]', 'localhost')
    }
  }
  return assert.fail('the server ended before it listened')
}
