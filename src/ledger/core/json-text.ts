import { bytesToBase64 } from './codec.ts'

/** A stored value as JSON for people and other programs. JSON has no big integers, bytes, maps or sets: they become texts, objects and lists. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, function (this: Readonly<Record<string, unknown>>, name, each: unknown) {
    if (typeof each === 'bigint') return each.toString()
    if (each instanceof Map) return Object.fromEntries(each)
    if (each instanceof Set) return [...each]
    // Of a Buffer only its holder has the bytes: it has made an object of itself already.
    const given = this[name]
    return given instanceof Uint8Array ? bytesToBase64(given) : each
  })
}
