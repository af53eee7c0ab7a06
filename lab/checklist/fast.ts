import type { Row } from './row.ts'

const readings = 'src/http/protocol/readings.test.ts'
const groups = 'src/ledger/store/group-commit.test.ts'
const alone = 'src/ledger/stores/sqlite/alone.test.ts'
const announced = 'test/proof/runs/announced.test.ts'
const oneMessage = 'test/contract/stores/postgres/one-message.test.ts'
const sameBytes = {
  file: readings,
  name: 'the same bytes with the same head are read once, and everything else is read',
}

/** What each short way of a request must not lose. */
export const fast: readonly Row[] = [
  {
    id: 'F1',
    promise: 'A replay from memory is at most a second old, and only for the same request',
    removals: [
      {
        without: 'an outcome in memory is believed for a second at most',
        file: 'src/ledger/cache.ts',
        find: 'runtime.monotonicMs() < entry.freshUntil',
        replace: 'runtime.monotonicMs() < entry.knownUntil',
        noticed: [
          { file: 'src/ledger/cache.test.ts', name: 'an outcome is fresh for a second, and then only a hint' },
          { file: 'src/ledger/hot-key.test.ts', name: 'a hot key is answered from memory, and read once a second' },
        ],
      },
      {
        without: 'an outcome in memory is compared with the request',
        file: 'src/ledger/begin.ts',
        find: "if (cached === null || compareFingerprints(cached.record.fingerprint, command.fingerprints) !== 'same') return null",
        replace: 'if (cached === null) return null',
        noticed: [
          { file: 'src/ledger/hot-key.test.ts', name: 'another payload under a hot key is refused from memory' },
        ],
      },
    ],
  },
  {
    id: 'F2',
    promise: 'Bytes that are compared in place of a fingerprint are the same request in every respect',
    removals: [
      {
        without: 'the bodies are compared to their ends',
        file: 'src/http/protocol/read.ts',
        find: 'for (let at = 0; at < a.length; at++) if (a[at] !== body[at]) return false',
        replace: 'for (let at = 0; at < 1; at++) if (a[at] !== body[at]) return false',
        noticed: [sameBytes],
      },
      {
        without: 'the target is compared',
        file: 'src/http/protocol/read.ts',
        find: 'reading.target === incoming.target &&',
        replace: 'true &&',
        noticed: [sameBytes],
      },
      {
        without: 'a request with a condition is always read',
        file: 'src/http/protocol/read.ts',
        find: "incoming.header('if-match').length === 0 &&\n    incoming.header('if-none-match').length === 0",
        replace: 'true',
        noticed: [sameBytes],
      },
      {
        without: 'the bytes are copied',
        file: 'src/http/protocol/read.ts',
        find: 'body: Uint8Array.prototype.slice.call(body),',
        replace: 'body,',
        noticed: [
          { file: readings, name: 'a buffer that its framework uses again does not change what was remembered' },
        ],
      },
    ],
  },
  {
    id: 'F3',
    promise: 'A write that is sent at once waits for no other, overtakes none, and starves neither timers nor sockets',
    removals: [
      {
        without: 'a write at once comes only when nothing waits and nothing is under way',
        file: 'src/ledger/store/group-commit.ts',
        find: '&& alone && waiting === 0 && flushing === 0',
        replace: '&& alone',
        noticed: [{ file: groups, name: 'what waits is not overtaken by a later item of its key' }],
      },
      {
        without: 'what failed at once is repeated only where nothing was applied',
        file: 'src/ledger/store/group-commit.ts',
        find: 'if (!item.held || runtime.monotonicMs() + pauseMs >= item.deadline) {',
        replace: 'if (runtime.monotonicMs() + pauseMs >= item.deadline) {',
        noticed: [{ file: groups, name: 'what failed at once is repeated only when it cannot have been applied' }],
      },
      {
        without: 'after stop nothing is sent',
        file: 'src/ledger/store/group-commit.ts',
        find: 'if (stopped !== null) return Promise.reject(stopped())',
        replace: '',
        noticed: [{ file: groups, name: 'after stop nothing is sent, not even at once' }],
      },
      {
        without: 'a memory store that answers without a promise lets others have their turn',
        file: 'src/ledger/stores/memory/claims.ts',
        find: 'return isLong() ? nextTurn()',
        replace: 'return false ? nextTurn()',
        noticed: [
          {
            file: 'src/ledger/stores/memory/memory.test.ts',
            name: 'a caller that awaits one answer after the other lets timers fire',
          },
        ],
      },
    ],
  },
  {
    id: 'F4',
    promise: 'SQLite: a settle in a single statement decides as the long way would',
    removals: [
      {
        without: 'the record must still be that of its grant',
        file: 'src/ledger/stores/sqlite/records.ts',
        find: `AND fence = ? AND claim_id = ? AND state = \${stateCode.running} AND awaited = 0 AND detail IS NULL
    AND pointer IS ? AND policy = ? AND fingerprint = ? AND incarnation = ? AND attempts = ? AND claimed_at = ?`,
        replace: 'AND coalesce(?, ?, ?, ?, ?, ?, ?, ?) IS NOT NULL',
        noticed: [{ file: alone, name: 'a settle alone that finds its record changed is decided as any other' }],
      },
      {
        without: 'the clock must still be the one that was read',
        file: 'src/ledger/stores/sqlite/records.ts',
        find: 'WHERE one = 1 AND boot_id = ? AND anchor_monotonic = ? AND anchor_wall = ? AND offset_ms = ?)',
        replace: 'WHERE one = 1 OR boot_id = ? OR anchor_monotonic = ? OR anchor_wall = ? OR offset_ms = ?)',
        noticed: [
          {
            file: alone,
            name: 'a settle alone is decided by the clock of the file, also when another process has moved it',
          },
        ],
      },
    ],
  },
  {
    id: 'F5',
    promise: 'PostgreSQL: BEGIN with the claim and COMMIT with the settle commit nothing that would not commit apart',
    removals: [
      {
        without: 'a settle that wrote nothing stops the COMMIT behind it',
        file: 'src/ledger/stores/postgres/settle.ts',
        find: "const failing = `concat('${UNSETTLED} ', statement_timestamp())::integer`",
        replace: "const failing = '0'",
        noticed: [
          {
            file: oneMessage,
            name: 'an effect that removed the record of its own key is not committed without its outcome',
          },
        ],
      },
      {
        without: 'a settle inside of a part is not the last statement',
        file: 'src/ledger/stores/postgres/transactions.ts',
        find: 'ground.claimed !== null && open.depth() === 0',
        replace: 'ground.claimed !== null',
        noticed: [
          {
            file: oneMessage,
            name: 'a part around others is undone as a whole, and a settle inside of one is not the last',
          },
        ],
      },
      {
        without: 'a server that forgot what was prepared is settled apart',
        file: 'src/ledger/stores/postgres/transactions.ts',
        find: 'if (isUnprepared(error)) unprepared()',
        replace: '',
        noticed: [
          {
            file: oneMessage,
            name: 'an effect that makes the server forget what was prepared is settled apart, by its next try',
          },
        ],
      },
      {
        without: 'a claim that waited for a lock waited for its twin',
        file: 'src/ledger/stores/postgres/transactions.ts',
        find: 'if (isOther(error) || (claim !== null && isBusy(error))) {',
        replace: 'if (isOther(error)) {',
        noticed: [
          {
            file: 'test/proof/stores/postgres/one-message.test.ts',
            name: 'a claim that travels with BEGIN and waits too long for its twin says so',
          },
        ],
      },
    ],
  },
  {
    id: 'F6',
    promise: 'While the store is not asked, the gateway and guarded routes still know what ended in this process',
    removals: [
      {
        without: 'the outcome of a call that had to be decided in time stays in memory',
        file: 'src/ledger/effect.ts',
        find: "if (landing.kind === 'executed' && this.flight.keptSince !== null) this.keep(landing, this.flight.keptSince)",
        replace: '',
        noticed: [
          {
            file: 'test/contract/gateway/guard.test.ts',
            name: 'while the store is not asked, what ended here is not sent again',
          },
        ],
      },
    ],
  },
  {
    id: 'F7',
    promise: 'A response that is kept as text, or shared by replays, is byte for byte what was sent',
    removals: [
      {
        without: 'bytes that are no text stay bytes',
        file: 'src/http/protocol/record.ts',
        find: 'if (given === undefined && !isUtf8(body)) return null',
        replace: '',
        noticed: [
          {
            file: 'src/http/protocol/record.test.ts',
            name: 'a body is kept once, byte for byte, and takes no more room than in base64',
          },
        ],
      },
      {
        without: 'every replay has a list of headers of its own',
        file: 'src/http/protocol/record.ts',
        find: 'headers: headers.slice()',
        replace: 'headers',
        noticed: [
          {
            file: 'src/http/protocol/record.test.ts',
            name: 'headers that an adapter adds to a replay are not in the next one',
          },
        ],
      },
    ],
  },
  {
    id: 'F8',
    promise: 'A client whose signal is made only when something waits is noticed as before',
    removals: [
      {
        without: 'a client that is gone before anything is waited for is noticed',
        file: 'src/http/protocol/capture-node.ts',
        find: 'if (this.gone !== null || this.response?.closed === true) this.signal().throwIfAborted()',
        replace: '',
        noticed: [
          {
            file: 'src/http/protocol/capture-node.test.ts',
            name: 'a client that left before the claim claims nothing',
          },
        ],
      },
    ],
  },
  {
    id: 'F9',
    promise: 'A step that begins on the announcement of the line before it is as safe as one with its own intent',
    removals: [
      {
        without: 'an announcement counts in the turn in which it was written',
        file: 'src/runs/followers.ts',
        find: 'if (last !== null) runtime.soon(',
        replace: 'if (last === null) runtime.soon(',
        noticed: [
          {
            file: announced,
            name: 'a step that begins later than the line before it was written has its own intent',
          },
        ],
      },
      {
        without: 'values that the body asked for are on record before a step that may depend on them',
        file: 'src/runs/followers.ts',
        find: 'const begins = place.values.length === 0 && lineBefore(place)',
        replace: 'const begins = lineBefore(place)',
        noticed: [
          {
            file: announced,
            name: 'a value that the body asked for is on record before a step that may depend on it',
          },
        ],
      },
      {
        without: 'a step that was announced when its worker died may have begun',
        file: 'src/runs/followers.ts',
        find: 'mayHaveBegun: ({ stepId }) => inDoubt.has(stepId)',
        replace: 'mayHaveBegun: () => false',
        noticed: [
          { file: announced, name: 'a step that was announced when its worker died is unknown, and is not done again' },
        ],
      },
      {
        without: 'a run that was handed over is not in doubt',
        file: 'src/runs/execution.ts',
        find: 'doubted: run.takenBefore === null ? [] : journal.entries',
        replace: 'doubted: journal.entries',
        noticed: [
          {
            file: announced,
            name: 'a step that was announced and not begun is not in doubt when its run was handed over',
          },
        ],
      },
      {
        without: 'a run that ends beside an announced step leaves it in doubt',
        file: 'src/runs/followers.ts',
        find: "open.size > 0 ? 'by_this_worker' : ",
        replace: '',
        noticed: [
          {
            file: announced,
            name: 'a step that was announced and that a failed run left behind is in doubt when it is resumed',
          },
        ],
      },
      {
        without: 'a run that may have begun an announced step has passed the place before it',
        file: 'src/runs/branch.ts',
        find: ' || branch.mayHaveLeft()) return false',
        replace: ') return false',
        noticed: [
          { file: announced, name: 'a run whose worker died in an announced step keeps to the way that it went' },
        ],
      },
    ],
  },
]
