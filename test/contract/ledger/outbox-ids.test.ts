import assert from 'node:assert/strict'
import type { OutboxMessage } from 'onceonly'
import { effectKeyOf } from '../../../src/ledger/core/identity.ts'
import { onEveryStore, who } from '../../support/ledger/worlds.ts'

onEveryStore(
  'the ids of outbox messages derive from the command, so that an operator finds them',
  async ({ second }) => {
    const ids: string[] = []
    const outbox = { add: async (_tx: unknown, { id }: OutboxMessage & { id: string }) => void ids.push(id) }
    const once = await second()
    once.setOutbox(outbox)
    const op = once.operation({ name: 'o', effect: 'transaction' })
    await op.run(who('k'), 1, async ({ outbox: box }) => {
      for (const topic of ['a', 'b']) await box.add({ topic, body: 1 })
    })
    const view = await once.get({ ...who('k'), operation: 'o' })
    assert.ok(view !== null)
    const { id, incarnation } = view.record
    assert.deepEqual(
      ids,
      [0, 1].map((number) => effectKeyOf(id, incarnation, `outbox:${number}`)),
    )
  },
)
