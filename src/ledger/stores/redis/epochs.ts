import { OnceError } from '../../core/errors.ts'
import type { Fence } from '../../core/identity.ts'
import { layoutError } from './errors.ts'
import type { Bucket } from './names.ts'
import { LAYOUT } from './script.ts'

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
   * Compares how far a script found its bucket with how far the last one left it. The name of a bucket also says how its
   * keys are laid out and how many buckets there are, because all processes must agree.
   */
  check(bucket: Bucket, epoch: string, found: Reach, left: Reach): void
}

interface Known {
  epoch: string
  left: Reach
}

export function createEpochs(count: number, report: (event: StoreReset) => void): Epochs {
  const known: (Known | undefined)[] = []

  return {
    check: ({ number: bucket }, epoch, found, left) => {
      const before = known[bucket]
      if (before?.epoch === epoch) {
        const isOlder = found.fence < before.left.fence || found.turns < before.left.turns
        before.left = left
        if (isOlder) report({ kind: 'store_reset', what: 'rolled_back', bucket })
        return
      }
      checkName(epoch, count)
      known[bucket] = { epoch, left }
      if (before !== undefined) report({ kind: 'store_reset', what: 'emptied', bucket })
    },
  }
}

function checkName(epoch: string, count: number): void {
  const [layout, buckets] = epoch.split(':')
  if (layout !== LAYOUT) throw layoutError()
  if (Number(buckets) !== count) {
    throw new OnceError('bad_option', `This Redis holds a store of ${buckets} \`buckets\`, not of ${count}.`)
  }
}
