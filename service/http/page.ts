import { Buffer } from 'node:buffer'
import Type from 'typebox'
import { ruled } from './input.ts'

interface Page {
  /** Rows of one page: at most, and when the caller does not say. */
  readonly most: number
  readonly usual: number
  /** Null for a text that is no cursor of this list. */
  readonly placeOf: (cursor: string) => unknown
}

/** The two parameters of every list that is read page by page. */
export function pageQuery({ most, usual, placeOf }: Page) {
  return {
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: most, default: usual, description: 'How many rows at most.' }),
    ),
    cursor: Type.Optional(
      ruled(Type.String({ description: 'The `cursor` of the page before.' }), (cursor) =>
        placeOf(cursor) === null ? 'is not one of ours: leave it out to start again' : null,
      ),
    ),
  }
}

/** A cursor is opaque to clients: a place in the list, in an alphabet that needs no escapes in an address. */
export function cursorOf(place: string): string {
  return Buffer.from(place).toString('base64url')
}

export function textOfCursor(cursor: string): string {
  return Buffer.from(cursor, 'base64url').toString()
}
