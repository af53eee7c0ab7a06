import type { Identity } from '../../ledger/core/identity.ts'
import { recordIdOf } from '../../ledger/core/identity.ts'
import { SECOND } from '../../ledger/core/limits.ts'
import type { Instruments } from './instruments.ts'

/** The used part of a tracer of `@opentelemetry/api`, typed by its shape. */
export interface Tracer {
  startSpan(name: string, options: SpanOptions): Span
  startActiveSpan<T>(name: string, options: SpanOptions, work: (span: Span) => T): T
}

export interface SpanOptions {
  /** What the span says of its command. */
  readonly attributes: Record<string, string | number | boolean>
  /** The spans of attempts that this one continues. @default none */
  readonly links?: { readonly context: SpanContext }[]
}

export interface Span {
  spanContext(): SpanContext
  setStatus(status: { readonly code: number }): unknown
  end(): void
}

export interface SpanContext {
  readonly traceId: string
  readonly spanId: string
  readonly traceFlags: number
}

/** What a tracer may put around the parts of a ledger. Without a tracer only their times are wanted. */
export interface Around {
  <T>(part: 'claim' | 'effect', command: Commanded, work: () => Promise<T>): Promise<T>
  readonly took?: (part: 'claim' | 'effect', command: Commanded, ms: number) => void
}

/** The identity, and the id under which its record is found. */
export interface Commanded {
  readonly id: string
  readonly identity: Identity
}

/** `SpanStatusCode.ERROR`. */
const FAILED = 2
/** Originals that this process still links to: as many as are replayed soon, not as many as there are. */
const ORIGINALS = 10_000

/**
 * One span per claim and one per effect, which is active while the effect runs, so that calls to others are its
 * children. Replays are linked to the effect's span where this process ran it; everywhere else `onceonly.record`, which
 * is equal on all spans of one identity, finds the original.
 */
export function createTracing(
  tracer: Tracer | null,
  histograms: Instruments['histograms'],
  nameOf: (name: string) => string,
): { readonly around: Around; replayed(identity: Identity): void } {
  const originals = new Map<string, SpanContext>()

  function remember(id: string, context: SpanContext): void {
    originals.delete(id)
    originals.set(id, context)
    const [oldest] = originals.keys()
    if (originals.size > ORIGINALS && oldest !== undefined) originals.delete(oldest)
  }

  function took(part: 'claim' | 'effect', { identity }: Commanded, ms: number): void {
    histograms[part].record(ms / SECOND, { operation: nameOf(identity.operation) })
  }

  async function timed<T>(part: 'claim' | 'effect', command: Commanded, work: () => Promise<T>): Promise<T> {
    const begin = performance.now()
    try {
      return await work()
    } finally {
      took(part, command, performance.now() - begin)
    }
  }

  const spanned: Around = (part, command, work) => {
    const { id, identity } = command
    if (tracer === null) return timed(part, command, work)
    const options = { attributes: attributesOf(id, identity) }
    return tracer.startActiveSpan(`onceonly.${part} ${identity.operation}`, options, async (span) => {
      if (part === 'effect') remember(id, span.spanContext())
      try {
        return await timed(part, command, work)
      } catch (error) {
        span.setStatus({ code: FAILED })
        throw error
      } finally {
        span.end()
      }
    })
  }

  return {
    around: tracer === null ? Object.assign(spanned, { took }) : spanned,
    replayed(identity) {
      if (tracer === null) return
      const id = recordIdOf(identity)
      const original = originals.get(id)
      const links = original === undefined ? [] : [{ context: original }]
      tracer.startSpan(`onceonly.replay ${identity.operation}`, { attributes: attributesOf(id, identity), links }).end()
    },
  }
}

/** Neither the key nor the caller: a trace is read by more people than a record. */
function attributesOf(id: string, { operation, tenant }: Identity): SpanOptions['attributes'] {
  return { 'onceonly.operation': operation, 'onceonly.tenant': tenant, 'onceonly.record': id }
}
