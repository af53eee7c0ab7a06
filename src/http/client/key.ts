/** A UUID of version 7: its first part is the time, so that keys sort by age; the rest is chance. */
export function newKey(nowMs: number = Date.now()): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  // 48 bits of milliseconds, which is more than a shift of 32-bit numbers can do.
  for (let index = 5, left = nowMs; index >= 0; index--, left = Math.floor(left / 256)) bytes[index] = left % 256
  bytes[6] = 0x70 | ((bytes[6] ?? 0) & 0x0f)
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f)
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

/** Where keys outlive the process. The same intent gets the same key, until it is dropped. */
export interface KeyStorage {
  /** Keeps the key, durably, unless the intent has one; answers the one that it has. */
  keep(intent: string, key: string): Promise<string>
  drop(intent: string): Promise<void>
}
