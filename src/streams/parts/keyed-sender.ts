import { BaseError } from '../../ledger/core/base-error.ts'

/** A message under a random key, by which a receiver recognises a second copy. */
export interface Keyed<T> {
  readonly key: string
  readonly message: T
}

/** Where pending messages survive a restart. A write counts before the message leaves. */
export interface KeyedStorage<T> {
  save(keyed: Keyed<T>): Promise<void>
  remove(key: string): Promise<void>
}

export interface KeyedSenderOptions<T> {
  /** Messages that are not acknowledged. @default 10_000 */
  readonly mostPending?: number
  /** And their bytes, by `sizeOf`. @default only their number counts */
  readonly mostPendingBytes?: number
  /** The bytes of a message. @default 0 */
  sizeOf?(message: T): number
  /** Where pending messages survive a restart. @default memory only */
  readonly storage?: KeyedStorage<T>
  /** What a restart found in the storage, in the order in which it was sent. @default nothing */
  readonly restored?: readonly Keyed<T>[]
  /** Must never repeat, in any process. @default 128 random bits */
  newKey?(): string
}

const MOST_PENDING = 10_000
const KEY_BYTES = 16

/**
 * Gives each message a random key and keeps it until that is acknowledged. Messages are independent of each other: for
 * receivers that deduplicate by key, as `ReceiveDedup` does, and where no order is needed. `IdempotentSender` numbers them.
 *
 * @example
 * ```ts
 * import { KeyedSender } from 'onceonly/stream/parts'
 *
 * declare const socket: { write(frame: object): void }
 *
 * const sender = new KeyedSender<string>()
 * const key = await sender.send('Hello')
 * socket.write({ key, message: 'Hello' })
 * // After a lost connection:
 * for (const pending of sender.retryPending()) socket.write(pending)
 * // When the receiver has confirmed it:
 * await sender.acknowledge(key)
 * ```
 */
export class KeyedSender<T> {
  readonly #pending = new Map<string, { readonly keyed: Keyed<T>; readonly bytes: number }>()
  readonly #mostPending: number
  readonly #mostPendingBytes: number
  readonly #sizeOf: (message: T) => number
  readonly #storage: KeyedStorage<T> | null
  readonly #newKey: () => string
  /** Of those that are pending, and of those that are being kept. */
  #count = 0
  #bytes = 0

  constructor(options: KeyedSenderOptions<T> = {}) {
    this.#mostPending = options.mostPending ?? MOST_PENDING
    this.#mostPendingBytes = options.mostPendingBytes ?? Number.POSITIVE_INFINITY
    this.#sizeOf = options.sizeOf ?? (() => 0)
    this.#storage = options.storage ?? null
    this.#newKey = options.newKey ?? randomKey
    for (const keyed of options.restored ?? []) {
      if (this.#pending.has(keyed.key)) throw new BaseError('bad_input', `The key ${keyed.key} was restored twice.`)
      const bytes = this.#sizeOf(keyed.message)
      this.#reserve(bytes)
      this.#pending.set(keyed.key, { keyed, bytes })
    }
  }

  get pending(): number {
    return this.#pending.size
  }

  /** Keeps a message under a new key, durably where there is storage. It is yours to transmit under that key. */
  async send(message: T): Promise<string> {
    const bytes = this.#sizeOf(message)
    if (this.#count >= this.#mostPending || this.#bytes + bytes > this.#mostPendingBytes) {
      throw new BaseError('store_busy', `${this.#count} messages wait to be acknowledged.`, {
        next: 'Send again when some are acknowledged.',
      })
    }
    const keyed = { key: this.#newKey(), message }
    this.#reserve(bytes)
    try {
      await this.#storage?.save(keyed)
    } catch (error) {
      this.#release(bytes)
      throw error
    }
    this.#pending.set(keyed.key, { keyed, bytes })
    return keyed.key
  }

  /**
   * True the first time. After a crash before the storage has removed it, the message is sent once more, under the same
   * key.
   */
  async acknowledge(key: string): Promise<boolean> {
    const known = this.#pending.get(key)
    if (known === undefined) return false
    this.#pending.delete(key)
    this.#release(known.bytes)
    await this.#storage?.remove(key)
    return true
  }

  /** Everything that is not acknowledged, in the order in which it was sent, to be transmitted again under the same keys. */
  retryPending(): readonly Keyed<T>[] {
    return [...this.#pending.values()].map(({ keyed }) => keyed)
  }

  #reserve(bytes: number): void {
    this.#count += 1
    this.#bytes += bytes
  }

  #release(bytes: number): void {
    this.#count -= 1
    this.#bytes -= bytes
  }
}

function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(KEY_BYTES))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
