import { type Channel, defineRun, type HttpSent, type RunContext, type RunDefinition, type RunView } from 'onceonly/run'
import { holds } from './condition.ts'
import { type Arm, startWalk } from './flow.ts'
import type { MessageChannel, MessagePlan } from './send.ts'
import type { Lead, Scope } from './sequence.ts'
import type { BranchStep, MessageStep, Step, WebhookStep } from './step.ts'
import { render } from './template.ts'
import type { WebhookPlan } from './webhook.ts'

interface OfSequence {
  readonly workspaceId: string
  readonly sequenceId: string
  readonly sequenceName: string
  readonly version: number
}

/** What a run depends on: as it was when the run began, so that neither an edit nor a new phone diverts it. */
export interface LoadedLead {
  readonly steps: readonly Step[]
  readonly lead: Lead
}

/** The run of a lead in a campaign reads them itself: the journals of its parents have ids only. */
export interface CampaignLead extends OfSequence {
  readonly campaignId: string
  readonly leadId: string
}

export type OutreachInput = (OfSequence & LoadedLead) | CampaignLead

export interface OutreachResult {
  /** The steps that the lead came to, in order. */
  readonly passed: readonly string[]
}

export interface OutreachChannels {
  readonly messages: MessageChannel
  readonly webhook: Channel<WebhookPlan, HttpSent>
  /** A provider may take this long, and the way to it a little. */
  readonly stepTimeoutMs: number
  load(input: CampaignLead): Promise<LoadedLead>
}

export const RUN_NAME = 'outreach'
/** The step that reads what a run of a campaign depends on. No step of a sequence has a space in its id. */
const LOADING = 'its lead'
/** Over half an hour or so: a provider that is away for longer is a matter for a person. */
const retry = { attempts: 8 }
/** A message that was accepted has a day of its own, and may wait for its turn; before that its channel counts. */
const messageRetry = { attempts: Number.POSITIVE_INFINITY }

/**
 * The one definition of all sequences: it interprets their steps. `stepsOf` says which ones; a replay is given those of
 * today, and an edited template is what it finds.
 */
export function defineOutreach(
  channels: OutreachChannels,
  stepsOf: (loaded: LoadedLead) => readonly Step[],
): RunDefinition<OutreachInput, OutreachResult> {
  return defineRun(RUN_NAME, async (run: RunContext, input: OutreachInput) => {
    const loaded = 'campaignId' in input ? await load(input) : input
    const { lead } = loaded
    // A step may be called like something that every object has.
    const results = Object.create(null) as Record<string, unknown>
    const scope: Scope = { lead, results }
    const passed: string[] = []
    const walk = startWalk(stepsOf(loaded))
    for (let step = walk.step; step !== null; step = walk.step) {
      walk.pass(await perform(step))
      passed.push(step.id)
    }
    return { passed }

    async function load(ofCampaign: CampaignLead): Promise<LoadedLead> {
      const { campaignId: campaign, sequenceId: sequence } = ofCampaign
      await run.setAttributes({ campaign, sequence })
      return run.step(LOADING, () => channels.load(ofCampaign))
    }

    async function perform(step: Step): Promise<Arm | null> {
      switch (step.type) {
        case 'email':
        case 'sms':
        case 'call': {
          const options = { channel: channels.messages, retry: messageRetry, timeoutMs: channels.stepTimeoutMs }
          results[step.id] = await run.step(step.id, options, () => messageOf(step, input, scope))
          return null
        }
        case 'webhook': {
          const options = { channel: channels.webhook, retry, timeoutMs: channels.stepTimeoutMs }
          results[step.id] = await run.step(step.id, options, () => requestOf(step, input, scope))
          return null
        }
        case 'wait':
          await run.sleep(step.id, step.ms)
          return null
        case 'branch': {
          // Recorded as what it is today, and followed as it is today: a replay shows where another arm leads.
          const decision = decide(step, scope)
          results[step.id] = await run.step(step.id, { plan: () => decision, act: ({ taken }) => ({ taken }) })
          return decision.taken
        }
      }
    }
  })
}

/** What a run depends on; null for one of a campaign that has not read it yet. */
export function loadedOf({ input, steps }: Pick<RunView, 'input' | 'steps'>): LoadedLead | null {
  if (!('campaignId' in (input as OutreachInput))) return input as LoadedLead
  return (steps.find(({ id }) => id === LOADING)?.result ?? null) as LoadedLead | null
}

function messageOf(step: MessageStep, { workspaceId }: OutreachInput, scope: Scope): MessagePlan {
  const { lead } = scope
  const { type, template } = step
  const subject = type === 'email' ? step.subject : undefined
  return {
    type,
    workspaceId,
    leadId: lead.id ?? '',
    to: type === 'email' ? lead.email : lead.phone,
    // A line break in a value would end the header.
    subject: subject === undefined ? null : render(subject, scope).replaceAll(/[\r\n]+/g, ' '),
    message: render(template, scope),
  }
}

function requestOf({ id, url, template }: WebhookStep, input: OutreachInput, scope: Scope): WebhookPlan {
  const { workspaceId, sequenceId } = input
  return { url, body: { workspaceId, sequenceId, stepId: id, leadId: scope.lead.id, message: render(template, scope) } }
}

function decide({ when, ...step }: BranchStep, scope: Scope): { taken: Arm; to: string | null } {
  const taken = holds(when, scope) ? 'then' : 'else'
  return { taken, to: step[taken] ?? null }
}
