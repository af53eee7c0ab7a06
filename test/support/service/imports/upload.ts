import type { Answer, TestServer } from '../cluster.ts'

/** Uploads one file of an import, as a client would. */
export async function upload(
  server: Pick<TestServer, 'url' | 'apiKey'>,
  { searchId }: { readonly searchId: string },
  name: string,
  content: string | Uint8Array<ArrayBuffer>,
  apiKey = server.apiKey,
): Promise<Answer> {
  const path = `/api/imports/${searchId}/files/${encodeURIComponent(name)}`
  return ask(server, 'PUT', path, content, { authorization: `Bearer ${apiKey}`, 'content-type': 'text/plain' })
}

export async function ask(
  { url }: Pick<TestServer, 'url'>,
  method: string,
  path: string,
  content: string | Uint8Array<ArrayBuffer>,
  headers: Readonly<Record<string, string>>,
): Promise<Answer> {
  const response = await fetch(url + path, { method, headers, body: content })
  const text = await response.text()
  const body = text === '' ? {} : (JSON.parse(text) as Answer['body'])
  return { status: response.status, headers: response.headers, text, body }
}
