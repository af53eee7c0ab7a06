import { MAX_EXPONENT_DIGITS } from './canonical-rules.ts'

/** The longest shortest text of a double has 17 digits; a longer number cannot be equal to it. */
const DOUBLE_DIGITS = 17

/** Beyond this power of ten of the leading digit every double is infinite or zero. */
const DOUBLE_POWER = 400

const ZERO = 0x30

/**
 * The one text of a decimal, whatever its spelling. Where the shortest text of the nearest double denotes the same
 * decimal, it is that text (RFC 8785). Elsewhere, where RFC 8785 would silently round, it is the exact decimal
 * `<sign><digits>e<power>`, digits without zeros at either end: still a JSON number, so that canonical text is its own
 * canonical text. Works on the text alone, in linear time; `null` when the exponent is absurd.
 *
 * @param token a number as JSON spells it; the caller has checked the grammar
 */
export function canonicalNumber(token: string): string | null {
  const negative = token.startsWith('-')
  const mark = token.search(/[eE]/)
  const mantissa = token.slice(negative ? 1 : 0, mark < 0 ? token.length : mark)
  const point = mantissa.indexOf('.')
  const spelled = point < 0 ? mantissa : mantissa.slice(0, point) + mantissa.slice(point + 1)

  // Loops, because /0+$/ is quadratic on a long run of zeros that does not end the text.
  let from = 0
  while (from < spelled.length && spelled.charCodeAt(from) === ZERO) from++
  if (from === spelled.length) return '0'
  let to = spelled.length
  while (spelled.charCodeAt(to - 1) === ZERO) to--
  const digits = spelled.slice(from, to)

  const exponent = mark < 0 ? 0 : exponentOf(token.slice(mark + 1))
  if (exponent === null) return null
  const fraction = point < 0 ? 0 : mantissa.length - point - 1
  const power = exponent - fraction + (spelled.length - to)

  const sign = negative ? '-' : ''
  return sign + (doubleText(digits, power) ?? `${digits}e${power}`)
}

/** The text of the double that denotes exactly `digits × 10^power`, if one does. */
function doubleText(digits: string, power: number): string | null {
  const leading = power + digits.length - 1
  if (digits.length > DOUBLE_DIGITS || Math.abs(leading) > DOUBLE_POWER) return null
  const double = Number(`${digits}e${power}`)
  // toExponential() without an argument writes the shortest digits, so equal texts are equal decimals.
  const scientific = `${digits.charAt(0)}${digits.length > 1 ? '.' : ''}${digits.slice(1)}e${leading < 0 ? '' : '+'}${leading}`
  return double.toExponential() === scientific ? String(double) : null
}

function exponentOf(text: string): number | null {
  const signed = text.startsWith('-') || text.startsWith('+')
  let from = signed ? 1 : 0
  while (from < text.length - 1 && text.charCodeAt(from) === ZERO) from++
  if (text.length - from > MAX_EXPONENT_DIGITS) return null
  const size = Number(text.slice(from))
  return text.startsWith('-') ? -size : size
}
