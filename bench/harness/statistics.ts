/** An estimate with the 95 % interval of a bootstrap around it. */
export interface Estimate {
  readonly median: number
  readonly low: number
  readonly high: number
}

/** Fixed, so that the same measurements always give the same verdict. */
const SEED = 0x0ce0_0171
const RESAMPLES = 10_000
const TAIL = 0.025

/**
 * The median, because other load on the machine in one round must not decide; and its percentile bootstrap, because the
 * distribution of the noise is unknown.
 */
export function estimate(samples: readonly number[]): Estimate {
  const random = createRandom(SEED)
  const medians = Float64Array.from({ length: RESAMPLES }, () => {
    return median(samples.map(() => samples[Math.floor(random() * samples.length)] as number))
  }).sort()
  return { median: median(samples), low: quantile(medians, TAIL), high: quantile(medians, 1 - TAIL) }
}

export function median(samples: readonly number[]): number {
  return quantile(Float64Array.from(samples).sort(), 0.5)
}

/** Between the two samples that are nearest; of sorted samples only. */
export function quantile(sorted: Float64Array, share: number): number {
  if (sorted.length === 0) throw new Error('There is no quantile of nothing.')
  const place = share * (sorted.length - 1)
  const below = sorted[Math.floor(place)] as number
  const above = sorted[Math.ceil(place)] as number
  return below + (above - below) * (place - Math.floor(place))
}

/** Mulberry32: in [0, 1), the same row of numbers for the same seed on every machine. */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b_79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
