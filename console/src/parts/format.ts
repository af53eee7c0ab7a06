const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** Two units at most: the second distinguishes 1 minute from nearly 2. */
export function durationText(ms: number): string {
  const size = Math.abs(ms)
  if (size < SECOND_MS) return `${Math.round(ms)} ms`
  if (size < 10 * SECOND_MS) return `${(ms / SECOND_MS).toFixed(1)} s`
  if (size < MINUTE_MS) return `${Math.round(ms / SECOND_MS)} s`
  if (size < HOUR_MS) return inTwo(ms, MINUTE_MS, 'min', SECOND_MS, 's')
  if (size < DAY_MS) return inTwo(ms, HOUR_MS, 'h', MINUTE_MS, 'min')
  return inTwo(ms, DAY_MS, 'd', HOUR_MS, 'h')
}

function inTwo(ms: number, large: number, largeName: string, small: number, smallName: string): string {
  const whole = Math.trunc(ms / large)
  const rest = Math.trunc(Math.abs(ms - whole * large) / small)
  return rest === 0 ? `${whole} ${largeName}` : `${whole} ${largeName} ${rest} ${smallName}`
}

/** How long ago, or in how long. */
export function agoText(atMs: number, nowMs: number): string {
  const age = nowMs - atMs
  if (Math.abs(age) < SECOND_MS) return 'now'
  return age > 0 ? `${durationText(age)} ago` : `in ${durationText(-age)}`
}

/** For a log line and a colleague in another zone: UTC, to the millisecond. */
export function timeText(atMs: number): string {
  return new Date(atMs).toISOString().replace('T', ' ').replace('Z', ' UTC')
}

const grouped = new Intl.NumberFormat('en-GB')

export function countText(count: number): string {
  return grouped.format(count)
}

const byteUnits = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'] as const

export function bytesText(bytes: number): string {
  const unit = Math.min(byteUnits.length - 1, bytes < 1 ? 0 : Math.floor(Math.log2(bytes) / 10))
  const value = bytes / 1_024 ** unit
  return `${unit === 0 || value >= 100 ? grouped.format(Math.round(value)) : value.toFixed(1).replace(/\.0$/, '')} ${byteUnits[unit]}`
}

/** Short enough for an axis: 950, 1.2k, 3.4M. */
export function shortCountText(count: number): string {
  if (count >= 1_000_000) return `${trimmed(count / 1_000_000)}M`
  if (count >= 1_000) return `${trimmed(count / 1_000)}k`
  return trimmed(count)
}

function trimmed(value: number): string {
  // Seldom is not never: a few in ten minutes would read as none.
  if (value > 0 && value < 0.1) return value.toPrecision(1)
  return value >= 100 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(1).replace(/\.0$/, '')
}

/** Stored text as people read it: JSON gets its lines, everything else stays as it is. */
export function storedText(stored: unknown): string {
  if (typeof stored !== 'string') return JSON.stringify(stored, null, 2) ?? ''
  try {
    return JSON.stringify(JSON.parse(stored), null, 2)
  } catch {
    return stored
  }
}
