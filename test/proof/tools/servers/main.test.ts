import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { Client } from 'pg'
import { canInstall } from '../../../../tools/servers/apt.ts'
import { leftovers } from '../../../../tools/servers/leftovers.ts'
import { postgres } from '../../../../tools/servers/postgres.ts'

const main = join(import.meta.dirname, '../../../../tools/servers/main.ts')
const skip = postgres.find() === undefined && !canInstall() ? 'PostgreSQL is not installed' : false

test('npm run servers prints what a shell can read, and stops at Ctrl-C', { skip }, async () => {
  const command = spawn(process.execPath, [main, 'postgres'], {
    env: { ...process.env, [postgres.variable]: '' },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [line] = await once(createInterface({ input: command.stdout }), 'line')
  const [, url = ''] = /^export ONCEONLY_TEST_POSTGRES_URL='(.*)'$/.exec(line) ?? []
  const client = new Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query('SHOW data_directory')
  await client.end()

  command.kill('SIGINT')
  assert.deepEqual(await once(command, 'exit'), [0, null])
  assert.deepEqual(leftovers(join(rows[0].data_directory, '..')), [])
})

test('npm run servers names the servers it knows', async () => {
  const command = spawn(process.execPath, [main, 'oracle'], { stdio: ['ignore', 'ignore', 'pipe'] })
  const [said] = await once(command.stderr, 'data')
  assert.match(
    String(said),
    /^Unknown server: oracle\. Known are postgres, redis, rabbitmq, nats, mariadb, browser\.\n$/,
  )
  assert.deepEqual(await once(command, 'exit'), [2, null])
})
