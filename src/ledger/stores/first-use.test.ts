import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from '../core/errors.ts'
import { memoryStore } from './memory/index.ts'
import { postgresStore } from './postgres/index.ts'
import { redisStore } from './redis/index.ts'
import { sqliteStore } from './sqlite/index.ts'

const pool = 'postgresStore needs a `Pool` of `pg`, not'
const client = 'redisStore needs a client, not'
const clients = '`new Redis()` or `new Cluster()` of `ioredis`, or `createClient()` of `redis`, version 5 or newer'

const wrongUses: readonly (readonly [what: string, use: () => unknown, message: string])[] = [
  [
    'a connection string as a pool',
    () => postgresStore('postgres://localhost/app' as never),
    `${pool} a connection string. Pass \`new Pool({ connectionString })\`.`,
  ],
  ['no pool', () => postgresStore(undefined as never), `${pool} undefined. Pass \`new Pool({ connectionString })\`.`],
  [
    "a pool's settings",
    () => postgresStore({ connectionString: 'postgres://localhost/app' } as never),
    `${pool} its settings. Pass \`new Pool(settings)\`.`,
  ],
  [
    'a pool among the options',
    () => postgresStore({ pool: {} } as never),
    `${pool} an object with one. Pass the pool itself, then the options: \`postgresStore(pool, { schema })\`.`,
  ],
  ['a URL as a Redis client', () => redisStore('redis://localhost' as never), `${client} a URL. Pass ${clients}.`],
  ['nothing as a Redis client', () => redisStore(undefined as never), `${client} undefined. Pass ${clients}.`],
  ['an empty client', () => redisStore({} as never), `${client} an object without its methods. Pass ${clients}.`],
  [
    'options as a path',
    () => sqliteStore({ path: 'once.db' } as never),
    "sqliteStore needs the path of a file, not an object: `sqliteStore('onceonly.db')`.",
  ],
  [
    'a database in memory',
    () => sqliteStore(':memory:'),
    'sqliteStore cannot open :memory:: its connections could not share it. Use `memoryStore()`, or a plain path.',
  ],
  [
    'an option that does not exist',
    () => memoryStore({ testclock: true } as never),
    'memoryStore has no option `testclock`. Did you mean `testClock`?',
  ],
]

for (const [what, use, message] of wrongUses) {
  test(`${what} is refused in one sentence that says what to pass`, () => {
    assert.throws(use, (error) => {
      assert.ok(isOnceError(error, 'bad_option'))
      assert.equal(error.message, message)
      return true
    })
  })
}
