import type { Row } from './row.ts'

const alone = 'src/ledger/stores/sqlite/alone.test.ts'
const watch = 'src/ledger/stores/sqlite/watch.test.ts'
const express = 'test/contract/http/express-own.test.ts'

/** What the short ways of single callers and of crowds must not lose. */
export const fastStores: readonly Row[] = [
  {
    id: 'F10',
    promise: 'PostgreSQL: a lone claim or settle that its statement decides alone ends as in a batch',
    removals: [
      {
        without: 'a lone settle wakes the callers that wait',
        file: 'src/ledger/stores/postgres/batch.ts',
        find: `  if (woken.length > 0) {
    tools.wake(woken)
    await steps.notify(lane.connection, lane.on, woken)
  }
`,
        replace: '',
        noticed: [
          {
            file: 'test/contract/stores/postgres/watch.test.ts',
            name: 'a waiting caller is woken across stores, however the record changes',
          },
        ],
      },
      {
        without: 'a lone statement whose answer was lost may have been applied',
        file: 'src/ledger/stores/postgres/batch.ts',
        find: "const fault = tools.fault(error, 'maybe')",
        replace: "const fault = tools.fault(error, 'no')",
        noticed: [
          {
            file: 'test/contract/stores/postgres/faults.test.ts',
            name: 'a claim whose answer was lost is recognised as our own when it is repeated',
          },
        ],
      },
      {
        without: 'an unknown is settled by the other steps',
        file: 'src/ledger/stores/postgres/batch.ts',
        find: "request.kind === 'claim' || (request.kind === 'settle' && settlesPlainly(request))",
        replace: "request.kind === 'claim' || request.kind === 'settle'",
        noticed: [
          {
            file: 'test/contract/stores/postgres/watch.test.ts',
            name: 'a waiting caller is woken across stores, however the record changes',
          },
        ],
      },
    ],
  },
  {
    id: 'F11',
    promise: 'SQLite: a lone claim or settle that is committed before the call returns ends as in a group',
    removals: [
      {
        without: 'a lone write that is refused leaves no transaction open',
        file: 'src/ledger/stores/sqlite/engine.ts',
        find: `      if (!undo(writer)) suspect = true
      if (!mayBeWritten(fault)) writer.woken.clear()`,
        replace: '      if (!mayBeWritten(fault)) writer.woken.clear()',
        noticed: [{ file: alone, name: 'a value that SQLite cannot hold is refused alone, and nothing is left open' }],
      },
      {
        without: 'a lone settle is counted for the callers that wait in other processes',
        file: 'src/ledger/stores/sqlite/claims.ts',
        find: 'if (turn.woken.length > 0 || turn.floor !== turn.meta.floor) endTurn(writer, turn)',
        replace: '',
        noticed: [{ file: alone, name: 'a settle alone wakes a caller that waits in another process' }],
      },
      {
        without: 'a lone settle waits for the disk',
        file: 'src/ledger/stores/sqlite/engine.ts',
        find: "    sync(writer, 'FULL')\n    try {",
        replace: '    try {',
        noticed: [
          {
            file: 'src/ledger/stores/sqlite/engine.test.ts',
            name: 'a caller that is alone waits for the disk, also after renewals that did not',
          },
        ],
      },
    ],
  },
  {
    id: 'F12',
    promise: 'Express and Node: what is answered without a promise is recorded as what is answered by one',
    removals: [
      {
        without: 'what a handler throws at once decides what is recorded',
        file: 'src/http/protocol/handle-node.ts',
        find: '      } catch (error) {\n        threw(error, tap)\n      }',
        replace: '      } catch (error) {\n        throw error\n      }',
        noticed: [
          {
            file: express,
            name: 'express: an error middleware that refuses is final; what was thrown decides where it answers 5xx',
          },
        ],
      },
      {
        without: 'what a handler throws later reaches the error middleware',
        file: 'src/http/protocol/handle-node.ts',
        find: 'isThenable(result) ? Promise.resolve(result).then(nothing) : undefined',
        replace: 'isThenable(result) ? void Promise.resolve(result).catch(nothing) : undefined',
        noticed: [{ file: express, name: 'express: an answer that was given before the handler threw stays' }],
      },
      {
        without: 'a body that a parser has inflated is not compared with the encoding that its request names',
        file: 'src/http/adapters/express-body.ts',
        find: "request[readHere] !== true && request.headers['content-encoding'] !== undefined",
        replace: 'false',
        noticed: [
          { file: express, name: 'express: a compressed body that a parser has inflated counts by its meaning' },
        ],
      },
    ],
  },
  {
    id: 'F13',
    promise: 'Redis: of a crowd in two halves no two requests of one record are under way at once',
    removals: [
      {
        without: 'a request waits while another one of its record is under way',
        file: 'src/ledger/store/group-commit.ts',
        find: ' || isUnderWay(item.key)',
        replace: '',
        noticed: [
          {
            file: 'src/ledger/store/request-group.test.ts',
            name: 'one mutation of a record at a time, and what runs goes before what starts',
          },
        ],
      },
    ],
  },
  {
    id: 'F14',
    promise: 'SQLite: a wake by topic loses no commit, and is heard of nothing that was rolled back',
    removals: [
      {
        without: 'a commit of another process wakes every topic',
        file: 'src/ledger/stores/sqlite/watch.ts',
        find: '          quietMs = 0\n          hear(null)',
        replace: '          quietMs = 0',
        noticed: [
          {
            file: 'src/ledger/stores/sqlite/watch-doze.test.ts',
            name: 'a quiet file whose changes are announced is looked at rarely, and at once when it changes',
          },
        ],
      },
      {
        without: 'a commit of this process wakes its topics at once',
        file: 'src/ledger/stores/sqlite/watch.ts',
        find: 'if (topics.size > 0) hear(topics)',
        replace: '',
        noticed: [
          {
            file: 'src/ledger/stores/sqlite/watch-doze.test.ts',
            name: 'a commit of this process wakes the listeners of its topics, at once, and no others',
          },
        ],
      },
      {
        without: 'a transaction that was rolled back forgets its topics',
        file: 'src/ledger/stores/sqlite/engine.ts',
        find: 'if (!mayBeWritten(error)) transaction.woken.clear()',
        replace: '',
        noticed: [{ file: watch, name: 'a topic that was woken in a transaction is heard at its commit alone' }],
      },
    ],
  },
]
