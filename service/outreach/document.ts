import Type, { type Static } from 'typebox'
import { oneOf, ruled } from '../http/input.ts'
import { pageQuery, textOfCursor } from '../http/page.ts'
import { unstorable } from '../http/text.ts'
import { ID_PATTERN } from '../messages/command.ts'
import {
  type Declaration,
  instant,
  instantOrNull,
  list,
  named,
  natural,
  record,
  text,
  textOrNull,
} from '../openapi/declaration.ts'
import { leadFields } from './sequence.ts'
import { stepSchema } from './step.ts'
import { LIMIT_MOST, LIMIT_USUAL, runStates, stepStates, stepStatuses, verdicts } from './words.ts'

/** The commands and reads of the outreach: their schemas check, type and document them. */

export const system = {
  name: 'outreach',
  about:
    'Outbound sequences as durable runs: a step that was recorded is never done again, whatever crashes, and every run ' +
    'can be replayed against the sequence of today.',
}

export const notes = {
  outbox: 'nothing is published; messages have rows of their own',
  externalCalls: 'Messages and webhooks go out under the key of their step, which never changes.',
  tests: 'service/outreach.test.ts, service/outreach-crash.test.ts',
}

/** Longer than any name that a person would choose. */
const NAME_CHARS_MOST = 100
/** A year of weekly steps, twice. */
const STEPS_MOST = 100
const ERROR_CHARS_MOST = 500

function filled(maxLength: number, isGood: (text: string) => boolean, errorMessage: string) {
  return ruled(Type.String({ minLength: 1, maxLength, errorMessage }), (text) => (isGood(text) ? null : errorMessage))
}

function isText(text: string): boolean {
  return text.trim() !== '' && unstorable(text) === null
}

const steps = Type.Array(stepSchema, {
  minItems: 1,
  maxItems: STEPS_MOST,
  errorMessage: `is not a list of 1 to ${STEPS_MOST} steps`,
})
const sequenceRequest = named(
  'SequenceRequest',
  Type.Object(
    {
      name: filled(
        NAME_CHARS_MOST,
        (name) => isText(name) && !/\p{Cc}/u.test(name),
        `is not a name of 1 to ${NAME_CHARS_MOST} characters`,
      ),
      steps,
    },
    { additionalProperties: false },
  ),
)
export type SequenceCommand = Static<typeof sequenceRequest>

const version = Type.Integer({ minimum: 1 })
const Location = 'Where it is read.'

