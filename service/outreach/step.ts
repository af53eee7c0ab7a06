import Type, { type Static, type TProperties } from 'typebox'
import { complaintAboutPort } from '../http/blocked-ports.ts'
import { type Fields, oneOf, ruled } from '../http/input.ts'
import type { FieldError } from '../http/problem.ts'
import { unstorable } from '../http/text.ts'
import { named } from '../openapi/declaration.ts'

/** The steps of a sequence: one schema for each type, which checks, types and documents it. */

/** As long as a message may be. */
const TEMPLATE_CHARS_MOST = 10_000
const SUBJECT_CHARS_MOST = 200
const URL_CHARS_MOST = 2_000
const VALUE_CHARS_MOST = 1_000
/** A year: a plan that reaches further is another sequence. */
const WAIT_MS_MOST = 366 * 24 * 3_600_000

/** It is a part of paths, and of the keys of a run. */
const ID_PATTERN = '^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$'
const id = Type.String({
  pattern: ID_PATTERN,
  errorMessage: 'is not an id of 1 to 64 letters, digits, `_` and `-`',
})

const target = Type.Optional(
  Type.Unsafe<string | null>({
    type: ['string', 'null'],
    pattern: ID_PATTERN,
    errorMessage: 'is neither the id of a step nor null',
  }),
)

const template = ruled(Type.String({ minLength: 1, maxLength: TEMPLATE_CHARS_MOST }), complaintAboutText)
const subject = ruled(
  Type.String({ minLength: 1, maxLength: SUBJECT_CHARS_MOST }),
  (text) => complaintAboutText(text) ?? (/[\r\n]/.test(text) ? 'has more than one line' : null),
)
const url = ruled(Type.String({ maxLength: URL_CHARS_MOST }), complaintAboutUrl)

function complaintAboutText(text: string): string | null {
  return text.trim() === '' ? 'is blank' : unstorable(text)
}

function complaintAboutUrl(text: string): string | null {
  const parsed = URL.parse(text)
  if (parsed === null || (parsed.protocol !== 'http:' && parsed.protocol !== 'https:'))
    return 'is not an http(s):// URL'
  if (parsed.username !== '' || parsed.password !== '') return 'carries a credential, which every reader could see'
  return complaintAboutPort(parsed)
}

const ops = ['eq', 'ne', 'gt', 'lt', 'exists', 'contains'] as const

const value = Type.Optional(
  ruled(
    Type.Unsafe<string | number | boolean | null>({
      type: ['string', 'number', 'boolean', 'null'],
      maxLength: VALUE_CHARS_MOST,
      errorMessage: 'is not a text, a number, true, false or null',
    }),
    (given) => (typeof given === 'string' ? unstorable(given) : null),
  ),
)

const condition = ruled(
  Type.Object(
    {
      path: Type.String({ examples: ['lead.phone', 'results.welcome.status'] }),
      op: oneOf(ops),
      value,
    },
    { additionalProperties: false, title: 'a condition' },
  ),
  complaintAboutValue,
)
export type Condition = Static<typeof condition>

function complaintAboutValue({ op, value: given }: Fields): readonly FieldError[] {
  if (op === 'exists') return given === undefined ? [] : [{ field: 'value', detail: 'has no meaning for exists' }]
  if (given === undefined) return [{ field: 'value', detail: 'is missing' }]
  const isOrdered = given !== null && typeof given !== 'boolean'
  if (isOrdered || (op !== 'gt' && op !== 'lt')) return []
  return [{ field: 'value', detail: `is neither a number nor a text, as ${op} needs` }]
}

function step<const T extends string, P extends TProperties>(type: T, properties: P) {
  const fields = { id, type: oneOf([type]), ...properties }
  return Type.Object(fields, { additionalProperties: false, title: `a step of type ${type}` })
}

const email = step('email', { template, subject: Type.Optional(subject), next: target })
const sms = step('sms', { template, next: target })
const call = step('call', { template: Type.Optional(template), next: target })
const webhook = step('webhook', { url, template, next: target })
const wait = step('wait', { ms: Type.Integer({ minimum: 0, maximum: WAIT_MS_MOST }), next: target })
const branch = ruled(
  step('branch', { when: condition, then: target, else: target }),
  ({ then, else: other }: Fields) =>
    then === undefined && other === undefined
      ? [{ field: 'then', detail: 'is missing, and so is else: a branch leads somewhere' }]
      : [],
)

/** A call without a template gets the usual one before it is stored. */
type CallStep = Static<typeof call> & { template: string }
/** What goes to the lead, through the channels of the messages system. */
export type MessageStep = Static<typeof email> | Static<typeof sms> | CallStep
export type WebhookStep = Static<typeof webhook>
/** A step that an arm leads to is passed over by a lead that did not take that arm. */
export type BranchStep = Static<typeof branch>
/** `next`, `then` and `else` name the step after this one: the one below when left out; null ends the sequence. */
export type Step = MessageStep | WebhookStep | Static<typeof wait> | BranchStep
export type GivenStep = Exclude<Step, CallStep> | Static<typeof call>

export const stepSchema = named(
  'SequenceStep',
  Type.Unsafe<GivenStep>({ oneOf: [email, sms, call, webhook, wait, branch] }),
)
