import type { FastifyInstance } from 'fastify'

/**
 * While the server stops, every answer ends its connection. The client would keep it open otherwise, and the stop would wait
 * for more than a minute until it counts as idle for too long.
 */
export function endConnectionsAtClose(server: FastifyInstance): void {
  let closing = false
  server.addHook('preClose', async () => {
    closing = true
  })
  server.addHook('onSend', async (_request, reply, payload) => {
    // Not as a header of the answer, which may be recorded for its repeats.
    if (closing) reply.raw.shouldKeepAlive = false
    return payload
  })
}
