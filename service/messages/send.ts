import { randomUUID } from 'node:crypto'
import type { EffectContext, Ledger, Pointer } from 'onceonly'
import { MINUTE, OnceError, SECOND } from 'onceonly'
import { createGuard, type Guard, type GuardedAttempt, type Verdict } from 'onceonly/guard'
import type { ServerParts } from '../parts.ts'
import { GUARD_NAME } from '../watch.ts'
import { unlessFull } from '../workspaces/quotas.ts'
import { type Accepted, createAccept } from './accept.ts'
import { type Addressed, address, type Refused } from './address.ts'
import type { Channels } from './channels/index.ts'
import type { SendCommand } from './command.ts'
import type { Delivery } from './deliver.ts'
import type { GuardedMessage } from './events.ts'
import type { LeadRow, MessageRow } from './message.ts'
import { messageById } from './reads.ts'

/** What became of a request, before it is put into words. */
export type Sent =
  | Refused
  /** Ours: sent, refused by its provider, or unknown. */
  | { readonly kind: 'message'; readonly row: MessageRow; readonly lead?: LeadRow | undefined }
  | { readonly kind: 'duplicate'; readonly row: MessageRow; readonly ageMs: number }
  /** An identical request is being accepted somewhere, and took too long. */
  | { readonly kind: 'pending' }

export interface Sender {
  readonly guard: Guard<GuardedMessage>
  /** `key` is the claim of the caller's key; its pointer names the message from the moment that it exists. */
  send(workspaceId: string, command: SendCommand, key: KeyClaim | null): Promise<Sent>
}

/** What a send needs of the claim of a key: the key of its effect, and a place for the message's id. */
export interface KeyClaim extends Pick<EffectContext, 'effectKey' | 'attach'>, Partial<Pick<EffectContext, 'note'>> {
  /** What the provider shall know the message by: a run's step has a key of its own. */
  readonly providerKey?: string
}

interface Parts extends Pick<ServerParts, 'base' | 'config' | 'quotas' | 'log' | 'watch'> {
  readonly once: Ledger<unknown>
  readonly channels: Channels
  readonly delivery: Delivery
}

export const WINDOW_MS = 15 * MINUTE
const WAIT_MS = 3 * SECOND
/** A lock call on Redis takes a millisecond or two. */
const LOCK_MS = 250

