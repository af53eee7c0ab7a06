import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createLedger } from 'onceonly'
import { mariadbStore } from 'onceonly/mariadb'
import { startCommands } from '../../../support/admin/cli/commands.ts'
import { createDatabase } from '../../../support/stores/mariadb/database.ts'

const url = process.env['ONCEONLY_TEST_MARIADB_URL']
const skip = url === undefined ? 'ONCEONLY_TEST_MARIADB_URL is not set' : false
/** The driver is found from the folder that the command runs in. */
const root = join(import.meta.dirname, '../../../..')

test('commands read and act on mariadb://, and those that need other tables say why not in one line', {
  skip,
}, async (t) => {
  const database = await createDatabase(url ?? '')
  t.after(() => database.drop())
  const store = mariadbStore(database.pool())
  const once = createLedger({ store, background: false })
  const pay = once.operation<number>({ name: 'pay', effect: 'external' })
  const who = { tenant: 'acme', caller: 'shop' }
  await pay.execute({ ...who, key: 'one' }, 1, () => Promise.reject(new Error('cut')))
  await pay.run({ ...who, key: 'paid' }, 1, async () => 'paid')
  await once.stop()
  await store.stop()

  const commands = startCommands(root, {
    ...process.env,
    ONCEONLY_STORE: Object.assign(new URL(url ?? ''), { pathname: `/${database.name}` }).href,
  })
  after(() => commands[Symbol.asyncDispose]())
  const json = async (...args: string[]) => JSON.parse((await commands.run(...args, '--json')).stdout)
  const status = await json('status')
  assert.deepEqual([status.store, status.states.unknown, status.states.succeeded], ['mariadb', 1, 1])
  assert.equal((await json('inspect', 'acme', 'shop', 'pay', 'paid')).record.state, 'succeeded')
  const act = (...args: string[]) => commands.run(...args, '--yes')
  const resolved = await act('resolve', 'acme', 'shop', 'pay', 'one', '--to', 'succeeded', '--value', '"paid"')
  assert.deepEqual([resolved.status, resolved.stdout], [0, 'Resolved.\n'])
  assert.deepEqual(await json('unknowns'), [])
  const { status: code, stderr } = await commands.run('runs')
  assert.equal(code, 2)
  assert.match(stderr, /^onceonly: The mariadb store [^\n]*\.\n$/)
})

test('a server that is not there is one clear line', async (t) => {
  const commands = startCommands(root, { ...process.env, ONCEONLY_STORE: 'mariadb://127.0.0.1:1/app' })
  t.after(() => commands[Symbol.asyncDispose]())
  const { status, stdout, stderr } = await commands.run('status')
  assert.deepEqual([status, stdout, stderr.trim().split('\n').length], [2, '', 1], stderr)
  assert.match(stderr, /The store cannot be reached/)
})
