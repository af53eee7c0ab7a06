import { OnceError } from '../../ledger/core/errors.ts'
import { brokerLimits } from '../../ledger/core/limits.ts'
import { wholeOption } from '../../ledger/core/option-names.ts'
import type { SubscribeOptions } from '../inbox/port.ts'

/** Options that every broker takes. */
export interface BrokerOptions {
  /** Everything that the broker declares begins with this name; services that talk to each other share it. @default 'onceonly' */
  readonly namespace?: string
  /** Gets errors that were retried: lost connections, receivers that threw. @default none */
  readonly onError?: (error: unknown) => void
}

export function checkedNamespace({ namespace = 'onceonly' }: BrokerOptions): string {
  if (/^[A-Za-z0-9_-]+$/.test(namespace) && namespace.length <= brokerLimits.namespaceBytes) return namespace
  throw new OnceError(
    'bad_option',
    `\`namespace\` must be 1 to ${brokerLimits.namespaceBytes} letters, digits, dashes or underscores.`,
  )
}

export function checkSubscription({ consumer, topics, concurrency }: SubscribeOptions): void {
  const { nameBytes } = brokerLimits
  const isName = (text: string) => text !== '' && text.isWellFormed() && Buffer.byteLength(text) <= nameBytes
  if (!isName(consumer)) throw new OnceError('bad_option', `\`consumer\` must have 1 to ${nameBytes} bytes.`)
  if (topics.length === 0) throw new OnceError('bad_option', '`topics` is empty.')
  for (const topic of topics) {
    if (!isName(topic)) throw new OnceError('bad_option', `A topic must have 1 to ${nameBytes} bytes.`)
  }
  wholeOption('Subscription', 'concurrency', concurrency, 1, brokerLimits.concurrency)
}

/** How drivers name what went wrong. */
export function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
}

/** The pause before the next try to reach a broker. */
export function reconnectMs(failures: number): number {
  return Math.min(brokerLimits.reconnectBaseMs * 2 ** failures, brokerLimits.reconnectCapMs)
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
