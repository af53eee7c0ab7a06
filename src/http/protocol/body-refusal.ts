import { CanonicalError } from '../../ledger/core/canonical.ts'
import { OnceError } from '../../ledger/core/errors.ts'

const sentences = {
  content_type: 'The content type is not text',
  not_parsed: 'The body is neither JSON nor a form nor text, so its content cannot be compared',
  choose_failed: 'The function that chooses the fields of the body failed',
  inexact_number: 'A chosen field holds a number that would lose digits; send it as a string',
  percent_encoding: 'The form has an invalid percent-encoding',
  too_many_pairs: 'The form has too many fields',
  boundary: 'The content type names no valid boundary',
  no_delimiter: 'The multipart body does not contain its boundary',
  delimiter: 'A boundary in the multipart body is followed by something else than a line end',
  not_closed: 'The multipart body has no closing boundary',
  too_many_parts: 'The multipart body has too many parts',
  part_headers: 'The headers of a part are malformed',
  part_headers_too_large: 'The headers of a part are too large',
  part_name: 'A part of the form has no name',
} as const

export type BodyReason = keyof typeof sentences

/** Where the body was refused: at a byte, or in a header of the request. */
type BodyPlace = { readonly offset: number } | { readonly field: string }

/** The body cannot be read as what it says it is. The message names the place and never quotes a value. */
export function bodyRefusal(reason: BodyReason, place: BodyPlace, cause?: unknown): OnceError<'bad_input'> {
  const where = 'offset' in place ? `byte ${place.offset}` : place.field
  return new OnceError('bad_input', `${sentences[reason]} (${where}).`, { cause, details: { reason, ...place } })
}

/** Canonicalisation has errors of its own; to callers of this room every refusal is the same class. */
export function asBodyRefusal(error: unknown): unknown {
  if (!(error instanceof CanonicalError)) return error
  const { reason, offset, path, message } = error
  const details = { reason, ...(offset === null ? {} : { offset }), ...(path === null ? {} : { field: path }) }
  return new OnceError('bad_input', message, { cause: error, details })
}
