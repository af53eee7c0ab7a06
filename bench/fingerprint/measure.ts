import { answer, mustEqual, readTask } from '../harness/program.ts'
import { createBodies } from './bodies.ts'

interface Task {
  readonly warmUpMs: number
  readonly measureMs: number
}

/** The clock is read once for so many fingerprints, so that reading it is no part of the figure. */
const BATCH = 256

/** Fingerprints the bodies over and over, after checking that this is a fingerprint at all. */
export function measure(fingerprint: (body: Buffer) => string): void {
  const bodies = createBodies()
  for (const { sent, retold } of bodies) mustEqual('the retold body', fingerprint(retold), fingerprint(sent))
  const sent = bodies.map((body) => body.sent)
  mustEqual('different fingerprints', new Set(sent.map(fingerprint)).size, sent.length)
  const { warmUpMs, measureMs } = readTask<Task>()
  run(warmUpMs)
  const before = process.cpuUsage()
  const { done, tookMs } = run(measureMs)
  const { user, system } = process.cpuUsage(before)
  answer({ perS: done / (tookMs / 1_000), cpuUs: (user + system) / done })

  function run(forMs: number): { done: number; tookMs: number } {
    const startedMs = performance.now()
    let done = 0
    let digits = 0
    for (;;) {
      for (let at = 0; at < BATCH; at++) digits += fingerprint(sent[done++ % sent.length] as Buffer).length
      const tookMs = performance.now() - startedMs
      if (tookMs < forMs) continue
      // Used, so that no compiler may leave the work out.
      if (digits < done) throw new Error('A fingerprint is empty.')
      return { done, tookMs }
    }
  }
}
