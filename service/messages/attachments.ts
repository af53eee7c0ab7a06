import { Buffer } from 'node:buffer'
import Type, { type Static } from 'typebox'
import { type Fields, isFields, ruled } from '../http/input.ts'

const ATTACHMENTS_MOST = 10
const FILENAME_CHARS_MOST = 200
const URL_CHARS_MOST = 2_000
/** Of all attachments together, decoded: what mail servers take without a question. */
const BYTES_MOST = 5 * 1_024 * 1_024
/** The body of a request that is just small enough: base64, escaped text, and the fields around them. */
export const REQUEST_BYTES_MOST = 8 * 1_024 * 1_024

/** As it is stored and sent. */
export interface Attachment {
  readonly filename: string
  readonly contentType: string
  readonly url?: string
  readonly base64?: string
}

const NOT_A_FILENAME = 'is not the name of a file'
const filename = ruled(Type.String({ maxLength: FILENAME_CHARS_MOST, errorMessage: NOT_A_FILENAME }), (name) =>
  isFilename(name) ? null : NOT_A_FILENAME,
)

function content(isGood: (text: string) => boolean, errorMessage: string, options: object = {}) {
  const schema = Type.Unsafe<string | null>({ type: ['string', 'null'], errorMessage, ...options })
  return Type.Optional(ruled(schema, (text) => (text === null || isGood(text) ? null : errorMessage)))
}

const attachment = ruled(
  Type.Object(
    {
      filename,
      contentType: Type.String({
        pattern: '^[\\w!#$&^.+-]{1,64}/[\\w!#$&^.+-]{1,64}(?:;[ -~]{0,128})?$',
        errorMessage: 'is not a media type, such as image/png',
      }),
      url: content(isWebUrl, 'is not an http or https URL', { maxLength: URL_CHARS_MOST }),
      base64: content(isBase64, 'is not base64'),
    },
    { description: 'Its content is either at `url` or in `base64`.' },
  ),
  complaintAboutContent,
)
type GivenAttachment = Static<typeof attachment>

export const attachments = Type.Optional(
  ruled(
    Type.Unsafe<readonly GivenAttachment[] | null>({
      type: ['array', 'null'],
      maxItems: ATTACHMENTS_MOST,
      items: attachment,
    }),
    (given: readonly unknown[] | null) => {
      const bytes = (given ?? []).reduce<number>((sum, each) => sum + bytesOf(each), 0)
      return bytes > BYTES_MOST ? `holds more than ${BYTES_MOST} bytes` : null
    },
  ),
)

export function attachmentsOf(given: Static<typeof attachments> = null): readonly Attachment[] {
  return (given ?? []).map(({ filename, contentType, url = null, base64 = null }) => ({
    filename,
    contentType,
    ...(url === null ? {} : { url }),
    ...(base64 === null ? {} : { base64 }),
  }))
}

function complaintAboutContent({ url = null, base64 = null }: Fields): string | null {
  if (url !== null && base64 !== null) return 'has both a url and base64: one of them is needed'
  return url === null && base64 === null ? 'has neither a url nor base64' : null
}

/** No path and no control character: some mail programs believe both. */
function isFilename(name: string): boolean {
  return name.trim() !== '' && name.isWellFormed() && !/[/\\\p{Cc}]/u.test(name)
}

function isWebUrl(text: string): boolean {
  const url = /\s/.test(text) ? null : URL.parse(text)
  return url !== null && (url.protocol === 'https:' || url.protocol === 'http:')
}

/** As it was encoded: what decodes to something else would arrive as something else. */
function isBase64(text: string): boolean {
  return text !== '' && Buffer.from(text, 'base64').toString('base64') === text
}

function bytesOf(given: unknown): number {
  const base64 = isFields(given) ? given['base64'] : null
  return typeof base64 === 'string' ? Buffer.byteLength(base64, 'base64') : 0
}
