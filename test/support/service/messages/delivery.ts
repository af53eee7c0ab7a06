import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLedger } from 'onceonly'
import { readConfig } from '../../../../service/config.ts'
import type { CallRate } from '../../../../service/config-rates.ts'
import { createLog, type Log } from '../../../../service/logs.ts'
import { createAccept } from '../../../../service/messages/accept.ts'
import type { Channel, Result } from '../../../../service/messages/channels/channel.ts'
import { LATE_SHARE } from '../../../../service/messages/channels/channel.ts'
import { createDelivery } from '../../../../service/messages/deliver.ts'
import { type MessageRow, messageColumns, noCrmIds } from '../../../../service/messages/message.ts'
import { migrations } from '../../../../service/messages/schema.ts'
import { createSlots } from '../../../../service/messages/slots.ts'
import { type Base, openBase } from '../../../../service/store.ts'
import { createQuotas } from '../../../../service/workspaces/quotas.ts'

const SEND_TIMEOUT_MS = 200
export const sent: Result = { kind: 'sent', providerMessageId: 'p-1' }

/** One message in a store of its own, and a provider that the test controls. */
export async function openDelivery(
  provider: Channel['send'],
  {
    dedups = false,
    log = createLog({ logLevel: 'silent' }),
    rates = new Map(),
  }: { readonly dedups?: boolean; readonly log?: Log; readonly rates?: ReadonlyMap<string, CallRate> } = {},
) {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-deliver-'))
  const base = openBase({ ...readConfig({}), dataFolder: folder, testClock: true }, null)
  await base.sql.migrate('messages', migrations)
  const draft = {
    to: { workspaceId: 'w', phone: '+491', email: null },
    leadId: null,
    crmIds: noCrmIds,
    body: 'Hi',
    channel: 'webhook' as const,
    attachments: [],
    subject: null,
    lockHash: 'h',
  }
  const quotas = createQuotas(readConfig({}))
  const accept = createAccept(base, { windowMs: 1_000, guarded: false, quotas })
  const { row } = await accept(draft, { effectKey: 'e', lockClaim: 'l', keyClaim: null })
  const ledger = createLedger({ store: base.store, background: false })
  const channel: Channel = {
    name: 'webhook',
    dedups,
    reference: ({ effectKey }) => effectKey,
    reaches: () => true,
    complaints: () => [],
    send: provider,
  }
  const deliveryOn = (on: Base, its = ledger) =>
    createDelivery({
      ledger: its,
      base: on,
      channels: { get: () => channel, pick: () => channel },
      slots: createSlots({ base: on, rates, callMs: SEND_TIMEOUT_MS * LATE_SHARE, failed: () => {} }),
      sendTimeoutMs: SEND_TIMEOUT_MS,
      windowMs: 1_000,
      log,
    })
  const delivery = deliveryOn(base)
  const stateOf = async () => {
    const [now] = await base.sql.query<MessageRow>(`select ${messageColumns} from messages`)
    assert.ok(now !== undefined)
    return now
  }
  return {
    base,
    row,
    ledger,
    delivery,
    deliveryOn,
    stateOf,
    async [Symbol.asyncDispose]() {
      await delivery.stop()
      await ledger.stop()
      await base.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