export const storeSequence = {
  id: 'sequences.store',
  system,
  summary: 'Store a sequence, or the next version of it',
  description:
    'Of one name there is one sequence: storing it again makes its next version. Runs that have begun continue with the ' +
    `version that they began with. Templates may name ${leadFields.map((field) => `\`{{lead.${field}}}\``).join(', ')} ` +
    'and `{{results.STEP.FIELD}}` of a step above. Steps follow each other as they stand, or as `next` says; null ends ' +
    'the sequence. A branch goes to `then` or `else`; the step that the other one names is skipped by runs that only ' +
    'pass by. An e-mail goes by SMTP where that is configured, a text message by the Twilio-style provider, a call ' +
    'to the webhook; else to the local mailbox. A webhook step leads to a public host, or to one that the operator of ' +
    'the server has named.',
  access: 'api key',
  body: {
    schema: sequenceRequest,
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
} satisfies Declaration

export const readSequence = {
  id: 'sequences.get',
  system,
  summary: 'Read the newest version of a sequence',
  access: 'api key',
  path: { id: 'The id of the sequence.' },
  answers: {
    200: { about: 'The sequence', schema: named('Sequence', record({ id: text, name: text, version, steps })) },
  },
} satisfies Declaration

const runRequest = named(
  'RunRequest',
  Type.Object(
    {
      leadId: Type.String({ pattern: ID_PATTERN, errorMessage: 'is not the id of a lead' }),
      // It stands in addresses, and beside the workspace in the id of the run inside.
      runId: Type.Optional(
        Type.Unsafe<string | null>({
          type: ['string', 'null'],
          pattern: '^[A-Za-z0-9][A-Za-z0-9_.:@+-]{0,159}$',
          description: 'Null or left out: one run for this version and this lead.',
          errorMessage: 'is not an id of 1 to 160 letters, digits and `_.:@+-`',
        }),
      ),
    },
    { additionalProperties: false },
  ),
)
export type StartCommand = Static<typeof runRequest>

export const startRun = {
  id: 'sequences.run',
  system,
  summary: 'Run a sequence for a lead',
  description:
    'One run for each version of the sequence and each lead, however often it is asked for; a `runId` of your own makes ' +
    'another one. The run keeps the version, and the lead as it is now.',
  access: 'api key',
  path: { id: 'The id of the sequence.' },
  body: {
    schema: runRequest,
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
    ...notes,
  }),
} satisfies Declaration

const runId = { id: 'The id of the run.' }
const anything = Type.Unknown()
const state = oneOf(runStates)
const summary = {
  runId: text,
  state,
  sequenceId: text,
  version,
  leadId: text,
  campaignId: textOrNull,
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
    tick: Type.Integer(),
    attempts: Type.Integer(),
    state: oneOf(stepStates),
    result: anything,
    error: textOrNull,
    dueAt: instantOrNull,
  }),
)
const run = named('Run', record({ ...summary, steps: list(runStep) }))

/** The engine's own cursor inside of ours; null for a text that is none. */
export function placeOf(cursor: string): string | null {
  const place = textOfCursor(cursor)
  return /^\d{1,15} [\x20-\x7e]{1,200}$/.test(place) ? place : null
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
        runs: list(named('RunSummary', record(summary))),
        cursor: textOrNull,
      }),
    },
  },
} satisfies Declaration

export const readRun = {
  id: 'runs.get',
  system,
  summary: 'Read a run and its steps',
  access: 'api key',
  path: runId,
  answers: { 200: { about: 'The run', schema: run } },
} satisfies Declaration

export const runEvents = {
  id: 'runs.events',
  system,
  summary: 'Follow a run by server-sent events',
  description:
    '`run` whenever its state or that of a step has changed, as `GET /api/runs/{id}` answers it; `:ended` behind the last ' +
    'one.',
  access: 'api key',
  path: runId,
  answers: {
    200: { about: 'Events, until the run has ended', schema: text, type: 'text/event-stream' },
    429: { about: 'The workspace follows as many events of this server as it may' },
  },
} satisfies Declaration

const difference = record({ path: text, original: anything, replayed: anything }, ['original', 'replayed'])
const compared = Type.Unsafe<boolean | null>({ type: ['boolean', 'null'] })
const replayedStep = named(
  'ReplayedStep',
  record({
    id: text,
    key: text,
    tick: Type.Integer(),
    status: oneOf(stepStatuses),
    originalResult: anything,
    replayedResult: anything,
    identical: compared,
    diff: list(difference),
  }),
)

export const replay = named(
  'Replay',
  record({
    runId: text,
    verdict: oneOf(verdicts),
    performed: Type.Integer(),
    blocked: Type.Integer(),
    steps: list(replayedStep),
    result: record({ identical: compared, diff: list(difference) }),
  }),
)

/** Without a body, or without the field, nothing is performed. */
export const replayRequest = Type.Unsafe<{ dryRun?: boolean } | null>({
  type: ['object', 'null'],
  properties: { dryRun: Type.Optional(Type.Boolean({ default: true })) },
  additionalProperties: false,
})

export const replayRun = {
  id: 'runs.replay',
  system,
  summary: 'Compare a run with the sequence of today',
  description:
    'Every step is evaluated again, with the recorded results as inputs and the newest version of the sequence, and ' +
    'nothing is performed. With `dryRun: false` a run that would go as it went continues where it stands: what is recorded ' +
    'is not done again, and what is unknown is not sent.',
  access: 'api key',
  path: runId,
  body: { schema: replayRequest, example: { dryRun: true } },
  answers: {
    200: {
      about: 'Step by step',
      schema: replay,
    },
    409: { about: 'The run would not go as it went: nothing was performed' },
  },
  repeat: natural('runs.replay', {
    repeats: 'what was performed is recorded, and is not performed again',
    businessUniqueness: 'Every step has one key, and one record under it.',
    ...notes,
  }),
} satisfies Declaration

export const cancelRun = {
  id: 'runs.cancel',
  system,
  summary: 'Cancel a run',
  description: 'No further step begins. What was already sent to a provider cannot be taken back.',
  access: 'api key',
  path: runId,
  answers: {
    200: { about: 'It is cancelled', schema: record({ runId: text, state }) },
    409: { about: 'It had ended before' },
  },
  repeat: natural('runs.cancel', {
    repeats: 'a cancelled run stays cancelled, and is answered alike',
    businessUniqueness: 'A run ends once.',
    ...notes,
  }),
} satisfies Declaration

const NOT_AN_ERROR = `is not a text of 1 to ${ERROR_CHARS_MOST} characters`
const resolution = named(
  'Resolution',
  Type.Object(
    {
      kind: oneOf(['succeeded', 'failed', 'not_done']),
      result: Type.Optional(Type.Unknown({ description: 'What the step shall have answered.' })),
      error: Type.Optional(
        ruled(
          Type.Unsafe<string | null>({
            type: ['string', 'null'],
            minLength: 1,
            maxLength: ERROR_CHARS_MOST,
            errorMessage: NOT_AN_ERROR,
          }),
          (text) => (text === null || isText(text) ? null : NOT_AN_ERROR),
        ),
      ),
    },
    { additionalProperties: false },
  ),
)
export type ResolveCommand = Static<typeof resolution>

export const resolveStep = {
  id: 'runs.steps.resolve',
  system,
  summary: 'Say what became of a step that is unknown',
  description:
    '`succeeded`: it happened, and the run continues with `result`. `failed`: it did not, and shall not; the run fails. ' +
    '`not_done`: it did not happen, and is tried again. The message of the step is resolved, too.',
  access: 'api key',
  path: { ...runId, key: 'The key of the step.' },
  body: {
    schema: resolution,
    example: { kind: 'succeeded', result: { status: 'sent' } },
  },
  answers: {
    200: { about: 'The run, as it stands now', schema: run },
    409: { about: 'No such step of this run is unknown' },
  },
  repeat: natural('runs.steps.resolve', {
    repeats: 'a step that is not unknown any more is left alone, and the answer is 409',
    businessUniqueness: 'Only a step that is unknown can be resolved: one update, on one row.',
    ...notes,
  }),
} satisfies Declaration
