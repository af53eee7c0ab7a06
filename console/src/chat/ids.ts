const ID_BYTES = 16

/** `crypto.randomUUID` is only there on HTTPS and on this machine; this is everywhere. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(ID_BYTES))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
