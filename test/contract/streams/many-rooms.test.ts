import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SqlStore, SqlTx } from 'onceonly'
import { createSqlOrderLog, createSqlRoomLog } from 'onceonly/stream/server'
import { until } from '../../../src/testing/until.ts'
import { onSqlite } from '../../support/streams/stores.ts'

/** The store, and every statement that goes through it. */
function spied(store: SqlStore): { readonly store: SqlStore; readonly statements: ReadonlySet<string> } {
  const statements = new Set<string>()
  const watched = <Q extends Pick<SqlTx, 'query'>>(target: Q): Q =>
    new Proxy(target, {
      get(from, name) {
        const value = Reflect.get(from, name) as unknown
        if (name !== 'query') return typeof value === 'function' ? value.bind(from) : value
        return (text: string, values?: readonly []) => {
          statements.add(text)
          return from.query(text, values)
        }
      },
    })
  const transactions = new Proxy(store.transactions, {
    get(from, name) {
      const value = Reflect.get(from, name) as unknown
      if (name !== 'run') return typeof value === 'function' ? value.bind(from) : value
      return (work: (given: { tx: SqlTx }) => unknown, options: never) =>
        from.run(((given: { tx: SqlTx }) => work({ ...given, tx: watched(given.tx) })) as never, options)
    },
  })
  const sql = watched(store.sql)
  const seen = new Proxy(store, {
    get(from, name) {
      if (name === 'sql') return sql
      if (name === 'transactions') return transactions
      const value = Reflect.get(from, name) as unknown
      return typeof value === 'function' ? value.bind(from) : value
    },
  })
  return { store: seen, statements }
}

test('no statement of a room goes through the rooms of others', () =>
  onSqlite(async (given) => {
    const { store, statements } = spied(given.store)
    const log = createSqlRoomLog({ store, region: 'eu' })
    const order = createSqlOrderLog({ store })
    const heard: string[] = []
    const ears = ['one', 'two'].map((room) => log.listen?.(room, () => void heard.push(room)))
    await log.enter('one', { client: 'ann', epoch: 1, generation: 1, instance: 'tab' })
    const message = {
      client: 'ann',
      epoch: 1,
      generation: 1,
      cseq: 1,
      seen: {},
      replyTo: null,
      body: 'hi',
      digest: 'hi',
    }
    await log.write('one', { merged: [], sends: [message] })
    const other = createSqlRoomLog({ store: given.another(), region: 'eu' })
    await other.enter('two', { client: 'bob', epoch: 1, generation: 1, instance: 'tab' })
    await other.write('two', { merged: [], sends: [{ ...message, client: 'bob' }] })
    await until('the other room is heard of', () => heard.includes('two'))
    await log.read('one', 0, { entries: 10, bytes: 1_000 })
    await log.find('one', (await log.open('one')).position)
    await order.claim('one', 'eu', 60_000)
    await order.places('one', [{ client: 'ann', epoch: 1, cseq: 1 }])
    const server = { ...message, client: 'pub~server~id', generation: null }
    await log.write('one', { merged: [], sends: [server] })
    const recognised = { clientsMs: 60_000, publishedMs: 60_000, mostPublished: 10 }
    await log.trim('one', { olderThanMs: 60_000, mostEntries: 1, ...recognised })
    await log.adopt('two', await log.image('one'))
    for (const ear of ears) ear?.stop()

    const plans: string[] = []
    for (const statement of statements) {
      if (!/^\s*(select|insert|update|delete)/i.test(statement) || !statement.includes('onceonly_stream_')) continue
      const marks = statement.split('?').length - 1
      const values = Array.from({ length: marks }, () => '[]')
      const steps = await given.store.sql.query<{ detail: string }>(`explain query plan ${statement}`, values)
      plans.push(...steps.map(({ detail }) => detail))
    }
    assert.ok(
      plans.some((step) => step.includes('room=?')),
      'the plans were seen',
    )
    // Tables have names of one letter in these statements; the array of what is asked for is `e`, and small.
    const table = /SCAN (?:[a-df-z]|onceonly_\w+)(?: |$)/
    const wide = plans.filter((step) => table.test(step) || /SEARCH .*\(region=\?( AND sweep_at.*)?\)$/.test(step))
    assert.deepEqual(wide, [])
  }))
