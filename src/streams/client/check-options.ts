import { OnceError } from '../../ledger/core/errors.ts'
import type { StreamClientOptions } from './options.ts'

const clientOptions = {
  room: true,
  regions: true,
  transport: true,
  receiver: true,
  mode: true,
  place: true,
  from: true,
  again: true,
  onStatus: true,
  onIdentity: true,
  onDoubt: true,
  onProblem: true,
  runtime: true,
  bounds: true,
} satisfies Record<keyof StreamClientOptions, true>

const modes = { 'at-most-once': true, 'at-least-once': true, 'effectively-once': true } satisfies Record<
  StreamClientOptions['mode'],
  true
>

/** Refuses what would otherwise fail with the first connection, or silently not at all. */
export function checkClientOptions(options: StreamClientOptions): void {
  // Without the search for the nearest name: this is part of every page.
  const unknown = Object.keys(options ?? {}).find((name) => !Object.hasOwn(clientOptions, name))
  if (unknown !== undefined) bad(unknown, `is unknown; known are ${Object.keys(clientOptions).join(', ')}`)
  const { regions, transport, receiver, mode } = options ?? {}
  if (!Array.isArray(regions) || regions.length === 0) bad('regions', 'must be a list with at least one region')
  if (typeof transport?.connect !== 'function') {
    bad('transport', 'is not a transport: pass createWebSocketTransport({ url })')
  }
  if (typeof receiver?.message !== 'function') {
    bad('receiver', 'is not a receiver: pass { message(entry) { … } }')
  }
  if (!Object.hasOwn(modes, mode)) {
    bad('mode', `is ${JSON.stringify(mode)}: choose one of ${Object.keys(modes).join(', ')}`)
  }
}

function bad(option: string, what: string): never {
  const text = `The option \`${option}\` of createStreamClient ${what}.`
  throw new OnceError('bad_option', text, { details: { option } })
}
