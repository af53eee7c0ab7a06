import type { NaturalNotes } from 'onceonly/http'
import Type from 'typebox'
import { oneOf } from '../http/input.ts'
import { pageQuery, textOfCursor } from '../http/page.ts'
import {
  type Declaration,
  instant,
  instantOrNull,
  named,
  type Repeat,
  record,
  type Schema,
  text,
  textOrNull,
} from '../openapi/declaration.ts'
import { ERROR_CHARS_MOST, NAME_CHARS_MOST, resolutionKinds, STEPS_MOST } from './parse.ts'
import { SUBJECT_CHARS_MOST, TEMPLATE_CHARS_MOST, WAIT_MS_MOST } from './parse-step.ts'
import { leadFields, ops } from './sequence.ts'
import { LIMIT_MOST, LIMIT_USUAL, runStates, stepStates, stepStatuses, verdicts } from './words.ts'

/** What the document says about outreach. */

const system = {
  name: 'outreach',
  about:
    'Outbound sequences as durable runs: a step that was recorded is never done again, whatever crashes, and every run ' +
    'can be replayed against the sequence of today.',
}

function natural(id: string, notes: Pick<NaturalNotes, 'repeats' | 'businessUniqueness'>): Repeat {
  const about: NaturalNotes = {
    ...notes,
    outbox: 'nothing is published; messages have rows of their own',
    externalCalls: 'Messages and webhooks go out under the key of their step, which never changes.',
    documentation: `/docs#${id}`,
    tests: 'service/outreach.test.ts, service/outreach-crash.test.ts',
  }
  return { kind: 'natural', about }
}

const stepId: Schema = { type: 'string', pattern: '^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$' }
const target: Schema = { type: ['string', 'null'] }
const template: Schema = { type: 'string', minLength: 1, maxLength: TEMPLATE_CHARS_MOST }

function step(type: string, fields: Readonly<Record<string, Schema>>, optional: readonly string[] = []): Schema {
  const moves: Readonly<Record<string, Schema>> = type === 'branch' ? {} : { next: target }
  const properties = { id: stepId, type: { type: 'string', enum: [type] }, ...fields, ...moves }
  return { ...record(properties, [...optional, 'next']), additionalProperties: false }
}

const condition = record(
  {
    path: { type: 'string', examples: ['lead.phone', 'results.welcome.status'] },
    op: { type: 'string', enum: ops },
    value: { type: ['string', 'number', 'boolean', 'null'] },
  },
  ['value'],
)

const steps: Schema = {
  type: 'array',
  minItems: 1,
  maxItems: STEPS_MOST,
  items: named('SequenceStep', {
    oneOf: [
      step('email', { template, subject: { type: 'string', minLength: 1, maxLength: SUBJECT_CHARS_MOST } }, [
        'subject',
      ]),
      step('sms', { template }),
      step('call', { template }, ['template']),
      step('webhook', { url: { type: 'string', format: 'uri' }, template }),
      step('wait', { ms: { type: 'integer', minimum: 0, maximum: WAIT_MS_MOST } }),
      step('branch', { when: condition, then: target, else: target }, ['then', 'else']),
    ],
  }),
}
const sequenceName: Schema = { type: 'string', minLength: 1, maxLength: NAME_CHARS_MOST }
const version: Schema = { type: 'integer', minimum: 1 }
const Location = 'Where it is read.'

