import { BaseError } from '../../ledger/core/base-error.ts'
import type { StreamClientOptions, StreamConnectionOptions, StreamRoomOptions } from './options.ts'

const shared = { regions: true, transport: true, runtime: true, bounds: true } satisfies Record<
  keyof StreamConnectionOptions,
  true
>

const own = {
  receiver: true,
  mode: true,
  storage: true,
  from: true,
  again: true,
  onStatus: true,
  onIdentity: true,
  onDoubt: true,
  onProblem: true,
} satisfies Record<keyof StreamRoomOptions, true>

const modes = { 'at-most-once': true, 'at-least-once': true, 'effectively-once': true } satisfies Record<
  StreamClientOptions['mode'],
  true
>

/** Refuses what would otherwise fail with the first connection, or silently not at all. */
export function checkClientOptions(options: StreamClientOptions): void {
  const refuse = refuser('createStreamClient', options, { room: true, ...shared, ...own })
  checkRoute(options, refuse)
  checkRoom(options, refuse)
}

export function checkConnectionOptions(options: StreamConnectionOptions): void {
  checkRoute(options, refuser('createStreamConnection', options, shared))
}

export function checkRoomOptions(options: StreamRoomOptions): void {
  checkRoom(options, refuser('room', options, own))
}

type Refuse = (option: string, what: string) => never

/** Without the search for the nearest name: this is part of every page. */
function refuser(of: string, options: object, known: object): Refuse {
  const refuse: Refuse = (option, what) => {
    const text = `The option \`${option}\` of ${of} ${what}.`
    throw new BaseError('bad_option', text, { details: { option } })
  }
  const unknown = Object.keys(options ?? {}).find((name) => !Object.hasOwn(known, name))
  if (unknown !== undefined) refuse(unknown, `is unknown; known are ${Object.keys(known).join(', ')}`)
  return refuse
}

function checkRoute(options: Pick<StreamClientOptions, 'regions' | 'transport'>, refuse: Refuse): void {
  if (!Array.isArray(options?.regions) || options.regions.length === 0) {
    refuse('regions', 'must be a list with at least one region')
  }
  if (typeof options.transport?.connect !== 'function') {
    refuse('transport', 'is not a transport: pass createWebSocketTransport({ url })')
  }
}

function checkRoom(options: Pick<StreamClientOptions, 'receiver' | 'mode'>, refuse: Refuse): void {
  const { receiver, mode } = options ?? {}
  if (typeof receiver?.message !== 'function') {
    refuse('receiver', 'is not a receiver: pass { message(entry) { … } }')
  }
  if (!Object.hasOwn(modes, mode)) {
    refuse('mode', `is ${JSON.stringify(mode)}: choose one of ${Object.keys(modes).join(', ')}`)
  }
}
