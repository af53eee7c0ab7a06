import type { Row } from './row.ts'

const rules = 'test/contract/ledger/transition/rules.test.ts'
const replay = 'test/contract/ledger/replay.test.ts'
const lease = 'test/contract/ledger/lease.test.ts'
const operators = 'test/contract/ledger/operators.test.ts'
const transactions = 'test/contract/ledger/transactions.test.ts'
const effects = 'test/contract/ledger/effect-table.test.ts'
const http = 'test/contract/http/fetch.test.ts'
const neverMeet = { file: replay, name: 'two tenants, callers, operations or batches never meet' }
const identityOf = 'digestParts([i.tenant, i.caller, i.operation, i.key, i.batch ?? null])'

/** Request deduplication: identity, fingerprint, states, and what crashes leave. */
export const requests: readonly Row[] = [
  {
    id: 'R1',
    promise: 'An identity is tenant, caller, operation and key; a blank part is refused',
    removals: [
      {
        without: 'the tenant is part of an identity',
        file: 'src/ledger/core/identity.ts',
        find: identityOf,
        replace: 'digestParts([i.caller, i.operation, i.key, i.batch ?? null])',
        noticed: [neverMeet],
      },
      {
        without: 'the caller is part of an identity',
        file: 'src/ledger/core/identity.ts',
        find: identityOf,
        replace: 'digestParts([i.tenant, i.operation, i.key, i.batch ?? null])',
        noticed: [neverMeet],
      },
      {
        without: 'the operation is part of an identity',
        file: 'src/ledger/core/identity.ts',
        find: identityOf,
        replace: 'digestParts([i.tenant, i.caller, i.key, i.batch ?? null])',
        noticed: [neverMeet],
      },
      {
        without: 'a blank part is refused',
        file: 'src/ledger/core/identity.ts',
        find: "if (part.trim() === '') refuse(name, 'is blank')",
        replace: '',
        noticed: [
          {
            file: 'test/contract/ledger/bad-input.test.ts',
            name: 'blank, oversize and broken identity parts are refused by name, and nothing is recorded',
          },
        ],
      },
    ],
  },
  {
    id: 'R2',
    promise:
      'Chosen fields in canonical form make the fingerprint; the same key with another payload is a conflict, and changes nothing',
    removals: [
      {
        without: 'the order of members does not count',
        file: 'src/ledger/core/canonical-value.ts',
        find: '  sortNames(names)',
        replace: '',
        noticed: [{ file: 'src/ledger/core/canonical-value.test.ts', name: 'many members' }],
      },
      {
        without: 'an operation chooses what counts',
        file: 'src/ledger/begin.ts',
        find: ': chosenBy(form, input)',
        replace: ': (input ?? null)',
        noticed: [
          {
            file: replay,
            name: 'fields are chosen by the operation, and an old shape never turns a retry into a conflict',
          },
        ],
      },
      {
        without: 'another payload is refused',
        file: 'src/ledger/core/transition.ts',
        find: "if (match === 'different' || ",
        replace: 'if (',
        noticed: [
          { file: rules, name: 'a reused key outranks every answer and changes nothing' },
          {
            file: http,
            name: 'answers: another payload is a conflict while the first runs, and afterwards',
          },
        ],
      },
    ],
  },
  {
    id: 'R3',
    promise: 'Every state has its answer to a retry, and one identity never has two live leases',
    removals: [
      {
        without: 'a running attempt keeps others out',
        file: 'src/ledger/core/transition.ts',
        find: 'return twin(record, request, at, verified)',
        replace: 'return again(record, request, at, verified)',
        noticed: [
          { file: rules, name: 'every state gives an identical claim its answer' },
          { file: replay, name: 'twenty concurrent duplicates: one effect, twenty equal answers' },
        ],
      },
      {
        without: 'a retryable failure waits for its time',
        file: 'src/ledger/core/transition.ts',
        find: 'if (at.now >= record.retryAt && ',
        replace: 'if (',
        noticed: [{ file: rules, name: 'a retryable failure is tried again from its time on and not before' }],
      },
      {
        without: 'an effect that may have happened is unknown when its lease lapses',
        file: 'src/ledger/core/transition-parts.ts',
        find: 'if (record.started && !free) {',
        replace: 'if (false) {',
        noticed: [
          { file: rules, name: 'a lapsed lease is unknown when its effect may not be repeated' },
          { file: effects, name: 'external: a plain throw and a lapse are unknown and never run again by themselves' },
        ],
      },
      {
        without: 'a lease has a grace before others may take over',
        file: 'src/ledger/core/transition-parts.ts',
        find: 'return record.leaseUntil + limits.leaseGraceMs <= now',
        replace: 'return record.leaseUntil <= now',
        noticed: [{ file: rules, name: 'a lease lapses a grace after its end and no moment sooner' }],
      },
    ],
  },
  {
    id: 'R4',
    promise: 'Claim, execute, record: a lapsed claim is taken over by one process, and the old one records nothing',
    removals: [
      {
        without: 'the fence rises with a takeover',
        file: 'src/ledger/core/transition.ts',
        find: 'fence: at.fence,\n    claimId: request.claimId,\n    attempts: previous.attempts + 1,',
        replace: 'claimId: request.claimId,\n    attempts: previous.attempts + 1,',
        noticed: [{ file: rules, name: 'a lapsed lease that may be rerun goes to one winner with a higher fence' }],
      },
      {
        without: 'processes decide about a record one after the other',
        file: 'src/ledger/stores/postgres/decide.ts',
        find: "ORDER BY r.id FOR UPDATE ${skipLocked ? 'SKIP LOCKED' : ''}",
        replace: 'ORDER BY r.id',
        noticed: [
          {
            file: 'test/contract/stores/postgres.test.ts',
            name: 'many claims at once: one winner at first, after a lapse, after expiry, after forget',
          },
        ],
      },
      {
        without: 'a late settle of an old attempt changes nothing',
        file: 'src/ledger/core/transition.ts',
        find: 'return record.fence === holder.fence && record.claimId === holder.claimId',
        replace: 'return true',
        noticed: [
          { file: lease, name: 'a paused holder can start nothing, and its late settle changes nothing' },
          { file: rules, name: 'the right claim id with an older fence owns nothing' },
        ],
      },
      {
        without: 'a lost acknowledgement of a claim is recognised',
        file: 'src/ledger/core/transition.ts',
        find: 'if (record.claimId === request.claimId) return ownClaim',
        replace: 'if (false) return ownClaim',
        noticed: [
          {
            file: 'test/contract/ledger/faults.test.ts',
            name: 'the lost acknowledgement of our own claim is recognised, not taken for a rival',
          },
        ],
      },
      {
        without: 'a holder whose lease is over starts nothing',
        file: 'src/ledger/effect-context.ts',
        find: 'if (ended !== null) throw ended',
        replace: '',
        noticed: [{ file: lease, name: 'a paused holder can start nothing, and its late settle changes nothing' }],
      },
    ],
  },
  {
    id: 'R5',
    promise:
      'An effect commits with its record and its messages; an external effect has a key, is recorded before it begins, and is reconciled when its outcome is unknown',
    removals: [
      {
        without: 'the outcome is written in the transaction of the effect',
        file: 'src/ledger/transact.ts',
        find: 'await settleInside(session, grant, succeeded, packed.pointer)',
        replace: 'if (false) await settleInside(session, grant, succeeded, packed.pointer)',
        noticed: [{ file: transactions, name: 'record and business write commit together; a duplicate replays' }],
      },
      {
        without: 'a final failure undoes the writes of its effect',
        file: 'src/ledger/transact.ts',
        find: 'const value = await inPart(session, (inner) => {',
        replace: 'const value = await (async (work) => work(session))((inner) => {',
        noticed: [
          { file: effects, name: 'transaction: throw leaves nothing, final undoes the writes and is recorded' },
        ],
      },
      {
        without: 'messages have ids that derive from the command',
        file: 'src/ledger/transact.ts',
        find: 'id: effectKeyOf(id, incarnation, `outbox:${messages++}`)',
        replace: 'id: context.runtime.newId()',
        noticed: [
          {
            file: 'test/contract/ledger/outbox-ids.test.ts',
            name: 'the ids of outbox messages derive from the command, so that an operator finds them',
          },
        ],
      },
      {
        without: 'every attempt hands the same key to a provider',
        file: 'src/ledger/effect-context.ts',
        find: 'return effectKeyOf(id, incarnation)\n',
        replace: 'return effectKeyOf(id, this.fence)\n',
        noticed: [{ file: lease, name: 'effect keys are equal for every attempt, and new after forget' }],
      },
      {
        without: 'the record says that the effect has begun, before it begins',
        file: 'src/ledger/core/transition.ts',
        find: 'history: NOTHING_UNUSUAL,\n    started: request.start,',
        replace: 'history: NOTHING_UNUSUAL,\n    started: false,',
        noticed: [{ file: rules, name: 'a lapsed lease is unknown when its effect may not be repeated' }],
      },
      {
        without: 'a provider is asked about an unknown outcome',
        file: 'src/ledger/reconcile.ts',
        find: 'await prober.ask(record.id, op)',
        replace: '',
        noticed: [
          {
            file: operators,
            name: 'a probe reports the outcome, is retried with back-off, and "not found" counts only after the longest duration',
          },
        ],
      },
    ],
  },
]
