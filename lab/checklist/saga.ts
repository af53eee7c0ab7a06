import type { Row } from './row.ts'

const imports = 'test/contract/service/imports/saga.test.ts'
const quiet = 'test/contract/service/imports/saga-quiet.test.ts'
const conflicts = 'test/contract/events/saga/conflicts.test.ts'
const lastFiles = {
  file: 'test/contract/service/imports/uploads/receive.test.ts',
  name: 'of many last files at once one completes the set, and says so',
}
const lateDuplicate = {
  file: imports,
  name: 'a late duplicate after days is ignored, and after the tombstone is gone, too',
}
const outlives = { file: imports, name: 'the job outlives everything else: a finished one is not parsed again' }

/** The saga of `POST /api/imports`. */
export const saga: readonly Row[] = [
  {
    id: 'S1',
    promise:
      'Duplicate notifications, at once and late, on one server and on several: one job, one parse command per file',
    removals: [
      {
        without: 'a set of files is complete once',
        file: 'service/imports/searches.ts',
        find: 'and saved_at is null and not exists (',
        replace: 'and not exists (',
        noticed: [
          {
            file: 'test/contract/service/imports/complete-once.test.ts',
            name: 'a set of files is complete once, whatever notifications come later',
          },
        ],
      },
      {
        without: 'who looks whether a set is complete is alone with it',
        file: 'service/imports/searches.ts',
        find: "'update import_searches set search_name = search_name where search_id = ? returning search_id'",
        replace: "'select search_id from import_searches where search_id = ?'",
        noticed: [lastFiles],
      },
      {
        without: 'an instance is saved only as it was read',
        file: 'src/events/saga/instances.ts',
        find: 'AND version = ? RETURNING version`,\n        [state',
        replace: 'AND cast(? as bigint) > 0 RETURNING version`,\n        [state',
        noticed: [{ file: conflicts, name: 'a conflict is tried again on fresh state after 100, 200 and 500 ms' }],
      },
    ],
  },
  {
    id: 'S2',
    promise:
      'Only concurrency conflicts are tried again, after 100, 200 and 500 ms and on fresh state; business errors are not',
    removals: [
      {
        without: 'a conflict is tried again',
        file: 'src/events/saga/receive.ts',
        find: 'if (waitMs === undefined) return receipt',
        replace: 'return receipt',
        noticed: [{ file: conflicts, name: 'a conflict is tried again on fresh state after 100, 200 and 500 ms' }],
      },
      {
        without: 'the waits are 100, 200 and 500 ms',
        file: 'src/events/saga/limits.ts',
        find: 'conflictDelaysMs: [100, 200, 500]',
        replace: 'conflictDelaysMs: [100, 200, 400]',
        noticed: [{ file: conflicts, name: 'a conflict is tried again on fresh state after 100, 200 and 500 ms' }],
      },
      {
        without: 'every try reads the instance anew',
        file: 'src/events/saga/handle.ts',
        find: 'await instances.load(tx, arrival.id)\n  const state',
        replace: 'await ((globalThis.first ??= {})[turn.message.id] ??= instances.load(tx, arrival.id))\n  const state',
        noticed: [
          { file: conflicts, name: 'two replicas race for the first event: one begins it, the other finds it begun' },
        ],
      },
      {
        without: 'only a conflict is worth a try at once',
        file: 'src/events/saga/receive.ts',
        find: "if (isOnceError(error, 'saga_conflict')) {",
        replace: 'if (true) {',
        noticed: [{ file: conflicts, name: 'an error of the business is not tried again, whatever it looks like' }],
      },
      {
        without: 'a business error is given up at once',
        file: 'src/events/saga/limits.ts',
        find: 'maxFailures: 1,',
        replace: 'maxFailures: 5,',
        noticed: [
          {
            file: 'test/contract/events/saga/business-errors.test.ts',
            name: 'a business error is not retried: the message is parked at once',
          },
        ],
      },
    ],
  },
  {
    id: 'S3',
    promise: 'Commands leave with the saved state; a save that fails sends nothing',
    removals: [
      {
        without: 'what could not be saved sends nothing',
        file: 'src/events/saga/handle.ts',
        find: '  if (!saved) throw conflict(arrival)',
        replace: '',
        noticed: [
          { file: conflicts, name: 'a conflict on every try goes back to the broker, and nothing was sent or counted' },
        ],
      },
    ],
  },
  {
    id: 'S4',
    promise:
      'All six events are ignored in `Completed` and `Error`, `SearchUploadSaved` in `Uploaded` and `Parsing`; every pair is decided by itself',
    removals: [
      {
        without: 'a finished instance ignores what comes',
        file: 'src/events/saga/handle.ts',
        find: 'if (machine.isTerminal(state)) return await ignored',
        replace: 'if (false) return await ignored',
        noticed: [
          lateDuplicate,
          {
            file: 'test/contract/events/saga/life.test.ts',
            name: 'a finished instance ignores every event, and says so',
          },
        ],
      },
      {
        without: '`Completed` is an end',
        file: 'src/events/saga/machine.ts',
        find: 'isTerminal: (state) => ends.has(state),',
        replace: "isTerminal: (state) => ends.has(state) && state !== 'Completed',",
        noticed: [{ file: imports, name: 'all six events are ignored in Completed' }],
      },
      {
        without: '`Error` is an end',
        file: 'src/events/saga/machine.ts',
        find: 'isTerminal: (state) => ends.has(state),',
        replace: "isTerminal: (state) => ends.has(state) && state !== 'Error',",
        noticed: [{ file: imports, name: 'all six events are ignored in Error' }],
      },
      {
        without: '`SearchUploadSaved` is ignored in `Uploaded`',
        file: 'service/imports/saga.ts',
        find: '      SearchUploadSaved: received,\n      ReferenceFileParsingCompleted(data',
        replace:
          "      SearchUploadSaved: { to: ['Parsing'], handle: (_data, _saved, tools) => tools.transitionTo('Parsing') },\n      ReferenceFileParsingCompleted(data",
        noticed: [
          { file: quiet, name: 'files that are saved again, or an hour that is over, mean nothing in Uploaded' },
        ],
      },
      {
        without: '`SearchUploadSaved` is ignored in `Parsing`',
        file: 'service/imports/saga.ts',
        find: '      SearchUploadSaved: received,\n      ReferenceFileParsingCompleted: {',
        replace:
          "      SearchUploadSaved: { to: ['Uploaded'], handle: (_data, _saved, tools) => tools.transitionTo('Uploaded') },\n      ReferenceFileParsingCompleted: {",
        noticed: [
          { file: quiet, name: 'files that are saved again, or an hour that is over, mean nothing in Parsing' },
          { file: imports, name: 'two SearchUploadSaved give one parse command per file' },
        ],
      },
      {
        without: 'every pair of state and event is decided',
        file: 'src/events/saga/machine.ts',
        find: 'if (cell === undefined) throw refused(name, `does not',
        replace: 'if (false) throw refused(name, `does not',
        noticed: [{ file: 'test/contract/events/saga/types.test.ts', name: 'a missing pair does not compile' }],
      },
    ],
  },
  {
    id: 'S5',
    promise: 'Finished instances stay for 7 days, ignore late duplicates, and are then removed by themselves',
    removals: [
      {
        without: 'a finished instance is remembered for 7 days',
        file: 'src/events/saga/limits.ts',
        find: 'keepMs: 7 * DAY',
        replace: 'keepMs: 5 * DAY',
        noticed: [lateDuplicate],
      },
      {
        without: 'a finished instance has an end',
        file: 'src/events/saga/handle.ts',
        find: 'endsAt: completed ? now + machine.keepMs : null',
        replace: 'endsAt: null',
        noticed: [lateDuplicate],
      },
      {
        without: 'the sweep runs by itself',
        file: 'src/events/saga/assemble.ts',
        find: 'round: async () => void (await sweep()),',
        replace: 'round: async () => {},',
        noticed: [
          {
            file: 'test/contract/events/saga/sweep-alone.test.ts',
            name: 'by itself: a finished instance is removed after its seven days',
          },
        ],
      },
    ],
  },
  {
    id: 'S6',
    promise: 'The timeout of 60 minutes is scheduled, unscheduled, and harmless when it is under way already',
    removals: [
      {
        without: 'an import has 60 minutes',
        file: 'service/imports/saga.ts',
        find: 'UPLOAD_TIMEOUT_MS = 60 * MINUTE',
        replace: 'UPLOAD_TIMEOUT_MS = 59 * MINUTE',
        noticed: [{ file: imports, name: 'an hour without the last file ends the import' }],
      },
      {
        without: 'the timeout is scheduled with the start',
        file: 'service/imports/saga.ts',
        find: "tools.schedule('UploadTimeout', null, { afterMs: UPLOAD_TIMEOUT_MS })",
        replace: '',
        noticed: [{ file: imports, name: 'an hour without the last file ends the import' }],
      },
      {
        without: 'the timeout is unscheduled when the files have come',
        file: 'service/imports/saga.ts',
        find: "tools.unschedule('UploadTimeout')",
        replace: '',
        noticed: [
          { file: quiet, name: 'the hour is scheduled with the start, and unscheduled when the files have come' },
        ],
      },
      {
        without: 'a timeout that was taken back means nothing',
        file: 'src/events/saga/handle.ts',
        find: 'if (token !== null && !(await pending.holds(tx, { ...arrival, token }))) {',
        replace: 'if (false) {',
        noticed: [
          {
            file: 'test/contract/events/saga/timeouts.test.ts',
            name: 'a timeout that is unscheduled while it is on its way is dropped',
          },
        ],
      },
    ],
  },
  {
    id: 'S7',
    promise: 'A `searchId` is used once',
    removals: [
      {
        without: 'an id stays used after its instance is gone',
        file: 'service/imports/saga.ts',
        find: 'oneShot: true,',
        replace: 'oneShot: false,',
        noticed: [lateDuplicate],
      },
      {
        without: 'the beginning of an instance claims its id for good',
        file: 'src/events/saga/handle.ts',
        find: "if (answer.kind === 'claimed') return true",
        replace: 'return true',
        noticed: [
          {
            file: 'test/contract/events/saga/life.test.ts',
            name: 'tombstones stay for seven days, then they are swept, and the id is used up',
          },
        ],
      },
    ],
  },
  {
    id: 'S8',
    promise: 'Metadata is checked by the service and by the saga: fatal when saved, a warning at a late start',
    removals: [
      {
        without: 'the service refuses bad metadata',
        file: 'service/imports/routes.ts',
        find: '...routeOptions(declaration)',
        replace: 'config: { declaration }',
        noticed: [
          {
            file: 'test/contract/service/imports-input.test.ts',
            name: '400, and every field that is wrong is named',
          },
        ],
      },
      {
        without: 'bad metadata of what was saved ends the import',
        file: 'service/imports/saga.ts',
        find: '  if (wrong !== null) {',
        replace: '  if (false) {',
        noticed: [{ file: imports, name: 'bad metadata is fatal when everything is saved' }],
      },
      {
        without: 'bad metadata of a start is a warning',
        file: 'service/imports/saga.ts',
        find: 'if (wrong !== null) tools.warn(',
        replace: 'if (false) tools.warn(',
        noticed: [
          { file: imports, name: 'bad metadata at the start is a warning' },
          { file: imports, name: 'saved first: the import begins with it, and a late start fills in what is missing' },
        ],
      },
      {
        without: 'what is wrong is not taken over',
        file: 'service/imports/saga.ts',
        find: '= goodMetadata({ ...started })',
        replace: '= started',
        noticed: [{ file: imports, name: 'bad metadata never becomes part of an import, whatever it holds' }],
      },
    ],
  },
  {
    id: 'S9',
    promise: 'Making the job and “files received” are safe to call many times',
    removals: [
      {
        without: 'a job that is there stays as it is',
        file: 'service/imports/jobs.ts',
        find: 'on conflict (search_id) do update set',
        replace: "on conflict (search_id) do update set state = 'Uploading',",
        noticed: [outlives],
      },
      {
        without: 'a file of a job is listed once',
        file: 'service/imports/jobs.ts',
        find: '       on conflict (search_id, name) do nothing',
        replace: '',
        noticed: [{ file: imports, name: 'the happy path' }],
      },
      {
        without: 'files are received once',
        file: 'service/imports/jobs.ts',
        find: "if (!(await moveJob(tx, searchId, ['Uploading'], 'Uploaded', now))) return false",
        replace: "await moveJob(tx, searchId, ['Uploading'], 'Uploaded', now)",
        noticed: [outlives],
      },
    ],
  },
  {
    id: 'S10',
    promise: 'No “not accepted in state” and no duplicate-key error reaches an operator',
    removals: [
      {
        without: 'of two beginnings at once one finds the other, without an error',
        file: 'src/events/saga/instances.ts',
        find: '         ON CONFLICT (saga, id) DO NOTHING RETURNING version',
        replace: ' RETURNING version',
        noticed: [
          { file: conflicts, name: 'two replicas race for the first event: one begins it, the other finds it begun' },
        ],
      },
      {
        without: 'news of an import that does not exist is ignored',
        file: 'service/imports/saga.ts',
        find: "const unknown = ignored('there is no such import')",
        replace: "const unknown = { kind: 'fault', because: 'there is no such import' }",
        noticed: [
          { file: imports, name: 'events of unknown imports are dropped and reported' },
          { file: imports, name: 'every pair of state and event is decided, and none of them is a fault' },
        ],
      },
    ],
  },
]
