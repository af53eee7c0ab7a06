import Type, { type Static } from 'typebox'
import { oneOf, ruled } from '../http/input.ts'
import { pageQuery, textOfCursor } from '../http/page.ts'
import { unstorable } from '../http/text.ts'
import {
  count,
  type Declaration,
  instantOrNull,
  list,
  named,
  natural,
  record,
  text,
  textOrNull,
} from '../openapi/declaration.ts'
import { historyEvent } from './history.ts'
import { fileNames, text as metadataText } from './metadata.ts'
import { reference } from './parse/entry.ts'
import { BUCKET, notificationOf } from './uploads/notification.ts'
import { UPLOAD_BYTES_MOST } from './uploads/storage.ts'
import { view } from './view.ts'

/** The commands and reads of the imports: their schemas check, type and document them. */

const system = {
  name: 'imports',
  about:
    'Search imports: reference files (RIS, NBIB, CSV) are uploaded and parsed, driven by a saga that survives duplicate, ' +
    'late and disordered events.',
}

const tests = 'test/contract/service/imports.test.ts'

export const startImport = {
  id: 'imports.start',
  system,
  summary: 'Start the import of a search',
  description:
    'Names the files that will come. Its id is given out once, and never again. Every file is then uploaded to its own ' +
    'address; when the last one is there, all of them are parsed. After 60 minutes without the last file it ends.',
  access: 'api key',
  body: {
    schema: named(
      'StartImportRequest',
      Type.Object(
        { projectId: metadataText, searchName: metadataText, files: fileNames },
        { additionalProperties: false },
      ),
    ),
    example: { projectId: 'retries', searchName: 'PubMed, November', files: ['pubmed.nbib', 'embase.ris'] },
  },
  answers: {
    403: { about: 'The caller has no right to use this system, or the workspace keeps as much as it may' },
    201: {
      about: 'Started',
      schema: named(
        'StartedImport',
        record({
          searchId: text,
          state: oneOf(['Uploading']),
          uploads: {
            type: 'array',
            items: record({
              name: text,
              url: { type: 'string', description: 'Where the file is uploaded to, on this server.' },
              objectKey: { type: 'string', description: 'What a notification of the storage calls it.' },
            }),
          },
        }),
      ),
      headers: { Location: 'Where the import is read.' },
    },
  },
} satisfies Declaration

/** Of the start: what its definition does not say. */
export const startNotes = {
  documentation: '/docs#imports.start',
  businessUniqueness: 'none: the same search may be imported again, as another import with an id of its own',
  outbox: 'SearchUploadStarted commits with the search, under an id of the command',
  externalCalls: 'there are none',
  tests: 'test/contract/service/imports.test.ts',
}

export const uploadFile: Declaration = {
  id: 'imports.upload',
  system,
  summary: 'Upload one file of an import',
  description: `The bytes of the file, ${UPLOAD_BYTES_MOST} at most. What it is, is found out by what it says.`,
  access: 'api key',
  path: { searchId: 'The id of the import.', name: 'The name of the file, as it was declared.' },
  body: {
    type: 'application/octet-stream',
    schema: { type: 'string', description: 'RIS, NBIB (PubMed) or CSV, in UTF-8, UTF-16 or Latin-1.' },
    example: 'TY  - JOUR\nTI  - On retries\nER  -\n',
  },
  answers: {
    200: { about: 'The same content was stored before', schema: storedFile(), headers: { ETag: 'Of the content.' } },
    201: { about: 'Stored', schema: storedFile(), headers: { ETag: 'Of the content.' } },
    403: { about: 'The caller has no right to use this system, or the workspace keeps as much as it may' },
    409: { about: 'It was uploaded before with other content, or the import has ended' },
    415: { about: 'The body is encoded, so that it is not the file itself' },
    429: {
      about: 'The workspace uploads as many files at once as it may',
      headers: { 'Retry-After': 'In how many seconds to come back.' },
    },
  },
  repeat: natural('imports.upload', {
    repeats: 'the same bytes are the same file, other bytes are refused',
    businessUniqueness: 'a file has one name and one content, for good',
    outbox: 'the announcement of the file commits with the mark that it is stored, under an id of the file',
    tests,
  }),
}

export const readUpload = {
  id: 'imports.upload_address',
  system,
  summary: 'Ask where to upload a file',
  description:
    'With files in a bucket, a signed address of the bucket itself, for this file and this length, which takes the file ' +
    'once. Otherwise, and for a file that is stored already, the address on this server, with the API key.',
  access: 'api key',
  path: { searchId: 'The id of the import.', name: 'The name of the file, as it was declared.' },
  query: {
    bytes: Type.Integer({
      minimum: 0,
      maximum: UPLOAD_BYTES_MOST,
      errorMessage: `is not a whole number from 0 to ${UPLOAD_BYTES_MOST}`,
      description: 'The length of the file.',
    }),
  },
  answers: {
    403: { about: 'The caller has no right to use this system, or the workspace keeps as much as it may' },
    200: {
      about: 'The request that uploads the file',
      schema: named(
        'UploadAddress',
        record({
          to: oneOf(['server', 'storage']),
          method: oneOf(['PUT']),
          url: { type: 'string', description: 'An address of the storage, or a path on this server.' },
          headers: {
            type: 'object',
            description: 'Signed with the address: to be sent as they are.',
            additionalProperties: text,
          },
          expiresAt: { ...instantOrNull, description: 'Of a signed address; ask for another one then.' },
        }),
      ),
      headers: { 'Cache-Control': '`no-store`: the address is a secret.' },
    },
    409: { about: 'The import has ended' },
  },
} satisfies Declaration

