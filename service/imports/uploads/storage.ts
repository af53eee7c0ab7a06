/** One declared file of a search. */
export interface Upload {
  readonly searchId: string
  readonly name: string
}

/** The content that a storage has of a file. */
export interface StoredFile {
  /** Of the content: the same bytes have the same tag. */
  readonly etag: string
  readonly bytes: number
  /** Where the storage keeps versions: which of them it is. */
  readonly version: string | null
}

export type Stored =
  | { readonly kind: 'stored'; readonly file: StoredFile }
  /** It was there before, with the same content. */
  | { readonly kind: 'same'; readonly file: StoredFile }
  /** It was there before, with other content, which stays. */
  | { readonly kind: 'other'; readonly file: StoredFile }
  | { readonly kind: 'too_large' }

/** A request that uploads a file to the storage itself, past this server. */
export interface DirectUpload {
  readonly url: string
  /** Signed with the address, so that they have to be sent as they are. */
  readonly headers: Readonly<Record<string, string>>
  /** Milliseconds by the clock of this server. */
  readonly expiresAt: number
}

/** What is wrong with the name of an object: the part of it, and the rest of the sentence. */
export interface Misplaced {
  readonly part: 'bucket' | 'key'
  readonly detail: string
}

/**
 * Where uploaded files are: a folder or a bucket. A file is there whole or not at all. Which content of a file counts is
 * decided by the store, once; `read` gives that content or throws.
 */
export interface Storage {
  /** A bucket announces its own files, with their ETags. What is announced of a folder may come from any bucket. */
  readonly kind: 'folder' | 'bucket'
  /** What a person calls it. */
  readonly title: string
  /** The name of its bucket in notifications. */
  readonly bucket: string
  /** How often it is asked for files that nothing has announced. */
  readonly lookEveryMs: number
  /** Of the storage, whichever process opens it. */
  id(): Promise<string>
  /** The name of a file in notifications. */
  keyOf(upload: Upload): string
  /** The file that a notification names; null for an object of our own. */
  locate(object: { readonly bucket: string; readonly key: string }): Upload | Misplaced | null
  put(upload: Upload, content: AsyncIterable<Uint8Array>): Promise<Stored>
  /** Null when there is none. */
  look(upload: Upload): Promise<StoredFile | null>
  /** @throws FileMissing, StorageAway, Unreadable */
  read(upload: Upload, file: StoredFile): AsyncIterable<Uint8Array>
  /** After the store has refused what `put` stored, because other content counts. */
  discard(upload: Upload): Promise<void>
  /** For good; does nothing where there is none. `version` as it was accepted. @throws StorageAway */
  remove(upload: Upload, version: string | null): Promise<void>
  /** Null where clients upload through this server. */
  direct(upload: Upload, bytes: number): Promise<DirectUpload | null>
  /** Writes and reads a little. @throws StorageAway */
  examine(): Promise<void>
  /** Removes what broken uploads left behind. */
  tidy(): Promise<void>
}

/** A hundred thousand references with their abstracts fit. */
export const UPLOAD_BYTES_MOST = 512 * 1024 * 1024

/** The content that counts is not in this storage. */
export class FileMissing extends Error {
  override readonly name = 'FileMissing'
}

/** A storage that is away comes back in seconds or in minutes. */
export const AWAY_MS = 10_000

/** The storage does not answer, or refuses this server. Nothing is known of the file. */
export class StorageAway extends Error {
  override readonly name = 'StorageAway'
}
