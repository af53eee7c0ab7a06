import { type Declaration, named, record, text } from '../openapi/declaration.ts'

const system = {
  name: 'operations',
  about: 'What became of a request: for a client that was asked to look later, or that lost its answer.',
}

const result = {
  type: 'object',
  description: 'The answer that was given.',
  required: ['status', 'headers'],
  properties: {
    status: { type: 'integer' },
    headers: { type: 'object', additionalProperties: text },
    body: { description: 'JSON as JSON, text as text.' },
    bodyBase64: text,
  },
}

export const readOperation = {
  id: 'operations.get',
  system,
  summary: 'Read the status of an operation',
  description:
    'Only the caller that made the request may read it, with its present rights; for all others it does not exist.',
  access: 'api key',
  path: { id: 'The id of the operation, from `Location` or from the `instance` of a problem.' },
  answers: {
    200: {
      about: 'What became of it',
      schema: named(
        'OperationStatus',
        record(
          {
            id: text,
            operation: text,
            status: {
              type: 'string',
              enum: ['in_progress', 'succeeded', 'failed_terminal', 'failed_retryable', 'unknown', 'vacant'],
            },
            result,
            problem: { type: 'object', description: 'The problem document that a retry would be answered.' },
            links: record({ self: { type: 'string', format: 'uri-reference' } }),
          },
          ['result', 'problem'],
        ),
      ),
    },
  },
} satisfies Declaration
