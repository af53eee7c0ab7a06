/** The documents that the protocol answers, as JSON Schema. */

export const problemSchema = {
  type: 'object',
  description: 'A problem document of RFC 9457.',
  required: ['type', 'title', 'status', 'detail', 'retryable'],
  properties: {
    type: { type: 'string', format: 'uri-reference', description: 'Stable: programs decide by it.' },
    title: { type: 'string' },
    status: { type: 'integer', minimum: 100, maximum: 599 },
    detail: { type: 'string' },
    instance: { type: 'string', format: 'uri-reference' },
    retryable: { type: 'boolean', description: 'May the same request succeed later, unchanged?' },
    operation: { type: 'string' },
    retryAfterMs: { type: 'number', minimum: 0 },
    error: {
      type: 'object',
      description: 'The same once more, where widespread SDKs look for it.',
      required: ['type', 'code', 'message'],
      properties: { type: { type: 'string' }, code: { type: 'string' }, message: { type: 'string' } },
    },
    errors: {
      type: 'array',
      description: 'Every field that is wrong.',
      items: {
        type: 'object',
        required: ['field', 'detail'],
        properties: { field: { type: 'string' }, detail: { type: 'string' } },
      },
    },
  },
} as const

export const stripeSchema = {
  type: 'object',
  description: 'An error in the shape of Stripe’s first API version.',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['type', 'message'],
      properties: { type: { type: 'string' }, code: { type: 'string' }, message: { type: 'string' } },
    },
  },
} as const
