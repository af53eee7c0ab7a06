import { limits, MINUTE } from '../../ledger/core/limits.ts'
import type { EffectKind } from '../../ledger/definition.ts'
import type { ContentPart } from '../../ledger/guard/content-key.ts'
import { refuseOption, refuseUnknown } from './options.ts'

/**
 * Content-based deduplication, for requests without a key: method, path, query, preconditions and the chosen parts of the
 * body are the key. Content is not identity: a wanted repeat within the window is answered as a retry.
 */
// oxlint-disable-next-line typescript/no-explicit-any -- where the framework does not know the type of a body.
export interface ContentKey<B = any> {
  /**
   * The parts of the parsed body that make two requests the same: `(body) => [body.to, body.text]`. A missing part is not
   * an empty one. The whole body by its meaning, when left out.
   */
  readonly of?: (body: B) => readonly ContentPart[]
  /** The window, in milliseconds from the claim of the first request; no duplicate extends it. @default 15 minutes */
  readonly withinMs?: number
  /** Which requests are compared: those of all callers of a tenant, or of each caller alone. @default 'tenant' */
  readonly scope?: 'tenant' | 'caller'
  /** How long a duplicate waits for a running original before it gets 409, in milliseconds. @default as `whileRunning` */
  readonly waitMs?: number
  /**
   * While the store is down: `open` runs the handler without protection, `closed` answers 503.
   *
   * @default 'open'; 'closed' where the effect is a transaction, which is in the same store
   */
  readonly onStoreDown?: 'open' | 'closed'
  /**
   * How long the store may take to decide, in milliseconds, before it counts as down; its usual deadline, when left out.
   * After five such failures in a row it is not called for five seconds.
   */
  readonly decideMs?: number
}

/** Long enough for a double click, a resubmitted form and a client that retries; a wanted repeat can wait that long. */
export const CONTENT_WITHIN_MS = 15 * MINUTE

/** Every option by its name: the compiler refuses this table when an option is missing in it. */
const contentOptions = {
  of: true,
  withinMs: true,
  scope: true,
  waitMs: true,
  onStoreDown: true,
  decideMs: true,
} satisfies Record<keyof ContentKey, true>

interface Beside {
  readonly content?: ContentKey | undefined
  readonly key?: string
  readonly effect: EffectKind
}

export function checkContent({ content, key, effect }: Beside): void {
  if (content === undefined) return
  const bad = (option: string, what: string) =>
    refuseOption(`content${option}`, `Route option \`content${option}\` ${what}.`)
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    bad('', 'must be an object, such as { of: (body) => [body.to] }')
  }
  refuseUnknown('The route option `content`', content, Object.keys(contentOptions))
  if (key !== 'optional') bad('', "is for requests without a key: set key: 'optional' beside it")
  const { of, withinMs = CONTENT_WITHIN_MS, scope = 'tenant', waitMs = 0, onStoreDown, decideMs = 1 } = content
  if (of !== undefined && typeof of !== 'function') bad('.of', 'must be a function that returns the parts of a body')
  const whole = (option: string, ms: number, least: number, most: number) => {
    if (Number.isSafeInteger(ms) && ms >= least && ms <= most) return
    bad(option, `must be a whole number of milliseconds from ${least} to ${most}`)
  }
  whole('.withinMs', withinMs, 1, limits.longestMs)
  whole('.waitMs', waitMs, 0, limits.waitMaxMs)
  // A longer timer would overflow and fire at once: the store would count as down for every request.
  whole('.decideMs', decideMs, 1, limits.storeCallMs)
  if (!['tenant', 'caller'].includes(scope)) bad('.scope', "must be 'tenant' or 'caller'")
  if (onStoreDown !== undefined && !['open', 'closed'].includes(onStoreDown)) {
    bad('.onStoreDown', "must be 'open' or 'closed'")
  }
  if (onStoreDown === 'open' && effect === 'transaction') {
    bad('.onStoreDown', "must be 'closed' for a transaction, which cannot begin while its store is down")
  }
}
