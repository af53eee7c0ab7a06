import { MINUTE } from 'onceonly'
import { defineSaga, event, type Ignore, type Tools, timeout } from 'onceonly/saga'
import { sentenceOf } from '../http/problem.ts'
import { type FileFault, readFault, readParsed, readStarted, type SearchUploadStarted, topics } from './events.ts'
import { completeJob, failJob, getOrCreateJob, type Job, markFilesReceived, startParsing } from './jobs.ts'
import { checkMetadata, goodMetadata } from './metadata.ts'
import { uploadsOf } from './searches.ts'

/** What an import knows of itself. Parsed files are a set, because every event may come twice. */
export interface SearchImport {
  workspaceId: string
  projectId: string
  searchName: string
  referenceFiles: readonly string[]
  parsed: Set<string>
  reason: string | null
}

/** Files come from a person at a desk, one after the other; an hour without the last one means that the person has left. */
export const UPLOAD_TIMEOUT_MS = 60 * MINUTE

const ignored = (because: string): Ignore => ({ kind: 'ignore', because })
const unknown = ignored('there is no such import')
const nothingParses = ignored('nothing is parsed before everything is uploaded')
const received = ignored('the files were received before')

export const SEARCH_IMPORT = 'SearchImportJob'

/** `Uploading → Uploaded → Parsing → Completed | Error`: six events, every pair decided. */
export const searchImportJob = defineSaga({
  name: SEARCH_IMPORT,
  events: {
    SearchUploadStarted: event({ parse: readStarted, correlate: searchIdOf }),
    SearchUploadSaved: event({ parse: readStarted, correlate: searchIdOf }),
    ReferenceFileParsingCompleted: event({ parse: readParsed, correlate: searchIdOf }),
    ReferenceFileFaulted: event({ parse: readFault, correlate: searchIdOf }),
    StartParsingFaulted: event({ parse: readFault, correlate: searchIdOf }),
    UploadTimeout: timeout(),
  },
  states: ['Uploading', 'Uploaded', 'Parsing'],
  terminal: ['Completed', 'Error'],
  failed: ['Error'],
  // A search is imported once: late events find its tombstone, and after that its permanent claim.
  oneShot: true,
  data: (): SearchImport => ({
    workspaceId: '',
    projectId: '',
    searchName: '',
    referenceFiles: [],
    parsed: new Set(),
    reason: null,
  }),
  table: {
    initial: {
      SearchUploadStarted: {
        to: ['Uploading'],
        async handle(data, started, tools) {
          warnAbout(started, tools)
          fillIn(data, started)
          await makeJob(data, tools)
          tools.schedule('UploadTimeout', null, { afterMs: UPLOAD_TIMEOUT_MS })
          tools.transitionTo('Uploading')
        },
      },
      SearchUploadSaved: {
        to: ['Uploaded', 'Parsing', 'Completed', 'Error'],
        async handle(data, saved, tools) {
          const to = await receive(data, saved, tools)
          tools.transitionTo(to)
        },
      },
      ReferenceFileParsingCompleted: unknown,
      ReferenceFileFaulted: unknown,
      StartParsingFaulted: unknown,
      UploadTimeout: unknown,
    },
    Uploading: {
      SearchUploadStarted: startedAgain,
      SearchUploadSaved: {
        to: ['Uploaded', 'Parsing', 'Completed', 'Error'],
        async handle(data, saved, tools) {
          tools.unschedule('UploadTimeout')
          const to = await receive(data, saved, tools)
          tools.transitionTo(to)
        },
      },
      ReferenceFileParsingCompleted: nothingParses,
      ReferenceFileFaulted: nothingParses,
      StartParsingFaulted: nothingParses,
      UploadTimeout: {
        to: ['Error'],
        async handle(data, _timeout, tools) {
          const uploads = await uploadsOf(tools.tx, tools.id)
          const missing = uploads.filter(({ received_at }) => received_at === null).map(({ name }) => name)
          data.reason = `Not every file came within ${UPLOAD_TIMEOUT_MS / MINUTE} minutes; missing: ${missing.join(', ')}`
          tools.transitionTo('Error')
        },
      },
    },
    Uploaded: {
      SearchUploadStarted: startedAgain,
      SearchUploadSaved: received,
      ReferenceFileParsingCompleted(data, { file }) {
        data.parsed.add(file)
      },
      ReferenceFileFaulted: { to: ['Error'], handle: faulted },
      StartParsingFaulted: { to: ['Error'], handle: faulted },
      UploadTimeout: received,
    },
    Parsing: {
      SearchUploadStarted: startedAgain,
      SearchUploadSaved: received,
      ReferenceFileParsingCompleted: {
        to: ['Completed'],
        handle(data, { file }, tools) {
          if (data.referenceFiles.includes(file)) data.parsed.add(file)
          else tools.warn(`${file} is none of the files of this import`)
          if (isParsed(data)) tools.transitionTo('Completed')
        },
      },
      ReferenceFileFaulted: { to: ['Error'], handle: faulted },
      StartParsingFaulted: { to: ['Error'], handle: faulted },
      UploadTimeout: received,
    },
  },
  onEnter: {
    Uploaded: {
      to: ['Parsing'],
      async handle(data, tools) {
        await startParsing(tools.tx, tools.id, tools.now)
        // Without an order: the files of one import are parsed at the same time.
        for (const file of data.referenceFiles) tools.send(topics.parse, { searchId: tools.id, file }, { key: null })
        tools.transitionTo('Parsing')
      },
    },
    Parsing: {
      to: ['Completed'],
      handle(data, tools) {
        if (isParsed(data)) tools.transitionTo('Completed')
      },
    },
    Completed: (_data, { tx, id, now }) => completeJob(tx, id, now),
    Error: (data, { tx, id, now }) => failJob(tx, id, data.reason ?? 'No reason was given', now),
  },
})

