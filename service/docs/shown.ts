import type { Schemas, ShownSchema } from './schema.ts'

/** As much of our OpenAPI document as the page shows. */
export interface ShownDocument {
  readonly info: {
    readonly title: string
    readonly version: string
    readonly summary: string
    readonly description: string
  }
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, ShownOperation>>>>
  readonly components: { readonly schemas: Schemas }
}

export interface ShownOperation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description?: string
  readonly security: readonly Readonly<Record<string, unknown>>[]
  readonly parameters?: readonly ShownParameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { schema: ShownSchema; example: unknown }>> }
  readonly responses: Readonly<Record<string, ShownResponse>>
  readonly 'x-onceonly'?: ShownContract
}

export interface ShownParameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly description?: string
}

export interface ShownResponse {
  readonly description: string
  readonly headers?: Readonly<Record<string, { readonly description: string }>>
  readonly content?: Readonly<Record<string, { readonly schema: ShownSchema }>>
}

export interface ShownContract {
  readonly kind: 'command' | 'batch' | 'natural'
  readonly key?: string
  readonly repeats?: string
  readonly checklist: readonly { readonly topic: string; readonly question: string; readonly answer: string | null }[]
}
