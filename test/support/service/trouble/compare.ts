import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { until } from '../../../../src/testing/until.ts'
import type { Commands } from '../../admin/cli/commands.ts'
import { assertAlerts, type Observed, valueOf } from './alerts.ts'
import type { ConsolePages } from './pages.ts'
import type { Trouble } from './row.ts'
import { assertServed } from './served.ts'
import { type Made, type Place, troubles } from './trouble.ts'

/** How one place is asked: the command line on its store, its console, its metrics. */
export interface Asking {
  readonly commands: Commands
  /** What the pages of its console ask. */
  readonly console: (path: string) => Promise<string>
  readonly pages: ConsolePages
  /** Of each of its processes. */
  metrics(): Promise<readonly string[]>
}

/** What was made at one place, on every interface; and then what its values fire. */
export async function compare<At extends Place>(
  promtool: string,
  at: At,
  asking: Asking,
  made: Made<At>,
): Promise<void> {
  const observed: Observed[] = []
  const here = Object.entries(troubles[at] as Readonly<Record<string, Trouble>>)
  for (const [name, trouble] of here) {
    const id = (made as Readonly<Record<string, string | undefined>>)[name]
    if (id !== undefined) observed.push(...(await compareOne(asking, name, trouble, id)))
  }
  await compareCards(
    asking.pages,
    here.map(([, trouble]) => trouble),
  )
  await assertOneList(asking)
  const texts = await asking.metrics()
  for (const text of texts) assertMetrics(promtool, text)
  assertServed(promtool, at, texts)
  assertAlerts(promtool, observed)
}

async function compareOne(
  { commands, console, pages, metrics }: Asking,
  name: string,
  trouble: Trouble,
  id: string,
): Promise<readonly Observed[]> {
  const command = trouble.command.replace('ID', id)
  const shown = trouble.shows ?? id
  const shows = (text: string) => text.replaceAll(/[ \n]/g, '').includes(shown)
  const listed = async () => (await commands.run(...command.split(' '), '--json')).stdout
  // First the console: a server writes down the minute under way when it is asked for the history.
  await until(`${name}: the console answers ${shown}`, () => console(pathOf(command)), shows)
  await until(`${name}: the command line shows ${shown}`, listed, shows)
  const { says = trouble.shows === undefined ? id : '' } = trouble
  const { stdout } = await commands.run(...command.split(' '))
  assert.ok(stdout.includes(says), `${name}: onceonly ${command} prints ${says}: ${stdout}`)
  const found = await commands.run('find', id === '' ? name : id, '--json')
  assert.equal(found.status, id === '' ? 1 : 0, `${name}: find ${id}: ${found.stdout}`)
  if (trouble.page !== null) await pages.see(pageOf(trouble.page, found.stdout), trouble.sees ?? shown)
  const { metric, alert, above = 0, lasts = false } = trouble
  if (metric === null) return []
  // Each process counts what it did itself; what is stored, all of them read alike.
  const together = /_total\b/.test(metric) ? (a: number, b: number) => a + b : Math.max
  const counted = async () =>
    (await metrics()).map((text) => valueOf(text, metric) ?? 0).reduce((a, b) => together(a, b), 0)
  const value = await until(`${name}: ${metric} counts it`, counted, (count) => count > above)
  return [{ series: metric, value, alert, lasts }]
}

/** Commands whose path in the console is another word. */
const renamed: Readonly<Record<string, string>> = { rooms: '/streams', queue: '/queues', outbox: '/events/outbox/dead' }

/** `runs --state failed` is `/runs?state=failed` of the console: both run the same row of the table. */
function pathOf(command: string): string {
  const [first = '', second = '', third = ''] = command.split(' ')
  const query = new URLSearchParams(
    [...command.matchAll(/--(\w+)(?: (?!--)(\S+))?/g)].map(([, name = '', value = 'true']): [string, string] => [
      name,
      value,
    ]),
  )
  if (first === 'explain') query.set('key', second)
  const path = first === 'saga' ? `/sagas/${third}/instances` : (renamed[first] ?? `/${first}`)
  return query.size === 0 ? path : `${path}?${query.toString()}`
}

function pageOf(page: string, found: string): string {
  if (page !== 'FOUND') return page
  const rows = JSON.parse(found) as readonly { readonly page: string | null }[]
  return rows.map((row) => row.page).find((each) => each !== null) ?? ''
}

/** What lasts or grows for minutes raises a card as well, and that takes as long as the test happens to take. */
const growing =
  /^(?:Background work fails|Outbox grows|Outbox falls behind|Dead letters increase|Stuck runs increase|Run queues grow)$/

/** The overview raises the cards of what was made, with their pages, and no others. */
async function compareCards(pages: ConsolePages, here: readonly Trouble[]): Promise<void> {
  const wanted = new Map(
    here.flatMap(({ card, page, cardPage = page }) => (card === null ? [] : [[card, cardPage] as const])),
  )
  const raised = async () =>
    new Map([...(await pages.cards())].filter(([title]) => wanted.has(title) || !growing.test(title)))
  const seen = await until('the overview raises the cards', raised, (cards) => cards.size >= wanted.size)
  assert.deepEqual(Object.fromEntries(seen), Object.fromEntries(wanted))
}

/** The list of what waits for a decision is as long as its four gauges say, on every interface. */
async function assertOneList({ commands, console, metrics }: Asking): Promise<void> {
  const gauges = ['dedup_unknown_waiting', 'runs_unknown', 'outbox_dead_letters', 'inbox_dead_letters']
  const [cli, page] = await Promise.all([commands.run('unknowns', '--json'), console('/unknowns')])
  const idsOf = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id).toSorted()
  const rows = idsOf(JSON.parse(cli.stdout) as { id: string }[])
  assert.deepEqual(idsOf((JSON.parse(page) as { rows: { id: string }[] }).rows), rows)
  const series = new RegExp(`^onceonly_(?:${gauges.join('|')})(?:\\{.*\\})? (\\d+)$`, 'gm')
  const sum = async () => {
    const [text = ''] = await metrics()
    return [...text.matchAll(series)].reduce((total, [, count]) => total + Number(count), 0)
  }
  await until('the gauges count what the list has', sum, (count) => count === rows.length)
}

function assertMetrics(promtool: string, text: string): void {
  const { status, stdout, stderr } = spawnSync(promtool, ['check', 'metrics'], { encoding: 'utf8', input: text })
  assert.deepEqual([status, stdout + stderr], [0, ''])
  assert.match(text, /^process_cpu_seconds_total /m)
  assert.match(text, /^nodejs_eventloop_active_seconds_total /m)
  for (const [line] of text.matchAll(/^[^#\n].*$/gm))
    assert.match(line, /^(?:onceonly|process|nodejs)_\w+(?:\{.*\})? \S+$/)
}
