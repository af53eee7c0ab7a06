import { OnceError } from '../../ledger/core/errors.ts'
import type { ExchangedEntry, Fork, RoomBatch, RoomWritten, SendRequest, SendResult, StoredEntry } from '../ports.ts'
import { withCause } from '../protocol/position.ts'
import type { LogPlace, MessageIdentity } from '../protocol/protocol.ts'
import { identityText } from '../protocol/protocol.ts'
import { isPublisherName } from '../protocol/published.ts'
import { forkOf } from './fork.ts'
import { type OpenRoom, senderKey } from './sql-state.ts'

/** Decides one batch on a room that is locked, and notes what there is to store. */
export function decideBatch(open: OpenRoom, { merged, sends }: RoomBatch, now: number): RoomWritten {
  const before = open.stored.length
  const forks = merged.map((entry) => mergeEntry(open, entry)).filter((fork) => fork !== null)
  const results = sends.map((send) => decideSend(open, send, now))
  return { results, stored: open.stored.slice(before), forks }
}

function mergeEntry(open: OpenRoom, entry: ExchangedEntry): Fork | null {
  const head = open.heads.get(entry.log) ?? 0
  // Another process of this region was faster.
  if (entry.n <= head) return null
  if (entry.n > head + 1) {
    throw new OnceError('bad_input', `${entry.log} goes up to ${head} here; ${entry.n} is not the next.`)
  }
  const known = open.known.get(identityText(entry))
  store(open, entry)
  return known === undefined ? null : forkOf({ ...known.place, digest: known.digest }, entry)
}

/** In this order: is it still the client's session, is it the next number, is it the same message, is its target known. */
function decideSend(open: OpenRoom, send: SendRequest, now: number): SendResult {
  const { generation, ...message } = send
  const { client, epoch, cseq, seen, replyTo, digest } = message
  if (generation !== null && open.sessions.get(client) !== generation) return { kind: 'fenced' }
  const sender = open.senders.get(senderKey(client, epoch))
  const floor = sender?.floor ?? 1
  if (cseq > floor) return { kind: 'gap', floor }
  if (cseq < floor) {
    const known = open.known.get(identityText(send))
    if (known === undefined) return { kind: 'accepted', place: null, duplicate: true }
    return known.digest === digest ? { kind: 'accepted', place: known.place, duplicate: true } : { kind: 'fork' }
  }
  const target = replyTo === null ? null : targetOf(open, replyTo)
  if (target === undefined) return { kind: 'target-unknown' }
  const place = { log: open.log, n: (open.heads.get(open.log) ?? 0) + 1 }
  const after = sender?.last ?? null
  const context = withCause(seen, target)
  store(open, { ...message, ...place, seen: context, after, acceptedAtMs: now })
  return { kind: 'accepted', place, duplicate: false }
}

/** Where it stands; once it was trimmed, a later message of its sender, which has it among its causes. */
function targetOf(open: OpenRoom, identity: MessageIdentity): LogPlace | undefined {
  const sender = open.senders.get(senderKey(identity.client, identity.epoch))
  if (sender === undefined || identity.cseq >= sender.floor) return undefined
  return open.known.get(identityText(identity))?.place ?? sender.last
}

function store(open: OpenRoom, entry: ExchangedEntry): StoredEntry {
  const { log, n, client, epoch, cseq } = entry
  const key = senderKey(client, epoch)
  const floor = open.senders.get(key)?.floor ?? 1
  // Everything below the floor was merged before, so that this is a second copy.
  const copy = cseq < floor
  open.at += 1
  open.heads.set(log, n)
  open.changedLogs.add(log)
  if (!copy) {
    const { digest } = entry
    const place = { log, n }
    const isPublished = isPublisherName(client)
    open.senders.set(key, { floor: cseq + 1, last: place, changed: !isPublished })
    open.known.set(identityText(entry), { place, digest })
    if (isPublished) open.published.push({ client, digest, place })
  }
  const stored = { ...entry, at: open.at, copy }
  open.stored.push(stored)
  return stored
}
