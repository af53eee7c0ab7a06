import type { Row } from './row.ts'

const replay = 'test/contract/ledger/replay.test.ts'
const rules = 'test/contract/ledger/transition/rules.test.ts'
const operators = 'test/contract/ledger/operators.test.ts'
const background = 'src/ledger/background.test.ts'
const scenarios = 'test/contract/service/escalations-scenarios.test.ts'
const openapi = 'test/contract/service/openapi/openapi.test.ts'
const tenAnswers = {
  file: 'test/contract/admin/cli/operator.test.ts',
  name: 'an operator with nothing but a key finds the ten answers, and acts on them',
}
const listed = { file: operators, name: 'operators list, count and see the busiest; the sweep removes what expired' }

/** Request deduplication: the scenarios of a service, and operators. */
export const requestsOfServices: readonly Row[] = [
  {
    id: 'R13',
    promise:
      'Known failures have their answer: a record without its effect, an effect without its record, a duplicate event, another payload, a hot key, a retention that is too short',
    removals: [
      {
        without: 'a claim whose effect never began is free again',
        file: 'src/ledger/core/transition-parts.ts',
        find: 'if (record.started && !free) {',
        replace: 'if (!free) {',
        noticed: [{ file: rules, name: 'a lapsed reservation is free again, whatever the policy' }],
      },
      {
        without: 'an effect whose record was lost is recorded anew',
        file: 'src/ledger/core/transition.ts',
        find: 'if (record === null) return settleAbsent(request, at, stored)',
        replace: 'if (record === null) return lost(null)',
        noticed: [
          { file: rules, name: 'a settle brings a lost record back' },
          {
            file: 'test/contract/ledger/faults.test.ts',
            name: 'a settle whose record is gone writes it anew and reports the loss',
          },
        ],
      },
      {
        without: 'copies of an event have one key',
        file: 'src/events/inbox/key.ts',
        find: '? messageId : PREFIX',
        replace: '? messageId + Math.random() : PREFIX',
        noticed: [
          {
            file: 'test/contract/events/inbox/receive.test.ts',
            name: 'a message is handled once, and its copies are explained',
          },
        ],
      },
      {
        without: 'a hot key is answered from memory',
        file: 'src/ledger/begin.ts',
        find: 'const known = hot === null ? null : settledHere(command, hot)',
        replace: 'const known = null as Landing | null',
        noticed: [
          { file: 'src/ledger/hot-key.test.ts', name: 'a hot key is answered from memory, and read once a second' },
        ],
      },
      {
        without: 'what is answered from memory is read again after a second',
        file: 'src/ledger/begin.ts',
        find: 'const hot = context.cache.fresh(command.id)',
        replace: 'const hot = context.cache.get(command.id)',
        noticed: [
          { file: 'src/ledger/hot-key.test.ts', name: 'a hot key is answered from memory, and read once a second' },
        ],
      },
      {
        without: 'a caller that repeats one key too often is slowed down',
        file: 'src/ledger/begin.ts',
        find: 'if (tooOften !== null) return refused(tooOften)',
        replace: '',
        noticed: [
          { file: replay, name: 'a caller that repeats one key too often is slowed down, where the operation says so' },
        ],
      },
      {
        without: 'a retention that is shorter than the redelivery of a broker is reported',
        file: 'src/events/inbox/consume.ts',
        find: 'if (settings.windowMs < redeliveryHorizonMs) {',
        replace: 'if (false) {',
        noticed: [
          {
            file: 'test/contract/events/inbox/consume.test.ts',
            name: 'a window that is shorter than the redelivery horizon is warned about',
          },
        ],
      },
    ],
  },
  {
    id: 'R14',
    promise:
      'Ten scenarios and twenty concurrent duplicates of an escalation: first success, retry, other payload, while in progress, lost response, failure before commit, terminal failure, partial batch, expired key, lost authorisation',
    removals: [
      {
        without: 'a first success is 201 with its location',
        file: 'service/escalations/routes.ts',
        find: ".header('location', `/case-escalations/${escalationId}`)",
        replace: '',
        noticed: [{ file: scenarios, name: 'first success' }],
      },
      {
        without: 'the outcome commits with the effect',
        file: 'src/ledger/transact.ts',
        find: 'await settleInside(session, grant, succeeded, packed.pointer)',
        replace: 'if (false) await settleInside(session, grant, succeeded, packed.pointer)',
        noticed: [{ file: scenarios, name: 'same key retry' }],
      },
      {
        without: 'another payload is refused',
        file: 'src/ledger/core/transition.ts',
        find: "if (match === 'different' || ",
        replace: 'if (',
        noticed: [{ file: scenarios, name: 'other payload' }],
      },
      {
        without: 'a duplicate that waited too long is answered that the first attempt runs',
        file: 'src/ledger/transact.ts',
        find: "return isOnceError(error, 'store_busy') && (phase",
        replace: "return false && isOnceError(error, 'store_busy') && (phase",
        noticed: [{ file: scenarios, name: 'while in progress' }],
      },
      {
        without: 'a success is recorded before its answer leaves',
        file: 'src/http/protocol/record.ts',
        find: "if (status < 400) return 'succeeded'",
        replace: "if (status < 400) return 'released'",
        noticed: [{ file: scenarios, name: 'lost response then retry' }],
      },
      {
        without: 'a fault of the server ends nothing',
        file: 'src/http/protocol/record.ts',
        find: "if (status >= 500) return 'fault'",
        replace: "if (status >= 500) return 'refused'",
        noticed: [{ file: scenarios, name: 'failure before commit then retry' }],
      },
      {
        without: 'what the business refused is final',
        file: 'src/http/protocol/record.ts',
        find: "return finality === 'success-only' ? 'released' : 'refused'",
        replace: "return 'released'",
        noticed: [{ file: scenarios, name: 'terminal failure retry' }],
      },
      {
        without: 'an item that succeeded is not run again',
        file: 'src/http/protocol/bulk.ts',
        find: 'operation.execute(partsOf(batch, item), item.input, run)',
        replace: 'operation.execute({ ...partsOf(batch, item), key: `${Math.random()}` }, item.input, run)',
        noticed: [{ file: scenarios, name: 'batch partial retry' }],
      },
      {
        without: 'a key is kept for 7 days',
        file: 'src/ledger/core/limits.ts',
        find: '  retainMs: 7 * DAY,',
        replace: '  retainMs: 8 * DAY,',
        noticed: [{ file: scenarios, name: 'expired key' }],
      },
      {
        without: 'rights are looked at with every request',
        file: 'service/workspaces/authenticate.ts',
        find: 'if (right !== null && !mayUse(caller, right)) {',
        replace: 'if (false) {',
        noticed: [{ file: scenarios, name: 'lost authorisation' }],
      },
      {
        without: 'a settled record answers its duplicates',
        file: 'src/ledger/core/transition.ts',
        find: "const kind = record.state === 'succeeded' ? 'replay_success' : 'replay_failure'",
        replace:
          "if (record.state === 'succeeded') return again(record, request, at, verified)\n      const kind = 'replay_failure'",
        noticed: [{ file: scenarios, name: 'twenty concurrent duplicates' }],
      },
    ],
  },
  {
    id: 'R15',
    promise:
      'One command answers the ten questions about a key; operators see stale leases, counts by state and the busiest callers',
    removals: [
      {
        without: 'a retry storm is reported',
        file: 'src/admin/core/explain.ts',
        find: 'if (repeats < STORM_REPEATS)',
        replace: 'if (true)',
        noticed: [tenAnswers],
      },
      {
        without: 'attempts with another payload are reported',
        file: 'src/admin/core/explain.ts',
        find: 'if (conflicts === 0) return',
        replace: 'if (true) return',
        noticed: [tenAnswers],
      },
      {
        without: 'callers are counted',
        file: 'src/ledger/tally.ts',
        find: 'busy[what]++',
        replace: '',
        noticed: [listed],
      },
      {
        without: 'records are counted by state',
        file: 'src/ledger/store/visible.ts',
        find: 'counts[state] += 1',
        replace: 'counts.succeeded += 1',
        noticed: [listed],
      },
      {
        without: 'stale leases are listed',
        file: 'src/ledger/stores/memory/queries.ts',
        find: 'hasLapsed(',
        replace: '!hasLapsed(',
        noticed: [
          {
            file: operators,
            name: 'the reconciler finds lapsed leases by itself and gives up unknowns after their time',
          },
        ],
      },
    ],
  },
  {
    id: 'R16',
    promise:
      'Every operation answers the design checklist and is documented in OpenAPI; clean-up and reconciliation run by themselves',
    removals: [
      {
        without: 'an unanswered question is open',
        file: 'src/http/protocol/describe.ts',
        find: "answer === undefined || answer === '' ? null : answer",
        replace: "answer ?? 'yes'",
        noticed: [
          { file: 'src/http/protocol/describe.test.ts', name: 'an unanswered question is open, and is found' },
          { file: openapi, name: 'a route that is undeclared, incomplete or not served is noticed' },
        ],
      },
      {
        without: 'an operation says what makes it unique',
        file: 'service/escalations/routes.ts',
        find: "businessUniqueness: 'A unique index",
        replace: "businessUniqueness: '' && 'A unique index",
        noticed: [
          {
            file: openapi,
            name: 'every route is declared and documented, and what changes something passes the design checklist',
          },
        ],
      },
      {
        without: 'a protected route is documented with its key',
        file: 'service/escalations/routes.ts',
        find: "repeat: { kind: 'command' as const, definition }",
        replace: 'repeat: undefined',
        noticed: [
          {
            file: openapi,
            name: 'what is declared is in the document: key, lifetime, replay header, problems and security',
          },
        ],
      },
      {
        without: 'the sweep runs by itself',
        file: 'src/ledger/ledger.ts',
        find: 'const sweeper = createSweeper(context)',
        replace: 'const sweeper = { step: async () => ({ more: false, waitedMs: 0 }), round: async () => 0 }',
        noticed: [{ file: background, name: 'by itself: what is past its end is removed' }],
      },
      {
        without: 'lapsed leases are looked for by themselves',
        file: 'src/ledger/ledger.ts',
        find: "start('lapsed', everyMs, reconciler.lapsedLeases),",
        replace: '',
        noticed: [{ file: background, name: 'by itself: a lease that lapsed is found' }],
      },
      {
        without: 'unknown outcomes are looked at by themselves',
        file: 'src/ledger/ledger.ts',
        find: "start('unknown', everyMs, reconciler.unknownOutcomes),",
        replace: '',
        noticed: [{ file: background, name: 'by itself: a provider is asked about an unknown outcome' }],
      },
      {
        without: 'counts are written by themselves',
        file: 'src/ledger/ledger.ts',
        find: 'writing = tally.flush().catch(failed)',
        replace: '',
        noticed: [{ file: background, name: 'by itself: what was counted is written' }],
      },
    ],
  },
]
