import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, test } from 'node:test'
import type { Encryption, Store } from 'onceonly'
import { createLedger, encryptionFromEnv, isOnceError } from 'onceonly'
import { memoryStore } from 'onceonly/memory'
import type { SqliteStore } from 'onceonly/sqlite'
import { sqliteStore } from 'onceonly/sqlite'
import { recordIdOf } from '../../../src/ledger/core/identity.ts'

const k1 = randomBytes(32)
const k2 = randomBytes(32)
const one: Encryption = { keys: { k1 } }
const both: Encryption = { keys: { k1, k2 }, writeWith: 'k2' }
const identity = { tenant: 'acme', caller: 'ann@example.com', key: 'order-4711' }
const CALL = { timeoutMs: 5_000 }

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end()
})

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'onceonly-encryption-'))
  ends.push(() => rmSync(path, { recursive: true }))
  return path
}

function open(file: string, encryption?: Encryption): SqliteStore {
  const store = sqliteStore(file, encryption === undefined ? {} : { encryption })
  ends.push(() => store.stop())
  return store
}

function ledgerOn(store: Store) {
  const ledger = createLedger({ store, background: false })
  ends.push(() => ledger.stop())
  return ledger
}

/** Runs one command and answers what its caller gets, and whether it ran. */
async function pay(store: Store, key = identity.key, amount = 918_273_645_546) {
  let ran = 0
  const operation = ledgerOn(store).operation({ name: 'payment.capture', effect: 'external' })
  const done = await operation.execute({ ...identity, key }, { amount, phone: '+15550001111' }, () => {
    ran++
    return { receipt: 'rcpt-secret-77', phone: '+15550001111' }
  })
  return { ran, done }
}

const isWrongKey = (error: unknown) => isOnceError(error, 'encryption_key')

test('a retry is answered from an encrypted record, also by another process and with a new writing key', async () => {
  const file = join(folder(), 'once.db')
  const first = await pay(open(file, one))
  assert.equal(first.ran, 1)
  const again = await pay(open(file, one))
  assert.deepEqual([again.ran, again.done.kind], [0, 'replayed'])
  const rotated = await pay(open(file, both))
  assert.deepEqual([rotated.ran, rotated.done.kind], [0, 'replayed'])
  assert.deepEqual('value' in rotated.done && rotated.done.value, { receipt: 'rcpt-secret-77', phone: '+15550001111' })
})

test('a stolen file, with its log, shows no body, phone, key, caller or fingerprint', async () => {
  const path = folder()
  const file = join(path, 'once.db')
  const store = open(file, one)
  await pay(store)
  const ledger = ledgerOn(store)
  await ledger.unique('acme', 'email', 'bob@example.com', { owner: 'user-bob' })
  const plain = open(join(folder(), 'plain.db'))
  await pay(plain)
  const view = await ledgerOn(plain).get({ ...identity, operation: 'payment.capture' })
  const digest = view?.record.fingerprint.split(':').at(-1) ?? ''
  const id = recordIdOf({ ...identity, operation: 'payment.capture' })
  const bytes = Buffer.concat(readdirSync(path).map((name) => readFileSync(join(path, name))))
  assert.ok(bytes.byteLength > 4_096 && digest.length > 40)
  for (const secret of [
    'order-4711',
    'ann@example',
    '5550001111',
    'rcpt-secret',
    '918273645546',
    'bob@',
    'user-bob',
    digest,
  ]) {
    assert.equal(bytes.includes(secret), false, secret)
  }
  assert.equal(bytes.includes(Buffer.from(id, 'hex')), false)
})

