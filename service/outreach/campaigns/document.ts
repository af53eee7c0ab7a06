import Type, { type Static } from 'typebox'
import { oneOf, ruled } from '../../http/input.ts'
import { pageQuery } from '../../http/page.ts'
import { ID_PATTERN } from '../../messages/command.ts'
import {
  count,
  type Declaration,
  instant,
  instantOrNull,
  list,
  named,
  natural,
  record,
  text,
  textOrNull,
} from '../../openapi/declaration.ts'
import { notes, placeOf, replay, replayRequest, system } from '../document.ts'
import { LIMIT_MOST, LIMIT_USUAL, runStates } from '../words.ts'
import { concurrencies } from './queues.ts'
import { LEADS_MOST } from './run.ts'

/** The commands and reads of campaigns: their schemas check, type and document them. */

const tests = { ...notes, tests: 'test/contract/service/campaigns.test.ts, test/proof/service/campaign.test.ts' }

/** No plan reaches further, and a delay of the store neither. */
const START_DAYS_MOST = 366
const NOT_A_TIME = 'is not a time like 2026-11-19T06:00:00Z'

const time = (description: string) =>
  ruled(Type.String({ format: 'date-time', description, errorMessage: NOT_A_TIME }), (given) =>
    Number.isNaN(Date.parse(given)) ? NOT_A_TIME : null,
  )

const leadFilter = named(
  'LeadFilter',
  Type.Object(
    {
      has: Type.Optional(oneOf(['email', 'phone'], { description: 'Only leads with such an address.' })),
      createdFrom: Type.Optional(time('Only leads of this time or later.')),
      createdBefore: Type.Optional(time('Only leads of before this time.')),
    },
    { additionalProperties: false },
  ),
)

const startAt = ruled(time('Not earlier than this time; left out: at once.'), (given) =>
  Date.parse(given) > Date.now() + START_DAYS_MOST * 86_400_000
    ? `is more than ${START_DAYS_MOST} days from now`
    : null,
)

const NOT_LEADS = `is not a list of 1 to ${LEADS_MOST} different leads`

const campaignRequest = named(
  'CampaignRequest',
  Type.Object(
    {
      sequenceId: Type.String({ minLength: 1, maxLength: 100, errorMessage: 'is not the id of a sequence' }),
      campaignId: Type.Optional(
        Type.String({
          pattern: '^[A-Za-z0-9][A-Za-z0-9_.:@+-]{0,79}$',
          description: 'Left out: one for each Idempotency-Key, or a new one.',
          errorMessage: 'is not an id of 1 to 80 letters, digits and `_.:@+-`',
        }),
      ),
      leadIds: Type.Optional(
        ruled(
          Type.Array(Type.String({ pattern: ID_PATTERN, errorMessage: 'is not the id of a lead' }), {
            minItems: 1,
            maxItems: LEADS_MOST,
            errorMessage: NOT_LEADS,
          }),
          (ids) => (new Set(ids).size < ids.length ? NOT_LEADS : null),
        ),
      ),
      filter: Type.Optional(leadFilter),
      startAt: Type.Optional(startAt),
      cron: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 100,
          description: 'When it begins again, as five fields: `0 9 * * 1` is every Monday at nine.',
          errorMessage: 'is not a text of 1 to 100 characters',
        }),
      ),
      timezone: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 60,
          default: 'UTC',
          description: 'Where it is that time of day, as `Europe/Berlin`.',
          errorMessage: 'is not the name of a time zone',
        }),
      ),
      concurrency: Type.Optional(
        Type.Unsafe<(typeof concurrencies)[number]>({
          type: 'integer',
          enum: [...concurrencies],
          description:
            'Leads that are under way at once, those included that wait in a step; left out: as many as there are.',
          errorMessage: `is none of ${concurrencies.join(', ')}`,
        }),
      ),
    },
    { additionalProperties: false },
  ),
)
export type CampaignCommand = Static<typeof campaignRequest>

const state = oneOf(runStates)
const progress = named('CampaignProgress', record(Object.fromEntries(runStates.map((each) => [each, count]))))
const integerOrNull = Type.Unsafe<number | null>({ type: ['integer', 'null'] })
const campaign = named(
  'Campaign',
  record({
    campaignId: text,
    state,
    sequenceId: text,
    version: integerOrNull,
    leads: integerOrNull,
    progress,
    startAt: instantOrNull,
    cron: textOrNull,
    timezone: textOrNull,
    concurrency: integerOrNull,
    partOf: textOrNull,
    error: textOrNull,
    dueAt: instantOrNull,
    startedAt: instant,
    endedAt: instantOrNull,
  }),
)

