import type { Fence, Identity } from '../../core/identity.ts'
import type { Facts, LedgerRecord, Note, Outcome, Pointer } from '../../core/record.ts'
import type {
  ClaimRequest,
  Decision,
  Grant,
  ReleaseRequest,
  Request,
  Settlement,
  SettleRequest,
  UniqueRequest,
} from '../../core/request.ts'
import { ABANDONED_UNKNOWN } from '../../core/transition-parts.ts'
import type { Box } from './box.ts'
import type { CheckedEncryption } from './options.ts'

/**
 * A record as an encrypted store keeps it. Tenant, operation, states, times and counts stay readable; ids, callers, keys and
 * fingerprints are tokens, because they are compared; outcomes, pointers and what was noted are sealed for the record and
 * its incarnation, so that they open nowhere else.
 */
export interface RecordCodec {
  sealId(id: string): string
  openId(id: string): string
  sealIdentity(identity: Identity): Identity
  sealCaller(caller: string): string
  sealKey(key: string): string
  openCaller(caller: string): string
  /** Requests that carry what must be bound to an incarnation that they do not know are sealed with it. */
  sealRequest(request: Sealable, incarnation?: Fence): Request
  sealRecord(record: LedgerRecord): LedgerRecord
  openRecord(record: LedgerRecord): LedgerRecord
  /** `asked` is the request as it was given, `sealed` as the store got it. */
  openDecision<D extends Decision>(decision: D, record: LedgerRecord | null): D
  /** The sealed form is of the writing key, or has nothing that keys seal. */
  isCurrent(record: LedgerRecord): boolean
  /** False for a record from before encryption. */
  isSealed(record: LedgerRecord): boolean
}

export type Sealable = Exclude<Request, { kind: 'replace' }>

/** Shown in place of an identity that cannot be read. */
const UNREADABLE = '(cannot be decrypted)'
/** Callers and keys come again and again; more than these are computed again. */
const KEPT_TOKENS = 4_096

