import { randomBytes } from 'node:crypto'

const RANDOM_BYTES = 10
const TIME_DIGITS = 12

/**
 * A UUIDv7: ids that are made one after the other stand together in an index. The time in it orders, and decides nothing,
 * so that this host's clock is good enough.
 */
export function newMessageId(): string {
  const time = Date.now().toString(16).padStart(TIME_DIGITS, '0')
  const random = randomBytes(RANDOM_BYTES)
  random[0] = ((random[0] ?? 0) & 0x0f) | 0x70
  random[2] = ((random[2] ?? 0) & 0x3f) | 0x80
  const hex = time + random.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
