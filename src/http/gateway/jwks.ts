import { open } from 'node:fs/promises'
import type { JwksConfig } from './config.ts'
import type { SigningKey } from './jwk.ts'
import { chooseKey, readKey } from './jwk.ts'
import type { FindKey } from './jwt.ts'
import { gatewayLimits } from './limits.ts'
import { isFields } from './schema.ts'
import { createUpstream, send } from './upstream.ts'

/** Reads a key set as its source has it now. Rejects when that is not there in time, too large, or no key set. */
type Load = (signal: AbortSignal) => Promise<readonly SigningKey[]>

export interface KeySet {
  readonly find: FindKey
  /** Gives a request up that is under way. */
  stop(): void
}

export interface KeySetOptions {
  readonly load: Load
  readonly onError: (error: unknown) => void
  /** Never goes back. */
  readonly monotonicMs?: () => number
}

/**
 * Keys that are loaded when one is asked for, and again when they are old or when a name is unknown, as after a rotation.
 * One load at a time, and a pause after each, so that invented names cost the issuer nothing.
 */
export function createKeySet({ load, onError, monotonicMs = () => performance.now() }: KeySetOptions): KeySet {
  const { jwksFreshMs, jwksMostMs, jwksPauseMs } = gatewayLimits
  const ending = new AbortController()
  let keys: readonly SigningKey[] = []
  let loadedAt = Number.NEGATIVE_INFINITY
  let triedAt = Number.NEGATIVE_INFINITY
  let loading: Promise<void> | null = null

  async function loadOnce(): Promise<void> {
    try {
      keys = await load(ending.signal)
      loadedAt = monotonicMs()
    } catch (error) {
      if (!ending.signal.aborted) onError(error)
    } finally {
      triedAt = monotonicMs()
      loading = null
    }
  }

  function refresh(): Promise<void> {
    if (loading === null && monotonicMs() - triedAt < jwksPauseMs) return Promise.resolve()
    loading ??= loadOnce()
    return loading
  }

  return {
    async find(kid, algorithm) {
      const ageMs = monotonicMs() - loadedAt
      const known = chooseKey(keys, kid, algorithm)
      if (known !== null && ageMs < jwksMostMs) {
        if (ageMs >= jwksFreshMs) void refresh()
        return known
      }
      await refresh()
      // Keys that could not be asked about for long may have been withdrawn.
      return monotonicMs() - loadedAt < jwksMostMs ? chooseKey(keys, kid, algorithm) : null
    },
    stop: () => ending.abort(),
  }
}

/** Where the configuration says that the keys are. */
export function keySource(config: JwksConfig): Load {
  if ('keys' in config) {
    const keys = config.keys.flatMap((jwk) => readKey(jwk) ?? [])
    return () => Promise.resolve(keys)
  }
  const read =
    'file' in config ? () => readText(config.file) : (signal: AbortSignal) => fetchText(config.url, config.ca, signal)
  return async (signal) => {
    try {
      return keysIn(await read(signal))
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause)
      const place = 'file' in config ? config.file : config.url
      throw new Error(`The keys at ${place} cannot be loaded, and no token is verified by them: ${why}`, { cause })
    }
  }
}

/** What is no key of ours is left out: sets hold keys for encryption, too, and for algorithms of tomorrow. */
function keysIn(text: string): readonly SigningKey[] {
  const set: unknown = JSON.parse(text)
  const listed = isFields(set) && Object.hasOwn(set, 'keys') ? set['keys'] : null
  if (!Array.isArray(listed)) throw new Error('it is no key set.')
  if (listed.length > gatewayLimits.jwksKeys) throw new Error(`it has more than ${gatewayLimits.jwksKeys} keys.`)
  return listed.flatMap((jwk) => readKey(jwk) ?? [])
}

async function readText(path: string): Promise<string> {
  await using file = await open(path)
  const { size } = await file.stat()
  if (size > gatewayLimits.jwksBytes) throw tooLarge()
  return await file.readFile('utf8')
}

/** No redirects: the configuration says where the keys are, not the answering server. */
async function fetchText(url: string, ca: string | undefined, signal: AbortSignal): Promise<string> {
  const { jwksMs } = gatewayLimits
  const { origin, pathname, search } = new URL(url)
  const upstream = createUpstream(origin, ca)
  const headers = ['Host', upstream.host, 'Accept', 'application/jwk-set+json, application/json']
  const request = upstream.open({ method: 'GET', target: pathname + search, headers }, 'own')
  const giveUp = () => request.destroy(new Error(`not whole within ${jwksMs} ms.`))
  const timer = setTimeout(giveUp, jwksMs)
  signal.addEventListener('abort', giveUp, { once: true })
  try {
    const times = { connectMs: jwksMs, answerMs: jwksMs, idleMs: jwksMs }
    const sent = await send(request, times, () => request.end())
    if (sent.kind !== 'answered') throw sent.error
    const { answer } = sent
    if (answer.statusCode !== 200) throw new Error(`it answered ${answer.statusCode}.`)
    const chunks: Buffer[] = []
    let bytes = 0
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes > gatewayLimits.jwksBytes) throw tooLarge()
    }
    return Buffer.concat(chunks).toString()
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', giveUp)
    request.destroy()
    upstream.stop()
  }
}

function tooLarge(): Error {
  return new Error(`it has more than ${gatewayLimits.jwksBytes} bytes.`)
}
