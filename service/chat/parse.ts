import { isStreamName } from 'onceonly/stream'
import type { FieldError } from '../http/problem.ts'
import type { RegionLink } from './network.ts'
import { DELAY_MS_MOST, OFFLINE_MS_MOST } from './words.ts'

type Parsed<T> = { readonly link: T } | { readonly errors: readonly FieldError[] }

export function parseRegionLink(body: unknown): Parsed<RegionLink> {
  const errors: FieldError[] = []
  const { state, delayMs = 0 } = fieldsOf(body)
  if (state !== 'joined' && state !== 'cut') errors.push({ field: 'state', detail: 'is neither joined nor cut' })
  if (!isMs(delayMs, DELAY_MS_MOST)) errors.push(notMs('delayMs', DELAY_MS_MOST))
  if (errors.length > 0 || (state !== 'joined' && state !== 'cut') || !isMs(delayMs, DELAY_MS_MOST)) return { errors }
  return { link: { state, delayMs } }
}

export function parseClientLink(
  client: string,
  body: unknown,
): Parsed<{ readonly delayMs: number; readonly offlineMs: number }> {
  const errors: FieldError[] = []
  const { delayMs = 0, offlineMs = 0 } = fieldsOf(body)
  if (!isStreamName(client)) errors.push({ field: 'client', detail: 'is not the name of a client' })
  if (!isMs(delayMs, DELAY_MS_MOST)) errors.push(notMs('delayMs', DELAY_MS_MOST))
  if (!isMs(offlineMs, OFFLINE_MS_MOST)) errors.push(notMs('offlineMs', OFFLINE_MS_MOST))
  if (errors.length > 0 || !isMs(delayMs, DELAY_MS_MOST) || !isMs(offlineMs, OFFLINE_MS_MOST)) return { errors }
  return { link: { delayMs, offlineMs } }
}

function fieldsOf(body: unknown): Readonly<Record<string, unknown>> {
  return typeof body === 'object' && body !== null ? { ...body } : {}
}

function isMs(value: unknown, most: number): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= most
}

function notMs(field: string, most: number): FieldError {
  return { field, detail: `is not a whole number from 0 to ${most}` }
}
