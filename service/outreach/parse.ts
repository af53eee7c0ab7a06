import type { FieldError } from '../http/problem.ts'
import { complaintsAboutCircles, targetsOf } from './flow.ts'
import { type Fields, isFields, isStepId, parseStep } from './parse-step.ts'
import type { Step } from './sequence.ts'

export interface SequenceCommand {
  readonly name: string
  readonly steps: readonly Step[]
}

type Parsed<T> = { readonly command: T } | { readonly errors: readonly FieldError[] }

/** Longer than any name that a person would choose. */
export const NAME_CHARS_MOST = 100
/** A year of weekly steps, twice. */
export const STEPS_MOST = 100

const NO_OBJECT = { errors: [{ field: 'body', detail: 'is not a JSON object' }] }

/** Looks at every field of every step, so that a person can mend all of them at once. */
export function parseSequence(body: unknown, webhookHosts: readonly string[]): Parsed<SequenceCommand> {
  if (!isFields(body)) return NO_OBJECT
  const errors = unknownFields(body, ['name', 'steps'])
  const { name, steps } = body
  if (!isName(name)) {
    errors.push({ field: 'name', detail: `is not a name of 1 to ${NAME_CHARS_MOST} characters` })
  }
  const parsed = parseSteps(steps, webhookHosts, errors)
  return errors.length > 0 ? { errors } : { command: { name: String(name), steps: parsed } }
}

function parseSteps(given: unknown, webhookHosts: readonly string[], errors: FieldError[]): readonly Step[] {
  if (!Array.isArray(given) || given.length === 0 || given.length > STEPS_MOST) {
    errors.push({ field: 'steps', detail: `is not a list of 1 to ${STEPS_MOST} steps` })
    return []
  }
  const before = errors.length
  const ids: unknown[] = given.map((step: unknown) => (isFields(step) ? step['id'] : undefined))
  const steps = given.flatMap((step: unknown, at) => {
    const refuse = (field: string, detail: string) =>
      void errors.push({ field: field === '' ? `steps[${at}]` : `steps[${at}].${field}`, detail })
    if (isStepId(ids[at]) && ids.indexOf(ids[at]) < at) refuse('id', `is also the id of steps[${ids.indexOf(ids[at])}]`)
    const earlier = new Set(ids.slice(0, at).filter(isStepId))
    return parseStep(step, { earlier, webhookHosts }, refuse) ?? []
  })
  // Where steps lead can be told only when all of them are known.
  if (errors.length === before) errors.push(...complaintsAboutTargets(steps))
  if (errors.length === before) errors.push(...complaintsAboutCircles(steps))
  return steps
}

function complaintsAboutTargets(steps: readonly Step[]): FieldError[] {
  const ids = new Set(steps.map(({ id }) => id))
  return steps.flatMap((step, at) =>
    targetsOf(step).flatMap(([name, id]) =>
      typeof id === 'string' && !ids.has(id)
        ? [{ field: `steps[${at}].${name}`, detail: `names ${id}, which is no step of this sequence` }]
        : [],
    ),
  )
}

export interface StartCommand {
  readonly leadId: string
  /** Null: one run for this version and this lead. */
  readonly runId: string | null
}

/** It stands in addresses, and beside the workspace in the id of the run inside. */
const RUN_ID = /^[A-Za-z0-9][\w.:@+-]{0,159}$/

export function parseStart(body: unknown): Parsed<StartCommand> {
  if (!isFields(body)) return NO_OBJECT
  const errors = unknownFields(body, ['leadId', 'runId'])
  const { leadId, runId = null } = body
  if (typeof leadId !== 'string' || !/^[\x21-\x7e]{1,100}$/.test(leadId)) {
    errors.push({ field: 'leadId', detail: 'is not the id of a lead' })
  }
  if (runId !== null && !(typeof runId === 'string' && RUN_ID.test(runId))) {
    errors.push({ field: 'runId', detail: 'is not an id of 1 to 160 letters, digits and `_.:@+-`' })
  }
  if (errors.length > 0) return { errors }
  return { command: { leadId: String(leadId), runId: runId === null ? null : String(runId) } }
}

/** Without a body, or without the field, nothing is performed. */
export function parseReplay(body: unknown): Parsed<{ readonly dryRun: boolean }> {
  if (body === undefined || body === null) return { command: { dryRun: true } }
  if (!isFields(body)) return NO_OBJECT
  const errors = unknownFields(body, ['dryRun'])
  const { dryRun = true } = body
  if (typeof dryRun !== 'boolean') errors.push({ field: 'dryRun', detail: 'is neither true nor false' })
  return errors.length > 0 ? { errors } : { command: { dryRun: dryRun === true } }
}

export const resolutionKinds = ['succeeded', 'failed', 'not_done'] as const

export interface ResolveCommand {
  readonly kind: (typeof resolutionKinds)[number]
  /** What the step shall have answered. */
  readonly result: unknown
  readonly error: string | null
}

export const ERROR_CHARS_MOST = 500

export function parseResolve(body: unknown): Parsed<ResolveCommand> {
  if (!isFields(body)) return NO_OBJECT
  const errors = unknownFields(body, ['kind', 'result', 'error'])
  const { result = null, error = null } = body
  const kind = resolutionKinds.find((each) => each === body['kind'])
  if (kind === undefined) errors.push({ field: 'kind', detail: `is none of ${resolutionKinds.join(', ')}` })
  if (error !== null && !(typeof error === 'string' && isText(error, ERROR_CHARS_MOST))) {
    errors.push({ field: 'error', detail: `is not a text of 1 to ${ERROR_CHARS_MOST} characters` })
  }
  if (kind === undefined || errors.length > 0) return { errors }
  return { command: { kind, result, error: error === null ? null : String(error) } }
}

function isName(name: unknown): boolean {
  return typeof name === 'string' && isText(name, NAME_CHARS_MOST) && !/\p{Cc}/u.test(name)
}

function isText(text: string, most: number): boolean {
  return text.trim() !== '' && text.length <= most && text.isWellFormed() && !text.includes('\0')
}

function unknownFields(body: Fields, known: readonly string[]): FieldError[] {
  return Object.keys(body)
    .filter((field) => !known.includes(field))
    .map((field) => ({ field, detail: 'is not a field of this command' }))
}
