import { OnceError } from '../../core/errors.ts'
import type { RecordId } from '../../core/identity.ts'

/**
 * The most buckets there can be. Fences of different buckets differ by their remainder, so it is part of the format.
 */
export const BUCKETS_MOST = 16

/** The keys of one bucket. They share a hash tag, so that one script may touch all of them, on a cluster too. */
export interface Bucket {
  readonly number: number
  /**
   * The epoch (a name that this bucket got when it was empty), the largest fence, how often fences were given, the offset
   * of the test clock, and up to which fence the search for lapsed leases has seen the records: one text, read with the
   * records and written with them.
   */
  readonly meta: string
  /**
   * All records by fence: the only index that a claim writes, and no settle does. A place holds the ids that one script
   * call granted, one after the other; its score is the fence of the first, and each other fence is one step larger. A
   * record that got another fence since stands in another place, and its old one is stale.
   */
  readonly fences: string
  /** What was in progress when the search for lapsed leases saw it, by the time at which to look again. */
  readonly open: string
  /** What is unknown, by fence. */
  readonly unknowns: string
  /** How often records were asked for again, and when last: of those that were. */
  readonly counts: string
  /** Followed by an id, the key of a record. */
  readonly record: string
  /** Followed by a time, the statistics of callers. */
  readonly callers: string
}

export interface Names {
  readonly buckets: readonly Bucket[]
  /** Where changes with waiters are published. */
  readonly channel: string
  bucketOf(id: RecordId): Bucket
}

export function namesOf(prefix: string, count: number): Names {
  if (!/^[\w.:-]{1,64}$/.test(prefix)) {
    throw new OnceError('bad_option', '`prefix` is 1 to 64 letters, digits, or any of `_ . : -`.')
  }
  if (!Number.isInteger(count) || count < 1 || count > BUCKETS_MOST) {
    throw new OnceError('bad_option', `\`buckets\` is a whole number from 1 to ${BUCKETS_MOST}.`)
  }
  const buckets = Array.from({ length: count }, (_, number): Bucket => {
    const key = (name: string) => `{${prefix}:${number}}:${name}`
    return {
      number,
      meta: key('meta'),
      fences: key('fences'),
      open: key('open'),
      unknowns: key('unknowns'),
      counts: key('counts'),
      record: key('r:'),
      callers: key('callers:'),
    }
  })
  // Ids are digests, so that any of their digits spread them evenly.
  const bucketOf = (id: RecordId) => buckets[count === 1 ? 0 : Number.parseInt(id.slice(0, 4), 16) % count] as Bucket
  return { buckets, channel: `${prefix}:wake`, bucketOf }
}
