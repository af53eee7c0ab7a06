import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliDecompress, gzip } from 'node:zlib'
import { assetHeaders, pageHeaders, plainHeaders } from './headers.ts'

/** As much of a request as decides the answer; paths come without their query. */
export interface PageRequest {
  readonly path: string
  readonly ifNoneMatch?: string | undefined
  readonly acceptEncoding?: string | undefined
}

export interface PageAnswer {
  readonly status: 200 | 304 | 404 | 503
  readonly headers: Readonly<Record<string, string>>
  /** Null where the status says it all. */
  readonly body: Uint8Array | null
}

/** The built pages, for any server: it only passes answers on. */
export interface Pages {
  answer(request: PageRequest): Promise<PageAnswer>
}

interface File {
  readonly headers: Readonly<Record<string, string>>
  readonly etag: string
  readonly plain: Buffer
  /** Null where it is not worth it. */
  readonly zipped: (() => Promise<Buffer>) | null
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** Below this a header and a checksum cost more than is saved. */
const ZIPPED_BYTES_LEAST = 1_024

const zip = promisify(gzip)
const unpack = promisify(brotliDecompress)

/** What is published is compressed, smaller than gzip would make it. */
const PACKED = '.br'

/**
 * Reads the console into memory: some hundred kilobytes, which never change while a process lives. It answers at `/console`
 * and below it. The pages of the server of the repository, `/` and `/chat`, answer where they were built.
 *
 * @param folder where they were built; without it, the ones of this package
 *
 * @example
 * ```ts
 * import { createServer } from 'node:http'
 * import { readPages } from 'onceonly/pages'
 *
 * const pages = await readPages()
 * createServer(async (request, response) => {
 *   const { status, headers, body } = await pages.answer({ path: request.url ?? '/' })
 *   response.writeHead(status, headers).end(body)
 * })
 * ```
 */
export async function readPages(folder: string = builtFolder()): Promise<Pages> {
  const files = await read(folder)
  return {
    async answer(request) {
      const file = files.get(fileOf(request.path))
      if (file !== undefined) return served(file, request)
      return files.size === 0
        ? plain(503, 'The pages have not been built: npm start does it.')
        : plain(404, 'Not found.')
    },
  }
}

/** Beside this file in the published package; inside of the repository, where the console is built. */
function builtFolder(): string {
  const published = join(import.meta.dirname, 'built')
  return existsSync(published) ? published : join(import.meta.dirname, '..', '..', '..', 'console', 'dist')
}

/** Whatever is below `/console` and no file is a place inside of the page, which finds its way by itself. */
function fileOf(path: string): string {
  if (path === '/chat') return 'chat.html'
  if (path === '/') return 'home.html'
  const asset = /^\/console\/(assets\/.*)$/.exec(path)
  return asset?.[1] ?? 'console.html'
}

async function read(folder: string): Promise<Map<string, File>> {
  const names = (await Promise.all(['.', 'assets'].map((part) => listed(folder, part)))).flat()
  return new Map(await Promise.all(names.map(async (name) => [nameOf(name), await readOne(folder, name)] as const)))
}

async function listed(folder: string, part: string): Promise<string[]> {
  try {
    const names = await readdir(join(folder, part))
    return names
      .filter((name) => extname(nameOf(name)) in types)
      .map((name) => (part === '.' ? name : `${part}/${name}`))
  } catch (error) {
    // The pages are not built yet: each request is answered with a hint.
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}

async function readOne(folder: string, name: string): Promise<File> {
  const stored = await readFile(join(folder, name))
  const plain = name.endsWith(PACKED) ? await unpack(stored) : stored
  const extension = extname(nameOf(name))
  const headers = { ...(extension === '.html' ? pageHeaders : assetHeaders), 'content-type': types[extension] ?? '' }
  const etag = `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`
  const zipped = plain.length < ZIPPED_BYTES_LEAST ? null : once(() => zip(plain, { level: 9 }))
  return { headers, etag, plain, zipped }
}

async function served(file: File, { ifNoneMatch, acceptEncoding }: PageRequest): Promise<PageAnswer> {
  const headers = { ...file.headers, etag: file.etag, vary: 'accept-encoding' }
  if (ifNoneMatch !== undefined && ifNoneMatch.includes(file.etag)) return { status: 304, headers, body: null }
  const zipped = /\bgzip\b/.test(acceptEncoding ?? '') ? file.zipped : null
  if (zipped === null) return { status: 200, headers, body: file.plain }
  return { status: 200, headers: { ...headers, 'content-encoding': 'gzip' }, body: await zipped() }
}

function nameOf(file: string): string {
  return file.endsWith(PACKED) ? file.slice(0, -PACKED.length) : file
}

/** Made when it is first asked for. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null
  return () => (made ??= make())
}

function plain(status: 404 | 503, text: string): PageAnswer {
  return { status, headers: plainHeaders, body: new TextEncoder().encode(`${text}\n`) }
}
