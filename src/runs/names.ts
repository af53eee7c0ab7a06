import { OnceError } from '../ledger/core/errors.ts'
import { exceedsBytes } from '../ledger/core/identity.ts'
import { limits } from '../ledger/core/limits.ts'

/** Names become paths, so that a slash would let two of them meet. */
export function checkName(what: string, name: unknown): asserts name is string {
  const fits = typeof name === 'string' && name.length <= limits.runNameChars && /^[\w][\w .:@+-]*$/u.test(name)
  if (fits) return
  throw new OnceError(
    'bad_option',
    `${JSON.stringify(name) ?? String(name)} is no name for a ${what}: give up to ${limits.runNameChars} letters, digits and \`_ .:@+-\`.`,
  )
}

/** Ids come from outside: what a store cannot hold as text is refused before it spoils a write that others share. */
export function checkId(what: string, id: unknown): asserts id is string {
  const text = typeof id === 'string' && id.trim() !== '' && id.isWellFormed() && !/\p{Cc}/u.test(id)
  if (text && !exceedsBytes(id, limits.identityPartBytes)) return
  throw new OnceError(
    'bad_option',
    `A ${what} needs an id of 1 to ${limits.identityPartBytes} bytes, without control characters.`,
  )
}
