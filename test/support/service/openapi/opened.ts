import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../../../../service/config.ts'
import { type Service, startService } from '../../../../service/service.ts'

export const demoKey = 'demo-key-of-tests'
export const operatorToken = 'operator-token-of-tests'
export const viewerToken = 'viewer-token-of-tests'
export const hookSecret = 'hook-secret-of-tests'

/** As much of the document as tests look at. */
export interface TestedDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, TestedOperation>>>>
  readonly components: Readonly<Record<string, unknown>>
  readonly [member: string]: unknown
}

export interface TestedOperation {
  readonly operationId: string
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly example: unknown }>> }
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: object }>> }>
  >
  readonly [member: string]: unknown
}

export interface Opened extends AsyncDisposable {
  readonly service: Service
  readonly document: TestedDocument
  /** The folder of its store. */
  readonly data: string
}

/** The whole server in this process, so that a test sees the routes that it really has. */
export async function openedService(): Promise<Opened> {
  const data = await mkdtemp(join(tmpdir(), 'onceonly-openapi-'))
  const service = await startService(
    readConfig({
      PORT: '0',
      ONCEONLY_DATA: data,
      ONCEONLY_DEMO_KEY: demoKey,
      ONCEONLY_OPERATOR_TOKEN: operatorToken,
      ONCEONLY_VIEWER_TOKEN: viewerToken,
      ONCEONLY_HOOK_SECRET: hookSecret,
      ONCEONLY_TEST_CLOCK: '1',
      ONCEONLY_LOG_LEVEL: 'silent',
    }),
  )
  const document = (await (await fetch(`${service.url}/openapi.json`)).json()) as TestedDocument
  return {
    service,
    document,
    data,
    async [Symbol.asyncDispose]() {
      await service.stop()
      await rm(data, { recursive: true, force: true })
    },
  }
}
