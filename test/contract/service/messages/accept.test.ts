import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { SqlValue } from 'onceonly'
import { readConfig } from '../../../../service/config.ts'
import { createAccept } from '../../../../service/messages/accept.ts'
import { noCrmIds } from '../../../../service/messages/message.ts'
import { listMessages } from '../../../../service/messages/reads.ts'
import { migrations } from '../../../../service/messages/schema.ts'
import { looks } from '../../../../service/messages/worker.ts'
import { openBase } from '../../../../service/store.ts'
import { createQuotas } from '../../../../service/workspaces/quotas.ts'

const WINDOW_MS = 60_000

async function world(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-accept-'))
  const config = readConfig({})
  const base = openBase({ ...config, dataFolder: folder, testClock: true }, null)
  t.after(async () => {
    await base.stop()
    await rm(folder, { recursive: true, force: true })
  })
  await base.sql.migrate('messages', migrations)
  const accept = createAccept(base, { windowMs: WINDOW_MS, guarded: true, quotas: createQuotas(config) })
  const send = (lockClaim: string | null, keyClaim: string | null = null, lockHash = 'h') =>
    accept(
      {
        to: { workspaceId: 'w', phone: '+491', email: null },
        leadId: null,
        crmIds: noCrmIds,
        body: 'Hi',
        channel: 'local',
        attachments: [],
        subject: null,
        lockHash,
      },
      { effectKey: 'e', lockClaim, keyClaim },
    )
  return { base, send }
}

test('attempts under one lock are one message; a lock that was released since is another', async (t) => {
  const { send } = await world(t)
  const first = await send('lock 1')
  assert.equal(first.kind, 'new')
  const again = await send('lock 1')
  assert.deepEqual([again.kind, again.row.id, again.withoutLock], ['duplicate', first.row.id, undefined])
  const next = await send('lock 2')
  assert.equal(next.kind, 'new')
  assert.notEqual(next.row.id, first.row.id)
})

test('within the window a message without a lock is the original of one with it, and the other way round', async (t) => {
  const { base, send } = await world(t)
  const first = await send(null)
  const locked = await send('lock 1')
  assert.deepEqual([locked.kind, locked.row.id, locked.withoutLock], ['duplicate', first.row.id, true])
  const other = await send('lock 2', null, 'other')
  const without = await send(null, null, 'other')
  assert.deepEqual([without.kind, without.row.id, without.withoutLock], ['duplicate', other.row.id, true])
  await base.advance(WINDOW_MS + 1)
  assert.equal((await send('lock 1')).kind, 'new')
})

test('a key finds its message whatever lock it comes with', async (t) => {
  const { send } = await world(t)
  const first = await send('lock 1', 'key 1')
  const again = await send('lock 2', 'key 1')
  assert.deepEqual([again.kind, again.row.id], ['resumed', first.row.id])
})

test('every list of messages, and every look of the worker, reads an index', async (t) => {
  const { base } = await world(t)
  const plans: string[] = []
  const planOf = async (text: string, values: readonly SqlValue[]) =>
    (await base.sql.query<{ detail: string }>(`explain query plan ${text}`, values)).map(({ detail }) => detail)
  const query: typeof base.sql.query = async (text, values = []) => {
    plans.push(...(await planOf(text, values)))
    return []
  }
  const asked = { ...base, sql: { ...base.sql, query } }
  for (const one of [{}, { leadId: 'l' }, { conversationId: 'c' }, { status: 'sent' } as const]) {
    await listMessages(asked, 'w', one)
  }
  assert.equal(plans.length >= 4, true)
  assert.deepEqual(
    plans.filter((plan) => !/USING (COVERING )?INDEX/.test(plan)),
    [],
  )
  for (const [text, values] of [
    [looks.queued, [0, 0]] as const,
    [looks.sending, [0]] as const,
    [looks.unknown, [0, '']] as const,
  ]) {
    const [first] = await planOf(text, values)
    assert.match(first ?? '', /USING INDEX messages_under_way/)
  }
})
