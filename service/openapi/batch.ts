import { named, type ObjectSchema, record, type Schema, text } from './declaration.ts'

/** Batches look alike in every system; only their items differ. */

const key: Schema = { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' }
const ITEMS_MOST = 500

export function batchRequest(item: ObjectSchema): Schema {
  const keyed = { ...item, required: ['itemKey', ...item.required], properties: { itemKey: key, ...item.properties } }
  return record({
    batchId: { ...key, description: 'Names the batch; with the itemKey, the identity of every item.' },
    items: { type: 'array', minItems: 1, maxItems: ITEMS_MOST, items: keyed },
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
