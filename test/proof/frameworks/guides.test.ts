import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { Client } from 'pg'
import { createDatabase } from '../../../tools/servers/database.ts'
import type { Project } from './project.ts'
import { openProject } from './project.ts'

const guide = (name: string) => readFileSync(join(import.meta.dirname, 'app', 'nest-guide', name), 'utf8')
const files = ['orders.controller.ts', 'app.module.ts', 'main.ts', 'more.ts']
const project = await openProject(['trpc-guide.ts'], Object.fromEntries(files.map((name) => [name, guide(name)])))
const changed = ['order.entity.ts', 'orders.controller.ts', 'app.module.ts']
const typeorm = await openProject([], {
  'main.ts': guide('main.ts'),
  ...Object.fromEntries(changed.map((name) => [name, guide(`typeorm/${name}`)])),
})
const postgres = process.env['ONCEONLY_TEST_POSTGRES_URL']

if (project.missing !== false) test('guides with packages of their own', { skip: project.missing }, () => {})
else {
  await project.load('trpc-guide.ts')
  test('the guides compile', () => {
    assert.deepEqual([project.complaints(), typeorm.complaints()], [[], []])
  })
  test(
    'the guide of Nest ends with a protected route',
    { skip: postgres === undefined && 'no PostgreSQL server' },
    nest,
  )
  test(
    'the guide of Nest with TypeORM ends with a protected route',
    { skip: postgres === undefined && 'no PostgreSQL server' },
    nestWithTypeOrm,
  )
}

async function nest(): Promise<void> {
  await using database = await createDatabase(postgres ?? '')
  await using client = await connect(database.url)
  await client.query('create table orders (item text not null, count int not null)')
  await serving(project, database.url, async (place) => {
    assert.equal((await place({ item: 'pen', count: 0 })).status, 400)
    assert.equal((await place({ item: 'pen', count: 2 })).status, 201)
    assert.equal((await place({ item: 'pen', count: 2 })).headers.get('idempotent-replayed'), 'true')
    assert.equal((await place({ item: 'ink', count: 2 })).status, 409)
    assert.deepEqual((await client.query('select item, count from orders')).rows, [{ item: 'pen', count: 2 }])
  })
}

async function nestWithTypeOrm(): Promise<void> {
  await using database = await createDatabase(postgres ?? '')
  await using client = await connect(database.url)
  await serving(typeorm, database.url, async (place) => {
    assert.equal((await place({ item: 7 })).status, 400)
    const first = await place({ item: 'pen' })
    assert.deepEqual([first.status, await first.json()], [201, { id: 1, item: 'pen' }])
    const again = await place({ item: 'pen' })
    assert.deepEqual([again.headers.get('idempotent-replayed'), await again.json()], ['true', { id: 1, item: 'pen' }])
    assert.deepEqual((await client.query('select * from orders')).rows, [{ id: 1, item: 'pen' }])
  })
}

async function connect(connectionString: string): Promise<Client & AsyncDisposable> {
  const client = new Client({ connectionString })
  await client.connect()
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() })
}

type Place = (body: object) => Promise<Response>

/** Starts the program of a guide, and asks it. */
async function serving(of: Project, url: string, ask: (place: Place) => Promise<void>): Promise<void> {
  const server = spawn(process.execPath, ['--conditions=onceonly-source', of.path('main.ts')], {
    env: { ...process.env, DATABASE_URL: url, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const at = await listening(server.stdout)
    await ask((body) =>
      fetch(`${at}/orders`, {
        method: 'POST',
        headers: { 'idempotency-key': 'order-1', 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    )
  } finally {
    server.kill('SIGTERM')
    await once(server, 'exit')
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
