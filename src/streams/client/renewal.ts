import type { Pending } from '../parts/sender.ts'
import { withCause } from '../protocol/position.ts'
import type { LogPlace, MessageIdentity } from '../protocol/protocol.ts'
import type { MessageIdentityPrefix, RenewReason } from './options.ts'
import type { Outgoing } from './outgoing.ts'
import type { PendingSend } from './ports.ts'

/** Why an identity is given up, and the number that a region refused, where it was about one. */
export type RenewCause =
  | { readonly why: 'cloned' | 'fenced' | 'unknown' }
  | { readonly why: Extract<RenewReason, 'fork' | 'refused'>; readonly cseq: number }

/** How the pending messages of a given-up identity are treated. */
export interface Parted {
  /** Accepted nowhere: they are sent under the next identity. */
  readonly carried: readonly Pending<PendingSend>[]
  /** May have been accepted, here or by way of a copy of this client: sending them again could show them twice. */
  readonly doubtful: readonly Pending<PendingSend>[]
  /** No region takes it. */
  readonly refused: Pending<PendingSend> | null
}

export function partPending(
  { pending, sentBelow, sentEarlierBelow }: Pick<Outgoing, 'pending' | 'sentBelow' | 'sentEarlierBelow'>,
  cause: RenewCause,
): Parted {
  const [carried, doubtful]: [Pending<PendingSend>[], Pending<PendingSend>[]] = [[], []]
  let refused: Pending<PendingSend> | null = null
  for (const each of pending) {
    const isNamed = 'cseq' in cause && each.number === cause.cseq
    // A refused number is missing in the region, so that nothing behind it was accepted on this connection; under a
    // forked one the region has another body. What left before may have come to a region that has neither.
    const isOutHere = cause.why === 'refused' || isNamed
    if (cause.why === 'refused' && isNamed) refused = each
    else if (each.number < (isOutHere ? sentEarlierBelow : sentBelow)) doubtful.push(each)
    else carried.push(each)
  }
  return { carried, doubtful, refused }
}

/** The same messages for another identity: numbered from 1, and after the last that the old one had acknowledged. */
export function renumbered(
  pending: readonly Pending<PendingSend>[],
  acknowledged: LogPlace | null,
  { from, to }: { readonly from: MessageIdentityPrefix; readonly to: MessageIdentityPrefix },
): readonly Pending<PendingSend>[] {
  const numbers = new Map(pending.map(({ number }, index) => [number, index + 1]))
  return pending.map(({ message }, index) => ({
    number: index + 1,
    message: { ...message, seen: withCause(message.seen, acknowledged), replyTo: renamed(message.replyTo) },
  }))

  /** A reply to one of them names it by its new identity. */
  function renamed(target: MessageIdentity | null): MessageIdentity | null {
    if (target === null || target.client !== from.client || target.epoch !== from.epoch) return target
    const cseq = numbers.get(target.cseq)
    return cseq === undefined ? target : { client: to.client, epoch: to.epoch, cseq }
  }
}