test('without the keys, or with wrong ones, nothing runs, and the message says which key is missing', async () => {
  const file = join(folder(), 'once.db')
  await pay(open(file, one))
  const wrong: readonly (readonly [Encryption | undefined, RegExp])[] = [
    [undefined, /no keys are configured \(`k1`\)/],
    [{ keys: { k1: k2 } }, /The key `k1` is not the one/],
    [{ keys: { k9: k2 } }, /is encrypted with `k1` \(configured: `k9`\)/],
  ]
  for (const [encryption, message] of wrong) {
    const store = open(file, encryption)
    await assert.rejects(pay(store), (error) => isWrongKey(error) && message.test(String(error)))
    await assert.rejects(store.sql.migrate('mine', []), isWrongKey)
    await assert.rejects(store.clock.now(CALL), isWrongKey)
    const operation = createLedger({ store, background: false }).operation({ name: 'in', effect: 'transaction' })
    await assert.rejects(
      operation.run(identity, 1, () => assert.fail('it ran')),
      isWrongKey,
    )
  }
  const { ran } = await pay(open(file, one))
  assert.equal(ran, 0)
})

test('a record whose key is lost answers that its response is not stored, and never runs again', async () => {
  const file = join(folder(), 'once.db')
  await pay(open(file, one))
  await pay(open(file, both), 'order-2')
  const missing = open(file, { keys: { k2 } })
  await assert.rejects(
    pay(missing),
    (error) => isWrongKey(error) && /holds data that `k1` encrypted/.test(String(error)),
  )
  const store = open(file, { keys: { k2 }, lost: ['k1'] })
  const { ran, done } = await pay(store)
  assert.equal(ran, 0)
  assert.ok(done.kind === 'refused' && done.error.code === 'outcome_not_stored')
  assert.equal((await pay(store, 'order-2')).done.kind, 'replayed')
})

test('an outcome that was moved to another record, or put back into an earlier life, does not open', async () => {
  const file = join(folder(), 'once.db')
  const store = open(file, one)
  await pay(store, 'mine', 1)
  await pay(store, 'theirs', 2)
  await store.stop()
  const db = new DatabaseSync(file)
  const [a, b] = db.prepare('SELECT id, outcome FROM onceonly_records WHERE outcome IS NOT NULL').all()
  const put = db.prepare('UPDATE onceonly_records SET outcome = ? WHERE id = ?')
  put.run(String(a?.['outcome']), b?.['id'] as Uint8Array)
  put.run(String(b?.['outcome']), a?.['id'] as Uint8Array)
  db.close()
  for (const [key, amount] of [
    ['mine', 1],
    ['theirs', 2],
  ] as const) {
    const { ran, done } = await pay(open(file, one), key, amount)
    assert.ok(ran === 0 && done.kind === 'refused' && done.error.code === 'outcome_not_stored', key)
  }
})

test('an outcome of an earlier incarnation does not open in a later one', async () => {
  const file = join(folder(), 'once.db')
  const store = open(file, one)
  await pay(store)
  const outcomeOf = () => {
    const db = new DatabaseSync(file)
    const row = db.prepare('SELECT outcome FROM onceonly_records WHERE outcome IS NOT NULL').get()
    db.close()
    return String(row?.['outcome'])
  }
  const before = outcomeOf()
  await ledgerOn(store).forget({ ...identity, operation: 'payment.capture' })
  assert.equal((await pay(store)).ran, 1)
  assert.notEqual(outcomeOf(), before)
  await store.stop()
  const db = new DatabaseSync(file)
  db.prepare('UPDATE onceonly_records SET outcome = ? WHERE outcome IS NOT NULL').run(before)
  db.close()
  const { ran, done } = await pay(open(file, one))
  assert.ok(ran === 0 && done.kind === 'refused' && done.error.code === 'outcome_not_stored')
})

