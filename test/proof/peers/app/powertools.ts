import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency'
import { CachePersistenceLayer } from '@aws-lambda-powertools/idempotency/cache'
import type { CacheClient } from '@aws-lambda-powertools/idempotency/cache/types'
import type { Pool } from 'pg'

interface OrderEvent {
  readonly user: string
  readonly key: string
  readonly item: string
}

export function createHandler(pool: Pool, client: CacheClient) {
  return makeIdempotent(
    async (event: OrderEvent) => {
      const { rows } = await pool.query('insert into orders (item) values ($1) returning id', [event.item])
      return rows[0]
    },
    {
      persistenceStore: new CachePersistenceLayer({ client }),
      config: new IdempotencyConfig({ eventKeyJmesPath: '[user, key]' }),
    },
  )
}