export const startCampaign = {
  id: 'campaigns.start',
  system,
  summary: 'Run a sequence for many leads, once or again and again',
  description:
    'For the leads of `leadIds`, or for those that `filter` finds when it begins; then the newest version of the sequence ' +
    'counts. Each lead has a run of its own, `CAMPAIGN.LEAD`. With `cron` it begins a round at each of these times, at least an hour ' +
    'apart; a time at which the round before has not ended is left out. The same `campaignId` or `Idempotency-Key` with the same body ' +
    'again is the same campaign.',
  access: 'api key',
  body: {
    schema: campaignRequest,
    example: { sequenceId: 'seq_5f0c1e9a', filter: { has: 'email' }, concurrency: 50 },
  },
  answers: {
    201: {
      about: 'It runs, or has run',
      schema: record({ campaignId: text }),
      headers: { Location: 'Where it is read.' },
    },
    403: { about: 'The caller has no right to use this system, or the workspace keeps as much as it may' },
    404: { about: 'There is no such sequence, or no such lead, in this workspace' },
    409: { about: 'The `campaignId` was given to another campaign' },
  },
} satisfies Declaration

const path = { id: 'The id of the campaign.' }

export const readCampaigns = {
  id: 'campaigns.list',
  system,
  summary: 'List campaigns, newest first',
  access: 'api key',
  query: {
    state: Type.Optional(oneOf(runStates, { description: 'Only campaigns in this state.' })),
    ...pageQuery({ most: LIMIT_MOST, usual: LIMIT_USUAL, placeOf }),
  },
  answers: { 200: { about: 'One page', schema: record({ campaigns: list(campaign), cursor: textOrNull }) } },
} satisfies Declaration

export const readCampaign = {
  id: 'campaigns.get',
  system,
  summary: 'Read a campaign and its progress',
  access: 'api key',
  path,
  answers: { 200: { about: 'The campaign', schema: campaign } },
} satisfies Declaration

export const campaignEvents = {
  id: 'campaigns.events',
  system,
  summary: 'Follow a campaign by server-sent events',
  description:
    '`progress` whenever the number of leads in a state has changed; `begun`, `batch` and `round` as recorded, in order, ' +
    'each with an id from which a client that was cut off continues (`Last-Event-ID`); `:ended` behind the last one. A client that ' +
    'has seen everything gets 204.',
  access: 'api key',
  path,
  answers: {
    200: { about: 'Events, until the campaign has ended', schema: text, type: 'text/event-stream' },
    204: { about: 'It has ended, and nothing is left to see' },
    429: { about: 'The workspace follows as many events of this server as it may' },
  },
} satisfies Declaration

export const cancelCampaign = {
  id: 'campaigns.cancel',
  system,
  summary: 'Cancel a campaign, and the runs of its leads',
  description: 'No further step begins. What was already sent to a provider cannot be taken back.',
  access: 'api key',
  path,
  answers: {
    200: { about: 'It is cancelled', schema: record({ campaignId: text, state }) },
    409: { about: 'It had ended before' },
  },
  repeat: natural('campaigns.cancel', {
    repeats: 'a cancelled campaign stays cancelled, and is answered alike',
    businessUniqueness: 'A run ends once.',
    ...tests,
  }),
} satisfies Declaration

export const resumeCampaign = {
  id: 'campaigns.resume',
  system,
  summary: 'Continue a campaign that was cancelled or has failed',
  description:
    'It continues where it stands, with the runs of leads that were cancelled with it. What was sent is not sent again.',
  access: 'api key',
  path,
  answers: {
    200: { about: 'It continues', schema: campaign },
    409: { about: 'It runs, or has succeeded' },
  },
  repeat: natural('campaigns.resume', {
    repeats: 'a campaign that runs is left alone, and the answer is 409',
    businessUniqueness: 'One update of one row, and only of a run that has ended.',
    ...tests,
  }),
} satisfies Declaration

export const replayCampaign = {
  id: 'campaigns.replay',
  system,
  summary: 'Compare a campaign with the code of today',
  description:
    'As for a run, and nothing is performed. The runs of its leads are compared one by one, by their own ids.',
  access: 'api key',
  path,
  body: { schema: replayRequest, example: { dryRun: true } },
  answers: {
    200: { about: 'Step by step', schema: replay },
    409: { about: 'The campaign would not go as it went: nothing was performed' },
  },
  repeat: natural('campaigns.replay', {
    repeats: 'what was performed is recorded, and is not performed again',
    businessUniqueness: 'Every step has one key, and one record under it.',
    ...tests,
  }),
} satisfies Declaration