function storedFile() {
  return record({ searchId: text, name: text, bytes: count, etag: text })
}

export const readImport = {
  id: 'imports.get',
  system,
  summary: 'Read an import, with its history',
  access: 'api key',
  path: { searchId: 'The id of the import.' },
  answers: {
    200: { about: 'As it stands now', schema: named('Import', record({ ...view, history: list(historyEvent) })) },
  },
} satisfies Declaration

/** References of one page; an abstract may have pages of its own. */
const REFERENCES_MOST = 200
export const REFERENCES_USUAL = 50

/** The last reference of the page before. */
export interface Place {
  /** By the place of its file among those that were declared. */
  readonly file: number
  readonly number: number
}

export function placeOf(cursor: string): Place | null {
  const [, file, number] = /^(\d{1,3}) (\d{1,9})$/.exec(textOfCursor(cursor)) ?? []
  return file === undefined || number === undefined ? null : { file: Number(file), number: Number(number) }
}

const referenceView = named(
  'Reference',
  record({
    file: text,
    number: { ...count, description: 'Its place in the file, from 1.' },
    line: { ...count, description: 'Where it begins in the file, from 1.' },
    ...reference,
  }),
)
export type ReferenceView = Static<typeof referenceView>

export const readReferences = {
  id: 'imports.references',
  system,
  summary: 'Read the references of an import, page by page',
  description:
    'In the order of the files, and inside of them. A file counts when it was read to its end, so the list is complete ' +
    'when the import is.',
  access: 'api key',
  path: { searchId: 'The id of the import.' },
  query: {
    file: Type.Optional(
      Type.String({ errorMessage: 'stands there more than once', description: 'Only those of this file.' }),
    ),
    ...pageQuery({ most: REFERENCES_MOST, usual: REFERENCES_USUAL, placeOf }),
  },
  answers: {
    200: {
      about: 'One page',
      schema: record({
        references: list(referenceView),
        cursor: { ...textOrNull, description: 'Null at the end.' },
      }),
    },
    404: { about: 'There is no such import, or it has no such file' },
  },
} satisfies Declaration

/** Characters of an id that callers choose. */
const PROJECT_CHARS_MOST = 200

export const putProject = {
  id: 'projects.put',
  system,
  summary: 'Set the questions of a project',
  access: 'api key',
  path: {
    projectId: ruled(
      Type.String({ maxLength: PROJECT_CHARS_MOST, description: 'The id of the project, chosen by you.' }),
      (id) => (id.trim() === '' ? 'is blank' : unstorable(id)),
    ),
  },
  body: {
    schema: Type.Object({ questions: Type.Array(Type.Unknown()) }),
    example: { questions: ['Is it a randomised trial?'] },
  },
  answers: {
    200: { about: 'As it stands now', schema: record({ projectId: text, questions: count }) },
    403: { about: 'The caller has no right to use this system, or the workspace keeps as much as it may' },
  },
  repeat: natural('projects.put', {
    repeats: 'it writes the same document again',
    businessUniqueness: 'the id of the project, inside of its workspace',
    outbox: 'nothing is published',
    tests,
  }),
} satisfies Declaration

export const receiveNotification: Declaration = {
  id: 'hooks.s3',
  system,
  summary: 'Announce files that a storage has received',
  description:
    'Notifications in the form of S3, as they are or in the envelope of SNS or EventBridge, as often as the sender likes. ' +
    'The last two parts of an object’s key are the id of the import and the name of the file; with files in a bucket, it ' +
    'has to be that bucket. Every record is checked before the first one counts. `postponed` are files that cannot be ' +
    'seen in the bucket yet: they are looked for until their import ends. When SNS asks whether a topic may send here, ' +
    'its address is logged for a person to open.',
  access: 'hook secret',
  body: {
    type: 'application/json',
    schema: {
      ...record({ Records: { type: 'array', items: { type: 'object' } } }, ['Records']),
      additionalProperties: true,
    },
    example: notificationOf({
      bucket: BUCKET,
      key: 'imports/5f0c8a4e/pubmed.nbib',
      file: { etag: 'd41d8cd9', bytes: 1_024 },
      storedAt: 0,
    }),
  },
  answers: {
    200: {
      about: 'Taken',
      schema: record({ received: count, duplicates: count, postponed: count, ignored: count }, ['postponed']),
    },
    404: { about: 'A record names no import, or no file of its import' },
    409: { about: 'A record names a file that is not in the storage, or contradicts an earlier announcement' },
  },
  repeat: natural('hooks.s3', {
    repeats: 'a record is known by its bucket, key, version and sequencer, and received files are a set',
    businessUniqueness: 'one search, one set of files',
    outbox: 'SearchUploadSaved commits with the last file of the set, once',
    tests,
  }),
}
