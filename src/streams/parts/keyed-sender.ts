import { randomId } from './random-id.ts'
import { IdempotentSender } from './sender.ts'

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
  readonly #sender: IdempotentSender<Keyed<T>>
  readonly #numbers = new Map<string, number>()
  readonly #storage: KeyedStorage<T> | undefined
  readonly #newKey: () => string

  constructor(options: KeyedSenderOptions<T> = {}) {
    const { storage, restored = [], newKey = randomId, sizeOf, ...bounds } = options
    this.#storage = storage
    this.#newKey = newKey
    const pending = restored.map((message, index) => ({ number: index + 1, message }))
    for (const { number, message } of pending) this.#numbers.set(message.key, number)
    this.#sender = new IdempotentSender({
      ...bounds,
      ...(sizeOf && { sizeOf: ({ message }: Keyed<T>) => sizeOf(message) }),
      ...(storage && { storage: { save: ({ message }) => storage.save(message), remove: async () => {} } }),
      restored: { next: pending.length + 1, pending },
    })
  }

  get pending(): number {
    return this.#numbers.size
  }

  /** Keeps a message under a new key, durably where there is storage. It is yours to transmit under that key. */
  async send(message: T): Promise<string> {
    const key = this.#newKey()
    const { number } = await this.#sender.accept({ key, message })
    this.#numbers.set(key, number)
    return key
  }

  /**
   * True the first time. After a crash before the storage has removed it, the message is sent once more, under the same
   * key.
   */
  async acknowledge(key: string): Promise<boolean> {
    const number = this.#numbers.get(key)
    if (number === undefined) return false
    this.#numbers.delete(key)
    await this.#sender.acknowledge({ floor: 0, ranges: [[number, number]] })
    await this.#storage?.remove(key)
    return true
  }

  /** Everything that is not acknowledged, in the order in which it was sent, to be transmitted again under the same keys. */
  retryPending(): readonly Keyed<T>[] {
    return this.#sender.pending.map(({ message }) => message)
  }
}
