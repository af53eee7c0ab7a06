import assert from 'node:assert/strict'
import { connect } from 'node:net'
import fc from 'fast-check'
import { hostileRequests, type RequestWords } from './requests.ts'

/** Many at once, as many callers would; fewer than a server takes. */
const AT_ONCE = 32
/** Every request is answered or cut by then. */
const ANSWER_MS = 120_000
/** Some requests declare more bytes than they send; the client ends its side after this time. */
const LEAVE_MS = 300
const BATCH = 500

export interface Thrown {
  readonly requests: number
  /** How many were answered with which status; `cut` were not answered at all. */
  readonly answers: Readonly<Record<string, number>>
}

export interface ThrowOptions extends RequestWords {
  readonly port: number
  readonly requests: number
  readonly seed: number
  progress?(line: string): void
}

/** Throws bytes at a server. Nothing may make it fail, wait, or say that the mistake is its own. */
export async function throwRequests(options: ThrowOptions): Promise<Thrown> {
  const answers: Record<string, number> = {}
  const made = hostileRequests(options)
  for (let done = 0; done < options.requests; done += BATCH) {
    const seed = options.seed + done
    const batch = fc.sample(made, { seed, numRuns: Math.min(BATCH, options.requests - done) })
    const lane = async (first: number) => {
      for (let at = first; at < batch.length; at += AT_ONCE) {
        const bytes = batch[at]
        if (bytes === undefined) return
        const answer = await throwOne(options.port, bytes)
        const outcome = answer === '' ? 'cut' : answer.slice(9, 12)
        answers[outcome] = (answers[outcome] ?? 0) + 1
        const what = () => `seed ${seed}, number ${at}: ${answer}\n${bytes.subarray(0, 2_000).toString('latin1')}`
        assert.ok(
          outcome === 'cut' || /^HTTP\/1\.1 [1-4]\d\d /.test(answer) || outcome === '501' || outcome === '505',
          what(),
        )
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, (_, first) => lane(first)))
    options.progress?.(`${done + batch.length} of ${options.requests}: ${JSON.stringify(answers)}`)
  }
  return { requests: options.requests, answers }
}

function throwOne(port: number, bytes: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect(port, '127.0.0.1')
    const late = setTimeout(() => {
      reject(new Error(`No end within ${ANSWER_MS} ms of ${bytes.subarray(0, 2_000).toString('latin1')}`))
      socket.destroy()
    }, ANSWER_MS)
    socket.on('data', (chunk) => chunks.push(chunk))
    // A server that has read enough may reset the connection.
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(late)
      clearTimeout(leave)
      resolve(Buffer.concat(chunks).toString('latin1'))
    })
    socket.write(bytes)
    const leave = setTimeout(() => socket.end(), LEAVE_MS)
  })
}
