import assert from 'node:assert/strict'
import { mkdtemp, readlink, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createStreamClient, createWebSocketTransport, type MessageIdentity, type StreamClient } from 'onceonly/stream'
import { type BrowserContext, chromium, type Page } from 'playwright-core'
import { readConfig } from '../../service/config.ts'
import { startService } from '../../service/service.ts'
import { findPrograms } from '../../tools/servers/server.ts'
import { demoKey, operatorToken } from './service/openapi/opened.ts'

/** The whole server in this process, with settings of its own. */
export interface ChatService extends AsyncDisposable {
  readonly url: string
  /** Moves the time of its store. */
  advance(ms: number): Promise<void>
}

export async function openChatService(settings: Readonly<Record<string, string>>): Promise<ChatService> {
  const data = await mkdtemp(join(tmpdir(), 'onceonly-chat-'))
  const { url, stop } = await startService(
    readConfig({
      PORT: '0',
      ONCEONLY_DATA: data,
      ONCEONLY_DEMO_KEY: demoKey,
      ONCEONLY_OPERATOR_TOKEN: operatorToken,
      ONCEONLY_TEST_CLOCK: '1',
      ONCEONLY_LOG_LEVEL: 'silent',
      ...settings,
    }),
  )
  return {
    url,
    async advance(ms) {
      const response = await fetch(`${url}/api/admin/test-clock`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${operatorToken}`, 'content-type': 'application/json' },
        body: JSON.stringify({ advanceMs: ms }),
      })
      assert.ok(response.ok, await response.text())
    },
    async [Symbol.asyncDispose]() {
      await stop()
      await rm(data, { recursive: true, force: true })
    },
  }
}

/** Opens the chat in a page as one user, and waits until it is online. */
export async function sit(page: Page, url: string, room: string, name: string, region = 'frankfurt'): Promise<void> {
  await page.goto(`${url}/chat?room=${room}&as=${name}&region=${region}`)
  await online(page, name)
}

export const online = (page: Page, name: string) => page.locator(`[aria-label="${name}"][data-link="online"]`).waitFor()

export async function say(page: Page, name: string, text: string, replyTo?: string): Promise<void> {
  if (replyTo !== undefined) await page.getByRole('button', { name: `Reply to “${replyTo}”` }).click()
  await page.getByRole('textbox', { name: `${name} says` }).fill(text)
  await page.getByRole('button', { name: 'Send' }).click()
}

export const message = (page: Page, text: string) => page.locator(`[data-message=${JSON.stringify(text)}]`)
export const inState = (page: Page, text: string, state: string) =>
  message(page, text).locator(`> article[data-state="${state}"]`)

/** The texts of a page, from top to bottom, with the lines between them that say what is missing. */
export function lines(page: Page): Promise<readonly string[]> {
  return page.evaluate(
    `[...document.querySelectorAll('.messages .text, .messages .gap')].map((each) => each.textContent)`,
  )
}

/** A chat client without a browser. */
export async function talker(url: string, room: string, region = 'frankfurt'): Promise<StreamClient> {
  return await createStreamClient({
    room,
    regions: [region],
    transport: createWebSocketTransport({
      url: (each) => `${url.replace('http', 'ws')}/chat/socket?region=${each}`,
      token: () => demoKey,
    }),
    mode: 'at-least-once',
    from: 'start',
    receiver: { message: () => undefined },
  })
}

/** Sends many messages, and returns when a region has all of them. */
export async function sayMany(client: StreamClient, texts: readonly string[]): Promise<readonly MessageIdentity[]> {
  const sent = await Promise.all(texts.map((text) => client.send({ by: 'Linus', text })))
  await Promise.all(sent.map(({ accepted }) => accepted))
  return sent.map(({ identity }) => identity)
}

/** A browser with a profile of its own, which can be closed and opened again; pages of all its tabs share their storage. */
export interface OwnBrowser extends AsyncDisposable {
  readonly context: BrowserContext
  /** Closes or kills the browser, and opens it again with the same profile. */
  restart(how: 'close' | 'kill'): Promise<void>
}

/** Chromium marks a profile with the machine and the process that has it open. */
async function pidOf(profile: string): Promise<number> {
  const holder = await readlink(join(profile, 'SingletonLock'))
  return Number(holder.slice(holder.lastIndexOf('-') + 1))
}

/** Long enough for a busy machine; a page that never shows its content fails. */
const SHOWN_MS_MOST = 120_000

export async function openOwnBrowser(flags: readonly string[] = []): Promise<OwnBrowser> {
  const programs = findPrograms(['chromium'])
  if (programs === undefined) throw new Error('Chromium is not installed')
  const profile = await mkdtemp(join(tmpdir(), 'onceonly-profile-'))
  const open = async () => {
    const context = await chromium.launchPersistentContext(profile, {
      executablePath: join(programs, 'chromium'),
      headless: true,
      viewport: { width: 1280, height: 800 },
      args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking', ...flags],
    })
    context.setDefaultTimeout(SHOWN_MS_MOST)
    return context
  }
  let context = await open()
  return {
    get context() {
      return context
    },
    async restart(how) {
      if (how === 'kill') process.kill(await pidOf(profile), 'SIGKILL')
      // A killed browser may be gone already; then there is nothing to close.
      await context.close().catch((error: unknown) => {
        if (how === 'close') throw error
      })
      context = await open()
    },
    async [Symbol.asyncDispose]() {
      await context.close()
      // What is left of a killed browser may still write into it.
      await rm(profile, { recursive: true, force: true, maxRetries: 10 })
    },
  }
}
