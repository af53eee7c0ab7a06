import { HOUR } from 'onceonly'
import type { SagaDefinition, Tools } from 'onceonly/saga'
import { defer, defineSaga, event, fault, ignore, timeout } from 'onceonly/saga'

/** A saga of the tests: a search is uploaded, its files are parsed, and everything may come twice or out of order. */

export interface ImportData {
  files: string[]
  readonly parsed: Set<string>
  reason: string | null
}

interface OfSearch {
  readonly searchId: string
}

/** What happens while a handler runs. */
export interface Hooks {
  /** After the handler did its part, before anything is saved. */
  readonly inside?: (event: string, tools: Pick<Tools, 'id' | 'tx' | 'effectKey'>) => void | Promise<void>
  readonly oneShot?: boolean
}

export const events = {
  Started: event<OfSearch>({ correlate: ({ searchId }) => searchId }),
  Saved: event<OfSearch & { readonly files: string[] }>({ correlate: ({ searchId }) => searchId }),
  FileParsed: event<OfSearch & { readonly name: string }>({ correlate: ({ searchId }) => searchId, topic: 'parsed' }),
  Faulted: event<OfSearch & { readonly reason: string }>({ correlate: ({ searchId }) => searchId }),
  Cancelled: event<OfSearch>({ correlate: ({ searchId }) => searchId }),
  UploadTimeout: timeout<{ readonly reason: string }>(),
}

export const UPLOAD_MS = HOUR

export type ImportSaga = SagaDefinition<ImportData, typeof events, 'Uploading' | 'Parsing', 'Completed' | 'Error'>

export function defineImports({ inside, oneShot = true }: Hooks = {}): ImportSaga {
  return defineSaga({
    name: 'imports',
    events,
    states: ['Uploading', 'Parsing'],
    terminal: ['Completed', 'Error'],
    oneShot,
    data: (): ImportData => ({ files: [], parsed: new Set(), reason: null }),
    table: {
      initial: {
        Started: {
          to: ['Uploading'],
          async handle(_data, _event, tools) {
            tools.schedule('UploadTimeout', { reason: 'too slow' }, { afterMs: UPLOAD_MS })
            tools.transitionTo('Uploading')
            await inside?.('Started', tools)
          },
        },
        Saved: {
          to: ['Parsing'],
          async handle(data, { files }, tools) {
            data.files = [...files]
            tools.transitionTo('Parsing')
            await inside?.('Saved', tools)
          },
        },
        FileParsed: defer,
        Faulted: fault,
        Cancelled: { ...ignore, because: 'there is nothing to cancel' },
        UploadTimeout: ignore,
      },
      Uploading: {
        async Started(_data, _event, tools) {
          tools.warn('started twice')
          tools.schedule('UploadTimeout', { reason: 'too slow, again' }, { afterMs: UPLOAD_MS })
          await inside?.('Started', tools)
        },
        Saved: {
          to: ['Parsing', 'Error'],
          async handle(data, { files }, tools) {
            // A mutation of the event: the next attempt must not see it.
            data.files = files.splice(0)
            tools.unschedule('UploadTimeout')
            if (data.files.length === 0) data.reason = 'no files'
            tools.transitionTo(data.files.length === 0 ? 'Error' : 'Parsing')
            await inside?.('Saved', tools)
          },
        },
        FileParsed: defer,
        Faulted: fault,
        Cancelled: { to: ['Error'], handle: (data, _event, tools) => end(data, 'cancelled', tools) },
        UploadTimeout: {
          to: ['Error'],
          async handle(data, { reason }, tools) {
            end(data, reason, tools)
            await inside?.('UploadTimeout', tools)
          },
        },
      },
      Parsing: {
        Started: ignore,
        Saved: ignore,
        FileParsed: {
          to: ['Completed'],
          async handle(data, { name }, tools) {
            data.parsed.add(name)
            if (data.files.every((file) => data.parsed.has(file))) tools.transitionTo('Completed')
            await inside?.('FileParsed', tools)
          },
        },
        Faulted: { to: ['Error'], handle: (data, { reason }, tools) => end(data, reason, tools) },
        Cancelled: fault,
        UploadTimeout: ignore,
      },
    },
    onEnter: {
      Parsing(data, tools) {
        for (const file of data.files) tools.send('StartParsing', { searchId: tools.id, file })
      },
      Completed: (data, tools) => tools.publish('ImportCompleted', { searchId: tools.id, files: data.files.length }),
    },
  })
}

function end(data: ImportData, reason: string, tools: { transitionTo(state: 'Error'): void }): void {
  data.reason = reason
  tools.transitionTo('Error')
}
