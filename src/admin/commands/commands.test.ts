import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createInbox } from '../../events/inbox/inbox.ts'
import { createOutbox } from '../../events/outbox/outbox.ts'
import { recordIdOf } from '../../ledger/core/identity.ts'
import { final } from '../../ledger/core/verdict.ts'
import { createLedger } from '../../ledger/ledger.ts'
import { freshStore } from '../../ledger/stores/sqlite/test-store.ts'
import { createAdmin } from '../core/admin.ts'
import { readArguments, schemaOf } from './argument.ts'
import type { Command } from './command.ts'
import { BadArguments, CommandRefused } from './refusal.ts'
import { createCommands } from './run.ts'
import { commandTable } from './table.ts'

const actor = { by: 'ada', via: 'test' }
const operator = { role: 'operator', actor } as const
const viewer = { role: 'viewer', actor } as const
const table: Readonly<Record<string, Command>> = commandTable

async function openAdmin(context: TestContext) {
  const store = freshStore(context)
  const ledger = createLedger({ store, background: false })
  context.after(() => ledger.stop())
  const admin = createAdmin({ store, ledger })
  const who = { tenant: 'acme', caller: 'shop' }
  const pay = ledger.operation<number>({ name: 'pay', effect: 'external' })
  await pay.execute({ ...who, key: 'lost' }, 1, () => Promise.reject(new Error('cut')))
  const inbox = createInbox({ ledger, consumer: 'billing', background: false })
  const message = { id: 'm-1', topic: 'paid', key: null, sequence: null, headers: {}, deliveries: 1 }
  await inbox.receive({ ...message, body: '{"secret":7}' }, () => Promise.reject(final(new Error('unreadable'))))
  await inbox.stop()
  return {
    store,
    ledger,
    admin,
    commands: createCommands({ admin }),
    identity: { ...who, operation: 'pay', key: 'lost' },
  }
}

test('an action is written to the audit under its name, a preview is not', async (context) => {
  const { admin, commands, identity } = await openAdmin(context)
  const audited = async () => (await admin.audit?.list({}))?.rows.map(({ what, result }) => `${what} ${result}`)
  const letters = { consumer: 'billing', deadLetters: ['all'] }
  await commands.run('inbox.redrive', { ...letters, preview: true }, operator)
  await commands.run('resolve', { ...identity, to: 'rerun', preview: true }, operator)
  assert.deepEqual(await audited(), [])
  await assert.rejects(commands.run('release', identity, operator))
  await commands.run('resolve', { ...identity, to: 'rerun' }, operator)
  await commands.run('inbox.purge', letters, operator)
  await commands.run('sweep', {}, operator)
  assert.deepEqual(await audited(), ['sweep done', 'inbox.purge done', 'resolve done', 'release refused'])
})

test('nothing is changed or audited when the operator declines', async (context) => {
  const { admin, commands, identity } = await openAdmin(context)
  const asked: string[] = []
  const confirm = async (question: string) => {
    asked.push(question)
    throw new Error('declined')
  }
  await assert.rejects(commands.run('resolve', { ...identity, to: 'rerun' }, { ...operator, confirm }), /declined/)
  assert.deepEqual(asked, ['Resolve as rerun: pay of acme/shop under the key lost, which is unknown?'])
  assert.deepEqual((await admin.audit?.list({}))?.rows, [])
  assert.equal((await admin.inspect(identity))?.record.state, 'unknown')
})

test('a viewer runs no action, and sees no stored content in answers and previews', async (context) => {
  const { commands, identity } = await openAdmin(context)
  const refused = (error: unknown) => error instanceof CommandRefused && error.why === 'forbidden'
  for (const [name, command] of Object.entries(table)) {
    if (command.kind === 'act') await assert.rejects(commands.runNamed(name, {}, viewer), refused, name)
  }
  await assert.rejects(commands.runNamed('sweep', { preview: true }, viewer), refused, 'it has no preview')
  const letters = { consumer: 'billing', deadLetters: ['all'] }
  const seen = [
    await commands.run('inbox.dead', { consumer: 'billing' }, viewer),
    await commands.run('inbox.redrive', { ...letters, preview: true }, viewer),
    await commands.run('inbox.purge', { ...letters, preview: true }, viewer),
    await commands.run('resolve', { ...identity, to: 'rerun', preview: true }, viewer),
  ]
  assert.ok(!JSON.stringify(seen).includes('secret'))
  const shown = await commands.run('inbox.purge', { ...letters, preview: true }, operator)
  assert.ok(JSON.stringify(shown).includes('secret'), 'an operator sees it')
})

test('arguments are checked together, before anything is read, and the nearest name is suggested', async (context) => {
  const { commands } = await openAdmin(context)
  const given = { consumr: 'billing', deadLetters: 'all' }
  await assert.rejects(commands.runNamed('inbox.redrive', given, operator), (error: unknown) => {
    assert.ok(error instanceof BadArguments)
    assert.deepEqual(error.faults, [
      { field: 'consumr', detail: 'is not an argument here. Did you mean consumer?' },
      { field: 'consumer', detail: 'is missing' },
      { field: 'deadLetters', detail: 'is not a list of at most 500 texts' },
    ])
    return true
  })
  await assert.rejects(commands.runNamed('inbox.redriv', {}, operator), /Did you mean `inbox.redrive`\?/)
  for (const name of ['toString', '__proto__', 'constructor']) {
    await assert.rejects(commands.runNamed(name, {}, operator), BadArguments, name)
  }
})

