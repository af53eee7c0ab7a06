import type { Step } from './step.ts'

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
