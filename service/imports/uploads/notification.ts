import type { IncomingMessage } from 'onceonly/inbox'
import type { Misplaced, StoredFile, Upload } from './storage.ts'

/** One record of a notification, as both ways in understand it. */
export interface ObjectCreated extends Upload {
  readonly etag: string | null
  /** With the same id for every copy of the notification, whichever way it comes. */
  readonly message: IncomingMessage
}

interface Announcement {
  readonly bucket: string
  readonly key: string
  readonly file: Pick<StoredFile, 'etag' | 'bytes'>
  /** By the store's clock. */
  readonly storedAt: number
}

/** What announcements of a folder name, because every notification names a bucket. */
export const BUCKET = 'onceonly-uploads'

/** The last two parts of a key are the search and the file; a bucket may have any folders in front of them. */
export function uploadOf(objectKey: string): Upload | null {
  // No column of text can hold it, so there is no such file.
  if (objectKey.includes('\0') || !objectKey.isWellFormed()) return null
  const [name, searchId] = objectKey.split('/').toReversed()
  return name === undefined || searchId === undefined || name === '' || searchId === '' ? null : { searchId, name }
}

export function locateAnywhere(key: string): Upload | Misplaced {
  return uploadOf(key) ?? { part: 'key', detail: 'does not end with an import and a file' }
}

const SEQUENCER_CHARS = 16

/** As S3 would send it. A file never changes, so that every announcement of it is the same, to the letter. */
export function notificationOf({ bucket, key, file, storedAt }: Announcement): unknown {
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
          bucket: { name: bucket, arn: `arn:aws:s3:::${bucket}` },
          object: {
            key: encodeURIComponent(key).replaceAll('%2F', '/').replaceAll('%20', '+'),
            size: file.bytes,
            eTag: file.etag,
            sequencer: storedAt.toString(16).toUpperCase().padStart(SEQUENCER_CHARS, '0'),
          },
        },
      },
    ],
  }
}