function searchIdOf({ searchId }: { readonly searchId: string }): string {
  return searchId
}

function isParsed({ referenceFiles, parsed }: SearchImport): boolean {
  return referenceFiles.length > 0 && referenceFiles.every((file) => parsed.has(file))
}

/**
 * What is there already stays: of two events that disagree, the first one was acted on. What is wrong is not taken over,
 * so that it can still be mended by the next one.
 */
function fillIn(data: SearchImport, started: SearchUploadStarted): void {
  const { projectId = '', searchName = '', referenceFiles = [] } = goodMetadata({ ...started })
  data.workspaceId ||= started.workspaceId
  data.projectId ||= projectId
  data.searchName ||= searchName
  if (data.referenceFiles.length === 0) data.referenceFiles = referenceFiles
}

function complaints(event: SearchUploadStarted): string | null {
  const result = checkMetadata({ ...event })
  return 'errors' in result ? sentenceOf(result.errors) : null
}

function warnAbout(started: SearchUploadStarted, tools: Pick<Tools, 'warn'>): void {
  const wrong = complaints(started)
  if (wrong !== null) tools.warn(`SearchUploadStarted has bad metadata: ${wrong}`)
}

/** Late, or twice: it may know something that is missing here, and changes nothing else. */
function startedAgain(data: SearchImport, started: SearchUploadStarted, tools: Pick<Tools, 'warn'>): void {
  warnAbout(started, tools)
  fillIn(data, started)
}

type At = Pick<Tools, 'id' | 'tx' | 'now' | 'warn'>

function makeJob({ workspaceId, projectId, searchName, referenceFiles }: SearchImport, at: At): Promise<Job> {
  const job = { searchId: at.id, workspaceId, projectId, searchName, referenceFiles }
  return getOrCreateJob(at.tx, job, at.now)
}

/** Everything is uploaded. The job decides whether that is news: it is there for good, the instance is not. */
async function receive(
  data: SearchImport,
  saved: SearchUploadStarted,
  at: At,
): Promise<'Uploaded' | 'Parsing' | 'Completed' | 'Error'> {
  const wrong = complaints(saved)
  fillIn(data, saved)
  const job = await makeJob(data, at)
  if (wrong !== null) {
    data.reason = `SearchUploadSaved has bad metadata: ${wrong}`
    return 'Error'
  }
  if (await markFilesReceived(at.tx, at.id, at.now)) return 'Uploaded'
  at.warn(`The job is ${job.state} already; nothing is parsed again`)
  return job.state === 'Uploading' || job.state === 'Uploaded' ? 'Parsing' : job.state
}

function faulted(
  data: SearchImport,
  { file, reason }: FileFault,
  { transitionTo }: { transitionTo(state: 'Error'): void },
): void {
  data.reason = `${file}: ${reason}`
  transitionTo('Error')
}