export function createSender({ once, base, channels, delivery, config, quotas, log, watch }: Parts): Sender {
  const guard = createGuard<GuardedMessage>({
    ledger: once,
    name: GUARD_NAME,
    withinMs: WINDOW_MS,
    waitMs: WAIT_MS,
    onStoreDown: config.guardFails,
    // Locks in a store of their own may be away while everything else works: no send waits long for them.
    ...(config.claimsUrl === null ? {} : { decideMs: LOCK_MS }),
    identity: ({ workspaceId, phone, email, body }) => [workspaceId, phone, email, body],
    originalOf: (accepted) => ({ type: 'message', id: (accepted as Accepted).row.id }),
    on: watch.guard,
  })
  const accept = createAccept(base, { windowMs: WINDOW_MS, guarded: config.guard === 'on', quotas })

  /** The three facts of a send, under the lock and under the key: accepted, sending, outcome. */
  async function under(lock: GuardedAttempt | null, key: KeyClaim | null, addressed: Addressed): Promise<Accepted> {
    const { command, to, channel } = addressed
    const { crmIds, body, subject, attachments, leadId } = command
    const lockClaim = lock?.effectKey ?? null
    const effectKey = key?.providerKey ?? lockClaim ?? key?.effectKey ?? randomUUID()
    const claims = { effectKey, lockClaim, keyClaim: key?.effectKey ?? null }
    const draft = { to, leadId, crmIds, body, subject, channel: channel.name, attachments, lockHash: addressed.hash }
    const accepted = await accept(draft, claims)
    const pointer = { type: 'message', id: accepted.row.id }
    if (accepted.withoutLock === true) {
      lock?.duplicateOf(pointer, (await base.now()) - Number(accepted.row.created_at))
      return accepted
    }
    // From here on the message exists, and is found by its claims even if no record points to it: its delivery need not
    // wait for them, and shares their commits.
    if (accepted.kind === 'duplicate') {
      await attach(lock, pointer)
      return accepted
    }
    const [row] = await Promise.all([delivered(accepted.row), attach(lock, pointer), attach(key, pointer)])
    return { ...accepted, row }
  }

  /** A claim that cannot be given its message does not stop the send: the message is found by the claim itself. */
  async function attach(attempt: KeyClaim | null, pointer: Pointer): Promise<void> {
    try {
      await attempt?.attach(pointer)
    } catch (error) {
      log.warn(
        { event: 'message.attach_failed', messageId: pointer.id, err: error },
        'a claim was not given its message',
      )
    }
  }

  /**
   * An accepted message is not lost when this process fails: the worker continues, and the caller gets the current
   * state.
   */
  async function delivered(row: MessageRow): Promise<MessageRow> {
    try {
      return await delivery.deliver(row)
    } catch (error) {
      log.error(
        { event: 'message.delivery_interrupted', messageId: row.id, err: error },
        'the worker continues with it',
      )
      return row
    }
  }

  /** A lock store that is down, on a guard that fails closed, is a server error, whatever the store says about it. */
  async function guarded(
    content: GuardedMessage,
    effect: (lock: GuardedAttempt | null) => Promise<Accepted>,
  ): Promise<Verdict<Accepted>> {
    if (config.guard === 'off') return { kind: 'unguarded', value: await effect(null) }
    let begun = false
    try {
      return await guard.send(content, (lock) => {
        begun = true
        return effect(lock)
      })
    } catch (cause) {
      if (begun) throw cause
      throw new OnceError('store_unavailable', 'The lock on this message cannot be asked.', { cause, applied: 'no' })
    }
  }

  async function duplicateOf(row: MessageRow, ageMs: number, key: KeyClaim | null): Promise<Sent> {
    // The lock's original is our own: an earlier attempt under this key, which did not live to answer.
    if (key !== null && row.key_claim === key.effectKey) {
      await attach(key, { type: 'message', id: row.id })
      return { kind: 'message', row: await delivered(row) }
    }
    await attach(key, { type: 'duplicate', id: `${row.id} ${secondsOf(ageMs)}` })
    delivery.repeated(row)
    const lock = { operation: `guard.${GUARD_NAME}`, hash: row.lock_hash, windowMs: WINDOW_MS, guarded: true }
    key?.note?.({ calls: 0, guard: { ...lock, original: row.id, since: Number(row.created_at) } })
    return { kind: 'duplicate', row, ageMs }
  }

  return {
    guard,
    async send(workspaceId, command, key) {
      // 1. To which recipient, and by which channel: what is wrong with that holds no lock.
      const addressed = await address({ base, channels, guard }, workspaceId, command)
      if (addressed.kind === 'refused') return addressed
      // 2. The lock on the content, and under it the send.
      const { to, hash } = addressed
      const content = { ...to, body: command.body }
      const verdict = await unlessFull(() => guarded(content, (lock) => under(lock, key, addressed)))
      // 3. What it came to.
      switch (verdict.kind) {
        case 'refused':
          return verdict
        case 'sent':
        case 'unguarded': {
          const { kind, row, lead } = verdict.value
          if (kind !== 'duplicate') return { kind: 'message', row, lead }
          const ageMs = (await base.now()) - Number(row.created_at)
          const original = { type: 'message', id: row.id }
          watch.guard({ kind: 'blocked', mode: 'lock_resolved', message: content, hash, original, ageMs })
          return duplicateOf(row, ageMs, key)
        }
        case 'duplicate': {
          const row = await messageById(base, workspaceId, verdict.original.id)
          return row === null ? { kind: 'pending' } : duplicateOf(row, verdict.ageMs, key)
        }
        case 'pending':
          return verdict
      }
    },
  }
}

/** Whole seconds, as the answer says them. */
export function secondsOf(ms: number): number {
  return Math.max(0, Math.floor(ms / SECOND))
}
