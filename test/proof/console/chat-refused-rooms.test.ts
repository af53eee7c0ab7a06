import { after, before, test } from 'node:test'
import { buildPages } from '../../../console/build.ts'
import { skip } from '../../support/browser.ts'
import {
  type ChatService,
  inState,
  type OwnBrowser,
  openChatService,
  openOwnBrowser,
  say,
  sit,
} from '../../support/chat.ts'

let service: ChatService
let browser: OwnBrowser

before(async () => {
  if (skip !== false) return
  await buildPages()
  service = await openChatService({ ONCEONLY_QUOTA_ROOMS: '1' })
  browser = await openOwnBrowser()
})
after(async () => {
  if (skip !== false) return
  await browser[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

test('messages for rooms that refuse entry block nothing: the rest of a closed tab is sent', {
  skip,
}, async () => {
  const grace = await browser.context.newPage()
  await sit(grace, service.url, 'room', 'Grace')
  const ada = await browser.context.newPage()
  // As many as send at a time, and before the others in the list of databases.
  for (const room of ['full-1', 'full-2', 'full-3', 'full-4']) {
    await ada.goto(`${service.url}/chat?room=${room}&as=Ada`)
    await say(ada, 'Ada', `for ${room}`)
    await inState(ada, `for ${room}`, 'pending').waitFor()
  }
  await sit(ada, service.url, 'room', 'Ada')
  await ada.getByRole('button', { name: 'Drop 30 s' }).click()
  await ada.locator('[data-link="dropped"]').waitFor()
  await say(ada, 'Ada', 'for all')
  await inState(ada, 'for all', 'pending').waitFor()
  await ada.close()
  await inState(grace, 'for all', 'final').waitFor()
})
