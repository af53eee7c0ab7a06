import type { ServerResponse } from 'node:http'
import type { HeaderList } from './exchange.ts'

/** Of what the protocol itself says: it is about one caller and this moment, and is what its type says. */
export const notKept: HeaderList = [
  ['cache-control', 'no-store'],
  ['x-content-type-options', 'nosniff'],
]

const ofOwnServers: HeaderList = [
  ...notKept,
  ['referrer-policy', 'no-referrer'],
  ['content-security-policy', "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"],
]

/** For responses that the server makes by itself, unless the response sets them. */
export function setOwnHeaders(response: ServerResponse): void {
  for (const [name, value] of ofOwnServers) response.setHeader(name, value)
}