export const storeSequence: Declaration = {
  id: 'sequences.store',
  system,
  summary: 'Store a sequence, or the next version of it',
  description:
    'Of one name there is one sequence: storing it again makes its next version. Runs that have begun go on with the ' +
    `version that they began with. Templates may name ${leadFields.map((field) => `\`{{lead.${field}}}\``).join(', ')} ` +
    'and `{{results.STEP.FIELD}}` of a step above. Steps follow each other as they stand, or as `next` says; null ends ' +
    'the sequence. A branch goes to `then` or `else`; the step that the other one names is passed over by whoever only ' +
    'comes along. An e-mail goes by SMTP where that is configured, a text message by the Twilio-style provider, a call ' +
    'to the webhook; else to the local mailbox. A webhook step leads to a public host, or to one that the operator of ' +
    'the server has named.',
  access: 'api key',
  body: {
    schema: named('SequenceRequest', { ...record({ name: sequenceName, steps }), additionalProperties: false }),
    example: {
      name: 'Welcome',
      steps: [
        { id: 'hello', type: 'email', subject: 'Welcome', template: 'Good to have you, {{lead.email}}.' },
        { id: 'pause', type: 'wait', ms: 172_800_000 },
        { id: 'phone', type: 'branch', when: { path: 'lead.phone', op: 'exists' }, then: 'text', else: 'mail' },
        { id: 'text', type: 'sms', template: 'How do you like it?' },
        { id: 'mail', type: 'email', template: 'How do you like it, {{lead.email}}?' },
      ],
    },
  },
  answers: {
    201: { about: 'Stored', schema: record({ id: text, version }), headers: { Location } },
    403: { about: 'The caller has no right to use this system, or the workspace keeps as much as it may' },
  },
}

export const readSequence: Declaration = {
  id: 'sequences.get',
  system,
  summary: 'Read the newest version of a sequence',
  access: 'api key',
  path: { id: 'The id of the sequence.' },
  answers: {
    200: { about: 'The sequence', schema: named('Sequence', record({ id: text, name: text, version, steps })) },
  },
}

export const startRun: Declaration = {
  id: 'sequences.run',
  system,
  summary: 'Run a sequence for a lead',
  description:
    'One run for each version of the sequence and each lead, however often it is asked for; a `runId` of your own makes ' +
    'another one. The run keeps the version, and the lead as it is now.',
  access: 'api key',
  path: { id: 'The id of the sequence.' },
  body: {
    schema: named('RunRequest', {
      ...record({ leadId: text, runId: textOrNull }, ['runId']),
      additionalProperties: false,
    }),
    example: { leadId: 'lead_5f0c1e9a' },
  },
  answers: {
    201: { about: 'It runs, or has run', schema: record({ runId: text }), headers: { Location } },
    403: { about: 'The caller has no right to use this system, or the workspace keeps as much as it may' },
    404: { about: 'There is no such sequence, or no such lead, in this workspace' },
    409: { about: 'The `runId` was given to a run of another sequence or for another lead' },
  },
  repeat: natural('sequences.run', {
    repeats: 'the same run is named again, and nothing else begins',
    businessUniqueness: 'The id of a run is its primary key; it is made of sequence, version and lead.',
  }),
}

const runId = { id: 'The id of the run.' }
const anything: Schema = {}
const state: Schema = { type: 'string', enum: runStates }
const summary = {
  runId: text,
  state,
  sequenceId: text,
  version,
  leadId: text,
  error: textOrNull,
  dueAt: instantOrNull,
  startedAt: instant,
  endedAt: instantOrNull,
}
const runStep = named(
  'RunStep',
  record({
    id: text,
    type: text,
    key: text,
    tick: { type: 'integer' },
    attempts: { type: 'integer' },
    state: { type: 'string', enum: stepStates },
    result: anything,
    error: textOrNull,
    dueAt: instantOrNull,
  }),
)
const run = named('Run', record({ ...summary, steps: { type: 'array', items: runStep } }))

/** The engine's own cursor inside of ours; null for a text that is none. */
export function placeOf(cursor: string): string | null {
  const place = textOfCursor(cursor)
  return /^\d{1,15} [\x21-\x7e]{1,200}$/.test(place) ? place : null
}

export const readRuns = {
  id: 'runs.list',
  system,
  summary: 'List runs, newest first',
  access: 'api key',
  query: {
    state: Type.Optional(
      oneOf(runStates, { description: 'Only runs in this state; `unknown` are those that wait for a person.' }),
    ),
    ...pageQuery({ most: LIMIT_MOST, usual: LIMIT_USUAL, placeOf }),
  },
  answers: {
    200: {
      about: 'One page',
      schema: record({
        runs: { type: 'array', items: named('RunSummary', record(summary)) },
        cursor: textOrNull,
      }),
    },
  },
} satisfies Declaration

export const readRun: Declaration = {
  id: 'runs.get',
  system,
  summary: 'Read a run and its steps',
  access: 'api key',
  path: runId,
  answers: { 200: { about: 'The run', schema: run } },
}

const difference = record({ path: text, original: anything, replayed: anything }, ['original', 'replayed'])
const compared = { type: ['boolean', 'null'] }
const replayedStep = named(
  'ReplayedStep',
  record({
    id: text,
    key: text,
    tick: { type: 'integer' },
    status: { type: 'string', enum: stepStatuses },
    originalResult: anything,
    replayedResult: anything,
    identical: compared,
    diff: { type: 'array', items: difference },
  }),
)

export const replayRun: Declaration = {
  id: 'runs.replay',
  system,
  summary: 'Compare a run with the sequence of today',
  description:
    'Every step is evaluated again, with the recorded results as inputs and the newest version of the sequence, and ' +
    'nothing is performed. With `dryRun: false` a run that would go as it went goes on where it stands: what is recorded ' +
    'is not done again, and what is unknown is not sent.',
  access: 'api key',
  path: runId,
  body: { schema: record({ dryRun: { type: 'boolean' } }, ['dryRun']), example: { dryRun: true } },
  answers: {
    200: {
      about: 'Step by step',
      schema: named(
        'Replay',
        record({
          runId: text,
          verdict: { type: 'string', enum: verdicts },
          performed: { type: 'integer' },
          blocked: { type: 'integer' },
          steps: { type: 'array', items: replayedStep },
          result: record({ identical: compared, diff: { type: 'array', items: difference } }),
        }),
      ),
    },
    409: { about: 'The run would not go as it went: nothing was performed' },
  },
  repeat: natural('runs.replay', {
    repeats: 'what was performed is recorded, and is not performed again',
    businessUniqueness: 'Every step has one key, and one record under it.',
  }),
}

export const cancelRun: Declaration = {
  id: 'runs.cancel',
  system,
  summary: 'Cancel a run',
  description: 'No further step begins. What a provider was already told cannot be taken back.',
  access: 'api key',
  path: runId,
  answers: {
    200: { about: 'It is cancelled', schema: record({ runId: text, state }) },
    409: { about: 'It had ended before' },
  },
  repeat: natural('runs.cancel', {
    repeats: 'a cancelled run stays cancelled, and says so again',
    businessUniqueness: 'A run ends once.',
  }),
}

export const resolveStep: Declaration = {
  id: 'runs.steps.resolve',
  system,
  summary: 'Say what became of a step that is unknown',
  description:
    '`succeeded`: it happened, and the run goes on with `result`. `failed`: it did not, and shall not; the run fails. ' +
    '`not_done`: it did not happen, and is tried again. The message of the step is told, too.',
  access: 'api key',
  path: { ...runId, key: 'The key of the step.' },
  body: {
    schema: named('Resolution', {
      ...record(
        {
          kind: { type: 'string', enum: resolutionKinds },
          result: anything,
          error: { type: ['string', 'null'], minLength: 1, maxLength: ERROR_CHARS_MOST },
        },
        ['result', 'error'],
      ),
      additionalProperties: false,
    }),
    example: { kind: 'succeeded', result: { status: 'sent' } },
  },
  answers: {
    200: { about: 'The run, as it stands now', schema: run },
    409: { about: 'No such step of this run is unknown' },
  },
  repeat: natural('runs.steps.resolve', {
    repeats: 'a step that is not unknown any more is left alone, and the answer is 409',
    businessUniqueness: 'Only a step that is unknown can be resolved: one update, on one row.',
  }),
}
