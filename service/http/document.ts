import { type Declaration, record, text } from '../openapi/declaration.ts'

/** What the document says about the server itself. */

const system = { name: 'health', about: 'Is the server alive, is it ready, and what can it do?' }
const status = record({ status: text })

export const health: Declaration = {
  id: 'healthz',
  system,
  summary: 'Is the process alive?',
  access: 'anyone',
  answers: { 200: { about: 'It is', schema: status } },
}

export const readiness: Declaration = {
  id: 'readyz',
  system,
  summary: 'Can it reach its store?',
  access: 'anyone',
  answers: { 200: { about: 'It can', schema: status }, 503: { about: 'Not now', schema: status } },
}

export const openapiDocument: Declaration = {
  id: 'openapi',
  system,
  summary: 'This document',
  access: 'anyone',
  answers: { 200: { about: 'OpenAPI 3.1', schema: { type: 'object' } } },
}
