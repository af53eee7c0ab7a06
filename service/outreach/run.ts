import {
  type Channel,
  defineRun,
  type HttpPlan,
  type HttpSent,
  type RunContext,
  type RunDefinition,
} from 'onceonly/run'
import { holds } from './condition.ts'
import { type Arm, startWalk } from './flow.ts'
import type { MessageChannel, MessagePlan } from './send.ts'
import type { Lead, Scope } from './sequence.ts'
import type { BranchStep, MessageStep, Step, WebhookStep } from './step.ts'
import { render } from './template.ts'

/** Everything that a run depends on goes into it when it begins, so that neither an edit nor a new phone diverts it. */
export interface OutreachInput {
  readonly workspaceId: string
  readonly sequenceId: string
  readonly sequenceName: string
  readonly version: number
  readonly steps: readonly Step[]
  readonly lead: Lead
}

export interface OutreachResult {
  /** The steps that the lead came to, in order. */
  readonly passed: readonly string[]
}

export interface OutreachChannels {
  readonly messages: MessageChannel
  readonly webhook: Channel<HttpPlan, HttpSent>
  /** A provider may take this long, and the way to it a little. */
  readonly stepTimeoutMs: number
}

export const RUN_NAME = 'outreach'
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
  stepsOf: (input: OutreachInput) => readonly Step[],
): RunDefinition<OutreachInput, OutreachResult> {
  return defineRun(RUN_NAME, async (run: RunContext, input: OutreachInput) => {
    // A step may be called like something that every object has.
    const results = Object.create(null) as Record<string, unknown>
    const scope: Scope = { lead: input.lead, results }
    const passed: string[] = []
    const walk = startWalk(stepsOf(input))
    for (let step = walk.step; step !== null; step = walk.step) {
      walk.pass(await perform(step))
      passed.push(step.id)
    }
    return { passed }

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

function messageOf(step: MessageStep, input: OutreachInput, scope: Scope): MessagePlan {
  const { workspaceId, lead } = input
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

function requestOf({ id, url, template }: WebhookStep, input: OutreachInput, scope: Scope): HttpPlan {
  const { workspaceId, sequenceId, lead } = input
  return { url, body: { workspaceId, sequenceId, stepId: id, leadId: lead.id, message: render(template, scope) } }
}

function decide({ when, ...step }: BranchStep, scope: Scope): { taken: Arm; to: string | null } {
  const taken = holds(when, scope) ? 'then' : 'else'
  return { taken, to: step[taken] ?? null }
}
