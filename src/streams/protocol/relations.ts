import { covers } from './position.ts'
import type { Delivered, LogPlace, MessageIdentity, Position } from './protocol.ts'
import { identityText } from './protocol.ts'

/** Messages that are remembered; the oldest make room. */
const MOST_MESSAGES = 10_000

interface Known {
  readonly identity: MessageIdentity
  readonly seen: Position
  /** More than one where a client handed it to two regions. */
  readonly places: LogPlace[]
}

/**
 * What authors knew of each other: of what was delivered, which messages their authors wrote without having seen each other. Give it
 * everything that is delivered, copies too: a message may have been seen in either place.
 */
export class Relations {
  readonly #known = new Map<string, Known>()
  readonly #most: number

  constructor(options: { readonly mostMessages?: number } = {}) {
    this.#most = options.mostMessages ?? MOST_MESSAGES
  }

  note({ log, n, client, epoch, cseq, seen }: Omit<Delivered, 'kind'>): void {
    const identity = { client, epoch, cseq }
    const text = identityText(identity)
    const known = this.#known.get(text)
    if (known !== undefined) {
      known.places.push({ log, n })
      return
    }
    this.#known.set(text, { identity, seen, places: [{ log, n }] })
    if (this.#known.size <= this.#most) return
    for (const oldest of this.#known.keys()) {
      this.#known.delete(oldest)
      return
    }
  }

  /** Null when one of them is not known, or both are one. */
  compare(a: MessageIdentity, b: MessageIdentity): 'before' | 'after' | 'concurrent' | null {
    const [first, second] = [this.#known.get(identityText(a)), this.#known.get(identityText(b))]
    if (first === undefined || second === undefined || first === second) return null
    if (knew(second, first)) return 'before'
    return knew(first, second) ? 'after' : 'concurrent'
  }

  /** Written at the same time, as far as their authors could know. */
  concurrentWith(identity: MessageIdentity): readonly MessageIdentity[] {
    return [...this.#known.values()]
      .filter((other) => this.compare(identity, other.identity) === 'concurrent')
      .map((other) => other.identity)
  }
}

/** Whether the author of `later` had seen `earlier`, or wrote both in this order. */
function knew(later: Known, earlier: Known): boolean {
  const { client, epoch, cseq } = earlier.identity
  if (later.identity.client === client && later.identity.epoch === epoch) return cseq < later.identity.cseq
  return earlier.places.some(({ log, n }) => covers(later.seen, { [log]: n }))
}
