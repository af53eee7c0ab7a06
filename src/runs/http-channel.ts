import { OnceError } from '../ledger/core/errors.ts'
import { SECOND } from '../ledger/core/limits.ts'
import { final, notDone, singleCall } from '../ledger/core/verdict.ts'
import type { Channel } from './channel.ts'
import type { KeyLocation, ProviderProfile } from './providers.ts'

/** A request as data: it can be recorded, compared by a replay, and sent again byte for byte. */
export interface HttpPlan<Body = unknown> {
  readonly url: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON, or as a form where the provider takes forms. */
  readonly body?: Body
}

/** Names as the provider writes them (`metadata[order]`); a list repeats its name. */
export type FormFields = Readonly<Record<string, FormValue | readonly FormValue[]>>
type FormValue = string | number | boolean

type BodyOf<P extends ProviderProfile> = P extends { readonly body: 'form' } ? FormFields : unknown

export interface HttpSent {
  readonly status: number
  /** Parsed where it is JSON, else the text. */
  readonly body: unknown
}

export interface HttpChannelOptions<P extends ProviderProfile = ProviderProfile> {
  /** Names the channel in journals and consoles. */
  readonly name: string
  /** What the provider does with keys: one of `providers`, or a profile of your own. */
  readonly provider: P
  /** Added to every request and never recorded: credentials belong here. @default none */
  readonly headers?: () => Promise<Readonly<Record<string, string>>>
  /** Node's, when left out. What another one throws is ambiguous unless it is a `notDone`. @default the global one */
  readonly fetch?: typeof globalThis.fetch
}

/** Answers that say "not now": nothing was done. */
const NOT_NOW = new Set([408, 425, 429])
/** A provider's answer is a receipt; what is longer is cut. */
const MOST_BODY_BYTES = 64 * 1_024

/** Sends plans over HTTP, with the key in the form that the provider takes, and interprets its responses. */
export function httpChannel<const P extends ProviderProfile>(
  options: HttpChannelOptions<P>,
): Channel<HttpPlan<BodyOf<P>>, HttpSent> {
  const { name, provider, headers = async () => ({}), fetch = globalThis.fetch } = options
  const { offer, carries, body: encoding = 'json' }: ProviderProfile = provider
  // Node's fetch makes one call; another one may have tried before. Without keys even a proven failure is for an
  // operator.
  const single = options.fetch === undefined && offer.kind === 'native'
  return {
    name,
    offer,
    async send(plan, { effectKey: key, signal }) {
      const tagged = withKey(plan, carries, fitting(provider, key))
      const content = tagged.body === undefined ? {} : { body: written(tagged.body, encoding) }
      // When the credentials cannot be read, nothing was sent.
      const own = await headers().catch((error: unknown) => {
        throw notDone(error)
      })
      const response = await fetch(plan.url, {
        method: plan.method ?? 'POST',
        headers: { 'content-type': contentTypes[encoding], ...plan.headers, ...own, ...tagged.headers },
        ...content,
        redirect: 'error',
        signal,
      }).catch((error: unknown) => {
        throw single && singleCall(error) === 'not_done' ? notDone(error) : error
      })
      const sent = { status: response.status, body: parsed(await beginningOf(response)) }
      return judged(name, sent, response.headers.get('retry-after'), offer.kind === 'native')
    },
  }
}

const contentTypes = { json: 'application/json', form: 'application/x-www-form-urlencoded' } as const

function written(body: unknown, encoding: keyof typeof contentTypes): string {
  if (encoding === 'json') return JSON.stringify(body)
  const form = new URLSearchParams()
  for (const [name, value] of Object.entries(membersOf(body))) {
    for (const each of [value].flat() as readonly unknown[]) {
      if (typeof each === 'object' || each === undefined) {
        throw refused(`\`${name}\` is no text, number or boolean: write the names of a form as the provider does.`)
      }
      form.append(name, String(each))
    }
  }
  return form.toString()
}

function judged(name: string, sent: HttpSent, retryAfter: string | null, native: boolean): HttpSent {
  const { status } = sent
  if (status < 400) return sent
  const error = Object.assign(new Error(`${name} answered ${status}.`), { code: `HTTP_${status}`, data: sent.body })
  const retryAfterMs = retryAfterMsOf(retryAfter)
  const again = retryAfterMs === null ? {} : { retryAfterMs }
  // A 503 that names a time was meant; without one it may come from a proxy that lost an answer on its way.
  if (NOT_NOW.has(status) || (status === 503 && retryAfterMs !== null)) throw notDone(error, again)
  // Under a key, 409 also means that a copy is in flight; a retry under the same key gets its outcome.
  if (status >= 500 || (native && status === 409)) throw Object.assign(error, again)
  throw final(error)
}

/** The beginning of a body, however long it is: what is not read is not kept in memory either. */
async function beginningOf({ body }: Response): Promise<string> {
  if (body === null) return ''
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk.subarray(0, MOST_BODY_BYTES - bytes), { stream: true })
    bytes += chunk.byteLength
    if (bytes >= MOST_BODY_BYTES) break
  }
  return text
}

/** Seconds, or a date; nonsense counts as nothing. */
function retryAfterMsOf(value: string | null): number | null {
  if (value === null) return null
  const seconds = Number(value)
  if (value.trim() !== '' && Number.isFinite(seconds)) return Math.max(0, seconds * SECOND)
  const at = Date.parse(value)
  return Number.isNaN(at) ? null : Math.max(0, at - Date.now())
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

/** A part of a hash is a key as good as any that short; one of other characters would not come back as it was sent. */
function fitting({ name, keyChars, keyCharset }: ProviderProfile, key: string): string {
  if (keyCharset.test(key)) return key.slice(0, keyChars)
  throw refused(`${name} takes no key like ${JSON.stringify(key)}.`)
}

/** Before anything was sent, and the same with every attempt. */
function refused(text: string): Error {
  return final(new OnceError('bad_input', text))
}

function withKey(
  plan: HttpPlan,
  carries: KeyLocation | null,
  key: string,
): { readonly headers: Readonly<Record<string, string>>; readonly body: unknown } {
  if (carries === null) return { headers: {}, body: plan.body }
  if ('header' in carries) return { headers: { [carries.header]: key }, body: plan.body }
  if ('field' in carries) return { headers: {}, body: withField(plan.body, carries.field.split('.'), key) }
  return { headers: {}, body: withTag(plan.body, carries, key) }
}

function withField(body: unknown, [name, ...rest]: readonly string[], key: string): unknown {
  if (name === undefined) return key
  const members = membersOf(body)
  return { ...members, [name]: withField(members[name], rest, key) }
}

function withTag(body: unknown, { list, tag }: { readonly list: string; readonly tag: string }, key: string): unknown {
  const members = membersOf(body)
  const others = members[list] ?? []
  if (!Array.isArray(others)) throw refused(`\`${list}\` must be a list, so that it can carry the key.`)
  return { ...members, [list]: [...(others as readonly unknown[]), { Name: tag, Value: key }] }
}

function membersOf(given: unknown): Readonly<Record<string, unknown>> {
  const body = given ?? {}
  if (typeof body === 'object' && !Array.isArray(body)) return body as Readonly<Record<string, unknown>>
  throw refused('The body of this provider must be an object: it is a form, or has to carry the key.')
}
