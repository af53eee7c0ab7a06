import type { IncomingMessage } from 'onceonly/inbox'
import type { StoredFile } from './storage.ts'

/** What the storage says about one file, in the words of S3 (`ObjectCreated`). */
export interface Upload {
  readonly searchId: string
  readonly name: string
}

/** One record of a notification, as both ways in understand it. */
export interface ObjectCreated extends Upload {
  /** With the same id for every copy of the notification, whichever way it comes. */
  readonly message: IncomingMessage
}

interface Announcement extends Upload, StoredFile {
  /** By the store's clock. */
  readonly storedAt: number
}

export const BUCKET = 'onceonly-uploads'
const FOLDER = 'imports'

/** The name of a file in its bucket. */
export function objectKeyOf({ searchId, name }: Upload): string {
  return `${FOLDER}/${searchId}/${name}`
}

/** The last two parts of a key are the search and the file; a bucket may have any folders in front of them. */
export function uploadOf(objectKey: string): Upload | null {
  // No column of text can hold it, so there is no such file.
  if (objectKey.includes('\0') || !objectKey.isWellFormed()) return null
  const [name, searchId] = objectKey.split('/').toReversed()
  return name === undefined || searchId === undefined || name === '' || searchId === '' ? null : { searchId, name }
}

const SEQUENCER_CHARS = 16

/** As S3 would send it. A file never changes, so that every announcement of it is the same, to the letter. */
export function notificationOf({ searchId, name, etag, bytes, storedAt }: Announcement): unknown {
  return {
    Records: [
      {
        eventVersion: '2.1',
        eventSource: 'onceonly:uploads',
        awsRegion: 'local',
        eventTime: new Date(storedAt).toISOString(),
        eventName: 'ObjectCreated:Put',
        s3: {
          s3SchemaVersion: '1.0',
          configurationId: 'imports',
          bucket: { name: BUCKET, arn: `arn:aws:s3:::${BUCKET}` },
          object: {
            key: encodeURIComponent(objectKeyOf({ searchId, name })).replaceAll('%2F', '/').replaceAll('%20', '+'),
            size: bytes,
            eTag: etag,
            sequencer: storedAt.toString(16).toUpperCase().padStart(SEQUENCER_CHARS, '0'),
          },
        },
      },
    ],
  }
}
