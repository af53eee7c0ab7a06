import { randomUUID } from 'node:crypto'

/** Hexadecimal digits of the time in a UUID of version 7. */
const TIME_DIGITS = 12

/** Ids of one time stand side by side in their index, so that new rows touch the pages that are in memory already. */
export function newId(kind: 'msg' | 'lead' | 'conv', now: number): string {
  const time = now.toString(16).padStart(TIME_DIGITS, '0')
  return `${kind}_${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}