test('what does not exist is refused before it is audited', async (context) => {
  const { admin, commands, identity } = await openAdmin(context)
  const missing = (error: unknown) => error instanceof CommandRefused && error.why === 'not_found'
  await assert.rejects(commands.run('forget', { ...identity, key: 'never' }, operator), missing)
  await assert.rejects(commands.run('outbox.purge', { ids: ['never'] }, operator), missing)
  assert.deepEqual((await admin.audit?.list({}))?.rows, [])
})

test('every command documents itself, and its words and the variables of its path are arguments', () => {
  for (const [name, command] of Object.entries(table)) {
    assert.ok(command.summary.length > 0, name)
    for (const [argument, { about }] of Object.entries(command.arguments))
      assert.ok(about !== '', `${name} ${argument}`)
    const inPath = command.kind === 'read' ? [...command.path.matchAll(/:(\w+)/g)].map(([, each]) => each ?? '') : []
    for (const word of [...(command.words ?? []), ...inPath]) assert.ok(word in command.arguments, `${name} ${word}`)
  }
  const schema = schemaOf(commandTable['run.resolve'].arguments)
  assert.deepEqual(schema['required'], ['runId', 'key', 'to'])
  assert.deepEqual(readArguments(commandTable.sweep.arguments, {}), { rounds: 1 })
})

test('one id finds everything that has it, and every row says where it is shown', async (context) => {
  const { admin, commands, identity } = await openAdmin(context)
  const found = async (id: string) => {
    const { rows } = await commands.run('find', { id }, viewer)
    return rows.map(({ kind, page, look }) => `${kind} ${page} ${look}`).toSorted()
  }
  const id = recordIdOf(identity)
  const record = `record /records/${id} onceonly inspect --id ${id}`
  const { effectKey } = (await admin.inspect(identity))?.record ?? { effectKey: '' }
  for (const each of ['lost', id, effectKey]) assert.deepEqual(await found(each), [record], each)
  const [letter, ...handled] = await found('m-1')
  assert.equal(letter, 'dead letter /events/inbox/billing onceonly inbox dead billing')
  assert.match(handled.join(), /^record /)
  assert.deepEqual(await found('nothing-has-this'), [])
  for (const odd of ['nul\0', '\ud800']) await assert.rejects(found(odd), BadArguments)
  // A server adds what its own tables have.
  const own = { kind: 'order', id: 'o-1', about: 'shoes', state: null, at: null, page: null, look: null }
  const served = createCommands({ admin, find: async (asked) => (asked === 'o-1' ? [own] : []) })
  assert.deepEqual((await served.run('find', { id: 'o-1' }, viewer)).rows, [own])
})

test('what waits for a decision is one list, also page by page, and dead letters are in it', async (context) => {
  const { admin, commands, store, ledger } = await openAdmin(context)
  await createOutbox({ ledger }).prepare()
  await store.sql.query(
    `INSERT INTO onceonly_outbox_dead
       (position, partition, added_at, bytes, line, id, topic, headers, body, parked_at, attempts, reason)
     VALUES (7, 1, 5, 2, 'l', 'out-1', 'paid', '{}', '{}', 6, 3, 'refused')`,
  )
  const { rows, cursor } = await commands.run('unknowns', {}, viewer)
  assert.deepEqual(
    rows.map(({ kind, attempts }) => `${kind} ${attempts}`),
    ['record 1', 'dead_letter 3', 'dead_letter 1'],
  )
  assert.equal(cursor, null)
  const [, ofOutbox, letter] = rows
  assert.equal(ofOutbox?.end, 'onceonly outbox redrive out-1, or: onceonly outbox purge out-1')
  assert.match(letter?.end ?? '', /^onceonly inbox redrive billing \S+, or: onceonly inbox purge billing \S+$/)
  const { unknownWaiting, inboxDeadLetters, outbox } = await admin.standing()
  assert.deepEqual([unknownWaiting, inboxDeadLetters, outbox?.deadLetters], [1, { billing: 1 }, 1])
  const seen: unknown[] = []
  for (let from: string | null | undefined, page = 0; page < 10; page++) {
    const next: Awaited<ReturnType<typeof admin.unknowns>> = await admin.unknowns({ limit: 1, cursor: from ?? null })
    seen.push(...next.rows.map(({ kind }) => kind))
    from = next.cursor
    if (from === null) break
  }
  assert.deepEqual(seen, ['record', 'dead_letter', 'dead_letter'])
  const found = await commands.run('find', { id: 'out-1' }, viewer)
  assert.deepEqual(
    found.rows.map(({ kind, state }) => [kind, state]),
    [['outbox message', 'dead letter']],
  )
})