test('operators see encrypted records as they were given, and find them by every part', async () => {
  const store = open(join(folder(), 'once.db'), one)
  await pay(store)
  const ledger = ledgerOn(store)
  const { rows } = await ledger.list()
  assert.deepEqual(
    rows.map(({ record }) => record.identity),
    [{ ...identity, operation: 'payment.capture' }],
  )
  for (const filter of [{ key: identity.key }, { caller: identity.caller }, { tenant: 'acme' }]) {
    assert.equal((await ledger.list(filter)).rows.length, 1)
    assert.equal((await ledger.count(filter)).succeeded, 1)
  }
  assert.equal((await ledger.list({ key: 'another' })).rows.length, 0)
  assert.equal((await ledger.list({ ended: true })).rows.length, 1)
  const found = await ledger.find(recordIdOf({ ...identity, operation: 'payment.capture' }))
  assert.equal(found?.record.identity.caller, identity.caller)
})

test('another payload is refused, and an owner of a business value is shown to others', async () => {
  const store = memoryStore({ encryption: one })
  await pay(store)
  const { ran, done } = await pay(store, identity.key, 9_999)
  assert.ok(ran === 0 && done.kind === 'refused' && done.error.code === 'key_reused')
  const ledger = ledgerOn(store)
  assert.deepEqual(await ledger.unique('acme', 'mail', 'a@b', { owner: 'ann' }), { kind: 'claimed' })
  assert.deepEqual(await ledger.unique('acme', 'mail', 'a@b', { owner: 'ann' }), { kind: 'claimed' })
  const taken = await ledger.unique('acme', 'mail', 'a@b', { owner: 'bob' })
  assert.ok(taken.kind === 'taken' && taken.owner === 'ann')
})

async function countListed(store: Store): Promise<number> {
  const ledger = ledgerOn(store)
  let [count, cursor]: [number, string | null] = [0, null]
  do {
    const page: Awaited<ReturnType<typeof ledger.list>> = await ledger.list({ caller: identity.caller }, { cursor })
    count += page.rows.length
    cursor = page.cursor
  } while (cursor !== null)
  return count
}

async function rekeyAll(store: Store) {
  const { encryption } = store
  assert.ok(encryption)
  let [changed, left] = [0, 0]
  for (let cursor: string | null = null; ; ) {
    const step = await encryption.rekey(cursor, 2, CALL)
    changed += step.changed
    left += step.left
    cursor = step.cursor
    if (cursor === null) return { changed, left }
  }
}

test('rekey brings everything under the writing key; the old one can be removed then', async () => {
  const file = join(folder(), 'once.db')
  for (const key of ['a', 'b', 'c', 'd', 'e']) await pay(open(file, one), key)
  const store = open(file, both)
  assert.deepEqual((await store.encryption?.status(CALL))?.writers, ['k1', 'k2'])
  assert.deepEqual(await rekeyAll(store), { changed: 5, left: 0 })
  assert.deepEqual(await rekeyAll(store), { changed: 0, left: 0 })
  assert.equal(await store.encryption?.finish(CALL), true)
  const later = open(file, { keys: { k2 } })
  for (const key of ['a', 'b', 'c', 'd', 'e']) assert.equal((await pay(later, key)).done.kind, 'replayed')
  await assert.rejects(pay(open(file, one)), isWrongKey)
})

test('a store with plain records is refused unless they are allowed, and rekey encrypts them', async () => {
  const file = join(folder(), 'once.db')
  for (const key of ['a', 'b', 'c']) await pay(open(file), key)
  await assert.rejects(pay(open(file, one), 'a'), (error) => isWrongKey(error) && /rekey/.test(String(error)))
  const mixed: Encryption = { ...one, allowPlain: true }
  const store = open(file, mixed)
  for (const key of ['a', 'b', 'c']) assert.equal((await pay(store, key)).done.kind, 'replayed', key)
  assert.equal((await pay(store, 'new')).ran, 1)
  assert.equal(await countListed(store), 4)
  await assert.rejects(pay(open(file), 'a'), isWrongKey)
  await rekeyAll(store)
  assert.deepEqual((await rekeyAll(store)).left, 0)
  assert.equal(await store.encryption?.finish(CALL), true)
  const strict = open(file, one)
  for (const key of ['a', 'b', 'c', 'new']) assert.deepEqual((await pay(strict, key)).ran, 0, key)
  assert.equal(await countListed(strict), 4)
})

