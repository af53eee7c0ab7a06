import { createHmac, timingSafeEqual } from 'node:crypto'
import { OnceError } from '../../../ledger/core/errors.ts'
import { MINUTE, SECOND } from '../../../ledger/core/limits.ts'
import { WebhookError } from './errors.ts'

export interface SignedOptions {
  /** Any of them may have signed: while a secret is being replaced there are two. */
  readonly secrets: string | readonly string[]
}

export interface TimedOptions extends SignedOptions {
  /** How far the sender's time may be from ours, in milliseconds, in either direction. @default 5 minutes */
  readonly toleranceMs?: number
  /** The time, in milliseconds since 1970. @default that of the wall clock */
  readonly now?: number
}

/** What the schemes themselves recommend: longer than clocks are apart, too short to replay an old message for long. */
const TOLERANCE_MS = 5 * MINUTE
/** Senders that rotate a secret sign with two or three; each costs a comparison. */
const MOST_SIGNATURES = 16

export function secretsOf({ secrets }: SignedOptions): readonly string[] {
  const all = typeof secrets === 'string' ? [secrets] : (secrets ?? [])
  if (all.length === 0 || all.some((secret) => typeof secret !== 'string' || secret === '')) {
    throw badOption('secrets', 'must be at least one secret, and none of them empty')
  }
  return all
}

/**
 * True when one of the keys has made one of the signatures. Every comparison takes the same time, whatever it finds.
 */
export function isSignedBy(
  keys: readonly (string | Uint8Array)[],
  content: readonly (string | Uint8Array)[],
  signatures: readonly Uint8Array[],
): boolean {
  let found = false
  const presented = signatures.slice(0, MOST_SIGNATURES)
  for (const key of keys) {
    const hmac = createHmac('sha256', key)
    for (const part of content) hmac.update(part)
    const made = hmac.digest()
    for (const signature of presented) {
      if (signature.byteLength === made.byteLength && timingSafeEqual(signature, made)) found = true
    }
  }
  return found
}

/** Milliseconds, when the text is a time in seconds that is close enough to now. */
export function timeOf(
  text: string,
  part: string,
  { toleranceMs = TOLERANCE_MS, now = Date.now() }: TimedOptions,
): number {
  // A number that is none would be neither before nor behind anything, and every message would pass.
  if (!(toleranceMs >= 0)) throw badOption('toleranceMs', 'must be milliseconds, from 0')
  if (!Number.isFinite(now)) throw badOption('now', 'must be a time in milliseconds')
  if (!/^\d{1,12}$/.test(text)) throw badSignature(part, 'is not a time in seconds')
  const at = Number(text) * SECOND
  if (at < now - toleranceMs) throw badSignature(part, `is more than ${toleranceMs} ms old`)
  if (at > now + toleranceMs) throw badSignature(part, `is more than ${toleranceMs} ms ahead`)
  return at
}

export function badOption(option: string, what: string): OnceError<'bad_option'> {
  return new OnceError('bad_option', `Webhook option \`${option}\` ${what}.`, { details: { option } })
}

export function badSignature(part: string, what: string): WebhookError<'bad_signature'> {
  return new WebhookError('bad_signature', `The \`${part}\` ${what}.`, { details: { part } })
}

const hexDigest = /^[0-9a-fA-F]{64}$/
const base64Digest = /^[A-Za-z0-9+/]{43}=$/

/** Null for what cannot be a SHA-256 in that form: decoders would silently leave out what they do not know. */
export function digestOf(text: string, form: 'hex' | 'base64'): Uint8Array | null {
  return (form === 'hex' ? hexDigest : base64Digest).test(text) ? Buffer.from(text, form) : null
}

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/

/** Null for what is not base64, with or without its padding: the decoder would pass over whatever it does not know. */
export function bytesOfBase64(text: string): Uint8Array | null {
  return base64.test(text) ? Buffer.from(text, 'base64') : null
}
