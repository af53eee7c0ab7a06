import { join } from 'node:path'
import { after, before } from 'node:test'
import { type SqliteStore, sqliteStore } from 'onceonly/sqlite'
import { buildPages } from '../../../console/build.ts'
import { openBrowser, skip, type TestBrowser } from '../browser.ts'
import { type Opened, openedService } from '../service/openapi/opened.ts'

/** What the tests of one file have from its first test to its last. */
export interface Stand {
  opened: Opened
  browser: TestBrowser
  /** Of another process on the same file. */
  store: SqliteStore
}

/** A server with its pages, a browser, and the store of another process. */
export function standing(prepare: (stand: Stand) => Promise<void> = async () => {}): Stand {
  const stand = {} as Stand
  before(async () => {
    if (skip !== false) return
    await buildPages()
    stand.opened = await openedService()
    stand.browser = await openBrowser()
    stand.store = sqliteStore(join(stand.opened.data, 'onceonly.db'), { testClock: true })
    await prepare(stand)
  })
  after(async () => {
    if (skip !== false) return
    await stand.browser[Symbol.asyncDispose]()
    await stand.store.stop()
    await stand.opened[Symbol.asyncDispose]()
  })
  return stand
}
