import { complaintAboutPort } from '../http/blocked-ports.ts'
import { isInside } from './public-host.ts'
import { complaintAboutPath } from './scope.ts'
import { type Condition, ops, type Scalar, type Step, type StepType, stepTypes } from './sequence.ts'
import { complaintAboutTemplate } from './template.ts'

export type Fields = Readonly<Record<string, unknown>>
type Refuse = (field: string, detail: string) => void

/** As long as a message may be. */
export const TEMPLATE_CHARS_MOST = 10_000
export const SUBJECT_CHARS_MOST = 200
const URL_CHARS_MOST = 2_000
const VALUE_CHARS_MOST = 1_000
/** A year: who plans further ahead starts another sequence. */
export const WAIT_MS_MOST = 366 * 24 * 3_600_000
/** A call needs no words, but whoever makes it must see what it is. */
const CALL_TEMPLATE = 'Call {{lead.phone}}'

const common = ['id', 'type', 'next']
const fieldsOf: Readonly<Record<StepType, readonly string[]>> = {
  email: [...common, 'template', 'subject'],
  sms: [...common, 'template'],
  call: [...common, 'template'],
  webhook: [...common, 'url', 'template'],
  wait: [...common, 'ms'],
  branch: ['id', 'type', 'when', 'then', 'else'],
}

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** It is a part of paths, and of the keys of a run. */
export function isStepId(id: unknown): id is string {
  return typeof id === 'string' && /^[A-Za-z0-9_][\w-]{0,63}$/.test(id)
}

export interface Around {
  /** The steps above, whose results may be used. */
  readonly earlier: ReadonlySet<string>
  /** Hosts inside the network that an operator has named. */
  readonly webhookHosts: readonly string[]
}

/** Null when something was refused. */
export function parseStep(given: unknown, around: Around, refuse: Refuse): Step | null {
  if (!isFields(given)) {
    refuse('', 'is not a JSON object')
    return null
  }
  let fine = true
  const refused: Refuse = (field, detail) => {
    fine = false
    refuse(field, detail)
  }
  const { id } = given
  if (!isStepId(id)) refused('id', 'is not an id of 1 to 64 letters, digits, `_` and `-`')
  const type = stepTypes.find((each) => each === given['type'])
  if (type === undefined) {
    refused('type', `is none of ${stepTypes.join(', ')}`)
    return null
  }
  for (const field of Object.keys(given)) {
    if (!fieldsOf[type].includes(field)) refused(field, `is not a field of a step of type ${type}`)
  }
  const step = { id: String(id), ...targets(given, type, refused), ...partsOf(type, given, around, refused) }
  return fine ? (step as Step) : null
}

/** The parts that only this type has. */
function partsOf(type: StepType, given: Fields, { earlier, webhookHosts }: Around, refuse: Refuse): object {
  const template = (field: string, most: number) => templateOf(given, field, { most, earlier, refuse })
  switch (type) {
    case 'email':
      return {
        type,
        template: template('template', TEMPLATE_CHARS_MOST),
        ...(given['subject'] === undefined ? {} : { subject: template('subject', SUBJECT_CHARS_MOST) }),
      }
    case 'sms':
      return { type, template: template('template', TEMPLATE_CHARS_MOST) }
    case 'call':
      return {
        type,
        template: given['template'] === undefined ? CALL_TEMPLATE : template('template', TEMPLATE_CHARS_MOST),
      }
    case 'webhook':
      return {
        type,
        url: urlOf(given['url'], webhookHosts, refuse),
        template: template('template', TEMPLATE_CHARS_MOST),
      }
    case 'wait':
      return { type, ms: millisecondsOf(given['ms'], refuse) }
    case 'branch':
      if (given['then'] === undefined && given['else'] === undefined) {
        refuse('then', 'is missing, and so is else: a branch leads somewhere')
      }
      return { type, when: conditionOf(given['when'], earlier, refuse) }
  }
}

function targets(given: Fields, type: StepType, refuse: Refuse): object {
  const names = type === 'branch' ? ['then', 'else'] : ['next']
  const found = names.filter((name) => given[name] !== undefined)
  for (const name of found) {
    if (given[name] !== null && !isStepId(given[name])) refuse(name, 'is neither the id of a step nor null')
  }
  return Object.fromEntries(found.map((name) => [name, given[name]]))
}

function templateOf(
  given: Fields,
  field: string,
  { most, earlier, refuse }: { most: number; earlier: ReadonlySet<string>; refuse: Refuse },
): string {
  const template = given[field]
  if (typeof template !== 'string' || template.trim() === '') refuse(field, 'is not a text')
  else if (template.length > most) refuse(field, `is longer than ${most} characters`)
  else if (!template.isWellFormed() || template.includes('\0')) refuse(field, 'contains what no channel can deliver')
  else if (field === 'subject' && /[\r\n]/.test(template)) refuse(field, 'has more than one line')
  else {
    const complaint = complaintAboutTemplate(template, earlier)
    if (complaint !== null) refuse(field, complaint)
  }
  return String(template)
}

function urlOf(given: unknown, webhookHosts: readonly string[], refuse: Refuse): string {
  const url = typeof given === 'string' && given.length <= URL_CHARS_MOST ? URL.parse(given) : null
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) refuse('url', 'is not an http(s):// URL')
  else if (url.username !== '' || url.password !== '') refuse('url', 'carries a credential, which everybody could read')
  else if (complaintAboutPort(url) !== null) refuse('url', String(complaintAboutPort(url)))
  else if (isInside(url, webhookHosts)) {
    refuse('url', `leads to ${url.hostname}, which is not a public address, and no operator has allowed it`)
  }
  return String(given)
}

function millisecondsOf(ms: unknown, refuse: Refuse): number {
  if (!Number.isSafeInteger(ms) || Number(ms) < 0 || Number(ms) > WAIT_MS_MOST) {
    refuse('ms', `is not a whole number from 0 to ${WAIT_MS_MOST}`)
  }
  return Number(ms)
}

function conditionOf(when: unknown, earlier: ReadonlySet<string>, refuse: Refuse): Condition | null {
  if (!isFields(when)) {
    refuse('when', 'is not a JSON object')
    return null
  }
  for (const field of Object.keys(when)) {
    if (!['path', 'op', 'value'].includes(field)) refuse(`when.${field}`, 'is not a field of a condition')
  }
  const { path, value } = when
  const complaint = typeof path === 'string' ? complaintAboutPath(path, earlier) : 'is not a text'
  if (complaint !== null) refuse('when.path', complaint)
  const op = ops.find((each) => each === when['op'])
  if (op === undefined) {
    refuse('when.op', `is none of ${ops.join(', ')}`)
    return null
  }
  if (op === 'exists') {
    if (value !== undefined) refuse('when.value', 'has no meaning for exists')
    return { path: String(path), op }
  }
  if (!isScalar(value)) refuse('when.value', 'is not a text, a number, true, false or null')
  else if ((op === 'gt' || op === 'lt') && typeof value !== 'string' && typeof value !== 'number') {
    refuse('when.value', `is neither a number nor a text, as ${op} needs`)
  }
  return { path: String(path), op, value: value as Scalar }
}

function isScalar(value: unknown): value is Scalar {
  if (typeof value === 'string')
    return value.length <= VALUE_CHARS_MOST && value.isWellFormed() && !value.includes('\0')
  return value === null || typeof value === 'number' || typeof value === 'boolean'
}
