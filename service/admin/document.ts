import { commandTable } from 'onceonly/admin/commands'
import Type from 'typebox'
import { checked, filledText, oneOf, ruled } from '../http/input.ts'
import {
  type Declaration,
  natural,
  type Repeat,
  record,
  type Schema,
  text,
  textOrNull,
} from '../openapi/declaration.ts'
import { rightNames } from '../workspaces/workspaces.ts'
import { queryOf } from './command-schemas.ts'

/** The server's own commands of operators: their schemas check, type and document them. */

const NOT_QUEUES = 'is not a list of queues'

const system = {
  name: 'admin',
  about: 'What an operator may do from outside: workspaces, API keys, rights and cases.',
}

/** Longer than any name that an operator would choose. */
const NAME_CHARS_MOST = 100
/** Ten years: further than any retention reaches. */
const ADVANCE_MS_MOST = 10 * 365 * 24 * 3_600_000

const name = filledText(NAME_CHARS_MOST)
const named = (description: string) => filledText(NAME_CHARS_MOST, { description })
const rights = Type.Array(oneOf(rightNames))
const queues = ruled(Type.Array(Type.String(), { errorMessage: NOT_QUEUES }), (list) =>
  list.every((each) => 'value' in checked(name, each)) ? null : NOT_QUEUES,
)

function repeated(id: string, repeats: string, businessUniqueness: string): Repeat {
  const tests = 'test/contract/service/admin.test.ts'
  return natural(id, { repeats, businessUniqueness, outbox: 'nothing is published', tests })
}

export const putWorkspace = {
  id: 'workspaces.put',
  system,
  summary: 'Make or rename a workspace',
  access: 'operator',
  path: { id: named('The id of the workspace, chosen by you.') },
  body: { schema: Type.Object({ name }), example: { name: 'Support' } },
  answers: { 200: { about: 'As it stands now', schema: record({ id: text, name: text }) } },
  repeat: repeated('workspaces.put', 'it writes the same name again', 'the id is the primary key'),
} satisfies Declaration

export const addKey = {
  id: 'workspaces.keys.add',
  system,
  summary: 'Make an API key',
  description:
    'The key itself is shown once and never stored. Under an `Idempotency-Key` a retry makes no second key: it gets ' +
    'the same `keyId`, and null instead of the key. If the first response was lost, delete that key and make another.',
  access: 'operator',
  path: { id: named('The id of the workspace.') },
  body: { schema: Type.Object({ caller: name }), example: { caller: 'billing' } },
  answers: {
    201: {
      about: 'Made',
      schema: record({ keyId: text, key: { ...textOrNull, description: 'Null when this is the answer to a retry.' } }),
    },
  },
} satisfies Declaration

/** Notes for the design checklist that the definition of the route does not have. */
export const addKeyNotes = {
  documentation: '/docs#workspaces.keys.add',
  businessUniqueness: 'none: a caller may have many keys, so that they can be changed one after the other',
  outbox: 'nothing is published',
  tests: 'test/contract/service/admin.test.ts',
}

export const removeKey = {
  id: 'keys.remove',
  system,
  summary: 'Remove an API key',
  access: 'operator',
  path: { keyId: named('The id of the key, not the key.') },
  answers: { 204: { about: 'Removed: requests with it are refused from now on' } },
  repeat: repeated('keys.remove', 'the key stays removed; the second request gets 404', 'the id is the primary key'),
} satisfies Declaration

export const putRights = {
  id: 'callers.rights.put',
  system,
  summary: 'Say what a caller may use',
  access: 'operator',
  path: { id: named('The id of the workspace.'), caller: named('The name of the caller.') },
  body: { schema: Type.Object({ rights }), example: { rights: ['messages'] } },
  answers: { 200: { about: 'As they stand now', schema: record({ rights }) } },
  repeat: repeated('callers.rights.put', 'it writes the same rights again', 'one row per workspace and caller'),
} satisfies Declaration

const number: Schema = { type: 'number' }

export const readUnknowns: Declaration = {
  id: 'unknowns.list',
  system,
  summary: commandTable.unknowns.summary,
  description:
    `${commandTable.unknowns.details} \`kind\` is \`record\`, \`step\`, \`run\` or \`dead_letter\`. There are as many ` +
    'rows as `onceonly_dedup_unknown_waiting`, `onceonly_runs_unknown`, `onceonly_outbox_dead_letters` and ' +
    '`onceonly_inbox_dead_letters` count together.',
  access: 'operator',
  query: queryOf(commandTable.unknowns),
  answers: {
    200: {
      about: 'Records first, then runs, then dead letters',
      schema: record({
        rows: {
          type: 'array',
          items: record({
            kind: { type: 'string', enum: ['record', 'step', 'run', 'dead_letter'] },
            id: text,
            since: number,
            attempts: number,
            end: text,
          }),
        },
        cursor: { ...textOrNull, description: 'Null at the end.' },
      }),
    },
  },
}

const caseFields = { workspaceId: name, escalatableTo: queues }

export const putCase = {
  id: 'cases.put',
  system,
  summary: 'Make or change a case',
  access: 'operator',
  path: { id: named('The id of the case, chosen by you.') },
  body: { schema: Type.Object(caseFields), example: { workspaceId: 'demo', escalatableTo: ['LEGAL_REVIEW'] } },
  answers: { 200: { about: 'As it stands now', schema: record({ id: text, ...caseFields }) } },
  repeat: repeated('cases.put', 'it writes the same case again', 'one row per workspace and id'),
} satisfies Declaration

export const moveClock = {
  id: 'test-clock.put',
  system,
  summary: 'Move the time of the store, in test mode only',
  description: 'Leases, windows, retention and timers of all processes on the store see the new time.',
  access: 'operator',
  body: {
    schema: Type.Object({ advanceMs: Type.Integer({ minimum: 0, maximum: ADVANCE_MS_MOST }) }),
    example: { advanceMs: 60_000 },
  },
  answers: {
    200: { about: 'The time of the store', schema: record({ now: { type: 'number' } }) },
    404: { about: 'The server does not run in test mode' },
  },
  repeat: repeated(
    'test-clock.put',
    'every request moves the clock once more, as tests need it; after a lost response, `advanceMs: 0` reads the time',
    'there is one clock',
  ),
} satisfies Declaration
