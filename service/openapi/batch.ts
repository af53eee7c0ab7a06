import Type, { type TObject, type TSchema } from 'typebox'
import { named, record, type Schema, text } from './declaration.ts'

/** Batches look alike in every system; only their items differ. */

const key = { minLength: 1, maxLength: 255, pattern: '^[!-~]+$' }
const ITEMS_MOST = 500

/** Documents a batch. `readBatch` reads it, and each item is checked by itself: one that is wrong fails alone. */
export function batchRequest({ properties }: TObject): TSchema {
  const item = Type.Object({ itemKey: Type.String(key), ...properties })
  return Type.Object({
    batchId: Type.String({ ...key, description: 'Names the batch; with the itemKey, the identity of every item.' }),
    items: Type.Array(item, { minItems: 1, maxItems: ITEMS_MOST }),
  })
}

const more = { additionalProperties: true }
const status = (value: string): Schema => ({ type: 'string', enum: [value] })
const itemKey = text

const result = named('BatchItemResult', {
  description: 'Every item has an outcome of its own. Send the batch again to run what is not done.',
  oneOf: [
    { title: 'Succeeded', ...record({ itemKey, status: status('SUCCEEDED'), resourceId: text }), ...more },
    {
      title: 'Failed',
      ...record({ itemKey, status: status('FAILED'), errorCode: text, retryable: { type: 'boolean' } }),
      ...more,
    },
    { title: 'In progress', ...record({ itemKey, status: status('IN_PROGRESS') }), ...more },
    { title: 'Unknown', ...record({ itemKey, status: status('UNKNOWN') }), ...more },
  ],
})

export const batchAnswer: Schema = named(
  'BatchAnswer',
  record({ batchId: text, results: { type: 'array', description: 'In the order of the request.', items: result } }),
)
