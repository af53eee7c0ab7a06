/** What canonicalisation refuses, and the bounds that it refuses by. */

/** Containers inside containers. Real bodies stay below 20; 512 frames fit any stack, also one that is already deep. */
export const MAX_JSON_DEPTH = 512

/** Digits of an exponent, leading zeros aside: more than any number needs, few enough for exact sums as doubles. */
export const MAX_EXPONENT_DIGITS = 15

/** A path is for people; a hostile member name must not fill their screen. */
const MAX_PATH_CHARS = 300

export type CanonicalReason =
  | 'syntax'
  | 'invalid_utf8'
  | 'byte_order_mark'
  | 'control_character'
  | 'lone_surrogate'
  | 'duplicate_member'
  | 'too_deep'
  | 'number_out_of_range'
  | 'cycle'
  | 'unsupported_type'

const sentences: Readonly<Record<CanonicalReason, string>> = {
  syntax: 'This is not JSON',
  invalid_utf8: 'The bytes are not UTF-8',
  byte_order_mark: 'A byte order mark is not part of JSON',
  control_character: 'A control character must be escaped in a string',
  lone_surrogate: 'Half a surrogate pair is not text',
  duplicate_member: 'A member name appears twice in the object',
  too_deep: `More than ${MAX_JSON_DEPTH} containers are nested`,
  number_out_of_range: 'The number is not finite, or its exponent is absurd',
  cycle: 'The value contains itself',
  unsupported_type: 'The value has no JSON form',
}

/** Where the input was refused: at a byte of its UTF-8 form, or at a path such as `$.items[3].price`. */
type CanonicalPlace = { readonly offset: number } | { readonly path: string }

/** The input has no canonical form. The message names the place and never quotes a value: bodies hold secrets. */
export class CanonicalError extends Error {
  override readonly name = 'CanonicalError'
  readonly code = 'bad_input'
  readonly reason: CanonicalReason
  readonly offset: number | null
  readonly path: string | null

  constructor(reason: CanonicalReason, place: CanonicalPlace, detail = '') {
    const path = 'path' in place ? cut(place.path) : null
    const offset = 'offset' in place ? place.offset : null
    super(`${sentences[reason]} (${path ?? `byte ${offset}`})${detail === '' ? '' : `: ${detail}`}.`)
    this.reason = reason
    this.path = path
    this.offset = offset
  }
}

function cut(path: string): string {
  return path.length <= MAX_PATH_CHARS ? path : `${path.slice(0, MAX_PATH_CHARS)}…`
}
