import type { IncomingMessage, Server, ServerResponse } from 'node:http'

/**
 * What every answer carries unless its route says otherwise. Answers are about callers and of this moment: no cache keeps
 * them, and no browser reads anything else into them than what they say they are.
 */
const usual = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
} as const

/** Before any hook sees the request: answers that no route gives, and those past Fastify, have them, too. */
export function addUsualHeaders(server: Server): void {
  server.prependListener('request', (_request: IncomingMessage, response: ServerResponse) => {
    for (const [name, value] of Object.entries(usual)) response.setHeader(name, value)
  })
}

/** Those of an answer that is written past Node, as lines. */
export const usualLines: readonly string[] = Object.entries(usual).map(([name, value]) => `${name}: ${value}`)
