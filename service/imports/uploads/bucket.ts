import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { MINUTE, SECOND } from 'onceonly'
import { Unreadable } from '../parse/entry.ts'
import { uploadOf } from './notification.ts'
import { digestOf, openSpool, type Spooled } from './spool.ts'
import {
  FileMissing,
  type Storage,
  StorageAway,
  type Stored,
  type StoredFile,
  UPLOAD_BYTES_MOST,
  type Upload,
} from './storage.ts'

/** Where in S3 or in storage that speaks its protocol. */
export interface BucketPlace {
  readonly name: string
  /** Without a slash at either end; empty for the whole bucket. */
  readonly prefix: string
}

/** Bounds a host that does not answer; a connection inside of one network takes milliseconds. */
const CONNECT_MS = 3 * SECOND
/** Between two parts of an answer, not for all of it. */
const SILENCE_MS = 30 * SECOND
/** A person has chosen the file by then; a program asks for another address. */
const DIRECT_MS = 15 * MINUTE
/** A request to the bucket has its price, and is only needed where a notification was lost. */
const LOOK_EVERY_MS = 30 * SECOND
/** Objects of our own, beside the files. */
const OWN = '.onceonly'

const STATUS = { missing: 404, conflict: 409, exists: 412 } as const

/** The client of the SDK: region, endpoint and credentials come from its usual environment. */
export function createBucketClient(env: Readonly<Record<string, string | undefined>>): S3Client {
  return new S3Client({
    // Storage at an address of its own rarely has a name per bucket.
    forcePathStyle: Boolean(env['AWS_ENDPOINT_URL_S3'] || env['AWS_ENDPOINT_URL']),
    // Not every storage knows the newer checksums.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: { connectionTimeout: CONNECT_MS, socketTimeout: SILENCE_MS },
  })
}

interface Parts {
  readonly client: S3Client
  readonly place: BucketPlace
  /** For uploads that come through this server: their length is known only at their end. */
  readonly spoolFolder: string
  readonly bytesMost?: number
}

