import { findProgram, promtool } from '../../../../tools/servers/programs.ts'
import { startCommands } from '../../admin/cli/commands.ts'
import { openBrowser, skip as skipBrowser } from '../../browser.ts'
import type { TestServer } from '../cluster.ts'
import type { Asking } from './compare.ts'
import { openPages } from './pages.ts'

const program = await findProgram(promtool)
export const promtoolProgram = program ?? ''
const postgres = process.env['ONCEONLY_TEST_POSTGRES_URL']
export const skipTrouble =
  program === null ? 'promtool is not installed' : postgres === undefined ? 'no PostgreSQL server' : skipBrowser

export interface Place {
  /** Of its store, as the command line takes it. */
  readonly store: string
  /** Where its console is. */
  readonly url: string
  readonly token: string
  readonly env?: NodeJS.ProcessEnv
  metrics(): Promise<readonly string[]>
}

export type OpenPlace = Asking & AsyncDisposable

/** The command line on a store, and a browser in which an operator has signed in at its console. */
export async function openPlace({ store, url, token, env = {}, metrics }: Place): Promise<OpenPlace> {
  await using stack = new AsyncDisposableStack()
  const commands = stack.use(startCommands(process.cwd(), { ...process.env, ...env, ONCEONLY_STORE: store }))
  const browser = stack.use(await openBrowser())
  const pages = await openPages(browser, url, token)
  const disposal = stack.move()
  return {
    commands,
    pages,
    console: (path) => getText(`${url}/api/console${path}`, token),
    metrics,
    [Symbol.asyncDispose]: () => disposal.disposeAsync(),
  }
}

/** Of the servers of a test. */
export const operator = 'operator-token-of-tests'

export function metricsOf({ url }: Pick<TestServer, 'url'>): Promise<string> {
  return getText(`${url}/metrics`, operator)
}

export async function getText(url: string, bearer: string): Promise<string> {
  return await (await fetch(url, { headers: { authorization: `Bearer ${bearer}` } })).text()
}
