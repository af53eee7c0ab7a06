/** The most common writing of a phone number, around its digits. */
const DECORATION = /[ \u00a0().-]/g
const E164 = /^\+[1-9]\d{1,14}$/

/** E.164, with `+` or `00` in front; null when it is none. */
export function normalisePhone(text: string): string | null {
  const plain = text.replaceAll(DECORATION, '').replace(/^00/, '+')
  return E164.test(plain) ? plain : null
}

const EMAIL_CHARS_MOST = 254
/** What every mail server takes without quoting; a quoted local part is a curiosity, and a header a place to inject. */
const EMAIL =
  /^[^\s@<>()[\]\\,;:"\p{C}]{1,64}@(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.)+[\p{L}\p{N}-]{2,63}$/u

/** Lower case, so that one person has one address; null when it is none. */
export function normaliseEmail(text: string): string | null {
  const plain = text.trim().toLowerCase()
  return plain.length <= EMAIL_CHARS_MOST && EMAIL.test(plain) ? plain : null
}
