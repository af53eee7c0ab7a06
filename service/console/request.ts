import type { FastifyRequest } from 'fastify'
import type { ConsoleRequest, ConsoleTokens } from 'onceonly/console'
import type { Config } from '../config.ts'

/** @param operatorToken the one that was chosen, or else made at the first start */
export function tokensOf({ operatorToken: chosen, viewerToken: viewer }: Config, operatorToken: string): ConsoleTokens {
  return { operator: operatorToken, viewer, chosen: chosen !== null || viewer !== null }
}

export function requestOf(request: FastifyRequest): ConsoleRequest {
  const { method, url, headers, socket, ip, raw } = request
  return {
    method,
    url,
    headers,
    httpVersion: raw.httpVersion,
    remoteAddress: socket.remoteAddress,
    clientAddress: ip,
    isEncrypted: request.protocol === 'https',
    body: async () => request.body,
  }
}
