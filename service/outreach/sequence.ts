/** A sequence as data: what is done to a lead, one step after the other. */
export type Step = MessageStep | WebhookStep | WaitStep | BranchStep

interface CommonStep {
  readonly id: string
  /** The step after this one: the one below, when left out; null ends the sequence. */
  readonly next?: string | null
}

/** What goes to the lead, through the channels of the messages system. */
export interface MessageStep extends CommonStep {
  readonly type: 'email' | 'sms' | 'call'
  readonly template: string
  /** Only of an e-mail. */
  readonly subject?: string
}

export interface WebhookStep extends CommonStep {
  readonly type: 'webhook'
  readonly url: string
  readonly template: string
}

export interface WaitStep extends CommonStep {
  readonly type: 'wait'
  readonly ms: number
}

/** A step that an arm leads to is passed over by everybody who did not take that arm. */
export interface BranchStep {
  readonly id: string
  readonly type: 'branch'
  readonly when: Condition
  /** An arm that is left out goes on below; null ends the sequence. */
  readonly then?: string | null
  readonly else?: string | null
}

export interface Condition {
  /** `lead.phone`, or `results.STEP.status`. */
  readonly path: string
  readonly op: Op
  readonly value?: Scalar
}

export type Scalar = string | number | boolean | null

export const ops = ['eq', 'ne', 'gt', 'lt', 'exists', 'contains'] as const
export type Op = (typeof ops)[number]

export const stepTypes = ['email', 'sms', 'call', 'webhook', 'wait', 'branch'] as const
export type StepType = (typeof stepTypes)[number]

/** One version of a sequence. It never changes: an edit is the next version. */
export interface Sequence {
  readonly id: string
  readonly name: string
  readonly version: number
  readonly steps: readonly Step[]
}

/** What is known of a lead, as it was when its run began. */
export const leadFields = [
  'id',
  'phone',
  'email',
  'ghlContactId',
  'ghlLocationId',
  'hsContactId',
  'hsPortalId',
  'createdAt',
] as const
export type Lead = Readonly<Record<(typeof leadFields)[number], string | null>>

/** What templates and conditions may look at. */
export interface Scope {
  readonly lead: Lead
  /** By the id of the step. */
  readonly results: Readonly<Record<string, unknown>>
}
