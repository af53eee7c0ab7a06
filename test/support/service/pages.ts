import { after, before } from 'node:test'
import { buildPages } from '../../../console/build.ts'
import { openBrowser, skip, type TestBrowser } from '../browser.ts'
import { type Opened, openedService } from './openapi/opened.ts'

/** A server with its pages, and a browser. */
export interface Pages {
  readonly url: string
  /** The folder of the server's store. */
  readonly data: string
  readonly browser: TestBrowser
}

/** Opens them once for all tests of a file; the members exist while a test runs. */
export function openPages(): Pages {
  let opened: Opened
  let browser: TestBrowser
  before(async () => {
    if (skip !== false) return
    await buildPages()
    opened = await openedService()
    browser = await openBrowser()
  })
  after(async () => {
    if (skip !== false) return
    await browser[Symbol.asyncDispose]()
    await opened[Symbol.asyncDispose]()
  })
  return {
    get url() {
      return opened.service.url
    },
    get data() {
      return opened.data
    },
    get browser() {
      return browser
    },
  }
}