/** Files in a bucket. Their ETag is the bucket's. */
export async function openBucket({
  client,
  place,
  spoolFolder,
  bytesMost = UPLOAD_BYTES_MOST,
}: Parts): Promise<Storage> {
  const spool = await openSpool(spoolFolder, bytesMost)
  const { name: Bucket, prefix } = place
  const title = `s3://${[Bucket, prefix].filter((part) => part !== '').join('/')}`
  const path = (...parts: readonly string[]) => [prefix, ...parts].filter((part) => part !== '').join('/')
  const keyOf = ({ searchId, name }: Upload) => path(searchId, name)

  async function look(upload: Upload): Promise<StoredFile | null> {
    try {
      const found = await client.send(new HeadObjectCommand({ Bucket, Key: keyOf(upload) }))
      return { etag: tagOf(found.ETag), bytes: found.ContentLength ?? 0, version: found.VersionId ?? null }
    } catch (error) {
      if (statusOf(error) === STATUS.missing) return null
      throw away(error)
    }
  }

  async function open(key: string, version: string | null) {
    try {
      const found = await client.send(
        new GetObjectCommand({ Bucket, Key: key, ...(version !== null && { VersionId: version }) }),
      )
      if (!(found.Body instanceof Readable)) throw new Error('The storage answered without a content')
      return { etag: tagOf(found.ETag), body: found.Body }
    } catch (error) {
      if (statusOf(error) !== STATUS.missing || nameOf(error) === 'NoSuchBucket') throw away(error)
      return null
    }
  }

  async function* read(upload: Upload, file: StoredFile): AsyncGenerator<Uint8Array> {
    if (file.bytes > bytesMost) throw new Unreadable(`has more than ${bytesMost} bytes`)
    const found = await open(keyOf(upload), file.version)
    if (found === null) throw new FileMissing(`${upload.name} is not in ${title}`)
    if (found.etag !== file.etag) {
      found.body.destroy()
      throw new Unreadable('was replaced in the bucket after it had been accepted')
    }
    try {
      yield* found.body
    } catch (error) {
      throw away(error)
    }
  }

  async function compared(upload: Upload, there: StoredFile, spooled: Spooled): Promise<Stored> {
    // Byte by byte, because the ETag of an encrypted object, or of one in parts, is no digest of its content.
    const isSame = there.bytes === spooled.bytes && (await digestThere(upload, there)) === spooled.digest
    return { kind: isSame ? 'same' : 'other', file: there }
  }

  async function digestThere(upload: Upload, there: StoredFile): Promise<string> {
    try {
      return (await digestOf(read(upload, there))).digest
    } catch (error) {
      // Storage without conditions lets another request replace or remove it after the check: the same upload again
      // shows it.
      if (!(error instanceof Unreadable || error instanceof FileMissing)) throw error
      throw new StorageAway(`${upload.name} in ${title} was changed while it was compared`, { cause: error })
    }
  }

  async function write(upload: Upload, spooled: Spooled): Promise<StoredFile | null> {
    try {
      const { ETag, VersionId } = await client.send(
        new PutObjectCommand({
          ...described(upload),
          Body: createReadStream(spooled.path),
          ContentLength: spooled.bytes,
        }),
      )
      return { etag: tagOf(ETag), bytes: spooled.bytes, version: VersionId ?? null }
    } catch (error) {
      if (statusOf(error) === STATUS.exists || statusOf(error) === STATUS.conflict) return null
      throw away(error)
    }
  }

  /** A name is given once: storage that knows the condition refuses other content for it. */
  const described = (upload: Upload) => ({
    Bucket,
    Key: keyOf(upload),
    IfNoneMatch: '*',
    // So that a browser never shows it as a page of the bucket.
    ContentType: 'application/octet-stream',
    Metadata: { 'onceonly-search': upload.searchId },
  })

  async function put(upload: Upload, spooled: Spooled): Promise<Stored> {
    const before = await look(upload)
    if (before !== null) return await compared(upload, before, spooled)
    const file = await write(upload, spooled)
    if (file !== null) return { kind: 'stored', file }
    const there = await look(upload)
    if (there === null) throw new StorageAway(`${upload.name} is being written to ${title} by another request`)
    return await compared(upload, there, spooled)
  }

  async function putOwn(name: string, text: string, condition: { readonly IfNoneMatch?: '*' } = {}): Promise<void> {
    try {
      await client.send(new PutObjectCommand({ Bucket, Key: path(name), Body: text, ...condition }))
    } catch (error) {
      if (statusOf(error) !== STATUS.exists && statusOf(error) !== STATUS.conflict) throw away(error)
    }
  }

  async function getOwn(name: string): Promise<string | null> {
    const found = await open(path(name), null)
    if (found === null) return null
    const chunks: Uint8Array[] = []
    for await (const chunk of found.body) chunks.push(chunk)
    return Buffer.concat(chunks).toString()
  }

  return {
    kind: 'bucket',
    title,
    bucket: Bucket,
    lookEveryMs: LOOK_EVERY_MS,
    async id() {
      // Made by the first who opens it, and read by all.
      if ((await getOwn(OWN)) === null) await putOwn(OWN, randomUUID(), { IfNoneMatch: '*' })
      const id = await getOwn(OWN)
      if (id === null) throw new StorageAway(`${title} does not keep what is written to it`)
      return id
    },
    keyOf,
    locate({ bucket, key }) {
      if (bucket !== Bucket) return { part: 'bucket', detail: `names ${bucket}; files are imported from ${title}` }
      if (key === path(OWN) || key === path(CHECK)) return null
      const upload = uploadOf(key)
      return upload !== null && keyOf(upload) === key
        ? upload
        : { part: 'key', detail: `does not name an import and a file in ${title}` }
    },
    async put(upload, content) {
      await using spooled = await spool.take(content)
      return spooled === null ? { kind: 'too_large' } : await put(upload, spooled)
    },
    look,
    read,
    // Its name has the content that counts, or the reader says that it was replaced.
    discard: async () => {},
    async remove(upload, version) {
      try {
        // A bucket that keeps versions would only hide the file behind a marker, unless the request names the version.
        const which = version === null ? {} : { VersionId: version }
        await client.send(new DeleteObjectCommand({ Bucket, Key: keyOf(upload), ...which }))
      } catch (error) {
        if (statusOf(error) !== STATUS.missing || nameOf(error) === 'NoSuchBucket') throw away(error)
      }
    },
    async direct(upload, bytes) {
      const expiresAt = Date.now() + DIRECT_MS
      const headers = {
        'content-type': described(upload).ContentType,
        'if-none-match': '*',
        'x-amz-meta-onceonly-search': upload.searchId,
      }
      const names = Object.keys(headers)
      const url = await getSignedUrl(client, new PutObjectCommand({ ...described(upload), ContentLength: bytes }), {
        expiresIn: DIRECT_MS / SECOND,
        signableHeaders: new Set(['host', 'content-length', ...names]),
        unhoistableHeaders: new Set(names),
      })
      return { url, headers, expiresAt }
    },
    async examine() {
      const text = randomUUID()
      await putOwn(CHECK, text)
      if ((await getOwn(CHECK)) === null) throw new StorageAway(`${title} does not keep what is written to it`)
    },
    tidy: spool.tidy,
  }
}

const CHECK = `${OWN}-check`

function tagOf(etag: string | undefined): string {
  return (etag ?? '').replaceAll('"', '')
}

function statusOf(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : ''
}

function away(cause: unknown): StorageAway {
  const status = statusOf(cause)
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : nameOf(cause)
  const why = status === undefined ? code : `${status} ${nameOf(cause)}`
  return new StorageAway(`The storage of uploads does not answer as it should (${why})`, { cause })
}
