/** Up to so many digits every decimal within `SAFE_POWER` has a double of its own, whose shortest text has the same digits. */
const SAFE_DIGITS = 15
/** Of ten, of the leading digit: well within the range in which doubles have all their digits. */
const SAFE_POWER = 290
/** RFC 8785 writes numbers without an exponent below 10^21, and down to 0.000001. */
const PLAIN_MOST = 21
const PLAIN_LEAST = -6
/** No text that is written here is longer: a sign, `0.`, zeros and digits; or digits, a point and an exponent. */
export const DECIMAL_BYTES_MOST = 32

const PLUS = 0x2b
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30
const LOWER_E = 0x65

/** The digits of the number that is written. The scanner is synchronous, so that one place is enough for all. */
const digits = new Uint8Array(SAFE_DIGITS)

/**
 * Writes the canonical text of a number that has few digits, without making a string of it: `canonicalNumber` takes half a
 * microsecond, which for megabytes of `1e21` adds up to seconds.
 *
 * @param from where its token begins in `source`, which the caller has checked; it ends before `to`
 * @param at where to write it in `out`, which has room for `DECIMAL_BYTES_MOST`
 * @returns the place after it, or -1 for a number that `canonicalNumber` has to look at
 */
export function writeDecimal(source: Uint8Array, from: number, to: number, out: Uint8Array, at: number): number {
  // 1. Digits without zeros in front, and the power of ten of the last one.
  const negative = source[from] === MINUS
  let place = negative ? from + 1 : from
  let count = 0
  let power = 0
  let inFraction = false
  for (; place < to; place++) {
    const byte = source[place] as number
    if (byte === POINT) inFraction = true
    else if (byte < ZERO || byte > ZERO + 9) break
    else {
      if (inFraction) power--
      if (count === 0 && byte === ZERO) continue
      if (count === SAFE_DIGITS) return -1
      digits[count++] = byte
    }
  }
  // 2. The exponent, if there is one.
  if (place < to) {
    const sign = source[++place] as number
    if (sign === PLUS || sign === MINUS) place++
    let exponent = 0
    for (; place < to; place++) {
      exponent = exponent * 10 + (source[place] as number) - ZERO
      if (exponent > SAFE_POWER) return -1
    }
    power += sign === MINUS ? -exponent : exponent
  }
  // 3. Zeros at the end say nothing. Zero has no sign.
  while (count > 0 && digits[count - 1] === ZERO) {
    count--
    power++
  }
  if (count === 0) {
    out[at] = ZERO
    return at + 1
  }
  if (Math.abs(count + power) > SAFE_POWER) return -1
  let end = at
  if (negative) out[end++] = MINUS
  return writeDigits(out, end, count, count + power)
}

/** By the rules of ECMAScript, which are those of RFC 8785. `point` is where the decimal point stands among the digits. */
function writeDigits(out: Uint8Array, at: number, count: number, point: number): number {
  let end = at
  if (point > PLAIN_MOST || point <= PLAIN_LEAST) {
    out[end++] = digits[0] as number
    if (count > 1) out[end++] = POINT
    for (let k = 1; k < count; k++) out[end++] = digits[k] as number
    return writeExponent(out, end, point - 1)
  }
  if (point <= 0) {
    out[end++] = ZERO
    out[end++] = POINT
    for (let k = point; k < 0; k++) out[end++] = ZERO
  }
  for (let k = 0; k < count; k++) {
    if (k === point && k > 0) out[end++] = POINT
    out[end++] = digits[k] as number
  }
  for (let k = count; k < point; k++) out[end++] = ZERO
  return end
}

function writeExponent(out: Uint8Array, at: number, exponent: number): number {
  let end = at
  out[end++] = LOWER_E
  out[end++] = exponent < 0 ? MINUS : PLUS
  const size = Math.abs(exponent)
  if (size >= 100) out[end++] = ZERO + Math.floor(size / 100)
  if (size >= 10) out[end++] = ZERO + (Math.floor(size / 10) % 10)
  out[end++] = ZERO + (size % 10)
  return end
}
