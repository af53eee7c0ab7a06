import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Base } from '../store.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** By the store's clock, in milliseconds; set on routes with the hook `readStoreTime`. */
    storeTime: number
  }
}

export function decorateStoreTime(server: FastifyInstance): void {
  server.decorateRequest('storeTime', 0)
}

/** Before the command is claimed: inside of its transaction this would need a second connection. */
export function readStoreTime(base: Pick<Base, 'now'>) {
  return async (request: FastifyRequest): Promise<void> => {
    request.storeTime = await base.now()
  }
}