test('texts of wings are encrypted where they are written and readable where they are read', async () => {
  const path = folder()
  const store = open(join(path, 'once.db'), one)
  const { sql } = store
  const up = () => ['create table notes (id integer primary key, body text not null, phone text)']
  const encrypted = { notes: { body: 'secret', phone: 'lookup' } } as const
  await sql.migrate('notes', [{ version: 1, oldestCode: 1, up, encrypted }])
  await sql.query('insert into notes (body, phone) values (?, ?)', [sql.secret('top secret'), sql.lookup('+1555')])
  const rows = await sql.query('select body, phone from notes where phone = ?', [sql.lookup('+1555')])
  assert.deepEqual(
    rows.map((row) => ({ ...row })),
    [{ body: 'top secret', phone: '+1555' }],
  )
  const bytes = Buffer.concat(readdirSync(path).map((name) => readFileSync(join(path, name))))
  assert.ok(!bytes.includes('top secret') && !bytes.includes('+1555'))
  const rotated = open(join(path, 'once.db'), both)
  assert.deepEqual(await rekeyAll(rotated), { changed: 1, left: 0 })
  await rotated.encryption?.finish(CALL)
  const [row] = await open(join(path, 'once.db'), { keys: { k2 } }).sql.query('select body from notes')
  assert.equal(row?.['body'], 'top secret')
})

test('bad keys are refused before anything is opened', () => {
  const bad: readonly (readonly [unknown, RegExp])[] = [
    [{ keys: {} }, /has no key/],
    [{ keys: { k1: Buffer.from('short') } }, /has 5 bytes for `k1`, not 32/],
    [{ keys: { k1: 'text' } }, /has no bytes for `k1` but a string/],
    [{ keys: { 'a.b': k1 } }, /has the id `a.b`/],
    [{ keys: { k1: Buffer.alloc(32) } }, /32 equal bytes/],
    [{ keys: { k1 }, writeWith: 'k3' }, /`writeWith` is `k3`, which is not among the keys: `k1`/],
    [{ keys: { k1, k2 } }, /`writeWith` is missing/],
    [{ key: { k1 } }, /has no option `key`. Did you mean `keys`/],
  ]
  for (const [encryption, message] of bad) {
    assert.throws(() => memoryStore({ encryption: encryption as Encryption }), message)
  }
})

test('keys come from a variable or a file, and what is malformed is refused without being repeated', () => {
  const text = `k1=${k1.toString('base64')},k2=${k2.toString('hex')}`
  const read = encryptionFromEnv({ ONCEONLY_ENCRYPTION_KEYS: text, ONCEONLY_ENCRYPTION_WRITE_WITH: 'k2' })
  assert.deepEqual([Buffer.from(read?.keys['k1'] ?? []), read?.writeWith], [k1, 'k2'])
  assert.equal(encryptionFromEnv({}), undefined)
  for (const env of [
    { ONCEONLY_ENCRYPTION_KEYS: 'hunter2hunter2' },
    { ONCEONLY_ENCRYPTION_KEYS: 'k1=hunter2hunter2' },
    { ONCEONLY_ENCRYPTION_KEYS_FILE: '/nowhere/hunter2hunter' },
    { ONCEONLY_ENCRYPTION_KEYS: text },
    { ONCEONLY_ENCRYPTION_WRITE_WITH: 'k1' },
    { ONCEONLY_ENCRYPTION_KEYS: text, ONCEONLY_ENCRYPTION_KEYS_FILE: 'x' },
  ]) {
    assert.throws(
      () => encryptionFromEnv(env),
      (error) => isOnceError(error, 'bad_option') && !error.message.includes('hunter2hunter2'),
    )
  }
})
