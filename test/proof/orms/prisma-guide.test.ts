import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { Client } from 'pg'
import { root } from '../../../tools/command.ts'
import { createDatabase } from '../../../tools/servers/database.ts'
import { freePorts } from '../../../tools/servers/server.ts'
import { app, installOrms } from './install.ts'

const missing = await installOrms()
const postgres = process.env['ONCEONLY_TEST_POSTGRES_URL']
const skip = missing === false ? postgres === undefined && 'no PostgreSQL server' : missing
const guide = join(app, 'prisma-guide')
const read = (file: string) => readFileSync(join(guide, file), 'utf8')

/** `prisma db push` would download an engine, so the table is made by hand, as that command makes it. */
const table = 'CREATE TABLE "Order" (id serial PRIMARY KEY, item text NOT NULL)'

test('the guide of Express and Prisma shows its schema and its program', () => {
  const page = readFileSync(join(root, 'docs/guides/express-prisma.md'), 'utf8')
  const schema = read('prisma/schema.prisma')
  for (const part of [schema.slice(schema.indexOf('model ')), read('src/server.ts')])
    assert.ok(page.includes(part), part)
})

test('it ends with a protected route, which remembers after kill -9', { skip }, async () => {
  await using database = await createDatabase(postgres ?? '')
  const client = new Client({ connectionString: database.url })
  await client.connect()
  await client.query(table)
  const [port = 0] = await freePorts(1)
  for (const replayed of [false, true]) {
    const server = spawn(process.execPath, ['--conditions=onceonly-source', join(guide, 'src/server.ts')], {
      env: { ...process.env, DATABASE_URL: database.url, PORT: String(port) },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const gone = once(server, 'exit')
    try {
      const [said] = (await once(createInterface(server.stdout), 'line')) as [string]
      assert.equal(said, `listening on http://127.0.0.1:${port}`)
      assert.deepEqual(await place(port, 'pen'), { status: 201, replayed, id: 1 })
      assert.deepEqual(await place(port, 'pen'), { status: 201, replayed: true, id: 1 })
      assert.equal((await place(port, 'ink')).status, 409)
    } finally {
      server.kill('SIGKILL')
      await gone
    }
  }
  assert.deepEqual((await client.query('SELECT * FROM "Order"')).rows, [{ id: 1, item: 'pen' }])
  await client.end()
})

async function place(port: number, item: string) {
  const response = await fetch(`http://127.0.0.1:${port}/orders`, {
    method: 'POST',
    headers: { 'idempotency-key': 'click-1', 'x-user': 'ann', 'content-type': 'application/json' },
    body: JSON.stringify({ item }),
  })
  const { id } = (await response.json()) as { readonly id?: number }
  return { status: response.status, replayed: response.headers.get('idempotent-replayed') === 'true', id }
}
