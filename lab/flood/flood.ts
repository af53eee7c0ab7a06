import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

/** What one tenant does to a server. */
export interface Flood {
  readonly port: number
  readonly path: string
  readonly token: string
  /** Requests per second. */
  readonly rate: number
  readonly rooms: number
  readonly slow: number
  readonly halfSent: number
  readonly halfSentBytes: number
}

/** What another one notices of it. */
export interface Quiet {
  readonly path: string
  readonly token: string
  /** From where it asks. */
  readonly localAddress: string
}

export interface Target {
  readonly name: string
  readonly pid: number
  readonly flood: Flood
  readonly quiet: Quiet
  /** Whether nothing of the flood is held any more. */
  readonly isIdle: () => Promise<boolean>
}

const BEFORE_MS = 5_000
const EVERY_MS = 1_000
const RSS_MOST_MIB = 512
const NORMAL_MOST_MS = 10_000
const GIVE_UP_MS = 60_000

/** Floods for a while, and prints what a quiet tenant noticed, what was refused, and when all was as before. */
export async function runFlood(target: Target, floodMs: number): Promise<boolean> {
  const say = (line: string) => console.log(`${target.name}: ${line}`)
  const rss = watchRss(target.pid)
  try {
    const before = await asked(target, BEFORE_MS)
    const startMib = rss.nowMib()
    say(`before: ${summary(before)}, ${startMib} MiB`)
    const child = fork(join(import.meta.dirname, 'flooder.ts'), [JSON.stringify(target.flood)], {
      execArgv: ['--conditions=onceonly-source'],
    })
    let counts: Readonly<Record<string, number>> = {}
    child.on('message', (message) => (counts = message as typeof counts))
    const during = await asked(target, floodMs)
    child.disconnect()
    await once(child, 'exit')
    const endMs = performance.now()
    for (const [what, count] of Object.entries(counts)) say(`  ${what}: ${count}`)
    say(`during ${floodMs / 1_000} s: ${summary(during)}; peak ${rss.peakMib()} MiB (goal ${RSS_MOST_MIB})`)
    const normalMs = await backToNormal(target, endMs, median(before))
    say(
      `back to normal after ${normalMs === null ? 'more than a minute' : `${(normalMs / 1_000).toFixed(1)} s`} (goal 10 s), ${rss.nowMib()} MiB`,
    )
    const lost = during.filter(({ status }) => status >= 400).length
    return lost === 0 && rss.peakMib() < RSS_MOST_MIB && normalMs !== null && normalMs < NORMAL_MOST_MS
  } finally {
    rss.stop()
  }
}

interface Seen {
  readonly status: number
  /** What was wrong. */
  readonly problem: string
  readonly ms: number
}

/** One request in each second, whether those before it are answered or not. */
async function asked(target: Target, forMs: number): Promise<readonly Seen[]> {
  const open: Promise<Seen>[] = []
  for (let passedMs = 0; passedMs < forMs; passedMs += EVERY_MS) {
    open.push(ask(target))
    await sleep(EVERY_MS)
  }
  return Promise.all(open)
}

let number = 0

function ask({ flood: { port }, quiet }: Target): Promise<Seen> {
  const { promise, resolve } = Promise.withResolvers<Seen>()
  const n = number++
  const startedMs = performance.now()
  const body = JSON.stringify({ recipientPhone: `+49160${n}`, message: `quiet ${n}` })
  const request = httpRequest({
    host: '127.0.0.1',
    port,
    path: quiet.path,
    method: 'POST',
    agent: false,
    localAddress: quiet.localAddress,
    headers: {
      authorization: `Bearer ${quiet.token}`,
      'content-type': 'application/json',
      'content-length': body.length,
      'idempotency-key': `quiet-${process.pid}-${n}`,
    },
  })
  const over = (status: number, problem: string) => resolve({ status, problem, ms: performance.now() - startedMs })
  request.on('response', (answer) => {
    text(answer)
      .then((body) => over(answer.statusCode ?? 0, /"type":"[^"]*\/([a-z-]+)"/.exec(body)?.[1] ?? ''))
      .catch(() => over(599, 'cut'))
  })
  request.on('error', () => over(599, 'cut'))
  request.end(body)
  return promise
}

async function backToNormal(target: Target, sinceMs: number, usualMs: number): Promise<number | null> {
  while (performance.now() - sinceMs < GIVE_UP_MS) {
    const { status, ms } = await ask(target)
    if (status < 400 && ms < 3 * usualMs + 10 && (await target.isIdle())) return performance.now() - sinceMs
    await sleep(100)
  }
  return null
}

const sorted = (seen: readonly Seen[]) => seen.map(({ ms }) => ms).sort((a, b) => a - b)
const median = (seen: readonly Seen[]) => sorted(seen)[Math.floor(seen.length / 2)] ?? 0

function summary(seen: readonly Seen[]): string {
  const all = sorted(seen)
  const p99 = all[Math.min(all.length - 1, Math.floor(all.length * 0.99))] ?? 0
  const lost = seen.filter(({ status }) => status >= 400).map(({ status, problem }) => `${status} ${problem}`)
  return `${seen.length} quiet requests, ${lost.length} lost ${lost.length === 0 ? '' : `(${lost.join(', ')}) `}median ${median(seen).toFixed(0)} ms, p99 ${p99.toFixed(0)} ms`
}

function watchRss(pid: number): { peakMib(): number; nowMib(): number; stop(): void } {
  const read = (name: string) =>
    Math.round(
      Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024,
    )
  let peak = 0
  const timer = setInterval(() => {
    peak = Math.max(peak, read('VmRSS'))
  }, 100)
  return { peakMib: () => peak, nowMib: () => read('VmRSS'), stop: () => clearInterval(timer) }
}
