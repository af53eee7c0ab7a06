import { randomUUID } from 'node:crypto'
import { OnceError } from '../../core/errors.ts'
import type { Fence } from '../../core/identity.ts'
import type { Bucket } from './names.ts'

/**
 * Redis lost something that it had acknowledged. `emptied`: a known bucket is a new one, after a flush, or a restart without
 * a file. `rolled_back`: it is the same one, but older than what was read before.
 */
export interface StoreReset {
  readonly kind: 'store_reset'
  readonly what: 'emptied' | 'rolled_back'
  readonly bucket: number
}

/**
 * How far a bucket is. Fences alone would not do: they follow the clock, so that the first process which uses an older
 * state lifts them over all that the others knew. How often fences were given falls back with the state, and takes as
 * long to catch up as the lost part took.
 */
export interface Reach {
  readonly fence: Fence
  readonly turns: number
}

/** Notices when a server does not keep what it acknowledged: by the name of each bucket, and by how far it is. */
export interface Epochs {
  /**
   * The name that a bucket gets if it is empty: another one every time, so that it differs from the one before. It also says
   * how many buckets there are, because all processes must agree.
   */
  candidate(): string
  /** Compares how far a script found its bucket with how far the last one left it. */
  check(bucket: Bucket, epoch: string, found: Reach, left: Reach): void
}

export function createEpochs(count: number, report: (event: StoreReset) => void): Epochs {
  const known = new Map<number, { readonly epoch: string; readonly left: Reach }>()
  const process = randomUUID()
  let asked = 0
  return {
    candidate: () => `${count}:${process}:${++asked}`,
    check: (bucket, epoch, found, left) => {
      const buckets = Number(epoch.split(':', 1)[0])
      if (buckets !== count) {
        throw new OnceError('bad_option', `This Redis holds a store of ${buckets} \`buckets\`, not of ${count}.`)
      }
      const before = known.get(bucket.number)
      known.set(bucket.number, { epoch, left })
      if (before === undefined) return
      if (before.epoch !== epoch) report({ kind: 'store_reset', what: 'emptied', bucket: bucket.number })
      else if (found.fence < before.left.fence || found.turns < before.left.turns)
        report({ kind: 'store_reset', what: 'rolled_back', bucket: bucket.number })
    },
  }
}
