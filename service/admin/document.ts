import { commandTable } from 'onceonly/admin'
import type { NaturalNotes } from 'onceonly/http'
import { type Declaration, type Repeat, record, type Schema, text, textOrNull } from '../openapi/declaration.ts'
import { rightNames } from '../workspaces/workspaces.ts'
import { ADVANCE_MS_MOST, NAME_CHARS_MOST } from './checks.ts'
import { queryOf } from './command-schemas.ts'

/** What the document says about the operator's own requests. */

const system = {
  name: 'admin',
  about: 'What an operator may do from outside: workspaces, API keys, rights and cases.',
}

const name: Schema = { type: 'string', minLength: 1, maxLength: NAME_CHARS_MOST }
const rights: Schema = { type: 'array', items: { type: 'string', enum: rightNames } }

function natural(id: string, repeats: string, businessUniqueness: string): Repeat {
  const about: NaturalNotes = {
    repeats,
    businessUniqueness,
    outbox: 'nothing is published',
    documentation: `/docs#${id}`,
    tests: 'test/contract/service/admin.test.ts',
  }
  return { kind: 'natural', about }
}

export const putWorkspace: Declaration = {
  id: 'workspaces.put',
  system,
  summary: 'Make or rename a workspace',
  access: 'operator',
  path: { id: 'The id of the workspace, chosen by you.' },
  body: { schema: record({ name }), example: { name: 'Support' } },
  answers: { 200: { about: 'As it stands now', schema: record({ id: text, name: text }) } },
  repeat: natural('workspaces.put', 'it writes the same name again', 'the id is the primary key'),
}

export const addKey: Declaration = {
  id: 'workspaces.keys.add',
  system,
  summary: 'Make an API key',
  description:
    'The key itself is shown once and never stored. Under an `Idempotency-Key` a retry makes no second key: it gets ' +
    'the same `keyId`, and null instead of the key. If the first response was lost, delete that key and make another.',
  access: 'operator',
  path: { id: 'The id of the workspace.' },
  body: { schema: record({ caller: name }), example: { caller: 'billing' } },
  answers: {
    201: {
      about: 'Made',
      schema: record({ keyId: text, key: { ...textOrNull, description: 'Null when this is the answer to a retry.' } }),
    },
  },
}

/** Of the key's own route: what its definition cannot tell. */
export const addKeyNotes = {
  documentation: '/docs#workspaces.keys.add',
  businessUniqueness: 'none: a caller may have many keys, so that they can be changed one after the other',
  outbox: 'nothing is published',
  tests: 'test/contract/service/admin.test.ts',
}

export const removeKey: Declaration = {
  id: 'keys.remove',
  system,
  summary: 'Remove an API key',
  access: 'operator',
  path: { keyId: 'The id of the key, not the key.' },
  answers: { 204: { about: 'Removed: requests with it are refused from now on' } },
  repeat: natural('keys.remove', 'the key stays removed; the second request gets 404', 'the id is the primary key'),
}

export const putRights: Declaration = {
  id: 'callers.rights.put',
  system,
  summary: 'Say what a caller may use',
  access: 'operator',
  path: { id: 'The id of the workspace.', caller: 'The name of the caller.' },
  body: { schema: record({ rights }), example: { rights: ['messages'] } },
  answers: { 200: { about: 'As they stand now', schema: record({ rights }) } },
  repeat: natural('callers.rights.put', 'it writes the same rights again', 'one row per workspace and caller'),
}

const number: Schema = { type: 'number' }

export const readUnknowns: Declaration = {
  id: 'unknowns.list',
  system,
  summary: commandTable.unknowns.summary,
  description:
    `${commandTable.unknowns.details} \`kind\` is \`record\`, \`step\` or \`run\`. There are as many rows as ` +
    '`dedup_unknown_waiting` and `runs_unknown` count together.',
  access: 'operator',
  query: queryOf(commandTable.unknowns),
  answers: {
    200: {
      about: 'Records first, then runs',
      schema: record({
        rows: {
          type: 'array',
          items: record({
            kind: { type: 'string', enum: ['record', 'step', 'run'] },
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

const caseFields = { workspaceId: name, escalatableTo: { type: 'array', items: name } }

export const putCase: Declaration = {
  id: 'cases.put',
  system,
  summary: 'Make or change a case',
  access: 'operator',
  path: { id: 'The id of the case, chosen by you.' },
  body: { schema: record(caseFields), example: { workspaceId: 'demo', escalatableTo: ['LEGAL_REVIEW'] } },
  answers: { 200: { about: 'As it stands now', schema: record({ id: text, ...caseFields }) } },
  repeat: natural('cases.put', 'it writes the same case again', 'one row per workspace and id'),
}

export const moveClock: Declaration = {
  id: 'test-clock.put',
  system,
  summary: 'Move the time of the store, in test mode only',
  description: 'Leases, windows, retention and timers of all processes on the store see the new time.',
  access: 'operator',
  body: {
    schema: record({ advanceMs: { type: 'integer', minimum: 0, maximum: ADVANCE_MS_MOST } }),
    example: { advanceMs: 60_000 },
  },
  answers: {
    200: { about: 'The time of the store', schema: record({ now: { type: 'number' } }) },
    404: { about: 'The server does not run in test mode' },
  },
  repeat: natural(
    'test-clock.put',
    'every request moves the clock once more, as a test wants it; after a lost answer, `advanceMs: 0` tells the time',
    'there is one clock',
  ),
}
