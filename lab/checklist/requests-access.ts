import type { Row } from './row.ts'

const bulk = 'src/http/protocol/bulk.test.ts'
const replay = 'test/contract/ledger/replay.test.ts'
const escalations = 'test/contract/service/escalations.test.ts'
const counted = {
  file: 'test/contract/admin/telemetry/telemetry.test.ts',
  name: 'attempts, claims, replays, conflicts and unknowns are counted apart',
}
const twentyAtOnce = {
  file: escalations,
  name: 'twenty identical requests at once: one escalation, one audit row, one event',
}

/** Request deduplication: batches, access and counting. */
export const accessToRequests: readonly Row[] = [
  {
    id: 'R10',
    promise: 'Every item of a batch has its own identity and outcome; a partial retry does only what is not done',
    removals: [
      {
        without: 'an item belongs to its batch',
        file: 'src/http/protocol/bulk.ts',
        find: 'return { tenant, caller, batch, key: itemKey }',
        replace: 'return { tenant, caller, key: itemKey }',
        noticed: [{ file: bulk, name: 'another payload under an item key is refused, another batch is another item' }],
      },
      {
        without: 'the outcome of an item is recorded',
        file: 'src/http/protocol/bulk.ts',
        find: 'const execution = await granted.settle({ value })',
        replace: "const execution = { kind: 'executed' } as Execution<T>",
        noticed: [
          { file: bulk, name: 'a partial retry, in another order and with more items, runs only what is not done' },
        ],
      },
      {
        without: 'an item that has not begun is only reserved',
        file: 'src/http/protocol/bulk.ts',
        find: '{ reserve: true }',
        replace: '{ reserve: false }',
        noticed: [
          {
            file: bulk,
            name: 'a crash in the middle leaves the items that had not begun free, and only the one that had unknown',
          },
        ],
      },
      {
        without: 'a batch takes no key for all of its items',
        file: 'service/http/batch.ts',
        find: "if (request.headers['idempotency-key'] === undefined) return undefined",
        replace: 'if (true) return undefined',
        noticed: [
          {
            file: 'test/proof/service/escalations-batch.test.ts',
            name: 'a batch that cannot be understood claims nothing',
          },
        ],
      },
    ],
  },
  {
    id: 'R11',
    promise: 'Authorisation is checked before every replay; a sensitive command keeps no response',
    removals: [
      {
        without: 'every replay is authorised anew',
        file: 'src/ledger/present.ts',
        find: 'const allowed = refused || (await',
        replace: 'const allowed = true || (await',
        noticed: [
          { file: replay, name: 'authorisation runs before every replay and for every joiner' },
          {
            file: 'test/contract/http/fetch.test.ts',
            name: 'answers: a caller that lost access is refused, and sees nothing else',
          },
        ],
      },
      {
        without: 'a sensitive operation may not keep its response',
        file: 'src/ledger/declared.ts',
        find: "if (sensitive && keep === 'response') bad",
        replace: 'if (false) bad',
        noticed: [
          { file: 'test/contract/ledger/bad-input.test.ts', name: 'a wrong option stops the declaration and is named' },
        ],
      },
      {
        without: 'the answer with a new API key is not kept',
        file: 'service/admin/routes.ts',
        find: "keep: 'pointer',",
        replace: "keep: 'response',",
        noticed: [
          {
            file: 'test/contract/service/admin.test.ts',
            name: 'a retry makes no second API key, and shows no secret',
          },
        ],
      },
    ],
  },
  {
    id: 'R12',
    promise:
      'Audit row and event once per command, a line of the access log per attempt, and a metric for every kind of answer',
    removals: [
      {
        without: 'a command leaves an audit row',
        file: 'service/escalations/escalate.ts',
        find: "await tx.query(\n    'insert into escalation_audit",
        replace: "if (false) await tx.query(\n    'insert into escalation_audit",
        noticed: [twentyAtOnce],
      },
      {
        without: 'a command publishes its event',
        file: 'service/escalations/escalate.ts',
        find: "await outbox.add({ topic: 'CaseEscalated'",
        replace: "if (false) await outbox.add({ topic: 'CaseEscalated'",
        noticed: [twentyAtOnce],
      },
      {
        without: 'a replayed attempt is in the access log, too',
        file: 'service/logs-access.ts',
        find: 'else request.log.info(line)',
        replace: 'else if (!line.replayed) request.log.info(line)',
        noticed: [
          {
            file: 'test/contract/service/logs.test.ts',
            name: 'a replayed command is two attempts in the access log, and one command in the audit',
          },
        ],
      },
      {
        without: 'claims are counted',
        file: 'src/admin/telemetry/ledger.ts',
        find: 'return counters.claims.add(1',
        replace: 'return void (1',
        noticed: [counted],
      },
      {
        without: 'replays are counted',
        file: 'src/admin/telemetry/ledger.ts',
        find: 'return counters.replays.add(1',
        replace: 'return void (1',
        noticed: [counted],
      },
      {
        without: 'answers that the first attempt still runs are counted',
        file: 'src/admin/telemetry/ledger.ts',
        find: 'return counters.inProgress.add(1',
        replace: 'return void (1',
        noticed: [counted],
      },
      {
        without: 'conflicts are counted',
        file: 'src/admin/telemetry/ledger.ts',
        find: 'return counters.conflicts.add(1',
        replace: 'return void (1',
        noticed: [counted],
      },
      {
        without: 'retries with an expired key are counted',
        file: 'src/admin/telemetry/ledger.ts',
        find: 'return counters.expired.add(1',
        replace: 'return void (1',
        noticed: [
          {
            file: 'test/contract/admin/telemetry/expired.test.ts',
            name: 'a retry with an expired key is counted apart',
          },
        ],
      },
    ],
  },
]