/** @param plainToo whether records from before encryption are believed */
export function createRecordCodec(
  box: Box,
  { writeWith, lost }: Pick<CheckedEncryption, 'writeWith' | 'lost'>,
  plainToo: () => boolean,
): RecordCodec {
  /** Texts to tokens, and tokens to texts; a token begins as no text from outside can. */
  const known = new Map<string, string>()

  function remember(name: string, value: string): string {
    if (known.size >= KEPT_TOKENS) known.clear()
    known.set(name, value)
    return value
  }

  function remembered(text: string, place: string): string {
    const name = `${place} ${text}`
    const token = known.get(name)
    if (token !== undefined) return token
    const made = box.token(text, place)
    remember(`${place} ${made}`, text)
    return remember(name, made)
  }

  const isOurs = (text: string) => text.startsWith(box.mark)

  function openToken(token: string, place: string): string {
    if (!isOurs(token)) return token
    const name = `${place} ${token}`
    return known.get(name) ?? remember(name, box.openToken(token, place) ?? UNREADABLE)
  }

  function sealIdentity({ tenant, caller, operation, key, batch }: Identity): Identity {
    const sealed = { tenant, caller: remembered(caller, 'caller'), operation, key: remembered(key, 'key') }
    return batch === undefined ? sealed : { ...sealed, batch: remembered(batch, 'batch') }
  }

  function openIdentity({ tenant, caller, operation, key, batch }: Identity): Identity {
    const opened = { tenant, caller: openToken(caller, 'caller'), operation, key: openToken(key, 'key') }
    return batch === undefined ? opened : { ...opened, batch: openToken(batch, 'batch') }
  }

  /** Versions stay in front: two fingerprints are compared only where they agree. */
  function sealFingerprint(fingerprint: string, id: string): string {
    const at = fingerprint.lastIndexOf(':') + 1
    return fingerprint.slice(0, at) + remembered(fingerprint.slice(at), `fingerprint ${id}`)
  }

  function openFingerprint(fingerprint: string, id: string): string {
    const at = fingerprint.lastIndexOf(':') + 1
    return fingerprint.slice(0, at) + openToken(fingerprint.slice(at), `fingerprint ${id}`)
  }

  const placeOf = (what: string, id: string, incarnation: Fence) => `${what} ${id} ${incarnation}`

  function sealPointer(pointer: Pointer | null, id: string, incarnation: Fence): Pointer | null {
    if (pointer === null) return null
    return { type: pointer.type, id: box.seal(pointer.id, placeOf('pointer', id, incarnation)) }
  }

  function openPointer(pointer: Pointer | null, id: string, incarnation: Fence): Pointer | null {
    if (pointer === null) return null
    const text = isOurs(pointer.id) ? box.open(pointer.id, placeOf('pointer', id, incarnation)) : plain(pointer.id)
    return text === null ? null : { type: pointer.type, id: text }
  }

  const plain = (text: string): string | null => (plainToo() ? text : null)

  function sealOutcome(outcome: Outcome, id: string, incarnation: Fence): Outcome {
    if (outcome.data === null) return outcome
    return { kept: outcome.kept, data: box.seal(outcome.data, placeOf('outcome', id, incarnation)) }
  }

  /** What cannot be read is an outcome that was not stored: the key stays taken, and nothing runs again. */
  function openOutcome(outcome: Outcome, id: string, incarnation: Fence): Outcome {
    const { kept, data } = outcome
    // A failure that no attempt reported is written by the store itself.
    if (data === null || data === ABANDONED_UNKNOWN.data) return outcome
    const text = openText(data, placeOf('outcome', id, incarnation), id)
    if (text !== null) return { kept, data: text }
    return { kept: kept === 'outcome' ? 'outcome' : 'not_stored', data: null }
  }

  function openText(data: string, place: string, id: string): string | null {
    if (!isOurs(data)) return plain(data)
    return data[box.mark.length] === '~' ? box.openToken(data, `owner ${id}`) : box.open(data, place)
  }

  type NoteText = (text: string) => string

  function noteWith<N extends Note | Facts>(note: N, change: NoteText): N {
    const { reference, taken, guard } = note
    return {
      ...note,
      ...(reference === undefined ? {} : { reference: change(reference) }),
      ...(taken === undefined ? {} : { taken: change(taken) }),
      ...(guard === undefined
        ? {}
        : {
            guard: {
              ...guard,
              hash: change(guard.hash),
              ...(guard.original === undefined ? {} : { original: change(guard.original) }),
            },
          }),
    }
  }

  function sealNote<N extends Note | Facts>(note: N, id: string, incarnation: Fence): N {
    return noteWith(note, (text) => box.seal(text, placeOf('note', id, incarnation)))
  }

  function openNote<N extends Note | Facts>(note: N, id: string, incarnation: Fence): N {
    return noteWith(note, (text) =>
      isOurs(text) ? (box.open(text, placeOf('note', id, incarnation)) ?? UNREADABLE) : text,
    )
  }

  function sealReason(reason: string | null, id: string, incarnation: Fence): string | null {
    return reason === null ? null : box.seal(reason, placeOf('reason', id, incarnation))
  }

  function openReason(reason: string | null, id: string, incarnation: Fence): string | null {
    if (reason === null) return null
    return isOurs(reason) ? box.open(reason, placeOf('reason', id, incarnation)) : plain(reason)
  }

  function sealGrant(grant: Grant, id: string): Grant {
    return {
      ...grant,
      id,
      identity: sealIdentity(grant.identity),
      fingerprint: sealFingerprint(grant.fingerprint, id),
      pointer: sealPointer(grant.pointer, id, grant.incarnation),
    }
  }

  function sealSettlement(to: Settlement, id: string, incarnation: Fence): Settlement {
    const note = to.note === undefined ? {} : { note: sealNote(to.note, id, incarnation) }
    if (to.state === 'unknown') return { ...to, ...note, reason: sealReason(to.reason, id, incarnation) }
    return { ...to, ...note, outcome: sealOutcome(to.outcome, id, incarnation) }
  }

  function sealSettle(request: SettleRequest): SettleRequest {
    const id = box.hideId(request.id)
    const { incarnation } = request.grant
    return {
      ...request,
      id,
      grant: sealGrant(request.grant, id),
      to: sealSettlement(request.to, id, incarnation),
      pointer: sealPointer(request.pointer, id, incarnation),
    }
  }

  function sealClaim(request: ClaimRequest): ClaimRequest {
    const id = box.hideId(request.id)
    const [first, ...others] = request.fingerprints
    const fingerprints = [
      sealFingerprint(first, id),
      ...others.map((fingerprint) => sealFingerprint(fingerprint, id)),
    ] as const
    return { ...request, id, identity: sealIdentity(request.identity), fingerprints }
  }

  function sealRelease(request: ReleaseRequest): ReleaseRequest {
    const id = box.hideId(request.id)
    const fingerprint = sealFingerprint(request.fingerprint, id)
    return { ...request, id, identity: sealIdentity(request.identity), fingerprint }
  }

  function sealUnique(request: UniqueRequest): UniqueRequest {
    const id = box.hideId(request.id)
    const owner = box.token(request.owner, `owner ${id}`)
    return { ...request, id, identity: sealIdentity(request.identity), owner }
  }

  function sealRequest(request: Sealable, known?: Fence): Request {
    switch (request.kind) {
      case 'claim':
        return sealClaim(request)
      case 'settle':
        return sealSettle(request)
      case 'release':
        return sealRelease(request)
      case 'unique':
        return sealUnique(request)
      case 'attach': {
        const id = box.hideId(request.id)
        const incarnation = request.incarnation ?? known ?? request.fence
        return { ...request, id, pointer: sealPointer(request.pointer, id, incarnation) as Pointer }
      }
      case 'resolve': {
        const id = box.hideId(request.id)
        const { to } = request
        if (!('outcome' in to) || known === undefined) return { ...request, id }
        const outcome = sealOutcome(to.outcome, id, known)
        const pointer = 'pointer' in to ? { pointer: sealPointer(to.pointer ?? null, id, known) } : {}
        return { ...request, id, to: { ...to, outcome, ...pointer } }
      }
      case 'start':
      case 'renew':
      case 'reconcile':
      case 'probe':
      case 'forget':
        return { ...request, id: box.hideId(request.id) }
    }
  }

  function sealRecord(record: LedgerRecord): LedgerRecord {
    const id = box.hideId(record.id)
    const { incarnation, facts } = record
    const isUnique = record.identity.operation.startsWith('unique:')
    return {
      ...record,
      id,
      identity: sealIdentity(record.identity),
      fingerprint: sealFingerprint(record.fingerprint, id),
      pointer: sealPointer(record.pointer, id, incarnation),
      ...(facts === undefined ? {} : { facts: sealNote(facts, id, incarnation) }),
      ...(record.state === 'unknown' ? { reason: sealReason(record.reason, id, incarnation) } : {}),
      ...('outcome' in record
        ? {
            outcome:
              isUnique && record.outcome.data !== null
                ? { ...record.outcome, data: box.token(record.outcome.data, `owner ${id}`) }
                : sealOutcome(record.outcome, id, incarnation),
          }
        : {}),
    } as LedgerRecord
  }

  function isSealed(record: LedgerRecord): boolean {
    return isOurs(record.identity.key)
  }

  function openRecord(record: LedgerRecord): LedgerRecord {
    if (!isSealed(record) && plainToo()) return record
    const { id, incarnation, facts } = record
    const opened = {
      ...record,
      id: isSealed(record) ? box.showId(id) : id,
      identity: openIdentity(record.identity),
      fingerprint: openFingerprint(record.fingerprint, id),
      pointer: openPointer(record.pointer, id, incarnation),
      ...(facts === undefined ? {} : { facts: openNote(facts, id, incarnation) }),
    }
    if (opened.state === 'unknown') return { ...opened, reason: openReason(opened.reason, id, incarnation) }
    return 'outcome' in opened ? { ...opened, outcome: openOutcome(opened.outcome, id, incarnation) } : opened
  }

  /** The record was opened already: what a decision repeats of it is taken from there. */
  function openDecision<D extends Decision>(decision: D, record: LedgerRecord | null): D
  function openDecision(decision: Decision, record: LedgerRecord | null): Decision {
    if (record === null) return decision
    switch (decision.kind) {
      case 'first_attempt':
      case 'reclaimed':
      case 'probe_granted': {
        const { id, identity, fingerprint, pointer } = record
        return { ...decision, lease: { ...decision.lease, id, identity, fingerprint, pointer } }
      }
      case 'replay_success':
      case 'replay_failure':
        return 'outcome' in record ? { ...decision, outcome: record.outcome } : decision
      case 'key_reused': {
        const presented = openFingerprint(decision.presented, box.hideId(record.id))
        return { ...decision, recorded: record.fingerprint, presented }
      }
      case 'unique_taken':
        return { ...decision, owner: 'outcome' in record ? (record.outcome.data ?? '') : '' }
      default:
        return decision
    }
  }

  function sealedTexts(record: LedgerRecord): string[] {
    const { pointer, facts } = record
    const noted = facts === undefined ? [] : [facts.reference, facts.taken, facts.guard?.hash, facts.guard?.original]
    const texts = [
      pointer?.id,
      ...noted,
      record.state === 'unknown' ? record.reason : null,
      'outcome' in record ? record.outcome.data : null,
    ]
    return texts.filter((text): text is string => typeof text === 'string')
  }

  return {
    sealId: box.hideId,
    openId: box.showId,
    sealIdentity,
    sealCaller: (caller) => remembered(caller, 'caller'),
    sealKey: (key) => remembered(key, 'key'),
    openCaller: (caller) => openToken(caller, 'caller'),
    sealRequest,
    sealRecord,
    openRecord,
    openDecision,
    isSealed,
    isCurrent: (record) =>
      sealedTexts(record).every((text) => {
        const key = box.keyOf(text)
        return key === null || key === writeWith || lost.includes(key)
      }),
  }
}
