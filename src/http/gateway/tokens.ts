import type { IncomingMessage } from 'node:http'
import type { JwksConfig } from './config.ts'
import { createKeySet, keySource } from './jwks.ts'
import type { Verified } from './jwt.ts'
import { verifyBearer } from './jwt.ts'

/** Verifies the bearer tokens of one issuer. */
export interface Tokens {
  /** The subject of this request's token; null where there is none, or none that can be verified. Never rejects. */
  verify(message: IncomingMessage): Promise<Verified | null>
  stop(): void
}

export function createTokens(config: JwksConfig, onError: (error: unknown) => void): Tokens {
  const keys = createKeySet({ load: keySource(config), onError })
  const { issuer, audience } = config
  const expected = { issuer, audiences: audience === null ? null : [audience].flat() }
  return {
    async verify({ headers }) {
      if (headers.authorization === undefined) return null
      return verifyBearer(headers.authorization, keys.find, expected, Date.now())
    },
    stop: keys.stop,
  }
}
